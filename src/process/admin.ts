import type { ServerStore } from '../accounts/server-store.ts'
import { createAdmin, type Readiness } from '../admin/listener.ts'
import { createPlayground } from '../admin/playground.ts'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { RecordListener } from '../gateway/record.ts'
import type { Edge } from '../http/server.ts'
import { Events } from '../live/events.ts'
import { createOperations, listUpstreams } from '../live/operations.ts'
import type { Recents } from '../live/recents.ts'
import { countStreams, tellKnownAccounts, tellStatus } from '../live/status.ts'
import type { TrafficWriter } from '../live/traffic-writer.ts'
import type { Log } from '../log/log.ts'
import type { Family } from '../telemetry/instruments.ts'
import { openWebhooks, type Webhooks } from '../webhooks/webhooks.ts'
import { createWorkerDoor, doorPath } from '../workers/door.ts'
import { createAdminApi, prefixOf } from './admin-api.ts'
import type { Telemetry } from './telemetry.ts'

type AdminSideParts = {
  gateway: Gateway
  config: Config
  recents: Recents
  store: ServerStore
  telemetry: Telemetry
  events: Events
  traffic: Pick<TrafficWriter, 'write'>
  log: Log
  /** Are called for requests of operators, as for every request. */
  listeners: readonly RecordListener[]
  reportBug: (bug: Error) => void
  isReady: () => Readiness
  isDraining: () => boolean
  /** In a worker process: the digest of the token of the process that has started it. */
  parentDigest: string | undefined
  /** How long a webhook may take, in ms. */
  webhookMs: number | undefined
  families: readonly Family[]
}

/** @property playing how many requests of operators are being answered */
type Admin = {
  edge: Edge
  webhooks: Webhooks
  playing(): number
  /** From now on the listener shows the certificate of this configuration, and answers by it. */
  adopt(next: Config): void
  close(): Promise<void>
}

/** The admin listener of a server, with its API, console, metrics and webhooks. */
export function openAdmin(parts: AdminSideParts): Admin {
  const { gateway, config, telemetry, events, reportBug, isReady, parentDigest } = parts
  const { nowMs, clockMs } = gateway
  const startedMs = nowMs()
  const { recents, store } = parts
  const webhooks = openWebhooks({
    config,
    gateway,
    clock: store.clock,
    books: () => adminApi.books(),
    // Servers that share cooldowns share the store.
    isShared: store.cooldowns !== undefined,
    log: parts.log,
    waitMs: parts.webhookMs,
  })
  const operations = createOperations({
    ...{ gateway, recents, store, traffic: parts.traffic, reportBug },
    listWebhooks: async () => webhooks.list(),
    watch: events.watch,
    readStatus: () => {
      const [lagMs, clock] = [telemetry.readLagMs(), store.clock.text ?? null]
      return tellStatus(gateway, { startedMs, isReady: isReady() === true, lagMs, clock })
    },
  })
  const { play, playing } = createPlayground(gateway, parts.listeners, parts.isDraining)
  const adminApi = createAdminApi({
    ...{ config, operations, nowMs, clockMs, play, parentDigest },
    isClockRight: () => store.clock.doubt === undefined,
    bodyBytesMax: () => gateway.snapshots.current.config.limits.bodyBytesMax,
    bodies: gateway.bodies,
  })
  const door = parentDigest && createWorkerDoor({ running: operations, play, parentDigest })
  const edge = createAdmin({
    isReady: async () => (isReady() === true && store.clock.text ? { note: store.clock.text } : isReady()),
    ...{ api: adminApi.api, pages: adminApi.pages },
    metrics: telemetry.watch(gateway, [...parts.families, ...webhooks.families]),
    ...(door && { door: { path: doorPath, answer: door } }),
    tls: config.adminTls,
    prefix: prefixOf(config),
    reportBug,
  })
  return {
    edge,
    webhooks,
    playing,
    adopt: (next) => adminApi.adopt(next, edge),
    async close() {
      events.close()
      edge.server.close()
      edge.closeAll()
      await webhooks.close()
      await adminApi.close()
    },
  }
}

/** The live events of a gateway, which may not be there yet. */
export function watchGateway(gateway: () => Gateway): Events {
  return new Events({
    clockMs: () => gateway().clockMs(),
    nowMs: () => gateway().nowMs(),
    listUpstreams: async () => listUpstreams(gateway()),
    tellAccounts: (ids) => tellKnownAccounts(gateway(), ids),
    countStreams: () => countStreams(gateway()),
    reportBug: (bug) => gateway().reportBug(bug),
  })
}
