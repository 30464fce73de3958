import { StoreSilent } from '../accounts/account.ts'
import type { FoundDebit } from '../accounts/entries.ts'
import type { ServerStore } from '../accounts/server-store.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { AdminOperations } from '../http/admin.ts'
import { listModels } from '../operations/models.ts'
import type { Explanation, UpstreamState } from '../operations/shapes.ts'
import type { PoolRow } from '../upstream/pool.ts'
import { explainDebit, explainRecord } from './explanation.ts'
import type { Recents } from './recents.ts'

type Parts = {
  gateway: Gateway
  recents: Recents
  store: Pick<ServerStore, 'findDebit'>
  reportBug: (bug: Error) => void
}

/** What operators may ask of a running server. */
export function createOperations({ gateway, recents, store, reportBug }: Parts): AdminOperations {
  return {
    explain,
    listUpstreams,
    listModels: () => listModels(gateway.snapshots.current.config.catalog.entries),
    reportBug,
  }

  /** From memory, else from the ledger. */
  async function explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'> {
    const recent = recents.find(requestId) ?? findUnderWay(requestId)
    if (recent === undefined) {
      const debit = await findDebit(requestId)
      if (debit === undefined) return 'unknown'
      return debit === 'silent' ? debit : explainDebit(debit)
    }
    // Where these end is settled behind the request: while the ledger is silent they are what they were.
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

  /** In the order of models, then of upstreams; an upstream's accounts as they are configured. */
  function listUpstreams(): UpstreamState[] {
    const { pool, config } = gateway.snapshots.current
    const rows = pool.list(config.catalog.entries)
    return rows.sort((a, b) => compare(a.model, b.model) || compare(a.upstream, b.upstream)).map(tellRow)
  }
}

function tellRow({ model, upstream, account, priority, state, cause, waitMs, failures, retriesLeft }: PoolRow) {
  return {
    model,
    upstream,
    account: account ?? null,
    priority,
    state,
    cause: cause ?? null,
    wait_ms: waitMs === undefined ? null : Math.ceil(waitMs),
    failures,
    retries_left: retriesLeft,
  } satisfies UpstreamState
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
