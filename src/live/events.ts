import { formatCredits } from '../accounts/credit.ts'
import { soundOutcomes } from '../accounts/usage/question.ts'
import type { CallRecord } from '../gateway/record.ts'
import { randomText } from '../ids.ts'
import type { UpstreamState } from '../operations/shapes.ts'
import { isTold, rowOf } from './explanation.ts'
import { overMsOf } from './recents.ts'

/** An event for all readers. `tick` has the sums since the last tick. `reset` means that earlier events are lost. */
type LiveEvent = { event: EventName; data: unknown }

type EventName = 'request.finished' | 'upstream.state' | 'account.changed' | 'tick' | 'reset' | 'dropped'

/** The most events that are kept for readers that reconnect. */
const keptMax = 1_000
/** The most events that wait for a slow reader. Further events are dropped, and the reader gets their number. */
const waitingMax = 1_000
/** The most accounts that are reported in a second. A limit is needed, since each request changes a balance. */
const accountsMax = 100
/** The time between two comments in a stream, in ms. Without them a proxy may close a silent stream. */
const commentMs = 15_000
/** How long events are still made after the last reader has left, in ms, because the reader may come back. */
const warmMs = 60_000
const tickMs = 1_000

type EventParts = {
  /** A monotonic clock, in ms. */
  clockMs(): number
  /** Unix milliseconds. */
  nowMs(): number
  /** Lists the upstream accounts in their current state. */
  listUpstreams(): Promise<readonly UpstreamState[]>
  /** Formats accounts for an event. Accounts that are not in this server's memory are left out. */
  tellAccounts(ids: ReadonlySet<string>): readonly unknown[]
  countStreams(): number
  /** The ids of models that fail now. */
  listFailing?(): readonly string[]
  /** The names of other servers of this store that cannot be reached. The events of these servers are missing. */
  listUnreached?(): readonly string[]
  reportBug(bug: Error): void
  /** Called when the first reader comes. `onStop` is called when there has been no reader for `warmMs`. */
  onOpen?(): void
  onStop?(): void
}

type TrafficSums = { requests: number; errors: number; nanos: bigint; input: number; output: number }

const noSums: TrafficSums = { requests: 0, errors: 0, nanos: 0n, input: 0, output: 0 }

/**
 * The events of a running gateway, for all readers. Without readers, the work for a request is one check of a flag.
 * With readers, each event is formatted once for all of them.
 */
export class Events {
  readonly #parts: EventParts
  readonly #readers = new Set<Reader>()
  /** A part of event ids. It is random in each run of the server, so that ids of an earlier run are recognized. */
  readonly #run = randomText(6)
  readonly #changed = new Set<string>()
  #kept: string[] = []
  /** The number of events so far. */
  #count = 0
  #isOpen = false
  #emptySinceMs: number | undefined
  #tickedMs = 0
  #commentedMs = 0
  #isLooking = false
  #sums: TrafficSums = { ...noSums }
  #before = new Map<string, string>()

  constructor(parts: EventParts) {
    this.#parts = parts
  }

