import type { CallRecord, Try } from '../gateway/record.ts'
import type { Loss } from '../inference/request.ts'
import type { Usage } from '../inference/usage.ts'

/**
 * The facts of a request that are kept when it is over. They explain the request, and a client cannot make them large.
 * They contain no text of the client (ruling U5), except text that an error message quotes.
 */
export type Recent = FinishedRecord & {
  /**
   * The end of the request in Unix milliseconds. If the clock went back, the end of the previous request is used
   * instead.
   */
  overMs: number
}

type RecentsOptions = {
  /** The most requests with an account that are kept. */
  requestsMax?: number
  /** The most requests without an account. They were refused early, and must not displace the others. */
  namelessMax?: number
  /** The most bytes of requests with an account (see `sizeOf`). Requests without an account get an eighth of that. */
  bytesMax?: number
}

/** Selects requests. A missing member matches all. */
type RecentsFilter = {
  accountId?: string | undefined
  keyIds?: readonly string[] | undefined
  models?: readonly string[] | undefined
  upstreams?: readonly string[] | undefined
  outcomes?: readonly string[] | undefined
  /** Selects requests that ended at this time or later. */
  sinceMs?: number | undefined
  /** Selects requests that ended before this time. */
  untilMs?: number | undefined
  /** Selects requests by the facts that are read first. */
  isTold?: ((record: Glance) => boolean) | undefined
}

/** The last requests, in memory. When a request is forgotten, only its facts in the ledger remain. */
export type Recents = {
  /** Receives the record of every finished request. */
  note(record: CallRecord): void
  find(requestId: string): Recent | undefined
  /** Lists the requests that match. The newest request comes first. */
  list(of?: RecentsFilter): Iterable<Recent>
  /** The ids of all requests, in no order. */
  ids(): Iterable<string>
  /** Every request with an account that ended after this time, in Unix milliseconds, is still in memory. */
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
      ring.add(record, lastMs)
    },
    list: (of = {}) => merge(known.latest(of), nameless.latest(of)),
    *ids() {
      yield* known.ids()
      yield* nameless.ids()
    },
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

/** Returns the end of a request in Unix milliseconds: its start by the wall clock, plus its duration. */
export function overMsOf({ startedMs, endMs = 0 }: CallRecord): number {
  return Math.round(startedMs + endMs)
}

/** Merges two lists that are sorted by time. */
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

/** Keeps the latest requests, up to a maximum number and a maximum size. The oldest request is forgotten first. */
class Ring {
  readonly #size: number
  readonly #records: PackedRecords
  readonly #overMs: Float64Array
  /** The estimated bytes of each record. */
  readonly #bytes: Float64Array
  readonly #bytesMax: number
  #oldest = 0
  #hasForgotten = false
  count = 0
  bytes = 0

  constructor(size: number, bytesMax: number) {
    this.#size = size
    this.#records = new PackedRecords(size)
    this.#overMs = new Float64Array(size)
    this.#bytes = new Float64Array(size)
    this.#bytesMax = bytesMax
  }

