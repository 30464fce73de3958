import type { IncomingMessage } from 'node:http'
import { parseCredits } from '../accounts/credit.ts'
import { send } from '../admin/answer.ts'
import type { PlayRequest } from '../admin/api.ts'
import type { AdminOperations, Readiness } from '../admin/listener.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { Events } from '../live/events.ts'
import type { RequestRow, Status } from '../operations/live-shapes.ts'
import { ProblemError } from '../operations/problem.ts'
import { compareRows, type Holds } from '../operations/request-order.ts'
import type { Explanation, ModelRow, UpstreamState, WebhookState } from '../operations/shapes.ts'
import { type DoorMethod as AskedOfWorker, doorPath, type PlayAsked, unpack } from './door.ts'
import { watchWorkers } from './events.ts'

const { request: ask } = process.getBuiltinModule('node:http')

/** The time limit of a worker, which answers from memory, or asks its store once. */
const patienceMs = 4_000

type WorkerReply = { status: number; body: unknown }

type Own = Pick<AdminOperations, 'translate' | 'listClients' | 'setUp'>

type WorkerAnswerOptions = {
  /** The token of this process, which the workers know. */
  token?: string
  /** The configuration is the same in all of them. */
  listModels?: () => ModelRow[]
  own?: Own
}

const nothing = { translate: undefined, listClients: undefined, setUp: undefined } as unknown as Own

/**
 * Answers operators for all workers (ruling X9). A request is explained by the worker that served it, an upstream account is as bad as
 * in the worst worker, and the service is ready if one worker is.
 * @param origins of the workers' admin listeners, as they are now
 */
