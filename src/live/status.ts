import { formatCredits } from '../accounts/credit.ts'
import { blocksAll } from '../accounts/ledger.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { readRss } from '../host/collector.ts'
import { version } from '../host/version.ts'
import type { Status } from '../operations/live-shapes.ts'
import { readHolds } from './operations.ts'

/** Returns the status of a server. */
export function tellStatus(
  gateway: Gateway,
  { startedMs, isReady, lagMs, clock }: Pick<Status, 'clock'> & { startedMs: number; isReady: boolean; lagMs: number },
): Status {
  const { config } = gateway.snapshots.current
  const { waiting, spooled, oldestMs, blockedAccounts } = gateway.ledger.backlog()
  return {
    version,
    node: process.version.slice(1),
    started: new Date(startedMs).toISOString(),
    store: config.store.engine,
    ready: isReady,
    streams: countStreams(gateway),
    ledger: {
      writable: !blocksAll(gateway.ledger.whyBlocked()),
      queued: waiting,
      spooled,
      oldest_ms: Math.round(oldestMs),
      blocked_accounts: blockedAccounts,
    },
    clock,
    loop_lag_p99_ms: Math.round(lagMs * 10) / 10,
    rss_bytes: readRss(),
    reporting: {
      time_zone: config.reporting.timeZone,
      week_starts: config.reporting.weekStarts,
      labels: [...config.labels.keys()],
      credits: config.credits.name,
    },
    api_url: config.apiUrl ?? null,
    public_url: config.adminUrl ?? null,
    config_digest: config.digest,
    heard: tellHeard(gateway),
    failing: listFailing(gateway),
    demo: config.isBuiltIn,
  }
}

/** Lists the ids of the models for which at least half of the last answers failed (CON-8). */
export function listFailing({ snapshots, lastAnswers }: Pick<Gateway, 'snapshots' | 'lastAnswers'>): string[] {
  const { entries } = snapshots.current.config.catalog
  return entries.flatMap(({ id }) => (lastAnswers.isFailing(id) ? [id] : []))
}

/** Lists the troubles that other servers with the same store have reported about upstream accounts. */
function tellHeard({ snapshots, nowMs }: Gateway): Status['heard'] {
  const { pool, config } = snapshots.current
  return pool.list(config.catalog.entries).flatMap(({ model, upstream, account = null, heard }) => {
    if (heard === undefined) return []
    const { by, cause, waitMs } = heard
    const until = waitMs === undefined ? null : new Date(nowMs() + waitMs).toISOString()
    return [{ model, upstream, account, cause, met_by: by, until }]
  })
}

export function countStreams({ deliveries }: Gateway): number {
  let streams = 0
  for (const { record } of deliveries) if (record.stream) streams++
  return streams
}

/** Formats accounts as the list of accounts does, but without their limits. Accounts not in memory are left out. */
export function tellKnownAccounts(gateway: Gateway, ids: ReadonlySet<string>): unknown[] {
  const holds = readHolds(gateway)
  const told: unknown[] = []
  for (const id of ids) {
    const account = gateway.directory.findKnownAccount(id)
    const standing = account && gateway.admission.look(id)
    if (!standing) continue
    const { name, state } = account
    const held = formatCredits(holds.get(id) ?? 0n)
    told.push({ id, name, state, balance: formatCredits(standing.balanceNanos), held })
  }
  return told
}
