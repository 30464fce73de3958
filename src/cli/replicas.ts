import type { Command } from 'commander'
import { formatTable, formatTime, print } from './print.ts'
import { findStore } from './store.ts'

const columns = ['id', 'name', 'version', 'config', 'started', 'seen', 'left'] as const

/** Adds `replicas`: it lists the servers that share a store, and shows whether their configurations are the same. */
export function addReplicasCommand(program: Command): void {
  program
    .command('replicas')
    .description('list the servers that share a store in PostgreSQL')
    .action(async (_options, command: Command) => {
      const { readReplicas } = await import('../store/replicas.ts')
      const rows = (await readReplicas(await findStore(command.optsWithGlobals()))).map(
        ({ startedMs, seenMs, leftMs, ...replica }) => ({
          ...replica,
          started: formatTime(startedMs),
          seen: formatTime(seenMs),
          left: formatTime(leftMs),
        }),
      )
      print(command, rows, () => {
        const cells = rows.map((row) => columns.map((name) => `${row[name] ?? '-'}`))
        const configs = new Set(rows.flatMap(({ config, left }) => (left === null ? [config] : [])))
        const warning = configs.size > 1 ? '\n\nthose that run have different configurations' : ''
        return formatTable(columns, cells) + warning
      })
    })
}
