import type { Command } from 'commander'
import { formatRows, formatTime, note, print } from './print.ts'
import { findStore, withStore } from './store.ts'
import { addStoreCommands } from './store-copy.ts'

const columns = ['id', 'name', 'version', 'config', 'started', 'seen', 'left'] as const

/**
 * Adds the commands for a store and its servers. `reload` makes a server read its configuration again, as SIGHUP does.
 * `reporting rezone` changes the store's time zone for reports and budgets (ruling X12).
 */
export function addServerCommands(program: Command): void {
  program
    .command('reload')
    .description('make the running server read its configuration again')
    .action(async (_options, command: Command) => {
      // On Windows, a SIGHUP would end the process.
      if (process.platform === 'win32')
        throw new Error('a running server cannot reload its configuration on Windows: restart it')
      const { engine, shown, ...place } = await findStore(command.optsWithGlobals())
      // The servers of a database may run on other machines, so their process ids are not known here.
      if (!('path' in place))
        throw new Error(
          `the servers of ${shown} may run anywhere: send each of them SIGHUP where it runs (triwire replicas lists them)`,
        )
      const pid = await findServer(place.path)
      process.kill(pid, 'SIGHUP')
      print(
        command,
        { pid, store: shown },
        () => `process ${pid} reads its configuration again; its log has the result`,
      )
    })
  addStoreCommands(program)
  program
    .command('replicas')
    .description('list the servers that share the store in PostgreSQL')
    .action(async (_options, command: Command) => {
      const { readReplicas } = await import('../store/open.ts')
      const rows = (await readReplicas(await findStore(command.optsWithGlobals()))).map(
        ({ startedMs, seenMs, leftMs, ...replica }) => ({
          ...replica,
          started: formatTime(startedMs),
          seen: formatTime(seenMs),
          left: formatTime(leftMs),
        }),
      )
      print(command, rows, () => {
        const configs = new Set(rows.flatMap(({ config, left }) => (left === null ? [config] : [])))
        const warning = configs.size > 1 ? '\n\nthose that run have different configurations' : ''
        return formatRows(columns, rows) + warning
      })
    })
  program
    .command('reporting')
    .description('the days of reports and budgets')
    .command('rezone')
    .description(
      'change the time zone in which days begin; no server may run, and the figures of reports are computed again',
    )
    .argument('<zone>', 'the new time zone, such as UTC or Europe/Berlin')
    .action(async (zone: string, _options, command: Command) => {
      const { timeZoneMistake } = await import('../config/values.ts')
      const mistake = timeZoneMistake(zone)
      if (mistake) command.error(`error: <zone> ${mistake}`)
      await withStore(
        command,
        async (books) => {
          const { before, after } = await books.rezone(zone)
          const data = { before: before ?? null, after, changed: before !== after }
          print(command, data, () =>
            data.changed
              ? `the days of reports and budgets are those of ${after} from now on${before === undefined ? '' : `, and were those of ${before}`}`
              : `the days of reports and budgets are those of ${after} already`,
          )
          if (data.changed) note(command, `set reporting.time_zone: ${after} in the configuration of every server`)
        },
        { isAlone: true },
      )
    })
}

/** Returns the process id of a store's server. @throws Error if none runs, or if it cannot be signalled from here */
async function findServer(store: string): Promise<number> {
  const { isLocked } = await import('../store/files/lock.ts')
  if (!isLocked(store))
    throw new Error(
      `no server runs on the store ${store}: name its store with --store, or its configuration with --config`,
    )
  const { findHolder } = await import('../store/files/holder.ts')
  const pid = findHolder(store)
  if (pid === undefined)
    throw new Error(
      `the server on the store ${store} is not to be found from here: it may run in a container of its own, or is of an older triwire; send it SIGHUP there`,
    )
  return pid
}