  add(record: CallRecord, overMs: number): void {
    // The place of the dropped record is overwritten below.
    if (this.count === this.#size) this.#drop()
    const place = this.#placeOf(this.count)
    const losses = record.losses && cutLosses(record.losses)
    const message = record.message && copyStart(record.message, messageCharactersMax)
    const isShort = losses === record.losses && message === record.message
    this.#records.set(place, isShort ? record : { ...record, losses: losses!, message: message! })
    this.#overMs[place] = overMs
    this.#bytes[place] = sizeOf(record, losses)
    this.count++
    this.bytes += this.#bytes[place]
    while (this.bytes > this.#bytesMax) this.#forget()
  }

  get wholeSinceMs(): number {
    if (!this.#hasForgotten) return Number.NEGATIVE_INFINITY
    // The time at which the oldest remembered request ended. Memory is complete only after this millisecond, because
    // other requests of the same millisecond may be forgotten.
    return this.count > 0 ? this.#overMs[this.#oldest]! : Number.POSITIVE_INFINITY
  }

  /** Finds a request by comparing all ids. This is rarely called, and an index would cost time with each request. */
  find(requestId: string): Recent | undefined {
    for (let at = 0; at < this.count; at++) {
      const place = this.#placeOf(at)
      if (this.#records.idAt(place) === requestId) return this.#read(place)
    }
    return undefined
  }

  /** Reads only matching records. A customer whose filter matches nothing would otherwise block all others. */
  *latest(of: RecentsFilter): IterableIterator<Recent> {
    const { sinceMs = Number.NEGATIVE_INFINITY, untilMs = Number.POSITIVE_INFINITY, isTold = () => true } = of
    const wanted = wantedOf(of)
    for (let at = this.count - 1; at >= 0; at--) {
      const place = this.#placeOf(at)
      const overMs = this.#overMs[place]!
      if (overMs < sinceMs || overMs >= untilMs || !this.#records.has(place, wanted)) continue
      if (isTold(this.#records.glanceAt(place))) yield this.#read(place)
    }
  }

  *ids(): Iterable<string> {
    for (let at = 0; at < this.count; at++) yield this.#records.idAt(this.#placeOf(at))
  }

  #placeOf(at: number): number {
    return (this.#oldest + at) % this.#size
  }

  #read(place: number): Recent {
    return { ...this.#records.get(place), overMs: this.#overMs[place]! }
  }

  #forget(): void {
    this.#records.clear(this.#oldest)
    this.#drop()
  }

  #drop(): void {
    this.bytes -= this.#bytes[this.#oldest]!
    this.#oldest = this.#placeOf(1)
    this.#hasForgotten = true
    this.count--
  }
}

/** Returns the columns that a filter names, each with the values that match. A record without an outcome is `ok`. */
function wantedOf({ accountId, keyIds, models, upstreams, outcomes }: RecentsFilter): WantedColumns {
  const named = {
    accountId: accountId === undefined ? undefined : [accountId],
    keyId: keyIds,
    model: models,
    upstream: upstreams,
    outcome: outcomes?.includes('ok') ? [...outcomes, undefined] : outcomes,
  }
  return Object.entries(named).flatMap(([name, values]) =>
    values ? [[name as keyof typeof named, new Set<unknown>(values)] as const] : [],
  )
}

/** Limits for the facts of one request, because a conversation may be of any length. */
const lossesMax = 50
const fieldCharactersMax = 200
const messageCharactersMax = 1_000

function cutLosses(losses: readonly Loss[]): readonly Loss[] {
  const isShort = losses.length <= lossesMax && losses.every(({ field }) => field.length <= fieldCharactersMax)
  if (isShort) return losses
  return losses.slice(0, lossesMax).map((loss) => ({ ...loss, field: copyStart(loss.field, fieldCharactersMax) }))
}

/** Copies the start of a text. A slice would keep the whole text in memory, not only its start. */
function copyStart(text: string, max: number): string {
  return text.length <= max ? text : Buffer.from(text.slice(0, max)).toString()
}

/**
 * Estimates the memory for the record of a request in bytes, with a margin. The numbers need some 400 bytes. Each try
 * and each loss (a changed field) needs 100 bytes, and the bytes of its texts.
 */
function sizeOf({ tries = [], flags = [], message = '' }: CallRecord, losses: readonly Loss[] = []): number {
  let bytes = 1_000 + 150 * tries.length + 50 * flags.length + 2 * Math.min(message.length, messageCharactersMax)
  for (const { text } of tries) bytes += 2 * (text?.length ?? 0)
  for (const { field, why } of losses) bytes += 150 + 2 * (field.length + why.length)
  return bytes
}

/** Values that are kept as they are: texts, objects that several requests share, and rare values. */
// biome-ignore format: a name in each line would be a page
const keptNames = [
  'id', 'walk', 'account', 'accountId', 'keyId', 'keyPrefix', 'keyLabel', 'personId', 'labels', 'wire', 'model', 'alias',
  'hops', 'moved', 'modelWire', 'upstream', 'upstreamAccount', 'stopped', 'losses', 'usageSource', 'calls', 'costNanos',
  'prices', 'priceVersion', 'settled', 'code', 'reason', 'message', 'param', 'cause', 'flags', 'outcome',
] as const satisfies (keyof CallRecord)[]

type ValuesOf<Names extends readonly (keyof CallRecord)[]> = { [At in keyof Names]: CallRecord[Names[At]] }

/** Returns the values of `keptNames` in their order. A loop over the names would take three times as long. */
function keptOf(r: FinishedRecord): ValuesOf<typeof keptNames> {
  // biome-ignore format: a value in each line would be a page
  return [
    r.id, r.walk, r.account, r.accountId, r.keyId, r.keyPrefix, r.keyLabel, r.personId, r.labels, r.wire, r.model, r.alias,
    r.hops, r.moved, r.modelWire, r.upstream, r.upstreamAccount, r.stopped, r.losses, r.usageSource, r.calls, r.costNanos,
    r.prices, r.priceVersion, r.settled, r.code, r.reason, r.message, r.param, r.cause, r.flags, r.outcome,
  ]
}

const numberNames = ['attempts', 'status', 'firstByteMs', 'endMs'] as const satisfies (keyof CallRecord)[]
const usageNames = [
  ...(['inputTokens', 'cacheReadTokens', 'cacheWriteTokens', 'cacheWrite1hTokens'] as const),
  ...(['outputTokens', 'reasoningTokens'] as const),
] satisfies (keyof Usage)[]

/** Columns, each with the values that match. */
type WantedColumns = readonly (readonly [name: (typeof keptNames)[number], values: ReadonlySet<unknown>])[]

/** The facts that decide whether a request is shown. */
type Glance = Pick<FinishedRecord, 'walk' | 'outcome' | 'status'>

/** The facts from which a finished request is explained. */
export type FinishedRecord = Pick<
  CallRecord,
  (typeof keptNames)[number] | (typeof numberNames)[number] | 'usage' | 'tries'
>

/**
 * Keeps a fixed number of request records, each at its place in a few long arrays (columns). Without columns, a record
 * took thirteen objects. Most objects that lived longer than their request were of this kind. They caused a third of
 * the garbage collector's work (docs/decisions/0055-packed-records.md).
 */
export class PackedRecords {
  readonly #kept: Record<(typeof keptNames)[number], unknown[]>
  /** The columns of `#kept`, in the order of `keptNames`. */
  readonly #columns: readonly unknown[][]
  readonly #numbers: Record<(typeof numberNames)[number], Float64Array>
  readonly #usage: Record<(typeof usageNames)[number], Float64Array>
  readonly #isEstimated: Uint8Array
  /**
   * The tries of each record. If a record has only one try, at its own upstream and account, its entry is undefined.
   * The columns below then have the facts of the try.
   */
  readonly #tries: (Try[] | undefined)[]
  readonly #why: (Try['why'] | undefined)[]
  readonly #tryCause: (string | undefined)[]
  readonly #tryText: (string | undefined)[]
  readonly #tryTimes: Record<'startedMs' | 'endMs' | 'status', Float64Array>

  /** @param size the number of places, 350 bytes each. It is fixed, because arrays that grow are copied repeatedly */
  constructor(size: number) {
    const numbers = () => new Float64Array(size)
    const values = () => new Array(size).fill(undefined)
    this.#kept = columnsOf(keptNames, values)
    this.#columns = Object.values(this.#kept)
    ;[this.#tries, this.#why, this.#tryCause, this.#tryText] = [values(), values(), values(), values()]
    this.#numbers = columnsOf(numberNames, numbers)
    this.#usage = columnsOf(usageNames, numbers)
    this.#isEstimated = new Uint8Array(size)
    this.#tryTimes = columnsOf(['startedMs', 'endMs', 'status'], numbers)
  }

  /** Writes a record into a place. An older record in this place is replaced. */
  set(place: number, record: FinishedRecord): void {
    const values = keptOf(record)
    for (let at = 0; at < values.length; at++) this.#columns[at]![place] = values[at]
    // Most requests have empty lists, which need not be kept.
    for (const name of ['losses', 'flags'] as const) if (record[name]?.length === 0) this.#kept[name][place] = undefined
    for (const name of numberNames) this.#numbers[name][place] = record[name] ?? Number.NaN
    const { usage } = record
    for (const name of usageNames) this.#usage[name][place] = usage ? usage[name] : Number.NaN
    this.#isEstimated[place] = usage?.estimated ? 1 : 0
    this.#setTries(place, record)
  }

  get(place: number): FinishedRecord {
    const record: Record<string, unknown> = {}
    for (const name of keptNames) record[name] = this.#kept[name][place]
    for (const name of numberNames) record[name] = known(this.#numbers[name][place]!)
    record['usage'] = this.#usageAt(place)
    record['tries'] = this.#tries[place] ?? this.#onlyTryAt(place)
    return record as FinishedRecord
  }

  idAt(place: number): string {
    return this.#kept.id[place] as string
  }

  /** Whether a record has one of the values in each column. Reading the whole record takes a hundred times as long. */
  has(place: number, wanted: WantedColumns): boolean {
    for (const [name, values] of wanted) if (!values.has(this.#kept[name][place])) return false
    return true
  }

  /** Reads the facts of a record that decide whether it is shown. */
  glanceAt(place: number): Glance {
    const { walk, outcome } = this.#kept
    return {
      walk: walk[place] as Glance['walk'],
      outcome: outcome[place] as Glance['outcome'],
      status: known(this.#numbers.status[place]!),
    }
  }

  /** Releases the objects of a record, so that they can be collected. */
  clear(place: number): void {
    for (const name of keptNames) this.#kept[name][place] = undefined
    this.#tries[place] = undefined
    this.#tryText[place] = undefined
  }

  #setTries(place: number, { tries, upstream, upstreamAccount }: FinishedRecord): void {
    const only = tries?.length === 1 ? tries[0]! : undefined
    const isTold = only?.endMs !== undefined && only.upstream === upstream && only.account === upstreamAccount
    this.#tries[place] = isTold ? undefined : tries
    this.#why[place] = isTold ? only.why : undefined
    this.#tryCause[place] = isTold ? only.cause : undefined
    this.#tryText[place] = isTold ? only.text : undefined
    this.#tryTimes.startedMs[place] = isTold ? only.startedMs : Number.NaN
    this.#tryTimes.endMs[place] = isTold ? only.endMs! : Number.NaN
    this.#tryTimes.status[place] = (isTold ? only.status : undefined) ?? Number.NaN
  }

  #onlyTryAt(place: number): Try[] | undefined {
    const [why, text] = [this.#why[place], this.#tryText[place]]
    if (why === undefined) return undefined
    const { startedMs, endMs, status } = this.#tryTimes
    const only = {
      upstream: this.#kept.upstream[place] as string,
      account: this.#kept.upstreamAccount[place] as string | undefined,
      why,
      startedMs: startedMs[place]!,
      endMs: endMs[place]!,
      status: known(status[place]!),
      cause: this.#tryCause[place],
      ...(text !== undefined && { text }),
    }
    return [only]
  }

  #usageAt(place: number): Usage | undefined {
    if (Number.isNaN(this.#usage.inputTokens[place])) return undefined
    const usage = { estimated: this.#isEstimated[place] === 1 } as Usage
    for (const name of usageNames) usage[name] = this.#usage[name][place]!
    return usage
  }
}

function columnsOf<Name extends string, Column>(names: readonly Name[], make: () => Column): Record<Name, Column> {
  return Object.fromEntries(names.map((name) => [name, make()])) as Record<Name, Column>
}

function known(number: number): number | undefined {
  return Number.isNaN(number) ? undefined : number
}
