import type { DatabaseSync } from 'node:sqlite'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import type { Dialect } from '../sql/dialect.ts'
import { inTransaction, type StoreStep } from '../sql/step.ts'
import { selectSummed } from '../sql/usage.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { addEntries, addTraffic } from '../sql/usage-write.ts'
import { createWords } from '../sql/words.ts'
import type { Run } from './run.ts'

/** Entries with the mark of their account (the last folded entry). Only entries above the mark are folded (summed). */
const marked = 'entries e LEFT JOIN sums_marks m ON m.account_id = e.account_id'
const isAbove = 'e.id > (SELECT folded_id FROM sums_state) AND e.id <= ? AND e.seq > ifnull(m.seq, 0)'
const selectRange = `SELECT max(id) AS last, count(*) AS entries FROM
  (SELECT id FROM entries WHERE id > (SELECT folded_id FROM sums_state) ORDER BY id LIMIT ?)`

/** Creates the folding, which sums entries of the ledger into figures for reports. */
export function createFolding(db: DatabaseSync, run: Run, dialect: Dialect) {
  const isBehind = db.prepare(
    'SELECT ifnull(max(id), 0) > (SELECT folded_id FROM sums_state) AS is_behind FROM entries',
  )
  const range = db.prepare(selectRange)
  const above = db.prepare(selectSummed('main', marked, isAbove))
  const marks = db.prepare(
    `SELECT e.account_id, max(e.seq) AS seq FROM ${marked} WHERE ${isAbove} GROUP BY e.account_id`,
  )
  const mark = db.prepare('INSERT INTO sums_marks VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq')
  const setFolded = db.prepare('UPDATE sums_state SET folded_id = ?')
  const words = createWords(dialect)
  return {
    /**
     * Folds (sums) up to `entriesMax` entries in one commit, and moves each account's mark to its last folded entry.
     * @returns the number of entries that were read
     */
    fold: (entriesMax: number) => (isBehind.get()!['is_behind'] === 0n ? 0 : numbering(foldSome(entriesMax))),
    /** Adds counts of traffic, in one commit. */
    writeTraffic: (cells: readonly TrafficCell[]) => numbering(addTraffic(dialect, words, cells)),
  }

  function* foldSome(entriesMax: number): StoreStep<number> {
    const state = yield* readUsageState(dialect)
    const { last, entries } = range.get(entriesMax) as { last: bigint | null; entries: bigint }
    if (last === null) return 0
    yield* addEntries(dialect, words, above.all(last), state)
    const moved = marks.all(last) as { account_id: string; seq: bigint }[]
    for (const { account_id: accountId, seq } of moved) mark.run(accountId, seq)
    setFolded.run(last)
    return Number(entries)
  }

  /** Runs a change that may number new words. If the change fails, `words` forgets these numbers. */
  function numbering<T>(step: StoreStep<T>): T {
    try {
      return run(inTransaction(step))
    } catch (error) {
      words.forget()
      throw error
    }
  }
}
