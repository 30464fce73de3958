import type { Books } from '../accounts/books.ts'
import { createCalendar } from '../accounts/calendar.ts'
import { createGranting } from '../accounts/granting.ts'
import { blockTexts } from '../accounts/ledger.ts'
import { createDigests, createSealer, scopeKey } from '../accounts/seal.ts'
import type { ServerStore } from '../accounts/server-store.ts'
import { createTokens } from '../accounts/sign-in/tokens.ts'
import { createSide } from '../admin/side.ts'
import type { Address, Config } from '../config/config.ts'
import { keepFixed } from '../config/differences.ts'
import { ChainStays } from '../gateway/chain-stays.ts'
import { Bodies, createCounting, Flow, Readers } from '../gateway/fairness/places.ts'
import { createTurns } from '../gateway/fairness/turns.ts'
import { createSnapshots, type Gateway, type Snapshot, tick } from '../gateway/gateway.ts'
import { type CallRecord, contain, LastAnswers, type RecordListener } from '../gateway/record.ts'
import { listen } from '../host/listen.ts'
import { bodiesBytesMax, createLoadWatch, type LoadWatch } from '../host/load-watch.ts'
import { readSealKey } from '../host/seal-key.ts'
import { within } from '../host/timers.ts'
import { formClientError } from '../http/answer.ts'
import { createRouter, type Side } from '../http/routes.ts'
import { createEdge, type Edge, type EdgeRefusal } from '../http/server.ts'
import { createRecents, type Recents } from '../live/recents.ts'
import { createTrafficWriter } from '../live/traffic-writer.ts'
import { UpstreamDates } from '../live/upstream-dates.ts'
import type { Log } from '../log/log.ts'
import { Roster } from '../registers.ts'
import { createUpstreams } from '../upstream/http-way.ts'
import { createKeyring, type Keyring } from '../upstream/keyring.ts'
import { createPool } from '../upstream/pool.ts'
import { createPoolMemory, type PoolMemory } from '../upstream/pool-memory.ts'
import type { ConnectionWatch } from '../upstream/target.ts'
import type { Webhooks } from '../webhooks/webhooks.ts'
import { type AdminSide, openAdmin, watchGateway } from './admin.ts'
import { drainEdge } from './drain.ts'
import { createUnaskedLog, openTelemetry } from './telemetry.ts'
import type { WorkerRole } from './worker-role.ts'

/** The time between two checks of the deadlines of running requests, in ms. */
const tickMs = 250

const headerBytesMax = 16_384
const headersMax = 100

/**
 * How long a start or reload waits for the commands that print the keys of upstream accounts, in ms. An account is not
 * used until its command has printed a key.
 */
const keysMaxMs = 10_000

/** The longest time, in ms, that a start waits until the store has recorded which warnings the webhooks want. */
const webhooksMaxMs = 5_000

type ServerParts = {
  config: Config
  store: ServerStore
  log: Log
  /** Unix milliseconds. Tests pass their own clock. */
  nowMs?: () => number
  /** Monotonic milliseconds. Tests pass their own clock. */
  clockMs?: () => number
  /** Measures whether the process keeps up, in real time. A test may pass one that reports overload. */
  load?: LoadWatch
  /**
   * The clock of connections to upstreams, in monotonic milliseconds. It is separate from `clockMs`, which may jump in
   * a test.
   */
  connectionsClockMs?: () => number
  /** The memory of upstream accounts: failures and cooldowns. A test may pass one with its own clock. */
  memory?: PoolMemory
  /** The last requests, kept in memory. A test keeps fewer of them. */
  recents?: Recents
  /** The most bytes of request bodies in memory. A test sets its own limit. */
  bodiesBytesMax?: number | undefined
  /**
   * Ids of accounts that are treated as suspended, such as the demo account with real models. The caller may add and
   * remove ids.
   */
  barred?: ReadonlySet<string> | undefined
  /** The role of this process if it is one of several workers that share the ports. */
  role?: WorkerRole | undefined
  /** The longest wait for key commands, in ms. Tests use a short one. */
  keysMs?: number | undefined
  /** The environment variables, which may name cloud credentials. Default: those of the process. */
  env?: Readonly<Record<string, string | undefined>> | undefined
  /** The time limit of a webhook, in ms. Tests use a short one. */
  webhookMs?: number | undefined
}

