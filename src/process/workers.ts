import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { takeSignals } from '../../bin/signals.mjs'
import { createToken } from '../accounts/operators.ts'
import { createAdmin } from '../admin/listener.ts'
import type { Config } from '../config/config.ts'
import { loadConfig, reloadConfig } from '../config/load.ts'
import { formatAddress } from '../config/values.ts'
import { Bodies } from '../gateway/fairness/bodies.ts'
import { listen } from '../host/listen.ts'
import { bodiesBytesMax } from '../host/load-watch.ts'
import type { Edge } from '../http/server.ts'
import { workbench } from '../live/workbench.ts'
import { createLog, isPrettyOn } from '../log/log.ts'
import { listModels } from '../operations/models.ts'
import { StoreError } from '../store/files/store-error.ts'
import { askWorkers } from '../workers/answers.ts'
import { WorkerFleet } from '../workers/fleet.ts'
import { openWorkerMetrics, type ScrapedWorker, type WorkerMetrics } from '../workers/metrics.ts'
import { writeSource } from '../workers/role.ts'
import { createAdminApi, prefixOf } from './admin-api.ts'
import { sayStart, startData } from './say-start.ts'
import type { ServeOptions } from './serve-options.ts'

/** How often events are sent to those who watch, in ms. */
const tickMs = 250

/**
 * Runs several processes on one port, each an ordinary replica with a folder of its own below `state_dir`. This process hands
 * connections to them in turn, restarts one that dies, passes signals on, and answers for all on the one admin listener (rulings X7,
 * X9). It has no part in any request.
 * @throws StoreError with a store that only one process can serve.
 */
export async function superviseWorkers(options: ServeOptions, count: number): Promise<void> {
  let config = loadConfig(options)
  const firstSource = writeSource(config)
  refuseSoleStore(config.store.engine, config.isBuiltIn)
  const isPretty = isPrettyOn(config.log.format)
  const log = createLog({ level: config.log.level, isPretty, nowMs: Date.now })
  const reportBug = (bug: Error) => log.event('error', 'bug', { error: bug.stack })
  const metrics = openWorkerMetrics(config, listScraped, reportBug)
  const { token, digest: parentDigest } = createToken()
  const fleet = new WorkerFleet(count, {
    role: { isPretty, parentDigest },
    config: () => ({ kind: 'config', first: firstSource, inForce: writeSource(config) }),
    log,
    onWorker({ process: { stdout, stderr } }) {
      passLines(stderr, log.pass)
      passLines(stdout, log.pass)
    },
    onEnd: (code) => void end(code),
  })
  let admin: WorkersAdmin | undefined
  // Without this process all workers would end at once, and cut their answers.
  process.on('uncaughtException', (error) => {
    log.event('error', 'uncaught', { error: error.stack })
    process.exitCode = 1
    fleet.stop('SIGTERM')
  })
  takeSignals(pass)
  await fleet.allListen
  admin = openWorkersAdmin({ config: () => config, origins: adminOrigins, metrics, token, reportBug })
  const adminAddress = await listen(admin.edge.server, config.adminListen)
  const [first] = fleet.list()
  const started = {
    base: `${config.tls ? 'https' : 'http'}://${formatAddress(first!.address)}`,
    admin: `${config.adminTls ? 'https' : 'http'}://${formatAddress(adminAddress)}`,
    config,
    isStoreNew: false,
    demo: undefined,
    isDemoBarred: first!.isDemoBarred,
  }
  log.event('info', 'listening', {
    address: formatAddress(first!.address),
    admin: formatAddress(adminAddress),
    workers: count,
  })
  console.log(options.json ? startData(started, first!.accounts) : sayStart(started, first!.accounts))

  function pass(signal: NodeJS.Signals): void {
    if (signal === 'SIGHUP') {
      fleet.reload()
      metrics.adopt(readAgain)
    } else fleet.stop(signal)
  }

  /** Reads the configuration that this process answers from. Workers report its mistakes. */
  function readAgain(): Config {
    config = reloadConfig(config, options)
    admin?.adopt(config)
    return config
  }

  async function end(code: number): Promise<void> {
    await log.flush()
    process.exit(Number(process.exitCode) || code)
  }

  function adminOrigins(): string[] {
    return listScraped().map(({ origin }) => origin)
  }

  function listScraped(): ScrapedWorker[] {
    return fleet.list().map(({ number, adminAddress }) => ({ number, origin: `http://${formatAddress(adminAddress)}` }))
  }
}

type FleetAdminParts = {
  config: () => Config
  origins: () => readonly string[]
  metrics: WorkerMetrics
  /** The token of this process, which the workers know. */
  token: string
  reportBug: (bug: Error) => void
}

/** @property adopt from now on the listener shows the certificate of this configuration, and answers by it */
type WorkersAdmin = { edge: Edge; adopt(next: Config): void }

/** The one admin listener, which answers for all workers. */
function openWorkersAdmin({ config, origins, metrics, token, reportBug }: FleetAdminParts): WorkersAdmin {
  const operations = askWorkers(origins, reportBug, {
    token,
    listModels: () => listModels(config().catalog.entries),
    own: workbench(config),
  })
  const { play } = operations
  const { api, pages, adopt } = createAdminApi({
    ...{ config: config(), operations, nowMs: Date.now, clockMs: () => performance.now(), play },
    bodyBytesMax: () => config().limits.bodyBytesMax,
    // Only operators' bodies come here.
    bodies: new Bodies(bodiesBytesMax()),
  })
  setInterval(operations.tick, tickMs).unref()
  const { isReady } = operations
  const edge = createAdmin({
    ...{ isReady, api, pages, metrics: metrics.answer, reportBug },
    ...{ tls: config().adminTls, prefix: prefixOf(config()) },
  })
  return { edge, adopt: (next) => adopt(next, edge) }
}

function refuseSoleStore(engine: 'sqlite' | 'postgres', isBuiltIn: boolean): void {
  if (engine === 'sqlite')
    throw new StoreError(
      '--workers needs a store that several processes can serve from, and with SQLite one server holds the store: name a database in PostgreSQL with store: postgres://…, or leave --workers out (one process serves some thousand requests a second)',
    )
  if (isBuiltIn)
    throw new StoreError('--workers needs a configuration with a catalog: the built-in one is for a first look')
}

function passLines(from: Readable | null, put: (line: string) => void): void {
  if (from) createInterface({ input: from, crlfDelay: Number.POSITIVE_INFINITY }).on('line', put)
}