  /** Receives the record of every finished request. */
  readonly note = (record: CallRecord): void => {
    if (!this.#isOpen || !isTold(record)) return
    const { usage, costNanos, accountId, outcome = 'ok' } = record
    this.addSums({
      requests: 1,
      errors: soundOutcomes.includes(outcome) ? 0 : 1,
      nanos: costNanos ?? 0n,
      input: usage?.inputTokens ?? 0,
      output: usage?.outputTokens ?? 0,
    })
    if (accountId !== undefined && costNanos !== undefined) this.#changed.add(accountId)
    const kept = { ...record, overMs: overMsOf(record) } as Parameters<typeof rowOf>[0]
    this.tell({ event: 'request.finished', data: rowOf(kept) })
  }

  /** Notes that an account has changed. */
  readonly noteAccount = (id: string): void => {
    if (this.#isOpen) this.#changed.add(id)
  }

  /** Returns the events from now on as texts. First come the events since `lastEventId` that are still kept. */
  readonly watch = (lastEventId: string | undefined): AsyncIterable<string> => this.#watch(lastEventId)

  /**
   * Whether events are made. They are made while there is a reader, and for `warmMs` after the last reader has left.
   */
  get isOpen(): boolean {
    return this.#isOpen
  }

  addSums(more: TrafficSums): void {
    const sums = this.#sums
    sums.requests += more.requests
    sums.errors += more.errors
    sums.nanos += more.nanos
    sums.input += more.input
    sums.output += more.output
  }

  tell({ event, data }: LiveEvent): void {
    if (!this.#isOpen) return
    this.#count++
    const text = this.#format(event, data)
    this.#kept.push(text)
    if (this.#kept.length >= 2 * keptMax) this.#kept = this.#kept.slice(-keptMax)
    for (const reader of this.#readers) reader.put(text)
  }

  /** Does the regular work. The process calls this a few times a second. */
  tick(): void {
    if (!this.#isOpen) return
    const now = this.#parts.clockMs()
    if (this.#readers.size === 0) {
      this.#emptySinceMs ??= now
      if (now - this.#emptySinceMs >= warmMs) {
        this.#stop()
        return
      }
    }
    if (now - this.#tickedMs < tickMs) return
    this.#tickedMs = now
    this.#tellAccounts()
    this.#lookAtUpstreams()
    const isSilent = now - this.#commentedMs >= commentMs
    if (isSilent) this.#commentedMs = now
    const text = this.#formatTick()
    for (const reader of this.#readers) reader.put(isSilent ? `: still here\n\n${text}` : text)
  }

  /** Ends all streams. */
  close(): void {
    for (const reader of this.#readers) reader.end()
    this.#stop()
  }

  #formatTick(): string {
    const { requests, errors, nanos, input, output } = this.#sums
    this.#sums = { ...noSums }
    const unreached = this.#parts.listUnreached?.() ?? []
    const failing = this.#parts.listFailing?.() ?? []
    return this.#format('tick', {
      at: new Date(this.#parts.nowMs()).toISOString(),
      requests,
      errors,
      credits: formatCredits(nanos),
      input_tokens: input,
      output_tokens: output,
      streams: this.#parts.countStreams(),
      ...(unreached.length > 0 && { unreached }),
      ...(failing.length > 0 && { failing }),
    })
  }

  #tellAccounts(): void {
    if (this.#changed.size === 0) return
    const ids = new Set([...this.#changed].slice(0, accountsMax))
    for (const id of ids) this.#changed.delete(id)
    for (const data of this.#parts.tellAccounts(ids)) this.tell({ event: 'account.changed', data })
  }

  /**
   * Starts to read the states of the upstream accounts. A reading can take longer than a tick. So no second one starts
   * meanwhile, because an old result must not be sent after a newer one.
   */
  #lookAtUpstreams(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    this.#tellUpstreams()
      .catch(this.#parts.reportBug)
      .finally(() => {
        this.#isLooking = false
      })
  }

  async #tellUpstreams(): Promise<void> {
    const rows = await this.#parts.listUpstreams()
    if (!this.#isOpen) return
    const before = this.#before
    this.#before = new Map()
    for (const row of rows) {
      let key = JSON.stringify([row.model, row.upstream, row.account])
      // A model may list an upstream twice, with another name of the model. Such rows keep their order.
      while (this.#before.has(key)) key += '+'
      const state = `${row.state} ${row.cause} ${row.failing}`
      this.#before.set(key, state)
      if (before.size > 0 && before.get(key) !== state) this.tell({ event: 'upstream.state', data: row })
    }
  }

  async *#watch(lastEventId: string | undefined): AsyncIterable<string> {
    const reader = new Reader()
    this.#open()
    const texts = this.#missed(lastEventId)
    this.#readers.add(reader)
    this.#emptySinceMs = undefined
    try {
      yield 'retry: 2000\n\n'
      yield* texts
      yield* reader
    } finally {
      this.#readers.delete(reader)
    }
  }

  #missed(lastEventId: string | undefined): string[] {
    if (lastEventId === undefined || lastEventId === '') return []
    const [run, number] = lastEventId.split('-')
    const left = this.#count - Number(number)
    const isKnown = run === this.#run && left >= 0 && left <= Math.min(this.#kept.length, keptMax)
    if (!isKnown) return [this.#format('reset', {})]
    return left === 0 ? [] : this.#kept.slice(-left)
  }

  #open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    this.#tickedMs = this.#parts.clockMs()
    this.#commentedMs = this.#tickedMs
    this.#parts.onOpen?.()
    this.#lookAtUpstreams()
  }

  #stop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#parts.onStop?.()
    this.#emptySinceMs = undefined
    // The count is raised without an event, so a reader who comes back later sees that events are missing.
    this.#count++
    this.#kept = []
    this.#sums = { ...noSums }
    this.#changed.clear()
    this.#before = new Map()
  }

  /**
   * Formats an event. Its id is that of the last kept event, so that a reader can resume after it. Ticks are not kept.
   */
  #format(event: EventName, data: unknown): string {
    return `id: ${this.#run}-${this.#count}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
  }
}

/** One reader of the events, which reads at its own speed. */
class Reader implements AsyncIterable<string> {
  #waiting: string[] = []
  #dropped = 0
  #isOver = false
  #wake: (() => void) | undefined

  put(text: string): void {
    // After one event was dropped, all are dropped until the reader has read everything that waits. So a reader has at
    // most one gap at a time.
    if (this.#dropped > 0 || this.#waiting.length >= waitingMax) this.#dropped++
    else this.#waiting.push(text)
    this.#wake?.()
  }

  end(): void {
    this.#isOver = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncIterator<string> {
    for (;;) {
      const texts = this.#waiting
      this.#waiting = []
      for (const text of texts) yield text
      if (this.#dropped > 0 && this.#waiting.length === 0) {
        const dropped = this.#dropped
        this.#dropped = 0
        yield `event: dropped\ndata: ${JSON.stringify({ count: dropped })}\n\n`
      }
      if (this.#isOver) return
      if (this.#waiting.length > 0) continue
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
      this.#wake = undefined
    }
  }
}
