import { createCalendar, quarterMs } from '../../accounts/calendar.ts'
import { type FoundRow, type RowReading, readUsage, type UsageTail } from '../../accounts/usage/plan.ts'
import {
  type FoldProgress,
  type RankedSpend,
  rank,
  type SpendRanking,
  type UsageQuestion,
  unfoldedMax,
} from '../../accounts/usage/question.ts'
import { wordsOf } from '../../accounts/usage/rollup.ts'
import { refuseAway } from './archives.ts'
import { type Dialect, isOneOf, type Put } from './dialect.ts'
import { readParts } from './entries.ts'
import { createNames } from './names.ts'
import { ask, askOne, inSnapshot, rowsOf, type StoreStep } from './step.ts'
import {
  findRows,
  selectMost,
  selectOfEntries,
  selectRows,
  selectSpent,
  selectTail,
  type UsageDialect,
  wordsOfReading,
} from './usage.ts'
import { readUsageState } from './usage-keep.ts'
import { slices, type Words, wordKey } from './words.ts'

/**
 * Creates the queries of figures for reports. If few entries are not folded (summed) yet, the figures include them too.
 * @param tailMax if there are more unfolded entries than this, the figures include none of them
 */
export function createUsageReading(dialect: Dialect, usage: UsageDialect, words: Words, tailMax = unfoldedMax) {
  const { schema } = dialect
  const names = createNames(dialect)
  return {
    readUsage: (question: UsageQuestion) =>
      inSnapshot(
        readUsage(
          {
            state: () => readUsageState(dialect),
            tail: readTail,
            rows: readRows,
            entries: readEntries,
            lines: names.findLines,
            persons: names.namePersons,
            holders: names.findHolders,
          },
          question,
        ),
      ),
    rankSpent: (ranking: SpendRanking) => inSnapshot(rankSpent(ranking)),
    readUsageState: () => readUsageState(dialect),
    readFolding,
    readSpent,
    listModels,
    ...names,
  }

  function* readTail(reading: { from: number; to: number }): StoreStep<UsageTail> {
    const folding = yield* readFolding()
    if (folding.entries - folding.folded > tailMax) return { rows: [], folding }
    // If all entries are summed, there is nothing to search for. In PostgreSQL the search would read all accounts.
    if (folding.folded === folding.entries) return { rows: [] }
    return { rows: yield* rowsOf(selectTail(dialect, usage.tail, reading)) }
  }

  function* readFolding(): StoreStep<FoldProgress> {
    const row = (yield* askOne(dialect, () => usage.progress))!
    return { folded: Number(row['folded']), entries: Number(row['entries']) }
  }

  function* readRows(reading: RowReading): StoreStep<FoundRow[]> {
    const ids = yield* words.findIds(wordsOfReading(reading))
    const rows = yield* rowsOf(selectRows(dialect, reading, ids, usage.bucketing(reading), usage.joined))
    const known = yield* words.readWords(rows.flatMap((row) => reading.by.map((_, at) => Number(row[`d${at}`]))))
    return findRows(reading, rows, (id) => known.get(Number(id))!)
  }

  function* readEntries(reading: RowReading): StoreStep<FoundRow[]> {
    yield* refuseAway(dialect, reading.bounds[0]! * quarterMs, reading.bounds.at(-1)! * quarterMs)
    return findRows(reading, yield* rowsOf(selectOfEntries(dialect, reading)), (text) => text as string)
  }

  /**
   * Ranks spenders, beginning with the highest spend. Spenders with the same spend are sorted by id. The database sums
   * and sorts, so that it returns few rows even if there are many spenders.
   */
  function* rankSpent(ranking: SpendRanking): StoreStep<RankedSpend[]> {
    const { by, accountId, isWithoutSessions = false, days, nowMs, top } = ranking
    const state = yield* readUsageState(dialect)
    const calendar = createCalendar(state)
    const { endMs } = calendar.periodOf(nowMs, 'day')
    let fromMs = endMs
    for (let day = 0; day < days; day++) fromMs = calendar.periodOf(fromMs - 1, 'day').startMs
    const range = { from: Math.max(fromMs / quarterMs, state.keptFrom), to: endMs / quarterMs }
    const spent = new Map<string, bigint>()
    const add = (id: string, nanos: bigint) => id !== '' && spent.set(id, (spent.get(id) ?? 0n) + nanos)
    for (const row of (yield* readTail(range)).rows) {
      const of = wordsOf(row)
      if (accountId === undefined || of.account === accountId) add(of[by], BigInt(row['cost'] as bigint | string))
    }
    if (isWithoutSessions) for (const id of yield* findOfSessions([...spent.keys()])) spent.delete(id)
    const asked = [...spent.keys()].map((id) => [by, id] as const)
    const ids = yield* words.findIds(accountId === undefined ? asked : [...asked, ['account', accountId]])
    const unfolded = asked.flatMap(([kind, id]) => ids.get(wordKey(kind, id)) ?? [])
    const account = accountId === undefined ? undefined : (ids.get(wordKey('account', accountId)) ?? -1)
    const most = { by, account, isWithoutSessions, ...range, unfolded, limit: top + unfolded.length }
    const rows = yield* rowsOf(selectMost(dialect, most))
    const known = yield* words.readWords(rows.map(({ id }) => Number(id)))
    for (const row of rows) add(known.get(Number(row['id']))!, readParts(row, 'spent'))
    return rank([...spent].map(([id, nanos]) => ({ id, nanos }))).slice(0, top)
  }

  /** Returns those of the given keys that are keys of people's sessions. */
  function* findOfSessions(keys: readonly string[]): StoreStep<string[]> {
    const found: string[] = []
    for (const list of slices(keys)) {
      const select = (put: Put) =>
        `SELECT id FROM ${schema}.keys WHERE session IS NOT NULL AND ${isOneOf(put, 'id', list)}`
      for (const { id } of yield* ask(dialect, select)) found.push(id as string)
    }
    return found
  }

  /** Reads the total cost of a key, without debits that were reversed, in nano-credits. */
  function* readSpent(accountId: string, keyId: string): StoreStep<bigint> {
    const [row] = yield* rowsOf(selectSpent(dialect, accountId, keyId))
    return BigInt((row?.['spent'] as bigint | string | undefined) ?? 0)
  }

  /**
   * Lists the models of the entries in the ledger. Entries that are not summed yet are left out if there are too many.
   */
  function* listModels(): StoreStep<string[]> {
    const { from, where } = usage.tail
    const { folded, entries } = yield* readFolding()
    const unfolded = `UNION SELECT e.model FROM ${from} WHERE ${where} AND e.model IS NOT NULL`
    const models = yield* ask(
      dialect,
      () => `SELECT word AS model FROM ${schema}.usage_words WHERE kind = 'model'
        ${entries - folded > tailMax ? '' : unfolded} ORDER BY 1`,
    )
    return models.map(({ model }) => model as string)
  }
}
