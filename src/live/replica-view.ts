import { formatCredits, parseCredits } from '../accounts/credit.ts'
import type { ReplicaDoor, SharedReplicas } from '../accounts/server-store.ts'
import type { AdminHandler } from '../admin/answer.ts'
import type { AdminOperations } from '../admin/listener.ts'
import { nameLoopback } from '../host/listen.ts'
import { randomText } from '../ids.ts'
import { mergeNeeds, type Need } from '../operations/needs.ts'
import { compareRows } from '../operations/rows.ts'
import type { Explanation } from '../operations/shapes.ts'
import { Events } from './events.ts'
import { OtherReplicas } from './other-replicas.ts'
import { createDoorToken, createReplicaDoor, doorPath } from './replica-door.ts'

type ReplicaViewParts = {
  replicas: SharedReplicas
  /** The operations of this server alone. */
  own: AdminOperations
  /** The events of this server alone. */
  events: Events
  sealKey: Uint8Array
  /** Unix milliseconds. */
  nowMs(): number
  /** Monotonic, in ms. */
  clockMs(): number
}

/** The operations for all servers of the store, and the path (`door`) for questions of the other servers. */
type ReplicaView = {
  operations: AdminOperations
  /** The path at which this server answers other servers, and the function that answers. */
  door: { path: string; answer: AdminHandler }
  /**
   * Records how other servers reach this server.
   * @param origin the address on loopback @param url the address for other machines
   */
  openDoor(origin: string | undefined, url: string | undefined): void
  /** Called a few times a second. */
  tick(): void
  close(): void
}

/** Connects a server with the other servers of its store (ruling X9). */
export function openReplicaView({ replicas, own, events, sealKey, ...parts }: ReplicaViewParts): ReplicaView {
  const key = randomText(22)
  const loopback = nameLoopback()
  const tokenOf = (one: string) => createDoorToken(sealKey, one)
  const others = new OtherReplicas({ replicas, loopback, key, tokenOf, clockMs: parts.clockMs })
  const all = watchReplicas({
    own: events,
    others,
    ...parts,
    listUpstreams: own.listUpstreams,
    readHolds: () => operations.readHolds(),
    reportBug: own.reportBug,
  })
  const operations = answerForAll(own, others, all.watch)
  return {
    operations,
    door: {
      path: doorPath,
      answer: createReplicaDoor({ running: own, watch: events.watch, key, tokenOf, pass: others.pass }),
    },
    openDoor(origin, url) {
      const local = origin === undefined ? undefined : { origin, loopback }
      replicas.openDoor({ key, local, url } satisfies ReplicaDoor)
    },
    tick: () => all.tick(),
    close: () => all.close(),
  }
}

/**
 * Makes operations that ask all servers of the store that can be reached (ruling X9). All operations that are not named
 * here are answered by this server alone.
 * @param own the operations of this server
 * @param watch the events of all servers
 */
export function answerForAll(
  own: AdminOperations,
  others: Pick<OtherReplicas, 'ask' | 'listUnreached'>,
  watch: Events['watch'],
): AdminOperations {
  return {
    ...own,
    explain,
    listRequests,
    findRequests,
    readUnbilledSinceMs,
    readHolds,
    listNeeds,
    watch,
    listUnreached: others.listUnreached,
  }

  /** Explains a request. A server that has the request in memory knows more than a server that reads the debit. */
  async function explain(requestId: string): ReturnType<AdminOperations['explain']> {
    const first = await own.explain(requestId)
    if (isFromMemory(first)) return first
    const all = [first, ...(await others.ask('explain', [requestId]))]
    const found = all.find(isFromMemory) ?? all.find((one) => typeof one === 'object')
    return found ?? (all.includes('silent') ? 'silent' : 'unknown')
  }

  async function listRequests(...[filter, limit, beyond]: Parameters<AdminOperations['listRequests']>) {
    const asked = others.ask('listRequests', [filter, limit, beyond])
    const lists = [await own.listRequests(filter, limit, beyond), ...(await asked)]
    return lists.flat().sort(compareRows).slice(0, limit)
  }

  async function findRequests(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const known = await own.findRequests(ids)
    const rest = ids.filter((id) => !known.has(id))
    if (rest.length === 0) return known
    const sets = await others.ask('findRequests', [rest])
    return new Set([known, ...sets].flatMap((set) => [...set]))
  }

  /**
   * Returns the latest of the servers' times, because a list of the requests of all servers is complete only from then
   * on.
   */
  async function readUnbilledSinceMs(): Promise<number> {
    const asked = others.ask('readUnbilledSinceMs', [])
    return Math.max(await own.readUnbilledSinceMs(), ...(await asked))
  }

  /** Merges the lists of needs (matters for an operator) of all servers. Some needs are known to only one server. */
  async function listNeeds(): Promise<Need[]> {
    const asked = others.ask('listNeeds', [])
    const lists = [await own.listNeeds(), ...(await asked)]
    return mergeNeeds(lists)
  }

  async function readHolds() {
    const asked = others.ask('readHolds', [])
    const sums = new Map(await own.readHolds())
    for (const holds of await asked) for (const [id, nanos] of holds) sums.set(id, (sums.get(id) ?? 0n) + nanos)
    return sums
  }
}

