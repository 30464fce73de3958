import type { Books } from '../accounts/books.ts'
import type { ServerStore } from '../accounts/server-store.ts'
import { createAdmin, type Readiness } from '../admin/listener.ts'
import { createPlayground } from '../admin/playground.ts'
import type { SideRoute } from '../admin/side.ts'
import type { Address, Config } from '../config/config.ts'
import { addressBeside, formatAddress, isLoopback } from '../config/values.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener } from '../gateway/record.ts'
import { listen } from '../host/listen.ts'
import { within } from '../host/timers.ts'
import type { Edge } from '../http/server.ts'
import { Events } from '../live/events.ts'
import { NeedWatch } from '../live/needs.ts'
import { createOperations, listUpstreams } from '../live/operations.ts'
import type { Recents } from '../live/recents.ts'
import { openReplicaView } from '../live/replica-view.ts'
import { countStreams, listFailing, tellKnownAccounts, tellStatus } from '../live/status.ts'
import type { TrafficWriter } from '../live/traffic-writer.ts'
import type { UpstreamDates } from '../live/upstream-dates.ts'
import type { Log } from '../log/log.ts'
import type { Family } from '../telemetry/instruments.ts'
import { openWebhooks, type Webhooks } from '../webhooks/webhooks.ts'
import { createAdminApi, prefixOf } from './admin-api.ts'
import { openDemo } from './demo-store.ts'
import { createOwnPages } from './own-pages.ts'
import { createSignIn } from './sign-in.ts'
import { createSignInPaths } from './sign-in-paths.ts'
import type { Telemetry } from './telemetry.ts'
import type { WorkerRole } from './worker-role.ts'

/**
 * The longest time, in ms, that the end of a server waits for questions of the admin side to the store. A store that
 * does not answer must not delay the end.
 */
const booksMaxMs = 2_000

type AdminSideParts = {
  gateway: Gateway
  config: Config
  sealKey: Uint8Array
  recents: Recents
  store: ServerStore
  telemetry: Telemetry
  events: Events
  traffic: Pick<TrafficWriter, 'write'>
  log: Log
  /** The receivers of the record of each request, including requests of operators. */
  listeners: readonly RecordListener[]
  reportBug: (bug: Error) => void
  isReady: () => Readiness
  isDraining: () => boolean
  /** The role of this process if it is one of several workers; otherwise undefined. */
  role: WorkerRole | undefined
  /** The time limit of a webhook, in ms. */
  webhookMs: number | undefined
  families: readonly Family[]
  /** Compares this machine's clock with the dates in answers of upstreams (ruling Y15). */
  dates: Pick<UpstreamDates, 'text'>
}

/**
 * @property ownAddress a loopback address that only this process uses. It is set for a worker. It is also set if the
 * listener has no TLS and is not on loopback
 */
type AdminAddresses = { adminAddress: Address; ownAddress: Address | undefined }

/** The admin side of a server. @property playing the number of operators' playground requests that run */
export type AdminSide = {
  webhooks: Webhooks
  /** Returns the books (accounts, keys and ledger), for work of triwire itself. The first call opens them. */
  books(): Promise<Books>
  /** Starts to listen, and tells other servers of the store how to reach this one. @throws the system's error */
  begin(): Promise<AdminAddresses>
  /** Sends live events, and looks for problems that an operator must solve. It is called a few times a second. */
  tick(): void
  playing(): number
  /** The routes of the public listener besides those for models: sign-in, agents, and pages for people with keys. */
  sideRoutes: readonly SideRoute[]
  /** Applies a reloaded configuration. From now on the listener presents its certificate and follows its settings. */
  adopt(next: Config): void
  close(): Promise<void>
}

