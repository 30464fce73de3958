import type { ClockBook, ClockNews } from '../accounts/clock.ts'
import type { seenEvents } from '../accounts/warnings.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { randomText } from '../ids/base62.ts'
import type { PoolRow } from '../upstream/pool.ts'
import type { WebhookMessage } from './words.ts'

type WatchedGateway = Pick<Gateway, 'snapshots' | 'ledger' | 'nowMs'>

/**
 * Finds incidents that only this process sees. A model has no upstream account that may be used, the ledger takes no debits
 * of some or all accounts, or the clock is wrong. Each is reported once, from its beginning to its end, with an id of the
 * process and the incident (ruling X15).
 */
export function watchIncidents({ snapshots, ledger, nowMs }: WatchedGateway, clock: Pick<ClockBook, 'news' | 'text'>) {
  const processId = randomText(12)
  const open = new Set<string>()
  let incidents = 0
  return look

  /** @returns the incidents that have begun since the last look */
  function look(): WebhookMessage[] {
    const begun: WebhookMessage[] = []
    const { pool, config } = snapshots.current
    const { down, isDoubtful } = findDown(pool.list(config.catalog.entries))
    const isBlocked = ledger.whyBlocked() !== undefined || ledger.backlog().blockedAccounts > 0
    note('ledger_unwritable', '', isBlocked ? tellBacklog : undefined)
    for (const problem of ['moved', 'rest', 'ahead'] as const satisfies ClockNews['problem'][])
      note('clock_wrong', problem, clock.news?.problem === problem ? () => ({ problem, text: clock.text }) : undefined)
    for (const model of [...open].filter((name) => name.startsWith('upstream_down ')).map((name) => name.slice(14)))
      if (!down.has(model) && !isDoubtful(model)) open.delete(`upstream_down ${model}`)
    for (const [model, rows] of down) note('upstream_down', model, () => ({ model, upstreams: rows.map(tellRow) }))
    return begun

    function note(event: (typeof seenEvents)[number], of: string, tell: (() => object) | undefined): void {
      const name = `${event} ${of}`
      if (tell === undefined) open.delete(name)
      else if (!open.has(name)) {
        open.add(name)
        const data = tell() as WebhookMessage['data']
        begun.push({ id: `${event}:${processId}:${++incidents}`, event, atMs: nowMs(), data })
      }
    }
  }

  function tellBacklog(): object {
    const { waiting, spooled, oldestMs, blockedAccounts } = ledger.backlog()
    const all = ledger.whyBlocked() !== undefined
    return { queued: waiting, spooled, oldest_ms: Math.round(oldestMs), all, accounts: blockedAccounts }
  }
}

/**
 * Finds models of which no upstream account may be used now. An account on trial leaves its model in doubt: a reported
 * outage is not over, and no new one begins.
 */
function findDown(rows: readonly PoolRow[]): { down: Map<string, PoolRow[]>; isDoubtful(model: string): boolean } {
  const byModel = Map.groupBy(rows, ({ model }) => model)
  const has = (model: string, state: PoolRow['state']) =>
    byModel.get(model)?.some((row) => row.state === state) === true
  const down = new Map([...byModel].filter(([model]) => !has(model, 'ready') && !has(model, 'trial')))
  return { down, isDoubtful: (model) => has(model, 'trial') && !has(model, 'ready') }
}

function tellRow({ upstream, account, state, cause }: PoolRow): object {
  return { upstream, account: account ?? null, state, cause: cause ?? null }
}
