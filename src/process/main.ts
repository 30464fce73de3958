import { existsSync } from 'node:fs'
import { takeSignals } from '../../bin/signals.mjs'
import type { Config } from '../config/config.ts'
import { needsRestart } from '../config/differences.ts'
import { listProxied } from '../config/egress.ts'
import { loadConfig, reloadConfig, withSimulator } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { earlierStoreMistake } from '../config/store-place.ts'
import { formatAddress } from '../config/values.ts'
import { formatWarning } from '../config/warnings.ts'
import { calmCollector, tidyWhenIdle } from '../host/collector.ts'
import { missingDescriptors, watchDescriptors } from '../host/descriptors.ts'
import { createLog, isPrettyOn, type Log } from '../log/log.ts'
import type { Simulator } from '../simulator/simulator.ts'
import { StoreError } from '../store/files/store-error.ts'
import { findConsole, makeConsoleLink } from './console-link.ts'
import { DemoBar, sayMade } from './demo.ts'
import { endAll } from './drain.ts'
import { prepareStoreOf } from './open-store.ts'
import { createReloads } from './reloads.ts'
import { explainStart, originsOf, type Started, sayStart, startData } from './say-start.ts'
import type { RunningServer } from './server.ts'
import { ownConfig, readWorkerRole, type WorkerListening, type WorkerRole } from './worker-role.ts'
import type { ServeOptions } from './workers.ts'

/** Signals within this time, in ms, count as one signal that came twice. */
const oneSignalMs = 50

/** How long running answers may continue after an uncaught bug, in ms. The process can no longer be trusted (X10). */
const uncaughtDrainMs = 3_000

/**
 * Runs the gateway until a signal stops it. SIGTERM and SIGINT end it after a drain; SIGHUP reloads the configuration.
 * @throws ConfigError for mistakes in the configuration; for any other failure an Error that says why, and what to do
 */
export async function serve(options: ServeOptions): Promise<void> {
  // The server must not end if nobody reads its output or the disk is full (B24).
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  try {
    const role = readWorkerRole()
    if (options.workers !== undefined && !role) {
      const { superviseWorkers } = await import('./workers.ts')
      if (await superviseWorkers(options, options.workers)) return
    }
    await run(options, role)
  } catch (error) {
    const isMistake = error instanceof ConfigError
    // Parts that were opened before the failure, or the channel of a worker, must not keep the process alive.
    if (!isMistake || readWorkerRole()) setTimeout(() => process.exit(process.exitCode || 1), 100).unref()
    if (isMistake) throw error
    throw new Error(explainStart(error), { cause: error })
  }
}

