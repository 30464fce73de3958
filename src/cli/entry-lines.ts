import type { Line } from '../operations/entry-lines.ts'
import type { TotalRow } from '../operations/totals.ts'
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

export function formatTotals(rows: readonly TotalRow[]): string {
  const names = Object.keys(rows[0] ?? { requests: 0, billed: 0, credited: 0 })
  return formatTable(
    names,
    rows.map((row) => names.map((name) => String((row as Record<string, unknown>)[name] ?? '-'))),
  )
}
