import type { Books } from '../accounts/books.ts'
import { formatBudget } from '../accounts/budget.ts'
import type { ClockBook, ClockNews } from '../accounts/clock.ts'
import { formatCredits } from '../accounts/credit.ts'
import { blocksAll } from '../accounts/ledger.ts'
import type { StoredWarning, seenEvents, WebhookEvent } from '../accounts/warnings.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { randomText } from '../ids.ts'
import type { PoolRow } from '../upstream/pool.ts'

/**
 * A message to webhooks before it is signed. It is made again for each try. Two versions with the same id differ only
 * in names that an operator has changed meanwhile.
 */
export type WebhookMessage = {
  id: string
  event: WebhookEvent
  atMs: number
  data: Readonly<Record<string, unknown>>
  /**
   * For a message about a limit of the configuration: the limit below which the balance fell. Only receivers with the
   * same limit get the message.
   */
  belowNanos?: bigint | undefined
}

export function bodyOf({ event, atMs, data }: WebhookMessage): string {
  return JSON.stringify({ type: event, timestamp: new Date(atMs).toISOString(), data })
}

/** Makes a message from a stored warning. The message has the warning's ids, and the names that operators know. */
export async function messageOf(warning: StoredWarning, books: Books): Promise<WebhookMessage> {
  const { id, event, atMs, data } = warning
  const text = (name: string) => String(data[name])
  if (event === 'needs_changed') return { id, event, atMs, data }
  if (event === 'credit_low') {
    const { name } = await books.findAccount(text('account'))
    const belowNanos = BigInt(text('below_nanos'))
    const balance = formatCredits(BigInt(text('balance_nanos')))
    const account = { id: text('account'), name }
    const told = { account, balance, below: formatCredits(belowNanos) }
    return { id, event, atMs, ...(data['own'] !== 1 && { belowNanos }), data: told }
  }
  const per = data['per'] as 'day' | 'week' | 'month' | null
  const figures = {
    budget: formatBudget({ nanos: BigInt(text('budget_nanos')), per: per ?? undefined }),
    spent: formatCredits(BigInt(text('spent_nanos'))),
    renews_at: per === null ? null : new Date(Number(data['until_ms'])).toISOString(),
  }
  if (data['account'] !== undefined) {
    const { id: accountId, name } = await books.findAccount(text('account'))
    return { id, event, atMs, data: { account: { id: accountId, name }, ...figures } }
  }
  if (data['person'] !== undefined) {
    const named = (await books.namePersons([text('person')])).get(text('person'))
    return { id, event, atMs, data: { person: { id: text('person'), name: named?.name ?? null }, ...figures } }
  }
  const [first] = (await books.findKeys(text('key'))).filter((key) => key.id === data['key'])
  const keys = first ? (await books.listKeys(first.accountId)).filter(({ scope }) => scope === first.scope) : []
  // After a rotation there are several keys. Operators know the newest key that is not revoked.
  const key = keys.filter(({ revokedMs }) => revokedMs === undefined).at(-1) ?? first
  return {
    ...{ id, event, atMs },
    data: {
      account: { id: key?.accountId ?? null, name: key?.accountName ?? null },
      key: { id: key?.id ?? data['key'], prefix: key?.prefix ?? null, label: key?.label ?? null },
      ...figures,
    },
  }
}

type WatchedGateway = Pick<Gateway, 'snapshots' | 'ledger' | 'nowMs'>

/**
 * Finds incidents that only this process sees (ruling X15). They are: a model without a usable upstream account, a
 * ledger that refuses debits of some or all accounts, and a wrong clock. Each incident is reported once, when it
 * begins, with an id of the process and the incident.
 */
export function watchIncidents({ snapshots, ledger, nowMs }: WatchedGateway, clock: Pick<ClockBook, 'news' | 'text'>) {
  const processId = randomText(12)
  const open = new Set<string>()
  let incidents = 0
  return look

  /** Looks for incidents. @returns a message for each incident that has begun since the last look */
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
    const all = blocksAll(ledger.whyBlocked())
    return { queued: waiting, spooled, oldest_ms: Math.round(oldestMs), all, accounts: blockedAccounts }
  }
}

/**
 * Finds models of which no upstream account can be used now. A model is in doubt if none of its accounts is ready, but
 * one is on trial. An outage of such a model neither begins nor ends.
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
