import type { LiveBounds } from '../accounts/account.ts'
import type { RequestOutcome } from '../accounts/ledger.ts'
import type { Prices } from '../catalog/model.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { RefusalReason } from '../errors.ts'
import type { StopReason as FinishReason } from '../inference/answer.ts'
import type { Loss } from '../inference/request.ts'
import type { Calls, Usage, UsageSource } from '../inference/usage.ts'
import type { ChoiceReason, MovedFor } from '../upstream/pool.ts'
import type { PassedOverFor } from './chain-stays.ts'

/** The trace to which a request belongs. Its facts come from the caller's `traceparent` header, if there is one. */
type Trace = {
  readonly id: string
  readonly parentId: string | undefined
  readonly isSampled: boolean
}

/** A step of a request from one entry of a fallback chain to another. `from` and `to` are the ids of the entries. */
type ChainHop = { from: string; to: string; cause: PassedOverFor }

/** One try at one upstream account, for logs and reports: names, fixed words and times, and the text of an error. */
export type Try = {
  /** The id of the model in a fallback chain; undefined for a plain model. */
  readonly model?: string
  /** The names of the upstream and its account in the configuration. */
  readonly upstream: string
  readonly account: string | undefined
  readonly why: ChoiceReason
  /** Why the conversation left the account that answered it before, as in `CallRecord`. */
  readonly moved?: MovedFor
  /** The time in monotonic ms. The try ends when the upstream is done, or when its output is no longer needed. */
  readonly startedMs: number
  endMs: number | undefined
  status: number | undefined
  /** The cause of the failure, as a fixed word of the log. */
  cause: string | undefined
  /** The provider's scrubbed error text (see scrub.ts), without parts that repeat the request (CON-4). Never logged. */
  text?: string
  /** The id of the try's span, if the trace header was sent to the upstream. */
  spanId?: string
}

/**
 * Why no attempt followed the last failure (ruling U1). `seen`: the client had seen a part of the answer. `final`: no
 * other target would do better, or the request's body was freed from memory. `attempts`: the maximum was made.
 * `budget`: the next target's budget of retries is used up. `nobody`: no target is left.
 */
export type Stopped = 'seen' | 'final' | 'attempts' | 'budget' | 'nobody'

/**
 * The state of a debit (docs/ledger.md): on its way, in the ledger, in the spool, or refused, so that its client got an
 * error.
 */
type Settled = 'waiting' | 'posted' | 'spooled' | 'refused'

/**
 * The facts of one request for logs and reports: names, counts and times, never content and never a key (ruling U5).
 * Each part of the gateway writes what it learns. Listeners read the record when the request is over and settled.
 */
export type CallRecord = {
  id: string
  /** The trace of the request. Undefined if the caller sent no trace and the gateway exports no traces. */
  trace?: Trace
  /** The start of the request by the wall clock. This clock may be changed while the request runs. */
  startedMs: number
  /** The start of the request on the monotonic clock, in ms. The times of `tries` are of the same clock. */
  beganMs?: number
  method: string
  path: string
  /** The operation of the path; undefined if the path is not served. */
  walk?: 'infer' | 'count_tokens' | 'list_models'
  ip: string
  account?: string
  accountId?: string
  keyId?: string
  /** The visible first characters of the key. */
  keyPrefix?: string
  /** The label that the owner gave the key. It is shown to operators and not logged. */
  keyLabel?: string
  /** The limits of a key that is narrower than its account (ruling R15). */
  bounds?: LiveBounds
  /** The limits of the person who has the key. They apply to all keys of the person together (ruling Y20). */
  personBounds?: LiveBounds
  /** The id of the key's person, and the labels of the request as its ledger entry has them (ruling Y21). */
  personId?: string
  labels?: string
  wire?: ClientWire
  /** The id of the model's entry. `alias` is the name that the client used, if it is not this id (ruling R14). */
  model?: string
  alias?: string
  /** The entry that a chain passed over first, and why (ruling Y23). */
  fellBack?: Pick<ChainHop, 'from' | 'cause'>
  /** The steps of the request from model to model of its fallback chain. Undefined if the request named no chain. */
  hops?: ChainHop[]
  modelWire?: ModelWire
  stream?: boolean
  /** The output cap that was sent to the model, in tokens, for all choices together. */
  outputTokensCap?: number
  /** The credit that was held while the request ran (ruling C2). */
  holdNanos?: bigint
  /** The upstream that was tried last, and its account, by their names in the configuration. */
  upstream?: string | undefined
  upstreamAccount?: string | undefined
  attempts?: number
  why?: ChoiceReason | undefined
  /** Why the conversation left the upstream account that answered it before (ruling Y24). */
  moved?: MovedFor | undefined
  /** All tries in their order. The last one is in the fields above too. */
  tries?: Try[]
  /** Why no other attempt followed; set if the last attempt failed. */
  stopped?: Stopped
  status?: number
  /** The code of the error that the client got. If a stream had started, the code of the fault that ended it. */
  code?: string
  /** The reason, as one of our fixed words. Set if the error code alone does not show the reason. */
  reason?: RefusalReason
  /** The message and the field of the error that the client got. Neither of them is ever logged. */
  message?: string
  param?: string | null
  /** The media type of an answer that could not be read, as its upstream sent it; `''` if it sent none. */
  contentType?: string | undefined
  /** The cause of the outcome as far as we know it, in fixed words without upstream text. */
  cause?: string
  /** Times since the start, by the monotonic clock, so that setting the wall clock changes nothing (faults F-S20). */
  firstByteMs?: number
  endMs?: number
  usage?: Usage
  usageSource?: UsageSource
  calls?: Calls
  costNanos?: bigint | undefined
  /** The prices that turned `usage` into `costNanos`. */
  prices?: Prices
  priceVersion?: string
  settled?: Settled
  /** Set by the first part of the gateway that decides the outcome; `ok` if no part does. */
  outcome?: RequestOutcome
  /** Why the model ended its answer; only for translated answers. */
  finishReason?: FinishReason
  losses?: readonly Loss[]
  flags?: readonly string[]
}

