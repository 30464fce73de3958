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
  /** A proof of the open reasoning block that only the model's provider can read (ruling T7). */
  | { type: 'block_seal'; index: number; sealed: Sealed }
  | { type: 'block_stop'; index: number; cut: boolean }
  | { type: 'usage'; report: UsageReport }
  /** A sign of life without content. `reasons`: reasoning begins or ends, of which the upstream may show nothing. */
  | { type: 'alive'; reasons?: boolean }
  /**
   * Media in the answer, which no client's wire can carry there (ruling Y9).
   * @property source identifies the medium; undefined for the transcript of audio, which stands for the whole audio
   */
  | { type: 'media'; media: MediaKind; source: string | undefined }
  | { type: 'finish'; reason: StopReason; stopSequence?: string; report: UsageReport }
  | { type: 'fail'; fault: Fault }

/** An event after the filters. They have replaced all media by a sentence. */
export type ShownEvent = Exclude<AnswerEvent, { type: 'media' }>

/**
 * The same run as an encoder receives it. `finish` and `fail` carry the billed counters, since clients see those
 * (ruling C3).
 */
export type BilledEvent =
  | Exclude<ShownEvent, { type: 'finish' | 'fail' }>
  | (Extract<AnswerEvent, { type: 'finish' | 'fail' }> & { usage: Usage })

/**
 * The kind of a block, known when the block starts. `name` is the upstream's name until a filter restores the
 * client's.
 */
export type AnswerBlock =
  | { kind: 'text' }
  | { kind: 'refusal' }
  | { kind: 'reasoning' }
  | { kind: 'tool_call'; callId: string; name: string; namespace?: string }

/** Kinds of media that models answer with. */
export type MediaKind = 'image' | 'audio' | 'video' | 'file'

export type StopReason = 'end' | 'max_tokens' | 'window' | 'calls' | 'stop_sequence' | 'refused' | 'paused'

/** The reason why an answer failed. The gateway decides later how much of this the client sees (ruling U2). */
export type Fault = {
  /**
   * `rejected`: the request is at fault, and the refusal is relayed. `capacity`: 429 or overload. `account`: our
   * credentials. `truncated`: cut. `broken`: all else.
   */
  kind: 'rejected' | 'capacity' | 'account' | 'broken' | 'truncated'
  /** The HTTP status that the model sent, or that its error type means, if known. */
  status?: number
  /**
   * The first 1,000 characters of the model's error text, decoded. The limit bounds all later searches in the text
   * (ruling U11). Encoders receive the text scrubbed (ruling U3).
   */
  text: string
  /** The model's error code, for example `context_length_exceeded`. */
  code?: string
  /**
   * All words with which the model's server classifies the error: code, type, reasons. Text of the client is never
   * included.
   */
  classes?: readonly string[]
  /**
   * Set if the model's API lost a stored conversation or a part of it. SDKs react to this code by sending the whole
   * conversation again (ruling T22).
   */
  threadCode?: string
  /**
   * Set if `text` is ours because the model's answer could not be read: it was not an answer of the wire, or too
   * large.
   */
  unread?: 'no_answer' | 'oversize'
}

/** A whole answer, made from its events. */
export type Answer = {
  blocks: FoldedBlock[]
  reason: StopReason
  stopSequence?: string
  report: UsageReport
}

export type FoldedBlock = { block: AnswerBlock; text: string; sealed?: Sealed; cut: boolean }
