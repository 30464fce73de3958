import { foldedMax } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { inTransaction } from '../sql/step.ts'
import { selectSummed } from '../sql/usage.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { addEntries, addTraffic } from '../sql/usage-write.ts'
import { createWords } from '../sql/words.ts'
import type { Database, Transaction } from './database.ts'
import { dialect, run } from './run.ts'

/** The most accounts in one commit. */
const accountsMax = 200

/** An account with entries that are not summed yet. @property mark its last summed entry; null before the first sums */
type Behind = { account_id: string; mark: bigint | null; entries: bigint }

/**
 * Folds (sums) entries of the ledger into figures for reports. The last folded entry of an account is its mark. Each
 * server locks the marks of the accounts that it folds, so several servers may fold at the same time.
 *
 * New words, such as model names, are committed on a connection that no transaction uses. If each transaction took a
 * second connection from the pool, all transactions could wait for each other forever.
 */
export function createFolding(database: Database) {
  const words = createWords(dialect)
  database.onConnect(words.forget)
  const lane: Transaction = database
  /** The last account whose entries were summed. Accounts take turns in the order of their ids. */
  let after = ''
  return {
    fold,
    /** Adds traffic counts of all servers to the stored counts, in one commit. */
    writeTraffic: (cells: readonly TrafficCell[]) =>
      run({ ...database, lane }, inTransaction(addTraffic(dialect, words, cells))),
  }

  /**
   * Folds (sums) up to `entriesMax` entries in one commit, and moves the marks (last summed entries) of their accounts.
   * @returns whether there may be more entries to fold
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
    // If nothing was folded (summed), another server has locked these accounts. That server sums the rest too.
    return !isEnd || !isBeginning || (folded > 0 && last!.most < last!.entries)
  }

  /** Sums unsummed entries of these accounts, up to `most` for each. @returns the number of summed entries */
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

/** Chooses accounts whose entries, up to `entriesMax` in total, are summed next. */
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

/** The entries of an account whose numbers are above `from` and at most `to`. */
type FoldRange = { accountId: string; from: bigint; to: bigint }

/**
 * Locks the marks (last summed entries) of accounts, except marks that another session has locked.
 * @returns the entries to sum. The entries of an account are numbered without gaps, so all entries up to the last
 *   number in `balances` are committed
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

/** Reads each account with one index lookup, even if the planner has no statistics of the table. */
const selectRanges = selectSummed(
  'triwire',
  `unnest($1::text[], $2::bigint[], $3::bigint[]) AS m(account_id, low, high) CROSS JOIN LATERAL (
     SELECT * FROM triwire.entries e WHERE e.account_id = m.account_id AND e.seq > m.low AND e.seq <= m.high
     ORDER BY e.seq LIMIT m.high - m.low
   ) e`,
  'true',
)