async function run(options: ServeOptions, role: WorkerRole | undefined): Promise<void> {
  let config = ownConfig(loadConfig(options), role)
  const earlier = earlierStoreMistake(config)
  if (earlier) throw new StoreError(earlier)
  const log = createLog({
    level: config.log.level,
    isPretty: role?.isPretty ?? isPrettyOn(config.log.format),
    nowMs: Date.now,
  })

  const isStoreNew = config.store.engine === 'sqlite' && !existsSync(config.store.path)
  let server: RunningServer | undefined
  let stoppingMs: number | undefined
  const clockMs = () => performance.now()
  const onFatal = (error: Error) => {
    log.event('error', 'ledger_lost', { error: error.message })
    process.exitCode = 1
    void stop('ledger_lost', 0)
  }
  const openStore = await prepareStoreOf(config, { clockMs, onFatal, log: log.event }, role)
  // The thread of the ledger starts while the server's many files are read.
  const [{ store, demo }, { startServer }] = await Promise.all([openStore(), import('./server.ts')])
  const demoBar = new DemoBar(log, config.store)
  const simulator = config.isBuiltIn ? await startBuiltIn() : undefined
  if (simulator) config = withSimulator(config, simulator.url)
  const first = config
  try {
    ;(await demoBar.look(config))()
    server = await startServer({ config, store, log, barred: demoBar.barred, role })
  } catch (error) {
    await store.close()
    await simulator?.close()
    const made = demo && sayMade(demo)
    if (made) console.error(made)
    throw error
  }
  process.on('uncaughtException', (error) => {
    log.event('error', 'uncaught', { error: error.stack })
    process.exitCode = 1
    setTimeout(() => server?.hurry(), uncaughtDrainMs).unref()
    void stop('uncaught', 0)
  })
  watchDescriptors(log.event, clockMs)
  calmCollector()
  tidyWhenIdle()
  const missing = missingDescriptors(config.limits.connectionsMax)
  if (missing) log.event('info', 'descriptors_few', { ...missing, connections_max: config.limits.connectionsMax })

  warn(config, log)
  const started = {
    ...originsOf(config, server),
    ...{ config, isStoreNew, demo },
    isDemoBarred: demoBar.barred.size > 0,
    consoleUrl: role ? undefined : await makeConsoleLink(config, findConsole(config, server), options.link === true),
  }
  announce(log, { started, server, accounts: store.countAccounts() }, { role, json: options.json })
  let reloading = Promise.resolve()
  const askReload = createReloads({
    // Reloads run one after the other, so that the newest configuration is used in the end.
    reload(asked) {
      reloading = reloading.then(() => reload(asked))
    },
    clockMs,
    after: (ms, act) => void setTimeout(act, ms),
  })
  // Signals that arrived during the start are handled now (ruling X11).
  takeSignals(heed)
  // A worker stops if its supervisor has ended. If the worker went on, a new worker could not use its folder.
  if (role) process.on('disconnect', () => void stop('supervisor_gone', 0))

  function heed(signal: NodeJS.Signals): void {
    if (signal === 'SIGHUP') askReload()
    // If a signal is sent to the whole process group, the launcher passes it on too. The two signals count as one.
    else if (stoppingMs !== undefined && clockMs() - stoppingMs > oneSignalMs) server?.hurry()
    // Only SIGTERM gets the delay, which helps load balancers. A SIGINT comes from a person who pressed Ctrl-C.
    else void stop(signal, signal === 'SIGTERM' ? config.timeouts.drainDelayMs : 0)
  }

  async function stop(why: string, delayMs: number): Promise<void> {
    if (stoppingMs !== undefined) return
    stoppingMs = clockMs()
    log.event('info', 'stopping', { why })
    const drained = () => server?.drain(delayMs, config.timeouts.drainDeadlineMs)
    const errors = await endAll([drained, () => simulator?.close(), () => store.close()])
    for (const error of errors) log.event('error', 'uncaught', { error: (error as Error).stack })
    if (errors.length === 0) log.event('info', 'stopped')
    else process.exitCode = 1
    await log.flush()
    process.exit(process.exitCode ?? 0)
  }

  async function reload(asked: number): Promise<void> {
    // The log line names the number of signals that this reload answers, if there were several.
    const together = asked > 1 ? { signals: asked } : {}
    try {
      let next = ownConfig(reloadConfig(config, options), role)
      if (next.isBuiltIn && simulator) next = withSimulator(next, simulator.url)
      await server?.prepare(next)
      const bar = await demoBar.look(next)
      server?.reload(next)
      bar()
      store.reconfigure(next.digest)
      const restart = needsRestart(first, next)
      config = next
      log.event('info', 'config_reloaded', { models: next.catalog.entries.length, ...together })
      if (restart.length > 0) log.event('info', 'restart_needed', { keys: restart })
      warn(next, log)
    } catch (error) {
      // The configuration in use stays. Everything that was started for the rejected configuration is ended.
      server?.keep(config)
      log.event('error', 'config_rejected', { error: explainStart(error), ...together })
    }
  }
}

/** Reports that the server listens: to a person, to a program, or to the supervisor of this worker. */
function announce(
  log: Log,
  { started, server, accounts }: { started: Started; server: RunningServer; accounts: number | undefined },
  { role, json }: { role: WorkerRole | undefined; json: boolean | undefined },
): void {
  const { isDemoBarred } = started
  const { address, adminAddress, ownAddress } = server
  log.event('info', role ? 'worker_listening' : 'listening', {
    address: formatAddress(address),
    admin: formatAddress(adminAddress),
    ...(ownAddress && { own: formatAddress(ownAddress) }),
  })
  if (role) process.send?.({ accounts, isDemoBarred } satisfies WorkerListening)
  else console.log(json ? startData(started, accounts) : sayStart(started, accounts))
}

/** Logs effects of a configuration that its operator may not expect. */
function warn(config: Config, log: Log): void {
  for (const { name, ...proxy } of listProxied(config)) {
    const event = 'webhook' in name ? 'webhook_proxy' : 'upstream_proxy'
    log.event('info', event, { ...name, ...proxy })
  }
  for (const warning of config.warnings) log.event('info', 'config_warning', { message: formatWarning(warning) })
}

async function startBuiltIn(): Promise<Simulator> {
  const { startSimulator } = await import('../simulator/simulator.ts')
  return startSimulator()
}
