import type { Command } from 'commander'
import { print } from './print.ts'
import { findStore } from './store.ts'

/** Adds `reload`: the server on the store reads its configuration again, as after SIGHUP. */
export function addReloadCommand(program: Command): void {
  program
    .command('reload')
    .description('make the running server read its configuration again')
    .action(async (_options, command: Command) => {
      // Windows has no such signal; sending it ends the process.
      if (process.platform === 'win32')
        throw new Error('a running server cannot be told to reload on Windows: restart it')
      const { engine, shown, ...place } = await findStore(command.optsWithGlobals())
      // The servers of a database may run on any machine, so their process ids are not known here.
      if (!('path' in place))
        throw new Error(
          `the servers of ${shown} may run anywhere: send each of them SIGHUP where it runs (triwire replicas lists them)`,
        )
      const pid = await findServer(place.path)
      process.kill(pid, 'SIGHUP')
      print(
        command,
        { pid, store: shown },
        () => `told process ${pid} to read its configuration again; its log says what came of it`,
      )
    })
}

/** @throws Error if no server runs on the store, or none that can be signalled from here */
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
