import type { Sealed } from './request.ts'
import type { Usage, UsageReport } from './usage.ts'

/**
 * An answer while it is being produced is a run of AnswerEvents, whatever wire it came from (laws I1–I10):
 *
 *     start (block_start | block_delta | block_seal | block_stop | usage | alive | media)* (finish | fail)
 *
 * I1  `start` is first and once; exactly one of `finish` and `fail`, last.
 * I2  Blocks are numbered 0, 1, 2… in the order they start; deltas, seals and the one stop lie between start and stop.
 * I3  Every block is stopped before `finish`; before `fail` the open ones are stopped with `cut`.
 * I4  Several tool calls may be open at once; of text, refusal and reasoning at most one, calls may be open beside it.
 * I5  A block's deltas concatenate to the exact upstream text; none is empty; a call without arguments gets one `{}`,
 *     unless it was cut: nobody may run what was not said to its end.
 * I6  A call starts only when its name is known and not blank; its `callId` is final then.
 * I7  Text resumed after any other block is a new block; reasoning blocks stay apart.
 * I8  The reason is `calls` only if a call exists and the model said an ordinary end; a cap, a full window or a
 *     refusal is never upgraded.
 * I9  Usage snapshots are cumulative; per counter the last said value wins (see mergeUsage).
 * I10 `finish` only on the upstream's own evidence of completion: nobody else may say so.
 */
export type AnswerEvent =
  | { type: 'start' }
  | { type: 'block_start'; index: number; block: AnswerBlock }
  | { type: 'block_delta'; index: number; text: string }
  /** Provider-opaque proof for an open reasoning block (ruling T7). */
  | { type: 'block_seal'; index: number; sealed: Sealed }
  | { type: 'block_stop'; index: number; cut: boolean }
  | { type: 'usage'; report: UsageReport }
  /** The upstream is alive and has nothing to show. `reasons`: it begins, or ends, a reasoning of which it may show nothing. */
  | { type: 'alive'; reasons?: boolean }
  /**
   * Media of the answer, which no client's wire carries there (ruling Y9). @property source tells it from others; undefined for the
   * words of audio, which stand for all of it
   */
  | { type: 'media'; media: MediaKind; source: string | undefined }
  | { type: 'finish'; reason: StopReason; stopSequence?: string; report: UsageReport }
  | { type: 'fail'; fault: Fault }

/** An event after the filters, which replace media by a sentence. */
export type ShownEvent = Exclude<AnswerEvent, { type: 'media' }>

/**
 * The same run as an encoder receives it: its end comes with the billed counters, since those are shown (ruling C3).
 */
export type BilledEvent =
  | Exclude<ShownEvent, { type: 'finish' | 'fail' }>
  | (Extract<AnswerEvent, { type: 'finish' | 'fail' }> & { usage: Usage })

/**
 * The kind of a block, known when it starts. `name` is the upstream's until the name filter has restored the client's.
 */
export type AnswerBlock =
  | { kind: 'text' }
  | { kind: 'refusal' }
  | { kind: 'reasoning' }
  | { kind: 'tool_call'; callId: string; name: string; namespace?: string }

/** Kinds of media that models answer with. */
export type MediaKind = 'image' | 'audio' | 'video' | 'file'

export type StopReason = 'end' | 'max_tokens' | 'window' | 'calls' | 'stop_sequence' | 'refused' | 'paused'

/** The reason why an answer failed, before it is decided what the client is shown (ruling U2). */
export type Fault = {
  /** `rejected`: the request's own fault, relayed. `capacity`: 429 or overload. `account`: our credentials. `broken`: the rest. */
  kind: 'rejected' | 'capacity' | 'account' | 'broken' | 'truncated'
  /** HTTP status the model gave or its error type stands for, if known. */
  status?: number
  /**
   * The first 1,000 characters of the model's own words as decoded, so that no code searches more (ruling U11). In an
   * event that reaches an encoder they are scrubbed (ruling U3).
   */
  text: string
  /** The model's own code, e.g. `context_length_exceeded`. */
  code?: string
  /** Every word by which the model's server classes it: code, type, reasons. A client's words are never among them. */
  classes?: readonly string[]
  /**
   * The part of a stored conversation that the model's own API lost: a code by which its SDKs send all of it again
   * (ruling T22).
   */
  threadCode?: string
  /** Set if the words are ours, since the model's answer cannot be read: no answer of its wire, or too much of one. */
  unread?: 'no_answer' | 'oversize'
}

/** A whole answer: what its events fold to. */
export type Answer = {
  blocks: FoldedBlock[]
  reason: StopReason
  stopSequence?: string
  report: UsageReport
}

export type FoldedBlock = { block: AnswerBlock; text: string; sealed?: Sealed; cut: boolean }