/** The admin listener of a server, with its API, console, metrics and webhooks. */
export function openAdmin(parts: AdminSideParts): AdminSide {
  const { gateway, config, telemetry, events, reportBug, isReady, role } = parts
  const { nowMs, clockMs } = gateway
  const startedMs = nowMs()
  const { recents, store, dates } = parts
  const tellClock = () => [store.clock.text, dates.text].filter(Boolean).join('; ') || undefined
  const webhooks = openWebhooks({
    config,
    gateway,
    clock: store.clock,
    books: () => adminApi.books(),
    // Servers that share cooldowns (pauses of failed upstream accounts) share the store too.
    isShared: store.cooldowns !== undefined,
    log: parts.log,
    waitMs: parts.webhookMs,
  })
  const needs = new NeedWatch({
    ...{ gateway, reportBug, books: ownBooks, listWebhooks: () => webhooks.list() },
    tellClock: () => problemOf(tellClock(), store.clock.doubt !== undefined),
    isTelling: config.webhooks.some(({ events }) => events.has('needs_changed')),
  })
  const demo = openDemo({ config, isWorker: role !== undefined, books: ownBooks, gateway, reportBug })
  const own = createOperations({
    ...{ gateway, recents, store, traffic: parts.traffic, reportBug },
    listWebhooks: async () => webhooks.list(),
    listNeeds: () => needs.list(),
    demo: demo.desk,
    watch: events.watch,
    readStatus: () => {
      const [lagMs, clock] = [telemetry.readLagMs(), tellClock() ?? null]
      return tellStatus(gateway, { startedMs, isReady: isReady() === true, lagMs, clock })
    },
  })
  const view =
    store.replicas && openReplicaView({ replicas: store.replicas, own, events, sealKey: parts.sealKey, nowMs, clockMs })
  const operations = view?.operations ?? own
  const { play, playing } = createPlayground(gateway, parts.listeners, parts.isDraining)
  const adminApi = createAdminApi({
    demo: { books: demo.desk.books, view: demo.viewOf(own) },
    ...{ config, operations, nowMs, clockMs, play, readAccess: gateway.readAccess },
    expectedMs: () => store.clock.expectedMs(),
    bodyBytesMax: () => gateway.snapshots.current.config.limits.bodyBytesMax,
    ...{ bodies: gateway.bodies, turns: gateway.turns },
  })
  const ownPages = createOwnPages(config, adminApi.apiParts, { clockMs, isShedding: () => gateway.isShedding() })
  const signIn = createSignIn({
    ...{ sealKey: parts.sealKey, books: adminApi.books, api: adminApi.apiParts, clockMs, log: parts.log },
    config: () => gateway.snapshots.current.config,
  })
  const { askAgain, limits } = signIn
  const signInPaths = createSignInPaths({ gateway, sealKey: parts.sealKey, books: adminApi.books, askAgain, limits })
  const adminParts = {
    isReady: async () => {
      const [ready, note] = [isReady(), tellClock()]
      return ready === true && note !== undefined ? { note } : ready
    },
    ...{
      api: adminApi.api,
      demoApi: adminApi.demoApi,
      pages: signIn.admin(adminApi.apiParts.site ?? {}, adminApi.pages),
    },
    metrics: telemetry.watch(gateway, [...parts.families, ...webhooks.families]),
    ...(view && { door: view.door }),
    prefix: prefixOf(config),
    reportBug,
  }
  const isInClear = !isLoopback(config.adminListen) && !config.adminTls
  let ownAddress: Address | undefined
  const besideOf = isInClear ? () => formatAddress(ownAddress ?? addressBeside(config.adminListen)) : undefined
  const edge = createAdmin({ ...adminParts, tls: config.adminTls, besideOf })
  // This second listener on loopback reaches only this process. It is needed if workers share the port of the first
  // listener, or if other machines reach the first listener without TLS.
  const ownEdge = role || isInClear ? createAdmin(adminParts) : undefined
  return {
    webhooks,
    books: ownBooks,
    async begin() {
      const adminAddress = await listen(edge.server, role?.adminListen ?? config.adminListen, { isShared: !!role })
      const { port } = addressBeside(adminAddress)
      const beside = role ? role.number - 1 : 0
      // Commands on this machine look for this server on loopback, at the listener's port plus 1. If the configuration
      // names the listener's port, they try no other port.
      const isAsked = isInClear && beside === 0 && config.adminListen.port !== 0
      ownAddress = ownEdge && (await listenBeside(ownEdge.server, port + beside, isAsked))
      const isPlainLocal = isLoopback(adminAddress) && !config.adminTls
      const local = ownAddress ?? (isPlainLocal ? adminAddress : undefined)
      view?.openDoor(local && `http://${formatAddress(local)}`, config.adminReplicaUrl)
      return { adminAddress, ownAddress }
    },
    tick() {
      events.tick()
      view?.tick()
      needs.tick()
    },
    ...{ playing, sideRoutes: [...ownPages.routes, ...signIn.routes(ownPages.site), ...signInPaths] },
    adopt(next) {
      adminApi.adopt(next, edge)
      ownPages.adopt(next)
    },
    async close() {
      view?.close()
      events.close()
      for (const one of [edge, ownEdge]) {
        one?.server.close()
        one?.closeAll()
      }
      await within(closeInOrder([webhooks, needs, demo, adminApi]), booksMaxMs)
    },
  }

  async function ownBooks(): Promise<Books> {
    return (await adminApi.books()).as({ actor: 'triwire', expectedMs: store.clock.expectedMs() })
  }
}

/** @param isDoubted whether the clock that dates entries is in doubt */
function problemOf(text: string | undefined, isDoubted: boolean): { text: string; isDoubted: boolean } | null {
  return text === undefined ? null : { text, isDoubted }
}

/** Listens on loopback at this port. If the port is taken and not fixed, any free port is used. */
async function listenBeside(server: Edge['server'], port: number, isFixed: boolean): Promise<Address> {
  const listening = listen(server, { host: '127.0.0.1', port })
  return isFixed ? listening : listening.catch(() => listen(server, { host: '127.0.0.1', port: 0 }))
}

/** Creates the source of live events. The gateway is passed as a function, because it may not exist yet. */
export function watchGateway(gateway: () => Gateway): Events {
  return new Events({
    clockMs: () => gateway().clockMs(),
    nowMs: () => gateway().nowMs(),
    listUpstreams: async () => listUpstreams(gateway()),
    tellAccounts: (ids) => tellKnownAccounts(gateway(), ids),
    countStreams: () => countStreams(gateway()),
    listFailing: () => listFailing(gateway()),
    reportBug: (bug) => gateway().reportBug(bug),
  })
}

async function closeInOrder(parts: readonly { close(): Promise<void> }[]): Promise<void> {
  for (const part of parts) await part.close()
}
