import { parseCredits } from '../accounts/credit.ts'
import type { EventName, Events } from '../live/events.ts'

/** How often it is looked which workers there are, in ms. */
const lookMs = 1_000

/** Reads the events of all workers while somebody watches those of the process that has started them. */
export function watchWorkers(
  origins: () => readonly string[],
  token: string,
  events: Pick<Events, 'tell' | 'addSums'>,
) {
  const feeds = new Map<string, { abort: AbortController; streams: number }>()
  let timer: NodeJS.Timeout | undefined
  return { open, stop, countStreams }

  function open(): void {
    look()
    timer = setInterval(look, lookMs).unref()
  }

  function stop(): void {
    clearInterval(timer)
    for (const { abort } of feeds.values()) abort.abort()
    feeds.clear()
  }

  function countStreams(): number {
    let streams = 0
    for (const feed of feeds.values()) streams += feed.streams
    return streams
  }

  /** One that was started anew has another port. */
  function look(): void {
    for (const origin of origins()) if (!feeds.has(origin)) void read(origin)
  }

  async function read(origin: string): Promise<void> {
    const feed = { abort: new AbortController(), streams: 0 }
    feeds.set(origin, feed)
    try {
      const headers = { authorization: `Bearer ${token}` }
      const response = await fetch(`${origin}/api/v1/events`, { headers, signal: feed.abort.signal })
      let rest = ''
      const decoder = new TextDecoder()
      for await (const piece of response.body ?? []) {
        rest += decoder.decode(piece, { stream: true })
        const texts = rest.split('\n\n')
        rest = texts.pop()!
        for (const text of texts) take(text, feed)
      }
    } catch {
      // The worker is about to end, or to begin.
    }
    if (feeds.get(origin) === feed) feeds.delete(origin)
  }

  function take(text: string, feed: { streams: number }): void {
    const [, name] = /^event: (.+)$/m.exec(text) ?? []
    const [, data] = /^data: (.+)$/m.exec(text) ?? []
    if (name === undefined || data === undefined) return
    const told = JSON.parse(data)
    if (name === 'tick') {
      const { requests, errors, credits, input_tokens: input, output_tokens: output } = told
      events.addSums({ requests, errors, nanos: parseCredits(credits), input, output })
      feed.streams = told.streams
    } else if (name === 'request.finished' || name === 'account.changed')
      events.tell({ event: name as EventName, data: told })
    // How upstreams are is asked of all workers together.
  }
}
