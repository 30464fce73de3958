import type { CallRecord } from '../gateway/record.ts'
import type { Loss } from '../inference/request.ts'

/**
 * What is kept of a request when it is over: all that explains it, and nothing of its client's own words (ruling U5) or of
 * a size that he chooses.
 */
export type Recent = Pick<
  CallRecord,
  | 'id'
  | 'account'
  | 'accountId'
  | 'keyId'
  | 'keyPrefix'
  | 'wire'
  | 'model'
  | 'alias'
  | 'modelWire'
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
  | 'endMs'
>

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
  readonly count: number
  readonly bytes: number
}

export function createRecents(options: RecentsOptions = {}): Recents {
  const { requestsMax = 10_000, namelessMax = 1_000, bytesMax = 32 * 1_048_576 } = options
  const known = new Ring(requestsMax, bytesMax)
  const nameless = new Ring(namelessMax, bytesMax / 8)
  return {
    note: (record) => (record.accountId === undefined ? nameless : known).add(keep(record)),
    find: (requestId) => known.find(requestId) ?? nameless.find(requestId),
    get count() {
      return known.count + nameless.count
    },
    get bytes() {
      return known.bytes + nameless.bytes
    },
  }
}

/** So many requests at most, and so many bytes: what came first goes first. */
class Ring {
  readonly #slots: (Recent | undefined)[]
  readonly #bytesMax: number
  #oldest = 0
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

  /** Few ask, and each request would pay for an index. */
  find(requestId: string): Recent | undefined {
    return this.#slots.find((recent) => recent?.id === requestId)
  }

  #forget(): void {
    this.bytes -= sizeOf(this.#slots[this.#oldest]!)
    this.#slots[this.#oldest] = undefined
    this.#oldest = (this.#oldest + 1) % this.#slots.length
    this.count--
  }
}

/** Of one request; a conversation may be as long as its client likes. */
const lossesMax = 50
const fieldCharactersMax = 200

function keep(record: CallRecord): Recent {
  return {
    id: record.id,
    account: record.account,
    accountId: record.accountId,
    keyId: record.keyId,
    keyPrefix: record.keyPrefix,
    wire: record.wire,
    model: record.model,
    alias: record.alias,
    modelWire: record.modelWire,
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
    endMs: record.endMs,
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
