import { isAway } from '../../accounts/archive.ts'
import type { Zone } from '../../accounts/calendar.ts'
import { registerColumns } from '../../accounts/registers.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { readArchives } from '../sql/archives.ts'
import { type Dialect, insertAll, type SqlValue } from '../sql/dialect.ts'
import { lowerMoment, raiseMoment, readMoved } from '../sql/moments.ts'
import { ask, askOne, runAll, type StoreStep } from '../sql/step.ts'
import { foldAnew, readUsageState, rezone } from '../sql/usage-keep.ts'
import { countDifferences } from './compare.ts'
import {
  type ChainEnd,
  type CopiedRegister,
  copiedNames,
  copiedRegisters,
  type RegisterRow,
  type Registers,
} from './end.ts'

/**
 * Creates the queries of a copy that are the same for both databases; see `CopyEnd` and `CopyTarget`.
 * @param chainEnds a SELECT of the ends of all chains: `account_id`, `seq`, `balance`, `digest`
 * @param nextRevision the next revision number, as SQL
 */
export function createCopyQuestions(dialect: Dialect, chainEnds: string, nextRevision: string) {
  const { schema } = dialect
  return {
    ...{ readTails, readRegisters, count, readOldestMs, readZone, readAwayMonth, readMoved: () => readMoved(dialect) },
    ...{ addAccounts, addPrices, write, setZone: (zone: Zone) => rezone(dialect, zone) },
  }

  function* readAwayMonth(): StoreStep<string | undefined> {
    return (yield* readArchives(dialect)).find((one) => isAway(one))?.month
  }

  function* readTails(): StoreStep<ChainEnd[]> {
    const rows = yield* ask(dialect, () => chainEnds)
    return rows.map(({ account_id, seq, balance, digest }) => ({
      accountId: account_id as string,
      seq: Number(seq),
      balanceNanos: balance as bigint,
      digest: digest as string | null,
    }))
  }

  function* readRegisters(): StoreStep<Registers> {
    const rows = {} as Record<CopiedRegister, RegisterRow[]>
    for (const name of copiedNames)
      rows[name] = yield* ask(dialect, () => `SELECT ${columns(name).join(', ')} FROM ${schema}.${name}`)
    const head = yield* askOne(dialect, () => `SELECT moment_ms FROM ${schema}.head`)
    return { ...rows, headMs: Number(head?.['moment_ms'] ?? 0) }
  }

  function* count(): StoreStep<{ entries: number; numbered: number; references: number }> {
    const { entries, numbered, referred } = (yield* askOne(
      dialect,
      () => `SELECT (SELECT count(*) FROM ${schema}.entries) AS entries, (SELECT sum(seq) FROM ${dialect.ends} e) AS numbered,
        (SELECT count(reference) FROM ${dialect.credits}) AS referred`,
    ))!
    return { entries: Number(entries), numbered: Number(numbered ?? 0), references: Number(referred) }
  }

  function* readOldestMs(): StoreStep<number | undefined> {
    const { oldest } = (yield* askOne(dialect, () => `SELECT min(posted_ms) AS oldest FROM ${schema}.entries`))!
    return oldest === null ? undefined : Number(oldest)
  }

  function* readZone(): StoreStep<Zone | undefined> {
    const state = yield* readUsageState(dialect)
    return isRecorded(state) ? state : undefined
  }

  /** Adds accounts under placeholder names. `write` sets their names and revisions. */
  function* addAccounts(rows: readonly RegisterRow[]): StoreStep<void> {
    const made = rows.map((row) => ({ ...row, name: ` ${row['id']}`, revision: 0 }))
    yield* runAll(insertRows('accounts', made, 'ON CONFLICT DO NOTHING', ['revision']))
    if (!dialect.isShared) return
    const ids = rows.map(({ id }) => [id as string])
    yield* runAll(insertAll(dialect, 'balances', ['account_id'], ids, 'ON CONFLICT DO NOTHING'))
  }

  function addPrices(rows: readonly RegisterRow[]): StoreStep<void> {
    return runAll(insertRows('prices', rows, 'ON CONFLICT DO NOTHING'))
  }

  function* write({ headMs, ...rows }: Registers): StoreStep<void> {
    const { accounts } = rows
    // First every account gets a placeholder name, so two accounts can exchange names. No real name begins with a
    // blank.
    for (const { id } of accounts)
      yield* ask(dialect, (put) => `UPDATE ${schema}.accounts SET name = ' ' || id WHERE id = ${put(id as string)}`)
    const named = accounts.map((row) => ({ ...row, revision: 0 }))
    yield* runAll(insertRows('accounts', named, `${updateById('accounts')}, revision = ${nextRevision}`, ['revision']))
    const shifted = yield* ask(dialect, () => `SELECT ${columns('shifted').join(', ')} FROM ${schema}.shifted`)
    for (const [name, how] of Object.entries(copiedRegisters) as [CopiedRegister, string][]) {
      if (name === 'accounts') continue
      if (how === 'replaced') yield* ask(dialect, () => `DELETE FROM ${schema}.${name}`)
      yield* runAll(insertRows(name, rows[name], how === 'changed' ? updateById(name) : 'ON CONFLICT DO NOTHING'))
    }
    // The source has all entries, so the copy needs no archives. Those of an earlier copy may differ from the new trail.
    for (const table of ['archived', 'sealed_sums', 'seals', 'archives'])
      yield* ask(dialect, () => `DELETE FROM ${schema}.${table}`)
    // A correction of times in the source has set its last head back, and entries there count at other times.
    yield* lowerMoment(dialect, headMs)
    yield* raiseMoment(dialect, headMs)
    if (countDifferences('shifted', shifted, rows.shifted) > 0) yield* foldAnew(dialect, yield* readUsageState(dialect))
  }

  function insertRows(name: CopiedRegister, rows: readonly RegisterRow[], rest: string, more: readonly string[] = []) {
    const all = [...columns(name), ...more]
    const values = rows.map((row) => all.map((column) => row[column] as SqlValue))
    return insertAll(dialect, name, all, values, rest)
  }
}

function updateById(name: CopiedRegister): string {
  const sets = columns(name).flatMap((column) => (column === 'id' ? [] : [`${column} = excluded.${column}`]))
  return `ON CONFLICT (id) DO UPDATE SET ${sets.join(', ')}`
}

function columns(name: CopiedRegister): string[] {
  return Object.keys(registerColumns(name))
}
