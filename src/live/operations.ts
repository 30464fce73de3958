import { StoreSilent } from '../accounts/account.ts'
import type { FoundDebit } from '../accounts/entries.ts'
import type { ServerStore } from '../accounts/server-store.ts'
import type { AdminOperations } from '../admin/listener.ts'
import type { Config } from '../config/config.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { within } from '../host/timers.ts'
import type { RequestRow, Status } from '../operations/live-shapes.ts'
import type { Running } from '../operations/operation.ts'
import { wrongField } from '../operations/problem.ts'
import { fits, type Holds, isBeyond, listModels } from '../operations/rows.ts'
import type { Explanation, UpstreamState } from '../operations/shapes.ts'
import type { PoolRow } from '../upstream/pool.ts'
import type { Events } from './events.ts'
import { explainDebit, explainRecord, isTold, rowOf } from './explanation.ts'
import type { Recents } from './recents.ts'
import type { TrafficWriter } from './traffic-writer.ts'

/** The longest time that a query for figures waits for the counts in memory to be written to the store, in ms. */
const trafficMs = 500

type LiveParts = {
  gateway: Gateway
  recents: Recents
  store: Pick<ServerStore, 'findDebit' | 'directory' | 'sharedTraffic'>
  traffic: Pick<TrafficWriter, 'write'>
  watch: Events['watch']
  readStatus: () => Status
  /** Returns the present webhooks. This is a function, because the webhooks are created after these parts. */
  listWebhooks: AdminOperations['listWebhooks']
  listNeeds: AdminOperations['listNeeds']
  demo: AdminOperations['demo']
  reportBug: (bug: Error) => void
}

/** Creates the operations that need a running server. */
export function createOperations(parts: LiveParts): AdminOperations {
  const { gateway, recents, store, watch, readStatus, listWebhooks, listNeeds, demo, reportBug } = parts
  const config = () => gateway.snapshots.current.config
  return {
    explain,
    listWebhooks,
    listNeeds,
    demo,
    heldOf: (digest, whose = 'bounds') => store.directory.findKnownKey(digest)?.[whose]?.heldNanos ?? 0n,
    heldByPeople: () =>
      new Map(
        Array.from(store.directory.listKnownKeys(), ({ personBounds }) => personBounds)
          .filter((bounds) => bounds !== undefined)
          .map(({ scope, heldNanos }) => [scope, heldNanos]),
      ),
    hasForeignKeys: () => store.directory.hasForeignKeys === true,
    listUpstreams: async () => listUpstreams(gateway),
    listModels: () => listModels(config().catalog, gateway.nowMs(), (id) => gateway.lastAnswers.isFailing(id)),
    declaredLabels: () => config().labels,
    sessionIdleMs: () => config().signIn?.idleMs ?? Number.MAX_SAFE_INTEGER,
    declaredPlans: () => config().plans,
    readCreditWords: async () => config().credits,
    isAlone: config().store.engine === 'sqlite',
    rememberedSinceMs: () => recents.wholeSinceMs,
    readUnbilledSinceMs: async () =>
      Math.min(gateway.nowMs(), Math.max(Date.parse(readStatus().started), recents.wholeSinceMs)),
    listRequests,
    findRequests,
    watch,
    readStatus: async () => readStatus(),
    readHolds: async () => readHolds(gateway),
    listUnreached: () => [],
    writeTraffic,
    steer,
    ...workbench(config),
    reportBug,
  }

  /** Explains a request from memory, or else from the ledger. */
  async function explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'> {
    const recent = recents.find(requestId) ?? findUnderWay(requestId)
    if (recent === undefined) {
      const debit = await findDebit(requestId)
      if (debit === undefined) return 'unknown'
      return debit === 'silent' ? debit : explainDebit(debit)
    }
    // A spooled or refused debit gets its final state later, so the ledger is queried. If the ledger does not answer,
    // the last known state is shown.
    const isOpen = recent.settled === 'spooled' || recent.settled === 'refused'
    const debit = isOpen ? await findDebit(requestId) : undefined
    return explainRecord(recent, gateway.clockMs(), debit === 'silent' ? undefined : debit)
  }

  async function findDebit(requestId: string): Promise<FoundDebit | undefined | 'silent'> {
    try {
      return await store.findDebit(requestId)
    } catch (error) {
      if (error instanceof StoreSilent) return 'silent'
      throw error
    }
  }

  function findUnderWay(requestId: string) {
    for (const { record } of gateway.deliveries) if (record.id === requestId) return record
    return undefined
  }

  /** Lists requests, the newest first. Requests that ended in the same millisecond are sorted by their ids. */
  async function listRequests(...[filter, limit, beyond]: Parameters<AdminOperations['listRequests']>) {
    const found: RequestRow[] = []
    let group: RequestRow[] = []
    let groupMs: number | undefined
    const untilMs = Math.min(filter.untilMs ?? Number.POSITIVE_INFINITY, (beyond?.atMs ?? Number.POSITIVE_INFINITY) + 1)
    for (const recent of recents.list({ ...filter, untilMs, isTold })) {
      if (recent.overMs !== groupMs) {
        take()
        if (found.length >= limit) break
        groupMs = recent.overMs
      }
      const row = rowOf(recent)
      if (fits(row, filter) && (!beyond || isBeyond(row, beyond))) group.push(row)
    }
    take()
    return found.slice(0, limit)

    function take(): void {
      found.push(...group.sort((a, b) => compare(b.request_id, a.request_id)))
      group = []
    }
  }

  async function findRequests(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const asked = new Set(ids)
    const found = new Set<string>()
    if (asked.size > 0) for (const id of recents.ids()) if (asked.has(id)) found.add(id)
    return found
  }

  async function writeTraffic(): Promise<boolean> {
    parts.store.sharedTraffic?.want()
    return (await within(parts.traffic.write(), trafficMs)) ?? false
  }

  async function steer(...[steering, place]: Parameters<AdminOperations['steer']>) {
    const { pool } = gateway.snapshots.current
    return pool.steer(steering, place, config().catalog.entries).map((row) => tellRow(gateway, row))
  }
}

