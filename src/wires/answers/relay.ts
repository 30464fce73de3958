import type { Fault, StopReason } from '../../inference/answer.ts'
import type { Spoken, Stage } from '../../inference/meter.ts'
import type { Usage, UsageReport } from '../../inference/usage.ts'
import type { ErrorFacts } from './faults.ts'

/**
 * How far an answer has come on its way to the client. The state never goes back; `finished` and `failed` are final.
 *
 *     unseen ──▶ shown ──▶ finished   the upstream reported that the answer is complete (I10)
 *        ╲         ╲ ────▶ failed     the answer cannot be completed; `fault` has the reason
 *         ╲─────────╲────▶ stopped    we ended the answer at a stop sequence (ruling T15)
 *
 * `shown`: the client's text contains a part of the answer itself, so the HTTP status can no longer change (translation
 * 4.1).
 *
 * `stopped`: the client gets nothing more. The gateway may read on for the token counts, until the stream is `finished`
 * or `isSpent` (ruling C12).
 */
export type RelayState = 'unseen' | 'shown' | 'finished' | 'stopped' | 'failed'

/**
 * A model's stream on its way to the client: bytes in, text out. It is pure and never awaits. `push` does not return
 * the end of the answer. `finish` returns the end; it is called once the debit is durable (ruling C3).
 */
export interface StreamRelay {
  /** The encoding for writing the text. In `latin1`, each character is one byte of the upstream. */
  readonly encoding: 'latin1' | 'utf8'
  /** Takes a piece of the upstream's body and returns the text that the client may see. */
  push(chunk: Uint8Array): string
  end(): string
  /**
   * Called when the connection broke or stays silent. If the model has given a stop reason, the answer is whole. The
   * state then becomes `finished`, unless it is `stopped` (ruling T19). Without a stop reason, the state does not
   * change. An incomplete frame is dropped.
   */
  breakOff(): string
  /** Takes an answer that came as one JSON object, although a stream was requested. */
  pushWhole(body: Buffer): string
  readonly state: RelayState
  readonly fault: Fault | undefined
  /** Whether the answer ever reached the state `shown`, whatever its state is now. */
  readonly hasShown: boolean
  /** Data events so far. Comments and pings do not count, since they are no progress (reliability §3). */
  readonly events: number
  readonly report: UsageReport
  readonly stage: Stage
  /** The estimated tokens of the whole answer so far. Text that is not shown after `hush` counts too. */
  spoken(): Spoken
  /** Whether the model's answer has ended or failed, so that reading on gains nothing. */
  readonly isSpent: boolean
  /** Call this when the client is shown nothing more. Later text counts only for the figures (ruling C12). */
  hush(): void
  /**
   * Called when no data arrives for a while. The relay releases received pieces that it does not need. Pieces from a
   * fast model are large, and a client may pause reading for long (B10).
   */
  compact(): void
  /** Estimates the tokens produced for the client. */
  estimateOutput(): number
  /** The stop reason of a translated answer. Undefined for a native answer, whose reason is not read. */
  readonly reason?: StopReason | undefined
  /**
   * A digest of the last sealed item of a whole answer; see `Sealing.lastIn`. Absent if the wire has no sealed items.
   */
  lastSealed?(): string | undefined
  /** Returns the end of a complete answer with the billed counters, including the terminator. */
  finish(usage: Usage): string
  /** Returns a keep-alive for a silent stream (ruling U4). Call it only between frames. */
  keepAlive(): string
  /**
   * Returns the text that ends a failed stream: the error and the billed counters. The stream has started already. The
   * text contains no terminator (spec 7.4, ruling T4).
   */
  failure(facts: ErrorFacts, usage: Usage): string
}

/**
 * A whole JSON answer that the client has not got yet. `stopped`: the gateway cut the answer at a stop sequence, so the
 * usage report is not final (C12).
 */
export type WholeAnswer =
  | { state: 'failed'; fault: Fault }
  | ({ state: 'finished' } & ReadAnswer)
  | ({ state: 'stopped'; spoken: () => Spoken } & ReadAnswer)

type ReadAnswer = Pick<StreamRelay, 'report' | 'reason' | 'lastSealed'> & {
  estimateOutput: (enough?: number) => number
  /** Returns the client's body with the billed counters. */
  encode: (usage: Usage) => string | Uint8Array
}

/**
 * Collects a model's stream for a client that wants one JSON answer. The texts returned by the relay's methods are
 * ignored.
 */
export interface StreamFold
  extends Pick<StreamRelay, 'push' | 'end' | 'breakOff' | 'state' | 'events' | 'report' | 'stage' | 'isSpent'> {
  /** Returns the collected answer, which is finished, stopped at a stop sequence, or failed. */
  whole(): WholeAnswer
}
