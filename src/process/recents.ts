import type { CallRecord } from '../gateway/record.ts'
import type { Loss } from '../inference/request.ts'

/**
 * What is kept of a request when it is over: all that explains it, and nothing of its client's own words (ruling U5) or of
 * a size that he chooses.
 */
export type Recent = Pick<
  CallRecord,
  | 'id'
  | 'walk'
  | 'account'
  | 'accountId'
  | 'keyId'
  | 'keyPrefix'
  | 'keyLabel'
  | 'wire'
  | 'model'
  | 'alias'
  | 'modelWire'
  | 'upstream'
  | 'upstreamAccount'
  | 'attempts'
  | 'tries'
  | 'stopped'
  | 'losses'
  | 'usage'
  | 'usageSource'
  | 'calls'
  | 'costNanos'
  | 'prices'
  | 'priceVersion'
  | 'settled'
  | 'status'
  | 'code'
  | 'cause'
  | 'flags'
  | 'outcome'
  | 'firstByteMs'
  | 'endMs'
> & {
  /** When it was over, in Unix milliseconds; never before the one that was over before it. */
  overMs: number
}

export type RecentsOptions = {
  /** Requests of accounts that are kept. */
  requestsMax?: number
  /** Requests that are kept without an account: refused before their key was known, and no reason to forget others. */
  namelessMax?: number
  /** Of all of them, as `sizeOf` counts. */
  bytesMax?: number
}

/** The requests that were over last, in memory: what the ledger does not have of them is forgotten with them. */
export type Recents = {
  /** Listens to every request. */
  note(record: CallRecord): void
  find(requestId: string): Recent | undefined
  /** All of them, the last first. */
  list(): Iterable<Recent>
  /** What was over later than this is all there, but for what nobody was known by; in Unix milliseconds. */
  readonly wholeSinceMs: number
  readonly count: number
  readonly bytes: number
}

export function createRecents(options: RecentsOptions = {}): Recents {
  const { requestsMax = 10_000, namelessMax = 1_000, bytesMax = 32 * 1_048_576 } = options
  const known = new Ring(requestsMax, bytesMax)
  const nameless = new Ring(namelessMax, bytesMax / 8)
  let lastMs = 0
  return {
    note(record) {
      lastMs = Math.max(lastMs, overMsOf(record))
      const ring = record.accountId === undefined ? nameless : known
      ring.add(keep(record, lastMs))
    },
    list: () => merge(known.latest(), nameless.latest()),
    find: (requestId) => known.find(requestId) ?? nameless.find(requestId),
    get wholeSinceMs() {
      return known.wholeSinceMs
    },
    get count() {
      return known.count + nameless.count
    },
    get bytes() {
      return known.bytes + nameless.bytes
    },
  }
}

/** By the wall clock as it was when it began. */
export function overMsOf({ startedMs, endMs = 0 }: CallRecord): number {
  return Math.round(startedMs + endMs)
}

/** Two lists that are in the order of time already. */
function* merge(first: Iterator<Recent>, second: Iterator<Recent>): Iterable<Recent> {
  let [a, b] = [first.next(), second.next()]
  while (!a.done || !b.done) {
    if (b.done || (!a.done && a.value.overMs >= b.value.overMs)) {
      yield a.value!
      a = first.next()
    } else {
      yield b.value
      b = second.next()
    }
  }
}

/** So many requests at most, and so many bytes: what came first goes first. */
class Ring {
  readonly #slots: (Recent | undefined)[]
  readonly #bytesMax: number
  #oldest = 0
  #hasForgotten = false
  count = 0
  bytes = 0

  constructor(size: number, bytesMax: number) {
    this.#slots = new Array(size).fill(undefined)
    this.#bytesMax = bytesMax
  }

  add(recent: Recent): void {
    if (this.count === this.#slots.length) this.#forget()
    this.#slots[(this.#oldest + this.count) % this.#slots.length] = recent
    this.count++
    this.bytes += sizeOf(recent)
    while (this.bytes > this.#bytesMax) this.#forget()
  }

  get wholeSinceMs(): number {
    if (!this.#hasForgotten) return Number.NEGATIVE_INFINITY
    // Of its very millisecond others may be forgotten.
    return this.#slots[this.#oldest]?.overMs ?? Number.POSITIVE_INFINITY
  }

  /** Few ask, and each request would pay for an index. */
  find(requestId: string): Recent | undefined {
    return this.#slots.find((recent) => recent?.id === requestId)
  }

  *latest(): IterableIterator<Recent> {
    for (let at = this.count - 1; at >= 0; at--) yield this.#slots[(this.#oldest + at) % this.#slots.length]!
  }

  #forget(): void {
    this.bytes -= sizeOf(this.#slots[this.#oldest]!)
    this.#slots[this.#oldest] = undefined
    this.#oldest = (this.#oldest + 1) % this.#slots.length
    this.#hasForgotten = true
    this.count--
  }
}

/** Of one request; a conversation may be as long as its client likes. */
const lossesMax = 50
const fieldCharactersMax = 200

function keep(record: CallRecord, overMs: number): Recent {
  return {
    id: record.id,
    walk: record.walk,
    account: record.account,
    accountId: record.accountId,
    keyId: record.keyId,
    keyPrefix: record.keyPrefix,
    keyLabel: record.keyLabel,
    wire: record.wire,
    model: record.model,
    alias: record.alias,
    modelWire: record.modelWire,
    upstream: record.upstream,
    upstreamAccount: record.upstreamAccount,
    attempts: record.attempts,
    tries: record.tries,
    stopped: record.stopped,
    losses: record.losses && cutLosses(record.losses),
    usage: record.usage,
    usageSource: record.usageSource,
    calls: record.calls,
    costNanos: record.costNanos,
    prices: record.prices,
    priceVersion: record.priceVersion,
    settled: record.settled,
    status: record.status,
    code: record.code,
    cause: record.cause,
    flags: record.flags,
    outcome: record.outcome,
    firstByteMs: record.firstByteMs,
    endMs: record.endMs,
    overMs,
  } as Recent
}

function cutLosses(losses: readonly Loss[]): readonly Loss[] {
  const isShort = losses.length <= lossesMax && losses.every(({ field }) => field.length <= fieldCharactersMax)
  if (isShort) return losses
  return losses.slice(0, lossesMax).map((loss) => ({ ...loss, field: copyStart(loss.field) }))
}

/** Not a slice, which would keep the whole text alive. */
function copyStart(text: string): string {
  return Buffer.from(text.slice(0, fieldCharactersMax)).toString()
}

/** In bytes, and rather too much: an entry with its counts takes some 700, an attempt and a loss 100 beside their words. */
function sizeOf({ tries, losses = [], flags = [] }: Recent): number {
  let bytes = 1_000 + 150 * (tries?.length ?? 0) + 50 * flags.length
  for (const { field, why } of losses) bytes += 150 + 2 * (field.length + why.length)
  return bytes
}
