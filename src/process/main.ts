import { existsSync, mkdirSync } from 'node:fs'
import { takeSignals } from '../../bin/signals.mjs'
import type { Config } from '../config/config.ts'
import { earlierStoreMistake } from '../config/earlier-store.ts'
import { showProxy } from '../config/egress.ts'
import { type ConfigOptions, loadConfig, reloadConfig, withSimulator } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { spellTelemetry } from '../config/telemetry.ts'
import { formatAddress } from '../config/values.ts'
import { formatWarning } from '../config/warnings.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { StoreError } from '../store/files/store-error.ts'
import { type OpenLedger, openLedger } from '../store/sqlite/ledger-client.ts'
import { createDemo, demoAccount, demoCure, hasGiftOnly } from './demo.ts'
import { missingDescriptors, watchDescriptors } from './descriptors.ts'
import { explainStart } from './explain-start.ts'
import { createLog, isPrettyOn, type Log } from './log.ts'
import { createReloads } from './reloads.ts'
import { sayStart, startData } from './say-start.ts'
import { type RunningServer, startServer } from './server.ts'
import { sqlitePath } from './sqlite-only.ts'

/** Signals this close together are one that came two ways. */
const oneSignalMs = 50

/** What is left to running answers by a bug that nobody has caught: nothing can be relied on any more (ruling X10). */
const uncaughtDrainMs = 3_000

export type ServeOptions = ConfigOptions & {
  /** What the start says on stdout is one line of JSON. */
  json?: boolean
}

/**
 * Runs the gateway until it is told to stop: SIGTERM and SIGINT drain, SIGHUP reloads the configuration.
 * @throws what keeps it from starting: mistakes of the configuration as they are, all else with its cure.
 */
export async function serve(options: ServeOptions): Promise<void> {
  ignoreClosedOutput()
  try {
    await run(options)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    // What was opened before the failure must not keep the process alive.
    setTimeout(() => process.exit(process.exitCode || 1), 100).unref()
    throw new Error(explainStart(error), { cause: error })
  }
}

async function run(options: ServeOptions): Promise<void> {
  let config = loadConfig(options)
  const earlier = earlierStoreMistake(config)
  if (earlier) throw new StoreError(earlier)
  const log = createLog({ level: config.log.level, isPretty: isPrettyOn(config.log.format), nowMs: Date.now })

  const path = sqlitePath(config.store)
  const isStoreNew = !existsSync(path)
  mkdirSync(config.stateDir, { recursive: true, mode: 0o700 })
  // Before the ledger is opened, so that the key it prints is known from the first request on.
  const demo = config.isBuiltIn ? await createDemo(config.store) : undefined
  let server: RunningServer | undefined
  let stoppingMs: number | undefined
  const clockMs = () => performance.now()
  const ledger = await openLedger({
    path,
    settleDeadlineMs: config.timeouts.settleDeadlineMs,
    clockMs,
    onFatal(error) {
      log.event('error', 'ledger_lost', { error: error.message })
      process.exitCode = 1
      void stop('ledger_lost', 0)
    },
    log: log.event,
  })
  const barred = new Set<string>()
  const simulator = config.isBuiltIn ? await startBuiltIn() : undefined
  if (simulator) config = withSimulator(config, simulator.url)
  try {
    await barDemo(config, ledger, barred, log)
    server = await startServer({ config, store: ledger, log, barred })
  } catch (error) {
    await ledger.close()
    await simulator?.close()
    throw error
  }
  process.on('uncaughtException', (error) => {
    log.event('error', 'uncaught', { error: error.stack })
    process.exitCode = 1
    setTimeout(() => server?.hurry(), uncaughtDrainMs).unref()
    void stop('uncaught', 0)
  })
  watchDescriptors(log.event, clockMs)
  const missing = missingDescriptors(config.limits.connectionsMax)
  if (missing) log.event('info', 'descriptors_few', { ...missing, connections_max: config.limits.connectionsMax })

  warn(config, log)
  log.event('info', 'listening', { address: formatAddress(server.address), admin: formatAddress(server.adminAddress) })
  const base = `${config.tls ? 'https' : 'http'}://${formatAddress(server.address)}`
  const started = {
    base,
    admin: `http://${formatAddress(server.adminAddress)}`,
    config,
    isStoreNew,
    demo,
    isDemoBarred: barred.size > 0,
  }
  console.log(options.json ? startData(started, ledger.accounts.size) : sayStart(started, ledger.accounts.size))
  let reloading = Promise.resolve()
  const askReload = createReloads({
    // One after the other: the last that was asked for is the last to be in force.
    reload(asked) {
      reloading = reloading.then(() => reload(asked))
    },
    clockMs,
    after: (ms, act) => void setTimeout(act, ms),
  })
  // What came during the start comes now (ruling X11).
  takeSignals(heed)

  function heed(signal: NodeJS.Signals): void {
    if (signal === 'SIGHUP') askReload()
    // A supervisor that signals the whole group, and the launcher that passes it on, are one and the same signal.
    else if (stoppingMs !== undefined && clockMs() - stoppingMs > oneSignalMs) server?.hurry()
    // Whoever types Ctrl-C has no load balancer that needs a moment.
    else void stop(signal, signal === 'SIGTERM' ? config.timeouts.drainDelayMs : 0)
  }

  async function stop(why: string, delayMs: number): Promise<void> {
    if (stoppingMs !== undefined) return
    stoppingMs = clockMs()
    log.event('info', 'stopping', { why })
    await server?.drain(delayMs, config.timeouts.drainDeadlineMs)
    await simulator?.close()
    await ledger.close()
    log.event('info', 'stopped')
    await log.flush()
    process.exit(process.exitCode ?? 0)
  }

  async function reload(asked: number): Promise<void> {
    // Nobody misses a line for a signal that was answered together with others.
    const together = asked > 1 ? { signals: asked } : {}
    try {
      let next = reloadConfig(config, options)
      if (next.isBuiltIn && simulator) next = withSimulator(next, simulator.url)
      await server?.prepare(next)
      await barDemo(next, ledger, barred, log)
      server?.reload(next)
      const restart = needsRestart(config, next)
      config = next
      log.event('info', 'config_reloaded', { models: next.catalog.entries.length, ...together })
      if (restart.length > 0) log.event('info', 'restart_needed', { keys: restart })
      warn(next, log)
    } catch (error) {
      // What is in force stays in force.
      log.event('error', 'config_rejected', { error: explain(error), ...together })
    }
  }
}

