import { parseCredits } from '../accounts/credit.ts'
import { type EventName, Events } from './events.ts'
import type { OtherReplicas } from './other-replicas.ts'

/** How often the other servers are listed while somebody watches, in ms. */
const lookMs = 1_000

type EventFeed = { abort: AbortController; streams: number; failing: readonly string[] }

type ReplicaEventsParts = {
  /** The events of this server alone. */
  own: Pick<Events, 'watch'>
  others: Pick<OtherReplicas, 'list' | 'watch' | 'listUnreached'>
} & Pick<ConstructorParameters<typeof Events>[0], 'clockMs' | 'nowMs' | 'listUpstreams' | 'reportBug'>

/**
 * The live events of all servers of the store that can be reached. While somebody watches them, the events of each server are
 * read as a stream, those of this server among them.
 */
export function watchReplicas({ own, others, ...parts }: ReplicaEventsParts): Events {
  const feeds = new Map<string, EventFeed>()
  let timer: NodeJS.Timeout | undefined
  const events = new Events({
    ...parts,
    tellAccounts: () => [],
    countStreams: () => [...feeds.values()].reduce((sum, { streams }) => sum + streams, 0),
    listFailing: () => [...new Set([...feeds.values()].flatMap(({ failing }) => failing))],
    listUnreached: others.listUnreached,
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
    others
      .list()
      .then((found) => {
        for (const one of found) if (!feeds.has(one.key)) void read(one.key, (signal) => others.watch(one, signal))
      })
      .catch(parts.reportBug)
  }

  async function read(key: string, open: (signal: AbortSignal) => AsyncIterable<string>): Promise<void> {
    if (!events.isOpen) return
    const feed = { abort: new AbortController(), streams: 0, failing: [] }
    feeds.set(key, feed)
    const { signal } = feed.abort
    let rest = ''
    try {
      for await (const piece of open(signal)) {
        if (signal.aborted) break
        const texts = (rest + piece).split('\n\n')
        rest = texts.pop()!
        for (const text of texts) take(text, feed)
      }
    } catch (error) {
      if (!signal.aborted) parts.reportBug(error as Error)
    }
    if (feeds.get(key) === feed) feeds.delete(key)
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
    } else if (name === 'request.finished' || name === 'account.changed')
      events.tell({ event: name as EventName, data: read })
    // The state of upstreams is the same at all servers, which share it.
  }
}
