import type { Fault } from '../inference/answer.ts'
import type { Usage, UsageReport } from '../inference/usage.ts'
import type { ErrorFacts } from './envelope.ts'

/**
 * A model's stream on its way to the client: bytes in, text out. Pure and resumable; it never awaits. What ends an
 * answer is not in `push`'s text but in `finish`'s, which is asked for when the debit is durable (ruling C3).
 */
export interface StreamRelay {
  /** How the text is written out: `latin1` text is bytes as they came. */
  readonly encoding: 'latin1' | 'utf8'
  /** Takes a piece of the upstream's body and returns what the client may see of it. */
  push(chunk: Uint8Array): string
  /** The upstream has closed cleanly. */
  end(): string
  /** A whole JSON answer where a stream was asked for. */
  pushWhole(body: Buffer): string
  /** Whether something of the answer itself is in the text so far: the status can no longer change (translation 4.1). */
  readonly isVisible: boolean
  /** The upstream has said, by its own evidence, that the answer is complete (I10). */
  readonly isFinished: boolean
  /** The answer was ended by us at a stop sequence; the upstream is to be cancelled (ruling T15). */
  readonly isCutByUs: boolean
  /** Set when the answer cannot be completed; nothing more is pushed then. */
  readonly fault: Fault | undefined
  /** Data events so far; comments and pings do not count as progress (reliability §3). */
  readonly events: number
  readonly report: UsageReport
  /** Of all that was produced so far, in tokens. */
  estimateOutput(): number
  /** The end of a complete answer, terminator included, with the counters that were billed. */
  finish(usage: Usage): string
  /** A sign of life for a silent stream (ruling U4). Only between frames. */
  keepAlive(): string
  /** How a started stream says that it failed, without a terminator (spec 7.4, ruling T4), and what was billed. */
  failure(facts: ErrorFacts, usage: Usage): string
}

/** A whole JSON answer, read but not yet shown. */
export type WholeAnswer =
  | { fault: Fault }
  | {
      fault?: undefined
      report: UsageReport
      /** Ended by us at a stop sequence: the report is no final word (ruling T15). */
      isCutByUs?: boolean
      estimateOutput: () => number
      /** The client's body, with the counters that were billed. */
      encode: (usage: Usage) => string | Uint8Array
    }

/** Collects a model's stream for a client that wants one JSON answer. */
export interface StreamFold {
  push(chunk: Uint8Array): void
  end(): void
  readonly isFinished: boolean
  readonly fault: Fault | undefined
  readonly events: number
  whole(): WholeAnswer
}
