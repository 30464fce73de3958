import type { Command } from 'commander'
import type { UpstreamState } from '../process/operations.ts'
import { adminOption, askServer } from './admin.ts'
import { formatTable, print } from './print.ts'

/** `upstreams`: how each upstream account is, as the running server knows it. */
export function addUpstreamsCommand(program: Command): void {
  program
    .command('upstreams')
    .description('show how each upstream account is: ready, or left alone for what and how long')
    .option(...adminOption)
    .action(async (_options, command: Command) => {
      const told = await askServer(command, '/api/v1/upstreams')
      if ('trouble' in told) throw new Error(told.trouble)
      const { items, detail } = told.body as { items?: UpstreamState[]; detail?: string }
      if (!items) throw new Error(`the server refuses: ${detail}`)
      print(command, items, () => formatUpstreams(items))
    })
}

const columns = ['model', 'upstream', 'account', 'priority', 'state', 'cause', 'again in', 'failures', 'retries left']

function formatUpstreams(rows: readonly UpstreamState[]): string {
  return formatTable(
    columns,
    rows.map((row) => [
      row.model,
      row.upstream,
      row.account ?? '-',
      `${row.priority}`,
      row.state,
      row.cause ?? '-',
      row.wait_ms === null || row.wait_ms === 0 ? '-' : `${Math.ceil(row.wait_ms / 1_000)} s`,
      `${row.failures}`,
      `${row.retries_left}`,
    ]),
  )
}
