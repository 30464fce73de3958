import type { RequestOutcome } from '../accounts/ledger.ts'
import type { LiveBounds } from '../accounts/live-bounds.ts'
import type { Prices, WireName } from '../catalog/model.ts'
import type { StopReason as FinishReason } from '../inference/answer.ts'
import type { Loss } from '../inference/request.ts'
import type { Calls, Usage, UsageSource } from '../inference/usage.ts'
import type { ChoiceReason } from '../upstream/pool.ts'

/** The trace that a request belongs to, as far as anything was said of it before it is told. */
export type Trace = {
  readonly id: string
  /** The caller's span. */
  readonly parentId: string | undefined
  readonly isSampled: boolean
}

/** One try at one upstream account, as it is told: names, fixed words and times. */
export type Try = {
  /** By their names in the configuration. */
  readonly upstream: string
  readonly account: string | undefined
  readonly why: ChoiceReason
  /** Monotonic ms; the end is where the upstream's part was over, or what it said was of no use any more. */
  readonly startedMs: number
  endMs: number | undefined
  /** What the upstream answered, if it did. */
  status: number | undefined
  /** What it failed of, in the words of the log. */
  cause: string | undefined
  /** Of its span, where its upstream was told it. */
  spanId?: string
}

/**
 * Why the last failure was not followed by another attempt (ruling U1): the client had `seen` a part of the answer; it is
 * `final`, nobody else would do better, or the request was let go when its answer began; three `attempts` were made; the
 * `budget` of retries of who would be next is used up; `nobody` is left who is on, not left alone and not tried.
 */
export type Stopped = 'seen' | 'final' | 'attempts' | 'budget' | 'nobody'

/**
 * How far a debit is (docs/ledger.md): on its way, in the ledger, in the spool, or refused to its client. Undefined where
 * there is none.
 */
export type Settled = 'waiting' | 'posted' | 'spooled' | 'refused'

/**
 * What is told of one request when it is over and settled. Names, counts and times only: never content, never a key
 * (ruling U5). Whoever learns something writes it in; it is read by the listeners alone.
 */
export type CallRecord = {
  id: string
  /** Undefined where its caller said nothing and nobody is told. */
  trace?: Trace
  /** By the wall clock, which somebody may set meanwhile. */
  startedMs: number
  /** The same moment by the monotonic clock, which the times of its tries are told by. */
  beganMs?: number
  method: string
  path: string
  /** What was asked for; undefined where the path is not served. */
  walk?: 'infer' | 'count_tokens' | 'list_models'
  ip: string
  account?: string
  accountId?: string
  keyId?: string
  /** The visible first characters of the key. */
  keyPrefix?: string
  /** What its owner calls it: told to operators, and not logged. */
  keyLabel?: string
  /** Of a key that is narrower than its account (ruling R15). */
  bounds?: LiveBounds
  wire?: WireName
  /** The id of the model's entry; what it was asked for by, where that is another (ruling R14). */
  model?: string
  alias?: string
  modelWire?: WireName
  stream?: boolean
  /** The most output tokens that a model was let write, of all choices together. */
  outputTokensCap?: number
  /** What was held for it while it ran (ruling C2). */
  holdNanos?: bigint
  /** The upstream that was tried last, and the account there, by their names in the configuration. */
  upstream?: string
  upstreamAccount?: string | undefined
  attempts?: number
  /** Why it went to the account that was tried last. */
  why?: ChoiceReason
  /** All of them, in their order; what was tried last stands in the fields above too. */
  tries?: Try[]
  /** Of a request whose last attempt failed. */
  stopped?: Stopped
  status?: number
  /** Of the error the client was told, or of a fault in a started stream. */
  code?: string
  /** Why that, where several reasons have one code: one of our fixed words (`ErrorDetail`). */
  reason?: string
  /** The media type of an answer that could not be read, as its upstream sent it; '' if it sent none. */
  contentType?: string | undefined
  /** What our side knows of the cause; fixed words, no upstream text. */
  cause?: string
  /** Since its start, measured: the wall clock has no part in it (faults F-S20). */
  firstByteMs?: number
  endMs?: number
  usage?: Usage
  usageSource?: UsageSource
  /** Calls of hosted tools that were billed. */
  calls?: Calls
  costNanos?: bigint | undefined
  /** By which `costNanos` was made of `usage`. */
  prices?: Prices
  priceVersion?: string
  settled?: Settled
  /** Set by whoever decides it first; an answer of which nobody said otherwise is `ok`. */
  outcome?: RequestOutcome
  /** Why the model ended, of an answer that is translated. */
  finishReason?: FinishReason
  losses?: readonly Loss[]
  flags?: readonly string[]
}

/** Who is told of every request once: the log, and whatever counts. @param bug ours, where one ended the request. */
export type RecordListener = (record: CallRecord, bug?: unknown) => void

/** Who fails to take a record keeps it from nobody else, and ends no process (faults F-P7). */
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