/**
 * Lists upstream accounts, sorted by model, then by upstream. The accounts of one upstream are in the order of the
 * configuration.
 */
export function listUpstreams(gateway: Gateway): UpstreamState[] {
  const { pool, config } = gateway.snapshots.current
  const rows = pool.list(config.catalog.entries)
  return rows
    .sort((a, b) => compare(a.model, b.model) || compare(a.upstream, b.upstream))
    .map((row) => tellRow(gateway, row))
}

/** Sums the holds (reserved credit) of running requests of this process, by account, in nano-credits. */
export function readHolds({ deliveries }: Gateway): Holds {
  const holds = new Map<string, bigint>()
  for (const { record } of deliveries) {
    const { holdNanos = 0n, accountId } = record
    if (accountId !== undefined) holds.set(accountId, (holds.get(accountId) ?? 0n) + holdNanos)
  }
  return holds
}

function tellRow({ lastAnswers }: Gateway, row: PoolRow) {
  const { model, upstream, account, priority, state, cause, isHeard, waitMs, failures, retriesLeft } = row
  return {
    model,
    upstream,
    account: account ?? null,
    priority,
    state,
    cause: cause ?? null,
    heard: isHeard,
    wait_ms: waitMs === undefined ? null : Math.ceil(waitMs),
    failing: lastAnswers.isServiceFailing(model, upstream, account),
    failures,
    retries_left: retriesLeft,
  } satisfies UpstreamState
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Hides the values of the query in a configured path, because they may be credentials. */
function withoutValues(path: string): string {
  const [before, query] = path.split('?', 2)
  return query === undefined ? path : `${before}?${query.replace(/=[^&]*/g, '=[configured]')}`
}

/** Operations that need only the configuration. Their code is loaded at the first call. */
function workbench(config: () => Config): Pick<Running, 'translate' | 'listClients' | 'setUp'> {
  return {
    async translate({ from, model, upstream, body, answer }) {
      const { describeTranslation, NotServedError } = await import('./translation.ts')
      const bytes = body === undefined ? undefined : Buffer.from(body)
      const told = await describeTranslation(config(), from, bytes, model, {
        ...(upstream !== undefined && { upstream }),
        ...(answer !== undefined && { answer: { body: Buffer.from(answer) } }),
      }).catch((error: unknown) => {
        throw error instanceof NotServedError ? wrongField('upstream', `does not serve ${error.modelId}`) : error
      })
      const shown = 'path' in told && told.path !== undefined ? { ...told, path: withoutValues(told.path) } : told
      return JSON.parse(JSON.stringify(shown))
    },
    async listClients() {
      const { listClients } = await import('./setup.ts')
      return listClients()
    },
    async setUp(client, asked) {
      const { setUp } = await import('./setup.ts')
      return setUp(config(), client, asked)
    },
  }
}
