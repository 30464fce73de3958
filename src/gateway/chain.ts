import type { Chain, FallbackCause, Model } from '../catalog/model.ts'
import { cacheLifeMs } from '../catalog/profile.ts'
import { GatewayError } from '../errors.ts'
import { readOverLong } from '../upstream/over-long.ts'
import type { PassedOverFor, Stays } from './chain-stays.ts'
import type { UpstreamRequests } from './exchange.ts'
import type { CallRecord } from './record.ts'
import type { Failed } from './refuse.ts'

/*
 * This module decides which entries of a fallback chain may answer a request, and in which order (ruling Y23). If no
 * entry answers, it chooses the error. Entries that do not take the request are passed over before anything is sent.
 */

/** An entry of a model chain. This entry can answer the request, at the estimated cost `holdNanos`. */
type EntryChoice = { model: Model; holdNanos: bigint; asking(): UpstreamRequests }

/** The failure of an entry of the chain. The client's error is made from the facts in `of`. */
export type FailedEntry = Failed & Required<Pick<Failed, 'of'>>

/** The estimated input may be too low. It is multiplied by this factor for the comparison with the context window. */
const estimateMargin = 1.1

/** The entries (models) of a fallback chain that can still answer one request. */
export class ChainWalk {
  readonly #chain: Chain
  readonly #record: CallRecord
  readonly #further: EntryChoice[]
  readonly #stays: Stays | undefined
  /** The number of entries that may be asked, the first entry included. */
  readonly size: number
  /** Lowers the hold (credit set aside). Until an entry begins to answer, the hold suffices for the dearest entry. */
  release: ((keptNanos: bigint) => void) | undefined
  /** The estimated cost of the request at the entry that is asked now. */
  #nanos: bigint
  #first: FailedEntry | undefined
  #waitSeconds: number | undefined

  /** @param further the entries of the chain after the first one */
  constructor(
    chain: Chain,
    record: CallRecord,
    first: EntryChoice,
    further: readonly EntryChoice[],
    stays: Stays | undefined,
  ) {
    this.#chain = chain
    this.#record = record
    this.#further = [...further]
    this.#nanos = first.holdNanos
    this.size = further.length + 1
    this.#stays = stays
  }

  get furtherCount(): number {
    return this.#further.length
  }

  /** The estimated cost of the request at the dearest of the entries that may still be tried; 0 if no entry is left. */
  get dearestNanos(): bigint {
    return this.#further.reduce((most, { holdNanos }) => (holdNanos > most ? holdNanos : most), 0n)
  }

