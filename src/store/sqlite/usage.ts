import type { DatabaseSync } from 'node:sqlite'
import { spellZone, type Zone } from '../../accounts/calendar.ts'
import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { type FoundRow, planUsage, type RowReading, type UsageRead } from '../../accounts/usage/plan.ts'
import type { UsageAnswer, UsageQuestion, UsageState } from '../../accounts/usage/question.ts'
import type { SummedEntries } from '../../accounts/usage/rollup.ts'
import { findRows, selectRows, selectSpent, selectSummed, timeColumn, wordKey, wordsOfReading } from '../sql/usage.ts'
import { dialect } from './listing.ts'
import { readTogether } from './open.ts'
import { type Prepare, preparing } from './preparing.ts'

export type UsageReading = ReturnType<typeof createUsageReading>

/** Words that are remembered at once; each takes some 100 bytes. */
const wordsMax = 200_000

/** Entries that are in no row yet are the last ones. Times are no range for an index: of a year it has all entries of that year. */
export const selectTail = selectSummed(
  'entries e LEFT JOIN usage_marks m ON m.account_id = e.account_id',
  `e.id > (SELECT folded_id FROM usage_state) AND e.seq > ifnull(m.seq, 0)
   AND +e.posted_ms >= ? * 900000 AND +e.posted_ms < ? * 900000`,
)

const joined = (column: string) => `unhex(group_concat(hex(${column}), '${countsBreakHex}'))`

/** Figures for reports, read as exact as the ledger. */
export function createUsageReading(db: DatabaseSync) {
  const prepare = preparing(db)
  const idOfWord = new Map<string, number>()
  const wordOfId = new Map<number, string>()
  return { readUsage, readUsageState: () => readUsageState(prepare), readSpent, listModels }

  /** In one snapshot. */
  function readUsage(question: UsageQuestion): UsageAnswer {
    return readTogether(db, () => {
      const plan = planUsage(question)
      let step = plan.next()
      while (!step.done) step = plan.next(read(step.value))
      return step.value
    })
  }

  function read(reading: UsageRead): unknown {
    if (reading.kind === 'state') return readUsageState(prepare)
    return reading.kind === 'tail' ? readTail(reading) : readRows(reading)
  }

  function readTail({ from, to }: { from: number; to: number }): SummedEntries[] {
    return prepare(selectTail).all(from, to)
  }

  function readRows(reading: RowReading): FoundRow[] {
    const { bounds, by, grain, table } = reading
    const [time, pairs] = [timeColumn(grain), bounds.slice(1).map((end, at) => [bounds[at], end])]
    // The buckets are gone through one by one, and an index has the rows of each together; but days of keys, where it has not.
    const isIndexed = grain !== 'd'
    const bucketing = {
      from: isIndexed
        ? `json_each(?) b CROSS JOIN ${table}_${grain} u ON u.${time} >= b.value ->> 0 AND u.${time} < b.value ->> 1`
        : `${table}_d u`,
      bucket: isIndexed ? 'b.key' : undefined,
      values: isIndexed ? [JSON.stringify(pairs)] : [],
      isRanged: isIndexed,
      isInOrder: true,
    }
    const { text, values } = selectRows(dialect, reading, findIds(wordsOfReading(reading)), bucketing, joined)
    const rows = db.prepare(text).all(...values)
    const words = by.map((_, at) => readWords(rows.map((row) => Number(row[`d${at}`]))))
    return findRows(reading, rows, (at, id) => words[at]!.get(id)!)
  }

  function findIds(words: readonly (readonly [kind: string, word: string])[]): Map<string, number> {
    const ids = new Map<string, number>()
    for (const [kind, word] of words) {
      const key = wordKey(kind, word)
      const id =
        idOfWord.get(key) ??
        Number(prepare('SELECT id FROM usage_words WHERE kind = ? AND word = ?').get(kind, word)?.['id'] ?? 0)
      if (id === 0) continue
      if (idOfWord.size < wordsMax) idOfWord.set(key, id)
      ids.set(key, id)
    }
    return ids
  }

  function readWords(ids: readonly number[]): Map<number, string> {
    const asked = new Set(ids)
    const words = new Map<number, string>([[0, '']])
    const unknown = [...asked].filter((id) => id !== 0 && !wordOfId.has(id))
    const rows = prepare('SELECT id, word FROM usage_words WHERE id IN (SELECT value FROM json_each(?))').all(
      JSON.stringify(unknown),
    )
    if (wordOfId.size > wordsMax) wordOfId.clear()
    for (const { id, word } of rows) wordOfId.set(Number(id), word as string)
    for (const id of asked) if (wordOfId.has(id)) words.set(id, wordOfId.get(id)!)
    return words
  }

  /** What a key has cost in all, in nano-credits, less what was given back. */
  function readSpent(accountId: string, keyId: string): bigint {
    const { text, values } = selectSpent(dialect, accountId, keyId)
    return BigInt(prepare(text).get(...values)!['spent'] as bigint)
  }

  /** All that the ledger has entries of. */
  function listModels(): string[] {
    const rows = prepare(
      `SELECT word AS model FROM usage_words WHERE kind = 'model'
       UNION SELECT model FROM entries WHERE id > (SELECT folded_id FROM usage_state) AND model IS NOT NULL ORDER BY 1`,
    ).all()
    return rows.map(({ model }) => model as string)
  }
}

export function readUsageState(prepare: Prepare): UsageState {
  const row = prepare('SELECT time_zone, week_starts, kept_from FROM usage_state').get()
  return {
    timeZone: spellZone((row?.['time_zone'] ?? 'UTC') as string),
    weekStarts: (row?.['week_starts'] ?? 'monday') as Zone['weekStarts'],
    keptFrom: Number(row?.['kept_from'] ?? 0),
  }
}
