import type { UpstreamState } from '../operations/shapes.ts'
import { formatTable } from './print.ts'

const columns = ['model', 'upstream', 'account', 'priority', 'state', 'cause', 'again in', 'failures', 'retries left']

/** How each upstream account is, for people. */
export function formatUpstreams(rows: readonly UpstreamState[]): string {
  return formatTable(
    columns,
    rows.map((row) => [
      row.model,
      row.upstream,
      row.account ?? '-',
      `${row.priority}`,
      row.state,
      row.cause === null ? '-' : `${row.cause}${row.heard ? ', another server' : ''}`,
      row.wait_ms === null || row.wait_ms === 0 ? '-' : `${Math.ceil(row.wait_ms / 1_000)} s`,
      `${row.failures}`,
      `${row.retries_left}`,
    ]),
  )
}
