import type { CallRecord, Try } from '../gateway/record.ts'
import type { Usage } from '../inference/usage.ts'

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

/** The facts that explain a request that is over. */
export type FinishedRecord = Pick<
  CallRecord,
  (typeof keptNames)[number] | (typeof numberNames)[number] | 'usage' | 'tries'
>

/**
 * Keeps a fixed number of request records, each at its place in a few long arrays (columns). Without columns, a record
 * took thirteen objects. Such objects were most of what outlived a request, and a third of the garbage collector's work
 * (docs/decisions/0055-packed-records.md).
 */
export class PackedRecords {
  readonly #kept: Record<(typeof keptNames)[number], unknown[]>
  /** The columns of `#kept`, in the order of `keptNames`. */
  readonly #columns: readonly unknown[][]
  readonly #numbers: Record<(typeof numberNames)[number], Float64Array>
  readonly #usage: Record<(typeof usageNames)[number], Float64Array>
  readonly #isEstimated: Uint8Array
  /**
   * All tries of a record; undefined for an only try that agrees with the record. The columns below then have its other
   * facts.
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

  /** Writes a record into a place, and replaces the one that was there. */
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

  /**
   * Whether a record was paid by this account and one of these keys; undefined stands for any. Reading the whole record
   * would take a hundred times as long.
   */
  isPaidBy(place: number, accountId: string | undefined, keyIds: ReadonlySet<unknown> | undefined): boolean {
    const { accountId: accounts, keyId: keys } = this.#kept
    return (accountId === undefined || accounts[place] === accountId) && (keyIds?.has(keys[place]) ?? true)
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