/** What a configuration does that its operator may not expect. */
function warn({ warnings, upstreams }: Config, log: Log): void {
  for (const { name, proxy } of upstreams.values())
    if (proxy) log.event('info', 'upstream_proxy', { upstream: name, proxy: showProxy(proxy), source: proxy.source })
  for (const warning of warnings) log.event('info', 'config_warning', { message: formatWarning(warning) })
}

/** The credit of the demo account was for the simulator (N-F12). */
async function barDemo(
  { isBuiltIn, store }: Config,
  { accounts }: OpenLedger,
  barred: Set<string>,
  log: Log,
): Promise<void> {
  const demo = isBuiltIn ? undefined : accounts.values().find(({ name }) => name === demoAccount)
  const isGift = demo !== undefined && (await hasGiftOnly(store, demo.id))
  barred.clear()
  if (!isGift) return
  barred.add(demo.id)
  log.event('info', 'demo_refused', { account: demo.name, cure: demoCure })
}

/** What stays as it was at the start, though the file says otherwise by now. */
function needsRestart(before: Config, next: Config): string[] {
  const isOther = {
    listen: formatAddress(before.listen) !== formatAddress(next.listen),
    tls: (before.tls === undefined) !== (next.tls === undefined),
    admin_listen: formatAddress(before.adminListen) !== formatAddress(next.adminListen),
    store: nameOf(before) !== nameOf(next),
    state_dir: before.stateDir !== next.stateDir,
    telemetry: spellTelemetry(before.telemetry) !== spellTelemetry(next.telemetry),
    seal_key: before.sealKey?.reveal() !== next.sealKey?.reveal(),
  }
  return Object.entries(isOther).flatMap(([key, is]) => (is ? [key] : []))
}

/** Of its store, its password too: a new one is another one. */
function nameOf({ store }: Config): string {
  return store.engine === 'sqlite' ? store.path : store.url.reveal()
}

/** Whoever read what the start prints may be gone, or his disk full: that ends no server (B24). */
function ignoreClosedOutput(): void {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
}

async function startBuiltIn(): Promise<Simulator> {
  const { startSimulator } = await import('../simulator/simulator.ts')
  return startSimulator()
}

function explain(error: unknown): string {
  return error instanceof ConfigError ? error.message : explainStart(error)
}
