import { type Calendar, quarterMs } from '../calendar.ts'
import { clampNanos } from '../credit.ts'
import {
  type SummedEntries,
  type SumRow,
  sumColumns,
  sumRowOf,
  type UsageTable,
  usageTables,
  wordsOf,
} from './rollup.ts'

/**
 * One day of figures for reports: the stored rows, and the sums of the day's entries by quarter hour. Entries that the
 * figures do not include yet are left out.
 */
type UsageDay = {
  /** The numbers of the first quarter hour of the day, and of the first quarter hour after the day. */
  from: number
  to: number
  entries: readonly SummedEntries[]
  rows: Record<'sums_h' | 'sums_d' | 'sums_t', readonly SumRow[]>
}

/**
 * Compares the stored figures for reports with the ledger, row by row, account by account (ruling C9).
 * @returns findings in words, one for each account that differs
 */
export function findDifferences(
  { from, entries, rows }: UsageDay,
  calendar: Pick<Calendar, 'dateOf' | 'periodOf'>,
): string[] {
  const date = calendar.dateOf(from * quarterMs)
  const expected = entries.map((entry) => sumRowOf(entry, calendar, from))
  return (['sums_h', 'sums_d', 'sums_t'] as const).flatMap((table) =>
    differing(table, expected, rows[table]).map((account) =>
      account === ''
        ? `figures for reports of ${date} are not what the entries sum to`
        : `account ${account}: its figures for reports of ${date} (${table}) are not what its entries sum to`,
    ),
  )
}

/**
 * Compares the stored totals of each key of an account with the ledger. The totals include all entries up to the number
 * `mark`. `seq` is the number of the account's last entry.
 * @param entries sums of the entries up to `mark`
 */
export function findKeyDifferences(
  account: string,
  entries: readonly SummedEntries[],
  rows: readonly SumRow[],
  { mark, seq }: { mark: bigint; seq: bigint },
): string[] {
  const findings: string[] = []
  if (mark > seq) findings.push(`account ${account}: its figures for reports go up to entry ${mark}, and it has ${seq}`)
  const expected = entries.map((entry) => ({
    place: wordsOf(entry),
    sums: sumColumns.map((column) => BigInt(entry[column] as bigint | string)),
  }))
  if (differing('sums_k', expected, rows).length > 0)
    findings.push(`account ${account}: the figures of its keys are not what its entries sum to`)
  return findings
}

/**
 * Returns the accounts whose rows differ between the two lists. For a table without an account column, an empty text
 * stands for all accounts.
 */
function differing(table: UsageTable, expected: readonly SumRow[], rows: readonly SumRow[]): string[] {
  const hasAccounts = (usageTables[table] as readonly string[]).includes('account')
  const left = new Map<string, { account: string; sums: bigint[] }>()
  const add = ({ place, sums }: SumRow, sign: bigint) => {
    const key = usageTables[table].map((column) => place[column]).join('\n')
    const found = left.get(key) ?? { account: hasAccounts ? `${place['account']}` : '', sums: sumColumns.map(() => 0n) }
    left.set(key, found)
    for (const [at, sum] of sums.entries()) found.sums[at]! += sign * sum
  }
  for (const row of expected) add(row, 1n)
  // Stored costs are limited in the same way (src/store/sql/usage-write.ts).
  for (const one of left.values()) one.sums = one.sums.map(clampNanos)
  for (const row of rows) add(row, -1n)
  const accounts = [...left.values()].filter(({ sums }) => sums.some((sum) => sum !== 0n)).map(({ account }) => account)
  return [...new Set(accounts)]
}