/** A gateway that listens. The program makes one, and a test makes its own. */
export type RunningServer = {
  gateway: Gateway
  /** The address of the clients' listener, with its port. */
  address: Address
  adminAddress: Address
  /** A loopback address of the admin side that only this process uses (see `AdminAddresses`). */
  ownAddress: Address | undefined
  /**
   * Replaces the catalog, upstreams, prices and rate limits. Running requests keep the old settings. Addresses, the
   * store and the limits of connections need a restart.
   */
  reload(config: Config): void
  /** Starts the key commands of a configuration that is not used yet. Resolves when they end or take too long. */
  prepare(config: Config): Promise<void>
  /** Called with the configuration in use if a new one is rejected. Ends what was started for the new one. */
  keep(config: Config): void
  /** Checks all deadlines. The ticker calls it four times a second. */
  tick(): void
  /** Stops accepting connections after the delay. Streams that still run at the deadline are ended (reliability §7). */
  drain(delayMs: number, deadlineMs: number): Promise<void>
  /** Ends a drain at once. */
  hurry(): void
  webhooks: Webhooks
}

/** Builds all parts around a store and starts to listen on both addresses. @throws the errors of listening */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { store, log, nowMs = Date.now, clockMs = () => performance.now() } = parts
  const config = { ...parts.config }
  // Steps that can fail come first. If they came later, the parts that were started would have to be ended again.
  const sealKey = readSealKey(config.sealKey, config.store)
  const tokens = createTokens(sealKey)
  const memory = openMemory(parts, clockMs)
  const keyring = createKeyring(clockMs, log.event, nowMs, parts.env)
  const reportBug = (bug: Error, id?: string) => log.event('error', 'bug', { ...(id && { id }), error: bug.stack })
  const [unasked, dates] = [createUnaskedLog(log.event, clockMs), new UpstreamDates(nowMs, log.event)]
  const watch = { ...timeOf(parts), reportBug, onUnasked: unasked.note, onDate: dates.note }
  unasked.watch(config.upstreams.keys())
  const prepare = ({ upstreams }: Config) => within(keyring.prepare(upstreams.values()), parts.keysMs ?? keysMaxMs)
  await prepare(config)
  const snapshots = createSnapshots(openSnapshot(config, memory, keyring, watch))
  const recents = parts.recents ?? createRecents()
  const telemetry = await openTelemetry(config, () => snapshots.current.config, log, store.replicas?.name)
  const events = watchGateway(() => gateway)
  store.directory.onChanged?.(events.noteAccount)
  const [traffic, lastAnswers] = [createTrafficWriter(store, nowMs, clockMs), new LastAnswers()]
  const granting = openGranting(parts, nowMs, () => admin.books())
  const noted = [log.access, lastAnswers.note, recents.note, traffic.note, ...telemetry.listeners, events.note]
  const listeners = contain(reportBug, ...noted)
  const [limits, isShedding] = [() => snapshots.current.config.limits, () => gateway.isShedding()]
  let [isReady, isDraining, isHurried] = [true, false, false]
  const load = parts.load ?? createLoadWatch(ownTime.clockMs)
  const gateway: Gateway = {
    snapshots,
    directory: store.directory,
    barred: parts.barred ?? new Set(),
    ledger: store.ledger,
    admission: granting.around(
      store.openAdmission({ requestsPerMinute: () => limits().requestsPerMinute, isShedding, clockMs, nowMs }),
    ),
    throttle: store.openThrottle({ failedAuthPerMinute: () => limits().failedAuthPerMinute, clockMs }),
    deliveries: new Roster(),
    lingering: new Roster(),
    readers: new Readers(),
    turns: createTurns(ownTime),
    isShedding: () => load.isShedding,
    isStrained: () => load.isStrained,
    bodies: new Bodies(parts.bodiesBytesMax ?? bodiesBytesMax()),
    flow: new Flow(),
    counting: createCounting(clockMs, () => gateway.deliveries.size > 0),
    sealer: createSealer(sealKey),
    readAccess: tokens.readAccess,
    openDigest: createDigests(sealKey),
    tracing: telemetry.tracing,
    aheadMs: () => store.clock.aheadMs,
    ...{ nowMs, clockMs, stays: new ChainStays(clockMs), lastAnswers, scopeKey, reportBug },
  }
  const isTaking = () => tellReadiness(store, isReady && !isDraining)
  const admin = openAdmin({
    ...{ gateway, config, sealKey, recents, store, telemetry, events, traffic, listeners, log, reportBug },
    ...{ isReady: isTaking, isDraining: () => isDraining, role: parts.role },
    ...{ webhookMs: parts.webhookMs, families: unasked.families, dates },
  })
  const side = createSide(admin.sideRoutes, contain(reportBug, log.access, ...telemetry.listeners))
  const edge = openEdge(gateway, { config, listeners, side, isDraining: () => isDraining })
  await within(admin.webhooks.begin(), webhooksMaxMs)
  const { address, ...adminAddresses } = await listenOnBoth({ ...parts, config }, edge, admin).catch(async (error) => {
    for (const end of [load.stop, keyring.close, admin.close, telemetry.close]) void end()
    edge.server.close()
    await snapshots.close()
    throw error
  })
  void granting.postAll()
  const ticker = setInterval(tickAll, tickMs)
  const own = { gateway, address, ...adminAddresses, webhooks: admin.webhooks }
  return { ...own, reload, keep, prepare, tick: tickAll, drain, hurry }

  function tickAll(): void {
    tick(gateway, clockMs())
    keyring.tick()
    admin.tick()
    traffic.tick()
  }

  function keep({ upstreams }: Config): void {
    keyring.keep(upstreams.values())
  }

  function hurry(): void {
    isHurried = true
  }

  function reload(next: Config): void {
    unasked.watch(next.upstreams.keys())
    keyring.adopt(next.upstreams.values())
    snapshots.replace(openSnapshot(keepFixed(next, snapshots.current.config), memory, keyring, watch))
    snapshots.current.pool.adopt(next.catalog.entries)
    if (next.tls) edge.renew(next.tls)
    admin.adopt(snapshots.current.config)
  }

  async function drain(delayMs: number, deadlineMs: number): Promise<void> {
    isDraining = true
    const onClosing = () => {
      isReady = false
    }
    await drainEdge(
      { edge, playing: admin.playing, gateway, clockMs, log, isHurried: () => isHurried, onClosing },
      { delayMs, deadlineMs },
    )
    await admin.close()
    clearInterval(ticker)
    void traffic.write()
    keyring.close()
    load.stop()
    await telemetry.close()
    await snapshots.close()
  }
}

