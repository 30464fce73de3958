import { formatCredits } from '../accounts/credit.ts'
import type { Total } from '../accounts/entries.ts'
import { type Line, toTokens } from '../operations/entry-lines.ts'
import { formatTable } from './print.ts'

export function formatLines(rows: readonly Line[]): string {
  const columns = ['posted', 'account', 'kind', 'amount', 'balance_after', 'request', 'key', 'model', 'outcome']
  const cells = rows.map((row) => [
    row.posted ?? '',
    row.account_name ?? row.account,
    row.kind,
    row.amount,
    row.balance_after,
    row.request_id ?? row.reference ?? '',
    row.key_label ?? row.key_prefix ?? '',
    row.model ?? '',
    row.outcome ?? '',
  ])
  return formatTable(columns, cells)
}

/** One row of `ledger totals`: what it is grouped by, then its sums. */
export function toTotal(total: Total) {
  return {
    ...('dayMs' in total && { day: new Date(total.dayMs!).toISOString().slice(0, 10) }),
    ...('model' in total && { model: total.model ?? null }),
    ...('accountId' in total && { account: total.accountId!, account_name: total.accountName ?? null }),
    ...('keyId' in total && {
      key_id: total.keyId ?? null,
      key_prefix: total.keyPrefix ?? null,
      key_label: total.keyLabel ?? null,
    }),
    requests: total.requests,
    billed: formatCredits(total.billedNanos),
    credited: formatCredits(total.creditedNanos),
    ...toTokens(total),
  }
}

export function formatTotals(rows: readonly ReturnType<typeof toTotal>[]): string {
  const names = Object.keys(rows[0] ?? { requests: 0, billed: 0, credited: 0 })
  return formatTable(
    names,
    rows.map((row) => names.map((name) => String((row as Record<string, unknown>)[name] ?? '-'))),
  )
}
