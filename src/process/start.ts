import { stringify } from 'yaml'
import { parseCredits } from '../accounts/credit.ts'
import type { Config, StorePlace } from '../config/config.ts'
import { loadConfig, loadText, withSimulator } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { createLog, isPrettyOn } from '../log/log.ts'
import { startSimulator } from '../simulator/simulator.ts'
import { openBooks } from '../store/open-books.ts'
import { DemoBar } from './demo.ts'
import { openStoreOf } from './open-store.ts'
import { originsOf } from './say-start.ts'
import { type RunningServer, startServer } from './server.ts'

export { ConfigError } from '../config/problem.ts'
export { StoreError } from '../store/files/store-error.ts'

/** How a gateway is to run in somebody's process. The package exports this file (docs/embedding.md). */
export type GatewayOptions = {
  /** The SQLite file of accounts and ledger; it is made, with its folder, where there is none. */
  store: string
  /** The path of a configuration file, or what such a file holds, as an object. None: the built-in simulator answers. */
  config?: string | Readonly<Record<string, unknown>>
  /** The address for clients; default `127.0.0.1:0`, which is any free port. The configuration's own is ignored. */
  listen?: string
  /** The address for health and readiness; default `127.0.0.1:0`. */
  adminListen?: string
  /** Which lines go to stderr: `info` has one for each request; default `error`. */
  log?: 'info' | 'error'
  /** The store is lost (its file was taken away, its thread died twice): the gateway closes itself. */
  onLost?: (error: Error) => void
}

/** Every one, or the compiler refuses it. */
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
  /** For clients, e.g. `http://127.0.0.1:41234`. */
  url: string
  /** For health and readiness. */
  adminUrl: string
  /** A key with credit, where the built-in simulator answers and the store had no account yet. */
  demoKey: string | undefined
  /**
   * Makes an account and a key for it, which works from the first request on.
   * @param credit credits, as a decimal text such as `12.5`; default none.
   * @throws an error with the code `name_taken` if there is one of that name.
   */
  createAccount(name: string, credit?: string): Promise<{ id: string; key: string }>
  /** Takes no more requests, gives running answers so long, then cuts and bills them. Again it is the same promise. */
  close(graceMs?: number): Promise<void>
}

/**
 * Starts a gateway in this process: the whole one, with listeners, ledger and a thread for it. It takes no signals, and
 * of the environment only what `${NAME}` in the configuration asks for, and a proxy that it names.
 * @throws ConfigError, StoreError, and what listening throws; then nothing is left running.
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
      // The parts that were closed then had no server yet.
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
    await server?.drain(0, graceMs)
    for (const end of opened.splice(0).reverse()) await end()
    await log.flush()
  }
}

/** For callers without types: a store under a misspelled name would be another one. */
function refuseUnknown(options: GatewayOptions): void {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name))
  const mistake =
    unknown !== undefined
      ? { path: unknown, message: `${unknown} is no option: they are ${optionNames.join(', ')}` }
      : typeof options.store !== 'string' && { path: 'store', message: 'store must be the path of a SQLite file' }
  if (mistake) throw new ConfigError([mistake])
}

/** The process's own environment may be for another gateway, or for other ends: most of it is not for this one. */
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