type EdgeSides = { config: Config; listeners: RecordListener[]; side: Side; isDraining: () => boolean }

/** Creates the listener for clients. */
function openEdge(gateway: Gateway, { config, listeners, side, isDraining }: EdgeSides): Edge {
  return createEdge({
    limits: {
      ...{ ...config.timeouts, ...config.limits, headerBytesMax, headersMax },
      get lingerMs() {
        return gateway.snapshots.current.config.timeouts.lingerMs
      },
    },
    tls: config.tls,
    ...{ handle: createRouter(gateway, listeners, side), formError: formClientError, isDraining },
    onRefusal: (refusal) => tellAll(listeners, recordOf(refusal, gateway.nowMs())),
  })
}

function openGranting({ config, store, log }: ServerParts, nowMs: () => number, books: () => Promise<Books>) {
  const calendar = createCalendar(config.reporting)
  return createGranting({ books, directory: store.directory, nowMs, calendar, log: log.event })
}

/** Returns true, or why the server is not ready. It is ready even if single accounts are blocked (ruling Y16). */
function tellReadiness({ ledger, clock }: ServerStore, isTaking: boolean): true | string {
  if (!isTaking) return 'it is being stopped'
  const block = ledger.whyBlocked()
  if (block === 'clock') return clock.doubt ?? blockTexts.clock
  return block === undefined || blockTexts[block]
}

/** Opens the memory of failed upstream accounts. Servers of one store share cooldowns (pauses of such accounts). */
function openMemory({ memory, store }: ServerParts, clockMs: () => number): PoolMemory {
  const own = memory ?? createPoolMemory(clockMs)
  if (store.cooldowns) own.share(store.cooldowns)
  return own
}

/** Listens, and writes the actual port into the configuration, from which the settings for clients are made. */
async function listenOnBoth({ config, role }: ServerParts, edge: Edge, admin: Pick<AdminSide, 'begin'>) {
  config.listen = await listen(edge.server, role?.listen ?? config.listen, { isShared: role !== undefined })
  return { address: config.listen, ...(await admin.begin()) }
}

/** Returns the clock of connections, which a test may move. */
function timeOf({ connectionsClockMs = ownTime.clockMs }: ServerParts): Pick<ConnectionWatch, 'clockMs'> {
  return { clockMs: connectionsClockMs }
}

/** The real time, also in tests, because requests compete for the real computing time of this process. */
const ownTime = {
  clockMs: () => performance.now(),
  soon: (act: () => void) => void setImmediate(act),
  after: (ms: number, act: () => void) => void setTimeout(act, ms),
}

function tellAll(listeners: readonly RecordListener[], record: CallRecord): void {
  for (const listen of listeners) listen(record)
}

/** Makes the record of a request that was refused before it reached a route. */
function recordOf({ requestId, error, method, path, ip, cause }: EdgeRefusal, nowMs: number): CallRecord {
  const { status, code, message } = error
  const outcome = cause === 'client_timeout' ? 'client_timeout' : 'refused'
  return { id: requestId, startedMs: nowMs, endMs: 0, method, path, ip, status, code, message, cause, outcome }
}

function openSnapshot(config: Config, memory: PoolMemory, { keyOf }: Keyring, watch: ConnectionWatch): Snapshot {
  const limits = { connectMs: config.timeouts.connectMs, headerBytesMax }
  const pool = createPool(config.upstreams, memory, keyOf)
  return { config, pool, upstreams: createUpstreams(config.upstreams, limits, watch), keyOf }
}