export function askWorkers(
  origins: () => readonly string[],
  reportBug: (bug: Error) => void,
  { token = '', listModels = () => [], own = nothing }: WorkerAnswerOptions = {},
): AdminOperations & { isReady(): Promise<Readiness>; play: PlayRequest; tick(): void; close(): void } {
  const events = new Events({
    clockMs: () => performance.now(),
    nowMs: Date.now,
    listUpstreams,
    tellAccounts: () => [],
    countStreams: () => feeds.countStreams(),
    reportBug,
    onOpen: () => feeds.open(),
    onStop: () => feeds.stop(),
  })
  const feeds = watchWorkers(origins, token, events)
  let turn = 0
  return {
    explain,
    listUpstreams,
    listModels,
    listWebhooks,
    reportBug,
    isReady,
    isAlone: false,
    rememberedSinceMs: () => Number.POSITIVE_INFINITY,
    // The store that the workers share knows it.
    heldOf: () => 0n,
    async listRequests(filter, limit, beyond) {
      const lists = await askDoors<RequestRow[]>('listRequests', [filter, limit, beyond])
      return lists.flat().sort(compareRows).slice(0, limit)
    },
    async findRequests(ids) {
      const sets = await askDoors<ReadonlySet<string>>('findRequests', [ids])
      return new Set(sets.flatMap((set) => [...set]))
    },
    watch: events.watch,
    readStatus: async () => mergeStatus(await askDoors<Status>('readStatus', [])),
    readHolds: async () => mergeHolds(await askDoors<Holds>('readHolds', [])),
    async writeTraffic() {
      const answers = await askDoors<boolean>('writeTraffic', [])
      return answers.length > 0 && answers.every((isWritten) => isWritten)
    },
    async steer(steering, place) {
      return mergeUpstreams(await askDoors<UpstreamState[]>('steer', [steering, place]))
    },
    ...own,
    play,
    tick: () => events.tick(),
    close: () => events.close(),
  }

  async function isReady(): Promise<Readiness> {
    let why: string | undefined
    // The first answer counts, so that a worker that hangs keeps no probe waiting.
    const asked = origins().map(async (origin) => {
      const { status, body } = await askWorker(`${origin}/readyz`, token)
      const { why: told, note } = (body ?? {}) as { why?: string; note?: string }
      why ??= told
      if (status !== 200) throw new Error(`${status}`)
      return note === undefined || { note }
    })
    return Promise.any(asked).catch(() => why ?? false)
  }

  async function explain(requestId: string): Promise<Explanation | 'unknown' | 'silent'> {
    const answers = await askAll(`/api/v1/requests/${requestId}/explain`)
    const found = answers.filter(({ status }) => status === 200).map(({ body }) => body as Explanation)
    // The worker that served the request knows more than one that read its debit.
    const best = found.find((one) => one.attempts !== null) ?? found[0]
    return best ?? (answers.some(({ status }) => status === 503) ? 'silent' : 'unknown')
  }

  async function listUpstreams(): Promise<readonly UpstreamState[]> {
    const answers = await askAll('/api/v1/upstreams')
    return mergeUpstreams(answers.flatMap(({ status, body }) => (status === 200 ? [readItems(body)] : [])))
  }

  /** Each worker reports the deliveries that it has made itself. */
  async function listWebhooks(): Promise<readonly WebhookState[]> {
    const answers = (await askAll('/api/v1/webhooks')).filter(({ status }) => status === 200)
    return mergeWebhooks(answers.map(({ body }) => (body as { items: readonly ToldWebhook[] }).items))
  }

  function askAll(path: string): Promise<WorkerReply[]> {
    return Promise.all(origins().map((origin) => askWorker(`${origin}${path}`, token)))
  }

  /** @returns the results of the workers that answer */
  async function askDoors<T>(method: AskedOfWorker, args: readonly unknown[]): Promise<T[]> {
    const answers = await Promise.all(
      origins().map((origin) => askWorker(`${origin}${doorPath}${method}`, token, JSON.stringify(args))),
    )
    return answers.flatMap(({ status, body }) => (status === 200 ? [body as T] : []))
  }

  /** Workers take turns, as with clients. */
  function play(...[exchange, one, asked, share]: Parameters<PlayRequest>): void {
    const all = origins()
    const origin = all[turn++ % all.length]
    if (origin === undefined) {
      exchange.answer(503, '')
      return
    }
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const asking = ask(`${origin}${doorPath}play`, { method: 'POST', headers })
    asking.on('response', (response: IncomingMessage) => pass(exchange, response).catch(() => exchange.destroy()))
    asking.on('error', () => exchange.destroy())
    // The worker has the body then, and counts it for the account.
    asking.once('finish', () => share?.release())
    // A client that leaves is gone for the worker too.
    exchange.whenOver(() => asking.destroy())
    asking.end(JSON.stringify({ play: one, ...asked } satisfies PlayAsked))
  }
}

/** Headers that hold for one connection, or that the server writes itself. */
const perConnection = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'date']

/** Sends an operator the answer of a worker, byte for byte. */
async function pass(exchange: HttpExchange, response: IncomingMessage): Promise<void> {
  const { statusCode: status = 502, headers: all } = response
  const headers = Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (perConnection.includes(name) ? [] : [[name, String(value)]])),
  )
  if (all['content-length'] !== undefined)
    await send(exchange, { status, headers, body: Buffer.concat(await response.toArray()) })
  else await send(exchange, { status, headers, pieces: response.setEncoding('latin1'), encoding: 'latin1' })
}

type ToldWebhook = Omit<WebhookState, 'below_nanos' | 'last' | 'last_failure'> & {
  below: string | null
  last: WebhookState['last'] | null
  last_failure: WebhookState['last'] | null
}

/** Merges webhooks in the order of the configuration, which is the same in all workers. */
function mergeWebhooks(lists: readonly (readonly ToldWebhook[])[]): WebhookState[] {
  const [first = [], ...rest] = lists
  return first.map((one, at) => {
    const all = [one, ...rest.flatMap((list) => list[at] ?? [])]
    const sum = (of: (one: ToldWebhook) => number) => all.reduce((total, one) => total + of(one), 0)
    const { url, events, below } = one
    return {
      ...{ url, events },
      below_nanos: below === null ? undefined : parseCredits(below),
      last: newestOf(all.map(({ last }) => last)),
      pending: sum(({ pending }) => pending),
      told: sum(({ told }) => told),
      failed: sum(({ failed }) => failed),
      last_failure: newestOf(all.map(({ last_failure }) => last_failure)),
    }
  })
}