function isFromMemory(one: Explanation | string): one is Explanation {
  return typeof one === 'object' && one.attempts !== null
}

/**
 * After this many looks without a piece of its stream, a server counts as silent. A server sends a tick every second.
 * Looks are counted, and not the time: after this process was stopped for a while, the pieces are read after one look.
 */
const silentLooksMax = 3

type EventFeed = { abort: AbortController; streams: number; failing: readonly string[]; silentLooks: number }

type ReplicaEventsParts = {
  /** The events of this server alone. */
  own: Pick<Events, 'watch'>
  others: Pick<OtherReplicas, 'list' | 'watch' | 'rest' | 'listMissing'>
  /** Reads the holds of all reachable servers. */
  readHolds: AdminOperations['readHolds']
  /** The time between two looks at the other servers while there are readers, in ms. */
  lookMs?: number
} & Pick<ConstructorParameters<typeof Events>[0], 'clockMs' | 'nowMs' | 'listUpstreams' | 'reportBug'>

/**
 * Creates events that join the live events of all reachable servers of the store, including this server. While the
 * joined events have readers, one stream is read from each server.
 */
export function watchReplicas({ own, others, readHolds, lookMs = 1_000, ...parts }: ReplicaEventsParts): Events {
  const feeds = new Map<string, EventFeed>()
  /** Accounts that have changed and are not reported yet, as the server of the change sent them. */
  const changed = new Map<string, { id: string }>()
  let isTelling = false
  let timer: NodeJS.Timeout | undefined
  const events = new Events({
    ...parts,
    tellAccounts: () => [],
    countStreams: () => [...feeds.values()].reduce((sum, { streams }) => sum + streams, 0),
    listFailing: () => [...new Set([...feeds.values()].flatMap(({ failing }) => failing))],
    listUnreached: others.listMissing,
    onOpen() {
      void read('own', () => own.watch(undefined))
      look()
      timer = setInterval(look, lookMs).unref()
    },
    onStop() {
      clearInterval(timer)
      for (const { abort } of feeds.values()) abort.abort()
      feeds.clear()
    },
  })
  return events

  function look(): void {
    for (const [key, feed] of feeds) {
      if (key === 'own' || ++feed.silentLooks < silentLooksMax) continue
      others.rest(key)
      feed.abort.abort()
    }
    others
      .list()
      .then((found) => {
        for (const one of found) if (!feeds.has(one.key)) void read(one.key, (signal) => others.watch(one, signal))
      })
      .catch(parts.reportBug)
  }

  async function read(key: string, open: (signal: AbortSignal) => AsyncIterable<string>): Promise<void> {
    if (!events.isOpen) return
    const feed: EventFeed = { abort: new AbortController(), streams: 0, failing: [], silentLooks: 0 }
    feeds.set(key, feed)
    const { signal } = feed.abort
    let rest = ''
    try {
      for await (const piece of open(signal)) {
        if (signal.aborted) break
        feed.silentLooks = 0
        const texts = (rest + piece).split('\n\n')
        rest = texts.pop()!
        for (const text of texts) take(text, feed)
      }
    } catch (error) {
      if (!signal.aborted) parts.reportBug(error as Error)
    }
    if (feeds.get(key) === feed) feeds.delete(key)
  }

  /** Reports changed accounts. The server that sent a change knows only its own holds, so those of all are read. */
  async function tellAccounts(): Promise<void> {
    if (isTelling) return
    isTelling = true
    try {
      while (changed.size > 0) {
        const accounts = [...changed.values()]
        changed.clear()
        const holds = await readHolds()
        for (const account of accounts) {
          const held = formatCredits(holds.get(account.id) ?? 0n)
          events.tell({ event: 'account.changed', data: { ...account, held } })
        }
      }
    } finally {
      isTelling = false
    }
  }

  function take(text: string, feed: EventFeed): void {
    const [, name] = /^event: (.+)$/m.exec(text) ?? []
    const [, data] = /^data: (.+)$/m.exec(text) ?? []
    if (name === undefined || data === undefined) return
    const read = JSON.parse(data)
    if (name === 'tick') {
      const { requests, errors, credits, input_tokens: input, output_tokens: output } = read
      events.addSums({ requests, errors, nanos: parseCredits(credits), input, output })
      feed.streams = read.streams
      feed.failing = read.failing ?? []
    } else if (name === 'request.finished') events.tell({ event: name, data: read })
    else if (name === 'account.changed') {
      changed.set(read.id, read)
      tellAccounts().catch(parts.reportBug)
    }
    // Events about upstreams are dropped. All servers share the state of upstreams, and this server reports it already.
  }
}
