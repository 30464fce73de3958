import { stringify } from 'yaml'
import { parseCredits } from '../accounts/credit.ts'
import type { Config, StorePlace } from '../config/config.ts'
import { loadConfig, loadText, withSimulator } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { createLog, isPrettyOn } from '../log/log.ts'
import { startSimulator } from '../simulator/simulator.ts'
import { openBooks } from '../store/open-books.ts'
import { DemoBar } from './demo.ts'
import { endAll } from './drain.ts'
import { openStoreOf } from './open-store.ts'
import { originsOf } from './say-start.ts'
import { type RunningServer, startServer } from './server.ts'

export { ConfigError } from '../config/problem.ts'
export { StoreError } from '../store/files/store-error.ts'

/** Options for a gateway in another program's process. The package exports this file (docs/embedding.md). */
export type GatewayOptions = {
  /** The SQLite file of accounts and ledger. If it does not exist, it is made together with its folder. */
  store: string
  /** The path of a configuration file, or its content as an object. Without it, the built-in simulator answers. */
  config?: string | Readonly<Record<string, unknown>>
  /** The address for clients; default `127.0.0.1:0`, any free port. `listen` of the configuration is ignored. */
  listen?: string
  /** The address for health and readiness; default `127.0.0.1:0`. */
  adminListen?: string
  /** Which lines stderr gets: only errors (`error`, the default), or also a line for each request (`info`). */
  log?: 'info' | 'error'
  /**
   * Called if the store is lost: its file was removed, or its thread died twice. The gateway has closed itself by then.
   */
  onLost?: (error: Error) => void
}

/** The names of all options. The compiler rejects the table if it lacks an option. */
const optionNames = Object.keys({
  store: true,
  config: true,
  listen: true,
  adminListen: true,
  log: true,
  onLost: true,
} satisfies Record<keyof GatewayOptions, true>)

/** A gateway that listens, until `close`. */
export type StartedGateway = {
  /** The address for clients, such as `http://127.0.0.1:41234`. */
  url: string
  /** The address for health and readiness. */
  adminUrl: string
  /** A key with credit. Set if the built-in simulator answers and the store had no account. */
  demoKey: string | undefined
  /**
   * Makes an account and a key for it. The key works from the first request on.
   * @param credit credits as a decimal text such as `12.5`; default none
   * @throws an error with the code `name_taken` if another account has this name
   */
  createAccount(name: string, credit?: string): Promise<{ id: string; key: string }>
  /**
   * Accepts no more requests. After `graceMs` it cuts and bills running answers. Later calls return the same promise.
   */
  close(graceMs?: number): Promise<void>
}

/**
 * Starts a complete gateway in this process, with its listeners and its ledger, which has its own thread. It handles no
 * signals. From the environment it reads proxies, and variables that the configuration names as `${NAME}`.
 * @throws ConfigError, StoreError, and the errors of listening; then nothing keeps running
 */
export async function startGateway(options: GatewayOptions): Promise<StartedGateway> {
  refuseUnknown(options)
  let config = readConfig(options)
  const log = createLog({ level: options.log ?? 'error', isPretty: isPrettyOn(config.log.format), nowMs: Date.now })
  let lost: Error | undefined
  const { store, demo } = await openStoreOf(config, {
    clockMs: () => performance.now(),
    onFatal(error) {
      log.event('error', 'ledger_lost', { error: error.message })
      lost = error
      void close(0).finally(() => options.onLost?.(error))
    },
    log: log.event,
  })
  const opened: (() => Promise<unknown>)[] = [() => store.close()]
  let closing: Promise<void> | undefined
  let server: RunningServer | undefined
  try {
    if (config.isBuiltIn) {
      const simulator = await startSimulator()
      opened.push(simulator.close)
      config = withSimulator(config, simulator.url)
    }
    const demoBar = new DemoBar(log, config.store)
    const bar = await demoBar.look(config)
    bar()
    server = await startServer({ config, store, log, barred: demoBar.barred })
    if (lost) {
      // The store was lost while the server was being started, so `close` did not end the server.
      await server.drain(0, 0)
      throw lost
    }
  } catch (error) {
    await close()
    throw error
  }
  const origins = originsOf(config, server)
  return {
    url: origins.base,
    adminUrl: origins.admin,
    demoKey: demo?.key,
    async createAccount(name, credit) {
      if (closing) throw new Error('the gateway is closed')
      return createAccount(config.store, name, credit)
    },
    close,
  }

  function close(graceMs = 0): Promise<void> {
    closing ??= closeAll(graceMs)
    return closing
  }

  async function closeAll(graceMs: number): Promise<void> {
    const errors = await endAll([() => server?.drain(0, graceMs), ...opened.splice(0).reverse()])
    await log.flush()
    if (errors.length > 0) throw errors[0]
  }
}

/** Refuses unknown options and a missing store, for callers that do not use types. */
function refuseUnknown(options: GatewayOptions): void {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name))
  const mistake =
    unknown !== undefined
      ? { path: unknown, message: `${unknown} is not an option: the options are ${optionNames.join(', ')}` }
      : typeof options.store !== 'string' && { path: 'store', message: 'store must be the path of a SQLite file' }
  if (mistake) throw new ConfigError([mistake])
}

/**
 * Reads the configuration. Some variables of the environment are ignored, because they may be for another program: two
 * variables of triwire, and those of OpenTelemetry.
 */
function readConfig({ config, store, listen = '127.0.0.1:0', adminListen = '127.0.0.1:0' }: GatewayOptions): Config {
  const own = ['TRIWIRE_SEAL_KEY', 'TRIWIRE_STATE_DIR']
  const isForUs = (name: string) => !own.includes(name) && !name.startsWith('OTEL_')
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => isForUs(name)))
  const flags = { listen, adminListen, store }
  if (typeof config === 'string') return loadConfig({ ...flags, config }, env)
  return loadText(stringify(config ?? {}), 'config', flags, env)
}

async function createAccount(store: StorePlace, name: string, credit?: string): Promise<{ id: string; key: string }> {
  const { books, close } = await openBooks(store)
  try {
    const nanos = credit === undefined ? undefined : parseCredits(credit)
    if (nanos !== undefined && nanos < 0n) throw new RangeError('an account cannot start below zero')
    const { id } = await books.createAccount(name, nanos)
    return { id, key: (await books.createKey(id)).key }
  } finally {
    await close()
  }
}
