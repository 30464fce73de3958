import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { takeSignals } from '../../bin/signals.mjs'
import type { Address, Config } from '../config/config.ts'
import { needsRestart } from '../config/differences.ts'
import { type ConfigOptions, loadConfig, reloadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { formatAddress } from '../config/values.ts'
import { listen } from '../host/listen.ts'
import { createLog, isPrettyOn, type Log } from '../log/log.ts'
import { StoreError } from '../store/files/store-error.ts'
import { findConsole, makeConsoleLink } from './console-link.ts'
import { WorkerFleet } from './fleet.ts'
import { originsOf, sayStart, startData } from './say-start.ts'

export type ServeOptions = ConfigOptions & {
  /** Whether the start prints one line of JSON instead of a text. */
  json?: boolean
  /** Whether to print a link that signs in to the console, even if the output is not a terminal. */
  link?: boolean | undefined
  /** The number of processes that serve on one port (ruling X7). */
  workers?: number | undefined
}

/**
 * Runs several processes on one port. Each is an ordinary replica with its own listeners and its own folder below
 * `state_dir`. This process starts them, replaces those that end, and passes signals on. It handles no requests
 * (rulings X7, X9).
 * @returns false if the system cannot share a port; then nothing was started
 * @throws StoreError for a store that only one process can serve, ConfigError, and the errors of listening
 */
export async function superviseWorkers(options: ServeOptions, count: number): Promise<boolean> {
  let config = loadConfig(options)
  refuseSoleStore(config)
  const isPretty = isPrettyOn(config.log.format)
  const log = createLog({ level: config.log.level, isPretty, nowMs: Date.now })
  const address = await findSharedPort(config.listen)
  const adminAddress = address && (await findSharedPort(config.adminListen))
  if (!adminAddress) {
    const cause = 'this system cannot share a port between processes: one process serves'
    log.event('error', 'workers_unsupported', { cause })
    await log.flush()
    return false
  }
  const fleet = new WorkerFleet(count, {
    role: { isPretty, listen: address, adminListen: adminAddress },
    log,
    mayFill(isAlone) {
      const next = readAgain(config, options, log, isAlone)
      config = next ?? config
      return next !== undefined
    },
    onWorker({ stdout, stderr }) {
      passLines(stderr, log.pass)
      passLines(stdout, log.pass)
    },
    onEnd: (code) => void end(code),
  })
  process.on('uncaughtException', (error) => {
    log.event('error', 'uncaught', { error: error.stack })
    process.exitCode = 1
    fleet.stop('SIGTERM')
  })
  takeSignals((signal) => (signal === 'SIGHUP' ? fleet.reload() : fleet.stop(signal)))
  const first = await fleet.allListen
  const started = {
    ...originsOf(config, { address, adminAddress }),
    ...{ config, isStoreNew: false, demo: undefined },
    isDemoBarred: first.isDemoBarred,
    consoleUrl: await makeConsoleLink(config, findConsole(config, { adminAddress }), options.link === true),
  }
  const shown = { address: formatAddress(address), admin: formatAddress(adminAddress) }
  log.event('info', 'listening', { ...shown, workers: count })
  console.log(options.json ? startData(started, first.accounts) : sayStart(started, first.accounts))
  return true

  async function end(code: number): Promise<void> {
    await log.flush()
    process.exit(Number(process.exitCode) || code)
  }
}

/**
 * Reads the configuration again for a worker that replaces a dead one. If a key such as `store` has changed, no worker
 * starts while others live. Otherwise the workers would use two stores.
 * @returns undefined if no worker may be started
 */
function readAgain(before: Config, options: ServeOptions, log: Log, isAlone: boolean): Config | undefined {
  try {
    const next = reloadConfig(before, options)
    const keys = isAlone ? [] : needsRestart(before, next)
    if (keys.length === 0) return next
    log.event('error', 'worker_waits', { keys })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    log.event('error', 'worker_waits', { error: error.message })
  }
  return undefined
}

/**
 * Finds the port that the workers will share. Listens on it for a moment, in case another process uses the port.
 * @returns undefined on macOS and Windows, which refuse `reusePort` (nodejs.org/api/net.html, 2026-11)
 * @throws the error of the system if another process listens there
 */
async function findSharedPort(wanted: Address): Promise<Address | undefined> {
  const [alone, ...shared] = [1, 2, 3].map(() => createServer((socket) => socket.destroy()))
  const address = await listen(alone!, wanted)
  await new Promise((resolve) => alone!.close(resolve))
  try {
    for (const server of shared) await listen(server, address, { isShared: true })
    return address
  } catch {
    return undefined
  } finally {
    for (const server of shared) await new Promise((resolve) => server.close(resolve))
  }
}

function refuseSoleStore({ store, isBuiltIn }: Config): void {
  if (store.engine === 'sqlite')
    throw new StoreError(
      '--workers needs a store that several processes can serve from, and with SQLite one server holds the store: name a database in PostgreSQL with store: postgres://…, or leave --workers out (one process serves some thousand requests a second)',
    )
  if (isBuiltIn)
    throw new StoreError('--workers needs a configuration with a catalog: the built-in one is for a first look')
}

function passLines(from: Readable | null, put: (line: string) => void): void {
  if (from) createInterface({ input: from, crlfDelay: Number.POSITIVE_INFINITY }).on('line', put)
}