  /**
   * Handles the failure of an entry, after all earlier entries have failed or did not fit the request.
   * @returns the error of the first entry that failed, with the shortest wait that any of the failed entries named
   */
  failed(failed: FailedEntry): FailedEntry {
    const wait = failed.failure.retryAfterSeconds
    this.#first ??= failed
    this.#waitSeconds = wait === undefined ? this.#waitSeconds : Math.min(wait, this.#waitSeconds ?? wait)
    const failure = { ...this.#first.failure, retryAfterSeconds: this.#waitSeconds, isOfChain: true }
    return { ...this.#first, failure }
  }

  /**
   * Chooses the chain's next entry and records that the request moved on. The entry before has failed, or does not fit
   * the request.
   * @returns undefined if the operator declared no fallback for the cause, or no entry is left
   */
  next(from: Model, cause: PassedOverFor | undefined): EntryChoice | undefined {
    if (cause === undefined || (cause !== 'fit' && !this.#chain.when.has(cause))) return undefined
    const entry = this.#further.shift()
    if (entry) {
      noteHop(this.#record, from, entry.model, cause, this.#chain)
      this.#nanos = entry.holdNanos
    }
    return entry
  }

  /** Releases the requests of all entries from memory. No further entry can be asked. */
  forget(): void {
    this.#further.length = 0
    this.#first?.of.exchange.forget(false)
  }

  /**
   * Notes that an entry of the chain has begun to answer. If it is not the first entry, later requests of the
   * conversation go to the same entry for a while.
   */
  answered({ entryId, profile }: Model): void {
    const { fellBack } = this.#record
    const first = this.#chain.entries[0]!.entryId
    const stay = entryId === first || !fellBack ? undefined : { entryId, cause: fellBack.cause }
    if (this.release) {
      this.release(this.#nanos)
      this.#record.holdNanos = this.#nanos
    }
    this.#stays?.note(stay, this.#chain.returnMs ?? cacheLifeMs(profile))
  }
}

function noteHop(record: CallRecord, from: Model, to: Model, cause: PassedOverFor, { entries }: Chain): void {
  record.hops!.push({ from: from.entryId, to: to.entryId, cause })
  // A conversation that stayed with a later entry can return to the first entry. The record then has no `fellBack`.
  if (to.entryId === entries[0]!.entryId) delete record.fellBack
  else record.fellBack ??= { from: from.entryId, cause }
  record.model = to.entryId
  record.modelWire = to.wire
}

/** Changes the record of a failed chain: it names the entry whose error the client gets, not the last entry. */
export function noteRefusedBy(record: CallRecord, { entryId, wire }: Model): void {
  const tried = record.tries?.findLast(({ model }) => model === entryId)
  record.model = entryId
  record.modelWire = wire
  record.upstream = tried?.upstream
  record.upstreamAccount = tried?.account
  record.why = tried?.why
  record.moved = tried?.moved
}

/**
 * Returns the cause for which a chain may ask its next model after a failure. Undefined if it may not ask another. Two
 * examples: the answer broke off after its head, or the model rejected a request that is not too long.
 */
export function causeOf({ failure, verdict }: Failed): FallbackCause | undefined {
  const { tell, elsewhere, alarm } = verdict
  if (tell === 'capacity') return 'capacity'
  const { fault, cause } = failure
  if (tell === 'rejected') return readOverLong(fault.text, fault.code) && 'over_long'
  const isSilent = cause === 'upstream_ttfb_timeout'
  // `elsewhere` is `any` if an idle connection was closed while the request was sent. If that ends the last attempt at
  // this entry, the next entry is asked.
  return elsewhere !== 'nobody' || alarm === 'upstream_model_not_found' || isSilent ? 'unavailable' : undefined
}

/** An entry of a fallback chain, with the request that was made for this entry. */
type AskedChoice = EntryChoice & { asked: UpstreamRequests }

type ChainParts = {
  chain: Chain
  plan: string | undefined
  record: CallRecord
  /** Makes the request for an entry. @throws GatewayError if the entry's model does not take the request */
  ask(model: Model): UpstreamRequests
  /** Estimates the cost of the request if this entry of the chain answers it, in nano-credits. */
  holdOf(model: Model, asked: UpstreamRequests): bigint
  /** The unspent part of the key's or its person's budget, whichever is smaller. Undefined if neither has a budget. */
  leftNanos: bigint | undefined
  stays: Stays | undefined
}

/**
 * Finds the entries of a chain that take a request. An entry takes it if:
 *
 * - its model takes the form of the request;
 * - the request fits into its context window;
 * - the cost is within the budgets of the key and its person, if the operator has declared a fallback for budgets.
 *
 * The entry that answered the conversation before comes first.
 * @throws GatewayError the refusal of the first entry if none takes it
 */
export function openChain(parts: ChainParts): { first: AskedChoice; walk: ChainWalk } {
  const { chain, record, plan, stays } = parts
  record.hops = []
  const stay = stays?.find()
  const planned = chain.entries.map((entry) => (plan === undefined ? entry : (entry.planned?.get(plan) ?? entry)))
  const fitting: AskedChoice[] = []
  const passed: { model: Model; cause: PassedOverFor }[] = []
  let narrow: AskedChoice | undefined
  let refusal: GatewayError | undefined
  for (const model of planned) {
    try {
      const asked = parts.ask(model)
      const entry = { model, asked, holdNanos: parts.holdOf(model, asked), asking: () => parts.ask(model) }
      const tokens = asked.exchange.inputTokensEstimate * estimateMargin
      const isNarrow = tokens > (model.contextWindow ?? Number.POSITIVE_INFINITY)
      if (!isNarrow) fitting.push(entry)
      else {
        narrow ??= entry
        passed.push({ model, cause: 'fit' })
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      refusal ??= error
      passed.push({ model, cause: 'fit' })
    }
  }
  // The estimate may be too high. So if no other entry fits, an entry is used although its context window seems too
  // small.
  if (fitting.length === 0 && narrow) fitting.push(narrow)
  if (fitting.length === 0) throw refusal!
  const borne = chain.when.has('budget') ? withinBudget(fitting, parts.leftNanos, passed) : fitting
  const kept = stay && borne.find(({ model }) => model.entryId === stay.entryId)
  const ordered = kept ? [kept, ...borne.filter((entry) => entry !== kept)] : borne
  const [first, ...further] = ordered as [(typeof ordered)[0], ...typeof ordered]
  const passedFor = passed.find(({ model }) => model === planned[0])?.cause
  noteStart(record, chain, first.model, kept ? stay!.cause : passedFor)
  return { first, walk: new ChainWalk(chain, record, first, further.map(withoutRequest), stays) }
}

/** Leaves out entries whose estimated cost exceeds what is left of the budget. If all entries exceed it, all stay. */
function withinBudget<Entry extends EntryChoice>(
  entries: readonly Entry[],
  leftNanos: bigint | undefined,
  passed: { model: Model; cause: PassedOverFor }[],
): readonly Entry[] {
  if (leftNanos === undefined) return entries
  const borne = entries.filter(({ holdNanos }) => holdNanos <= leftNanos)
  if (borne.length === 0) return entries
  for (const entry of entries) if (!borne.includes(entry)) passed.push({ model: entry.model, cause: 'budget' })
  return borne
}

/** Drops an entry's request, so that no body waits in memory. The request is made again if the entry is asked. */
function withoutRequest({ model, holdNanos, asking }: EntryChoice): EntryChoice {
  return { model, holdNanos, asking }
}

/** Records which entry is asked first. @param cause why the chain's first entry is passed over, or undefined */
function noteStart(record: CallRecord, chain: Chain, first: Model, cause: PassedOverFor | undefined): void {
  const from = chain.entries[0]!
  record.model = from.entryId
  record.modelWire = from.wire
  if (from.entryId !== first.entryId && cause !== undefined) noteHop(record, from, first, cause, chain)
}