function newestOf(tellings: readonly ToldWebhook['last'][]): WebhookState['last'] {
  return tellings.flatMap((one) => one ?? []).toSorted((a, b) => (a.at < b.at ? 1 : -1))[0]
}

async function askWorker(url: string, token: string, body?: string): Promise<WorkerReply> {
  try {
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${token}` },
      signal: AbortSignal.timeout(patienceMs),
      ...(body !== undefined && { method: 'POST', body }),
    })
    return { status: response.status, body: unpack(await response.text()) }
  } catch {
    // The worker is about to end, or to begin.
    return { status: 0, body: undefined }
  }
}

function readItems(body: unknown): readonly UpstreamState[] {
  return (body as { items: readonly UpstreamState[] }).items
}

const badness: Record<UpstreamState['state'], number> = {
  ready: 0,
  trial: 1,
  cooling: 2,
  disabled: 3,
  no_key: 4,
  off: 5,
}

/** One row for each account's service of a model, in the order of the first worker's. */
export function mergeUpstreams(lists: readonly (readonly UpstreamState[])[]): UpstreamState[] {
  const merged = new Map<string, UpstreamState>()
  for (const row of lists.flat()) {
    const key = JSON.stringify([row.model, row.upstream, row.account])
    const before = merged.get(key)
    if (!before) {
      merged.set(key, row)
      continue
    }
    const worst = badness[row.state] > badness[before.state] ? row : before
    const met = [row, before].filter(({ cause }) => cause !== null)
    merged.set(key, {
      ...worst,
      wait_ms:
        Math.max(row.wait_ms ?? -1, before.wait_ms ?? -1) < 0 ? null : Math.max(row.wait_ms ?? 0, before.wait_ms ?? 0),
      heard: met.length > 0 && met.every(({ heard }) => heard),
      failures: Math.max(row.failures, before.failures),
      retries_left: row.retries_left + before.retries_left,
    })
  }
  return [...merged.values()]
}

/** Takes the best figure if one worker is enough, and the worst or the sum if not. */
function mergeStatus(all: readonly Status[]): Status {
  const [first] = all
  if (!first) throw new ProblemError('store_unavailable', 'No worker answers now: try again.')
  const sum = (of: (one: Status) => number) => all.reduce((total, one) => total + of(one), 0)
  const most = (of: (one: Status) => number) => Math.max(...all.map(of))
  return {
    ...first,
    started: all.map(({ started }) => started).sort()[0]!,
    ready: all.some(({ ready }) => ready),
    streams: sum(({ streams }) => streams),
    ledger: {
      writable: all.every(({ ledger }) => ledger.writable),
      queued: sum(({ ledger }) => ledger.queued),
      spooled: sum(({ ledger }) => ledger.spooled),
      oldest_ms: most(({ ledger }) => ledger.oldest_ms),
      // They may be the same accounts.
      blocked_accounts: most(({ ledger }) => ledger.blocked_accounts),
    },
    clock: all.find(({ clock }) => clock !== null)?.clock ?? null,
    loop_lag_p99_ms: most(({ loop_lag_p99_ms }) => loop_lag_p99_ms),
    rss_bytes: sum(({ rss_bytes }) => rss_bytes),
    heard: mergeHeard(all.flatMap(({ heard }) => heard)),
  }
}

/** Each worker has heard of the failures of all others, and reports none of its own here. */
function mergeHeard(rows: Status['heard']): Status['heard'] {
  const merged = new Map<string, Status['heard'][number]>()
  for (const row of rows) merged.set(JSON.stringify([row.model, row.upstream, row.account]), row)
  return [...merged.values()]
}

function mergeHolds(all: readonly Holds[]): Holds {
  const sums = new Map<string, bigint>()
  for (const holds of all) for (const [id, nanos] of holds) sums.set(id, (sums.get(id) ?? 0n) + nanos)
  return sums
}
