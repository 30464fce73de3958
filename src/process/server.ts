import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottle, createWindows, type Throttle, type Windows } from '../accounts/limits.ts'
import { createSealer, scopeKey } from '../accounts/seal.ts'
import type { Address, Config } from '../config/config.ts'
import type { Gateway, Ticking } from '../gateway/gateway.ts'
import { createAdmin } from '../http/admin.ts'
import { createRouter } from '../http/routes.ts'
import { createEdge } from '../http/server.ts'
import type { OpenLedger } from '../store/sqlite/ledger-client.ts'
import { createUpstreams } from '../upstream/send.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { createLoadWatch, type LoadWatch } from './load-watch.ts'
import type { Log } from './log.ts'
import { readSealKey } from './seal-key.ts'

/** How often the deadlines of running requests are looked at. */
const tickMs = 250

/** How long what was cut at the drain's deadline may take to be settled and written out (faults F-P3). */
const cutMs = 4_000

/** How often a drain looks whether it is over. */
const lookMs = 20

const headerBytesMax = 16_384
const headersMax = 100

export type ServerParts = {
  config: Config
  ledger: OpenLedger
  log: Log
  /** Unix milliseconds; a test's clock. */
  nowMs?: () => number
  /** Monotonic milliseconds; a test's clock. */
  clockMs?: () => number
  /** Whether the process can keep up; a test's process may be slow. */
  load?: LoadWatch
}

/** A gateway that listens. main makes one for the process; a test makes one for itself. */
export type RunningServer = {
  gateway: Gateway
  /** Where it listens, with the port that was given. */
  address: Address
  adminAddress: Address
  /**
   * Puts another catalog, other upstreams, prices and rate limits in force; requests under way keep theirs. Addresses,
   * store and the limits of the edge take a restart.
   */
  reload(config: Config): void
  /** Ends what runs: new connections for the drain delay, then none; streams until the deadline (reliability §7). */
  drain(delayMs: number, deadlineMs: number): Promise<void>
  /** Ends the drain now. */
  hurry(): void
}

/** Builds every part around a ledger and starts to listen on both addresses. @throws what listening throws. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { ledger, log } = parts
  const nowMs = parts.nowMs ?? Date.now
  const clockMs = parts.clockMs ?? (() => performance.now())
  let { config } = parts
  let upstreams = openUpstreams(config)
  let isReady = true
  let isDraining = false
  let isHurried = false
  const deliveries = new Set<Ticking>()
  // The process's own time: how late its loop is has nothing to do with any other clock.
  const load = parts.load ?? createLoadWatch(() => performance.now())

  const gateway: Gateway = {
    config: () => config,
    directory: ledger.directory,
    ledger: ledger.ledger,
    windows: openWindows(),
    throttle: openThrottle(),
    upstreams: () => upstreams,
    nowMs,
    clockMs,
    deliveries,
    settling: { count: 0 },
    isShedding: () => load.isShedding,
    sealer: createSealer(readSealKey(config.sealKey, config.store)),
    scopeKey,
  }
  const edge = createEdge(
    {
      headersMs: config.timeouts.headersMs,
      keepAliveMs: config.timeouts.keepAliveMs,
      connectionsMax: config.limits.connectionsMax,
      headerBytesMax,
      headersMax,
    },
    createRouter(gateway, log.access),
    ({ requestId, error, method, path, ip, cause }) => {
      const now = nowMs()
      const { status, code } = error
      const outcome = cause === 'client_timeout' ? 'client_timeout' : 'refused'
      log.access({ id: requestId, startedMs: now, endMs: now, method, path, ip, status, code, cause, outcome })
    },
    () => isDraining,
  )
  const admin = createAdmin(() => isReady && !isDraining && ledger.ledger.isWritable())
  const { address, adminAddress } = await listenOnBoth().catch(async (error) => {
    load.stop()
    edge.server.close()
    await upstreams.close()
    throw error
  })
  const ticker = setInterval(() => {
    const now = clockMs()
    for (const delivery of deliveries) delivery.tick(now)
  }, tickMs)

  return { gateway, address, adminAddress, reload, drain, hurry }

  async function listenOnBoth() {
    const address = await listen(edge.server, config.listen)
    return { address, adminAddress: await listen(admin, config.adminListen) }
  }

  function reload(next: Config): void {
    const before = { config, upstreams }
    config = next
    upstreams = openUpstreams(next)
    before.upstreams.retire()
    // Another limit starts new windows; the same limit goes on counting.
    if (next.limits.requestsPerMinute !== before.config.limits.requestsPerMinute) gateway.windows = openWindows()
    if (next.limits.failedAuthPerMinute !== before.config.limits.failedAuthPerMinute) gateway.throttle = openThrottle()
  }

  function openWindows(): Windows {
    return createWindows({ limit: config.limits.requestsPerMinute, windowMs: 60_000, clockMs })
  }

  function openThrottle(): Throttle {
    return createThrottle({ limit: config.limits.failedAuthPerMinute, windowMs: 60_000, clockMs })
  }

  function openUpstreams(from: Config): Upstreams {
    return createUpstreams(from.upstreams, { connectMs: from.timeouts.connectMs, headerBytesMax })
  }

  function hurry(): void {
    isHurried = true
  }

  async function drain(delayMs: number, deadlineMs: number): Promise<void> {
    isDraining = true
    log.event('info', 'drain', { live: edge.running, delay_ms: delayMs })
    // A load balancer needs a moment to learn that we are leaving.
    await waitUntil(() => isHurried, delayMs)
    isReady = false
    edge.server.close()
    edge.server.closeIdleConnections()
    let reported = clockMs()
    await waitUntil(() => {
      if (clockMs() - reported >= 5_000) {
        reported = clockMs()
        log.event('info', 'drain', { live: edge.running })
      }
      return isHurried || edge.running === 0
    }, deadlineMs)
    if (edge.running > 0) log.event('info', 'drain_cut', { live: edge.running })
    for (const delivery of [...deliveries]) delivery.shutDown()
    // Their ends are on the way; a client that does not read gets no more than this.
    await waitUntil(() => deliveries.size === 0 && edge.running === 0, cutMs)
    edge.server.closeAllConnections()
    admin.close()
    admin.closeAllConnections()
    clearInterval(ticker)
    load.stop()
    await upstreams.close()
  }

  /** Until it is so, or so long by the clock that was given, which a test turns. */
  async function waitUntil(isSo: () => boolean, forMs: number): Promise<void> {
    for (const end = clockMs() + forMs; !isSo() && clockMs() < end; ) await sleep(lookMs)
  }
}

function listen(server: Server, address: Address): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(address.port, address.host, 511, () => {
      server.off('error', reject)
      resolve({ host: address.host, port: (server.address() as AddressInfo).port })
    })
  })
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