/**
 * Receives each request once, when it is over, for example for the log. @param bug a bug of ours that ended the request
 */
export type RecordListener = (record: CallRecord, bug?: unknown) => void

/**
 * Makes listeners independent: if one throws, the others still get the record, and the process goes on (faults F-P7).
 */
export function contain(
  reportBug: (bug: Error, id?: string) => void,
  ...listeners: readonly RecordListener[]
): RecordListener[] {
  return listeners.map((listen) => (record, bug) => {
    try {
      listen(record, bug)
    } catch (failed) {
      reportBug(failed as Error, record.id)
    }
  })
}

/** The functions of tracing that a running request calls. The spans of a request are exported only when it is over. */
export interface Tracing {
  /**
   * Called when a request begins. @param traceparent the caller's header @returns undefined if nothing is to be kept
   */
  begin(traceparent: string | string[] | undefined): Trace | undefined
  /**
   * Called when a try begins. @returns the upstream's `traceparent` header; undefined if the upstream gets no such
   * header
   */
  enter(record: CallRecord, tried: Try): string | undefined
}

/** At most `answersMax` of the newest answers are judged. With fewer than `answersMin` answers, nothing is judged. */
const [answersMax, answersMin] = [20, 5]

/**
 * Whether an outcome is a failure of the model. An outcome that is not listed here says nothing about the model. In
 * such a case the client left or was refused, or our shutdown cut the answer.
 */
const isFailure: Partial<Record<RequestOutcome, boolean>> = {
  ok: false,
  upstream_error: true,
  upstream_cut: true,
  upstream_stall: true,
}

/**
 * The last answers of a model, or of one upstream account that serves the model. Each answer is a bit, which is 1 if
 * the answer failed.
 */
type AnswerBits = { bits: number; count: number }

/**
 * Judges models and upstream accounts by their last answers in this process (CON-8). A model is failing if at least
 * half of its last answers to clients failed. A model of a chain has failed too if the chain went on after it was
 * tried. An account is judged by its own attempts. Cooldowns cannot replace this, because a model's only account gets
 * no cooldown for a failure that may be temporary.
 */
export class LastAnswers {
  /** The last answers of each model, by upstream account. The account `''` has the answers that clients got. */
  readonly #models = new Map<string, Map<string, AnswerBits>>()

  readonly note = ({ walk, model, outcome = 'ok', tries = [], hops = [] }: CallRecord): void => {
    if (walk !== 'infer' || model === undefined) return
    const hasFailed = isFailure[outcome]
    // If all models of a chain fail, the record names the first of them (ruling Y23).
    const last = hops.at(-1)?.to ?? model
    const failed = new Set<string>()
    if (hasFailed && model !== last) failed.add(model)
    for (const [at, { model: own = model, upstream, account }] of tries.entries()) {
      const after = tries[at + 1]
      const isLeft = after !== undefined && (after.model ?? model) !== own
      // Tries in a row at the same account count as one answer.
      if (after && !isLeft && after.upstream === upstream && after.account === account) continue
      // A prompt that is too long for a model of a chain is no failure of the model.
      if (isLeft && hops.some(({ from, cause }) => from === own && cause === 'over_long')) continue
      // An attempt counts as failed if another attempt followed it.
      const isBad = after !== undefined || hasFailed
      if (isBad !== undefined) add(this.#answersOf(own), keyOf(upstream, account), isBad)
      if (isBad && own !== last) failed.add(own)
    }
    for (const id of failed) add(this.#answersOf(id), '', true)
    if (hasFailed !== undefined) add(this.#answersOf(last), '', hasFailed)
  }

  isFailing(model: string): boolean {
    return judge(this.#models.get(model)?.get(''))
  }

  isServiceFailing(model: string, upstream: string, account: string | undefined): boolean {
    return judge(this.#models.get(model)?.get(keyOf(upstream, account)))
  }

  #answersOf(model: string): Map<string, AnswerBits> {
    return this.#models.getOrInsertComputed(model, () => new Map())
  }
}

function keyOf(upstream: string, account: string | undefined): string {
  return `${upstream} ${account ?? ''}`
}

function add(answers: Map<string, AnswerBits>, key: string, hasFailed: boolean): void {
  const known = answers.get(key)
  if (!known) {
    answers.set(key, { bits: Number(hasFailed), count: 1 })
    return
  }
  known.bits = ((known.bits << 1) | Number(hasFailed)) & (2 ** answersMax - 1)
  known.count = Math.min(answersMax, known.count + 1)
}

function judge(answers: AnswerBits | undefined): boolean {
  if (!answers || answers.count < answersMin) return false
  let failed = 0
  for (let { bits } = answers; bits > 0; bits >>= 1) failed += bits & 1
  return 2 * failed >= answers.count
}
