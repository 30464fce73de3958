import { foldedMax } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { inTransaction } from '../sql/step.ts'
import { selectSummed } from '../sql/usage.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { addEntries, addTraffic } from '../sql/usage-write.ts'
import { createWords } from '../sql/words.ts'
import type { Database, Transaction } from './database.ts'
import { dialect, run } from './run.ts'

/** Accounts that are looked at in one commit. */
const accountsMax = 200

/** An account with entries above its mark. @property mark null where it has none yet */
type Behind = { account_id: string; mark: bigint | null; entries: bigint }

/**
 * Folds the ledger into figures for reports. Several servers may do it at once: who has an account's mark folds it. New words are
 * committed apart, on a connection that is free whatever transactions are under way. All else of a transaction is asked on its own
 * connection. If it took another one of the same pool, all could wait for a connection that none of them gives back.
 */
export function createFolding(database: Database) {
  const words = createWords(dialect)
  const lane: Transaction = database
  /** Accounts are gone through in their order, round and round: this one was the last. */
  let after = ''
  return {
    fold,
    /** Adds what was counted, by all servers together, in one commit. */
    writeTraffic: (cells: readonly TrafficCell[]) =>
      run({ ...database, lane }, inTransaction(addTraffic(dialect, words, cells))),
  }

  /**
   * So many entries at most in one commit: rows, and the marks of their accounts.
   * @returns whether there may be more.
   */
  async function fold(entriesMax = foldedMax): Promise<boolean> {
    const behind = (await database.query(
      `SELECT b.account_id, m.seq AS mark, b.seq - coalesce(m.seq, 0) AS entries
       FROM triwire.balances b LEFT JOIN triwire.sums_marks m USING (account_id)
       WHERE b.seq > coalesce(m.seq, 0) AND b.account_id > $1 ORDER BY b.account_id LIMIT ${accountsMax}`,
      [after],
    )) as Behind[]
    const isBeginning = after === ''
    const taken = takeFirst(behind, entriesMax)
    const folded = taken.length > 0 ? await foldThese(taken) : 0
    const last = taken.at(-1)
    const isEnd = behind.length < accountsMax && taken.length === behind.length
    after = isEnd ? '' : last!.account_id
    // Accounts that another server is folding are not waited for.
    return !isEnd || !isBeginning || (folded > 0 && last!.most < last!.entries)
  }

  /** @returns how many entries were folded */
  async function foldThese(taken: readonly Taken[]): Promise<number> {
    return database.transact(async (transaction) => {
      const { query } = transaction
      const connections = { query, lane }
      const state = await run(connections, readUsageState(dialect, 'SHARE'))
      const fresh = taken.flatMap(({ account_id, mark }) => (mark === null ? [account_id] : []))
      if (fresh.length > 0)
        await query(
          'INSERT INTO triwire.sums_marks SELECT id, 0 FROM unnest($1::text[]) AS id ORDER BY id ON CONFLICT DO NOTHING',
          [fresh],
        )
      const ranges = await lockRanges(transaction, taken)
      if (ranges.length === 0) return 0
      const [accounts, from, to] = [
        ranges.map((range) => range.accountId),
        ranges.map((range) => String(range.from)),
        ranges.map((range) => String(range.to)),
      ]
      const entries = await query(selectRanges, [accounts, from, to])
      await run(connections, addEntries(dialect, words, entries, state))
      await query(
        `UPDATE triwire.sums_marks m SET seq = n.seq FROM unnest($1::text[], $2::bigint[]) AS n (account_id, seq)
         WHERE m.account_id = n.account_id AND m.seq < n.seq`,
        [accounts, to],
      )
      return Number(ranges.reduce((sum, range) => sum + range.to - range.from, 0n))
    })
  }
}

type Taken = Behind & { most: bigint }

/** As many entries as there may be, of one account after the other. */
function takeFirst(behind: readonly Behind[], entriesMax: number): Taken[] {
  const taken: Taken[] = []
  let left = BigInt(entriesMax)
  for (const account of behind) {
    if (left === 0n) break
    const most = account.entries < left ? account.entries : left
    taken.push({ ...account, most })
    left -= most
  }
  return taken
}

/** Numbers of an account's entries: those above `from`, up to `to`. */
type FoldRange = { accountId: string; from: bigint; to: bigint }

/**
 * Of the accounts whose mark nobody else has, which it locks. Numbers have no gaps, and up to the one that the account's balance
 * stands at all are committed.
 */
async function lockRanges({ query }: Transaction, taken: readonly Taken[]): Promise<FoldRange[]> {
  const marks = await query(
    `SELECT m.account_id, m.seq, b.seq AS end FROM triwire.sums_marks m JOIN triwire.balances b USING (account_id)
     WHERE m.account_id = ANY ($1) ORDER BY m.account_id FOR UPDATE OF m SKIP LOCKED`,
    [taken.map(({ account_id }) => account_id)],
  )
  const most = new Map(taken.map((account) => [account.account_id, account.most]))
  return marks.flatMap(({ account_id, seq, end }) => {
    const accountId = account_id as string
    const from = BigInt(seq as bigint)
    const to = [from + most.get(accountId)!, BigInt(end as bigint)].reduce((a, b) => (a < b ? a : b))
    return to > from ? [{ accountId, from, to }] : []
  })
}

/** One look into the index for each account, whatever the planner knows of the table. */
const selectRanges = selectSummed(
  'triwire',
  `unnest($1::text[], $2::bigint[], $3::bigint[]) AS m(account_id, low, high) CROSS JOIN LATERAL (
     SELECT * FROM triwire.entries e WHERE e.account_id = m.account_id AND e.seq > m.low AND e.seq <= m.high
     ORDER BY e.seq LIMIT m.high - m.low
   ) e`,
  'true',
)
