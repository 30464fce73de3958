import type { Fault, StopReason } from '../../inference/answer.ts'
import type { Spoken, Stage } from '../../inference/meter.ts'
import type { Usage, UsageReport } from '../../inference/usage.ts'
import type { ErrorFacts } from './faults.ts'

/**
 * How far an answer has come on its way to the client; never back, and `finished` and `failed` are final.
 *
 *     unseen ──▶ shown ──▶ finished   the upstream said, by its own evidence, that it is complete (I10)
 *        ╲         ╲ ────▶ failed     it cannot be completed; `fault` says why
 *         ╲─────────╲────▶ stopped    ended by us at a stop sequence (ruling T15): nothing behind it is shown, and who
 *                                     reads on does so for the figures, until it is `finished` or spent (ruling C12)
 *
 * `shown` means that something of the answer itself is in the text so far, so that the status can no longer change
 * (translation 4.1).
 */
export type RelayState = 'unseen' | 'shown' | 'finished' | 'stopped' | 'failed'

/**
 * A model's stream on its way to the client: bytes in, text out. Pure and resumable; it never awaits. What ends an
 * answer is not in `push`'s text but in `finish`'s, which is asked for when the debit is durable (ruling C3).
 */
export interface StreamRelay {
  /** How the text is written out: `latin1` text is bytes as they came. */
  readonly encoding: 'latin1' | 'utf8'
  /** Takes a piece of the upstream's body and returns what the client may see of it. */
  push(chunk: Uint8Array): string
  end(): string
  /**
   * The connection broke, or fell silent for good. Where the model had said why it ends, the answer is whole (ruling T19):
   * the state then says so. Else nothing changes. Half a frame is dropped.
   */
  breakOff(): string
  /** A whole JSON answer where a stream was asked for. */
  pushWhole(body: Buffer): string
  readonly state: RelayState
  readonly fault: Fault | undefined
  /** Whether it came as far as `shown`, however it went on. */
  readonly hasShown: boolean
  /** Data events so far; comments and pings do not count as progress (reliability §3). */
  readonly events: number
  readonly report: UsageReport
  readonly stage: Stage
  /** The text of all that has come, also after a stop. */
  spoken(): Spoken
  /** The model has come to its end, or to none: nothing more is to be learned. */
  readonly isSpent: boolean
  /** Nobody is shown any more: what comes from here on counts for the figures only (ruling C12). */
  hush(): void
  /**
   * Called when nothing comes for a while: the relay keeps no more of the pieces that came than it needs. Pieces are as
   * large as a model is fast, and the reader of the answer may have stopped for long (B10).
   */
  compact(): void
  /** Of what was produced for the client, in tokens. */
  estimateOutput(): number
  /** Why it ended, where that is read anyway: of a native answer it is not. */
  readonly reason?: StopReason | undefined
  /** Of a whole answer what its provider sealed last, as a digest; as of `Sealing.lastIn`. Absent where nothing can be. */
  lastSealed?(): string | undefined
  /** The end of a complete answer, terminator included, with the counters that were billed. */
  finish(usage: Usage): string
  /** A sign of life for a silent stream (ruling U4). Only between frames. */
  keepAlive(): string
  /** How a started stream says that it failed, without a terminator (spec 7.4, ruling T4), and what was billed. */
  failure(facts: ErrorFacts, usage: Usage): string
}

/** A whole JSON answer, read but not yet shown. `stopped`: it ends at a stop of ours, and the report is no final word (C12). */
export type WholeAnswer =
  | { state: 'failed'; fault: Fault }
  | ({ state: 'finished' } & ReadAnswer)
  | ({ state: 'stopped'; spoken: () => Spoken } & ReadAnswer)

type ReadAnswer = Pick<StreamRelay, 'report' | 'reason' | 'lastSealed'> & {
  estimateOutput: (enough?: number) => number
  /** The client's body, with the counters that were billed. */
  encode: (usage: Usage) => string | Uint8Array
}

/** Collects a model's stream for a client that wants one JSON answer; the texts of a relay mean nothing here. */
export interface StreamFold
  extends Pick<StreamRelay, 'push' | 'end' | 'breakOff' | 'state' | 'events' | 'report' | 'stage' | 'isSpent'> {
  /** The answer so far. If it was cut, the model may or may not have come to its end. */
  whole(): WholeAnswer
}
