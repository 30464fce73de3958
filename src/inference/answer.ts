import type { Sealed } from './request.ts'
import type { Usage, UsageReport } from './usage.ts'

/**
 * An answer while it is being produced, from any wire: a sequence of events with these laws.
 *
 *     start (block_start | block_delta | block_seal | block_stop | usage | alive | media)* (finish | fail)
 *
 * I1  `start` is the first event and occurs once. The last event is either `finish` or `fail`.
 * I2  Blocks are numbered 0, 1, 2… in the order they start. The deltas and seals of a block come before its only stop.
 * I3  Every block is stopped before `finish`. Before `fail`, the open blocks are stopped with `cut`.
 * I4  Several tool calls may be open at once. Beside them, at most one block of text, refusal or reasoning is open.
 * I5  The deltas of a block join to the exact upstream text, and no delta is empty. A call without arguments gets one
 *     `{}`. A cut call does not, since no client may run an incomplete call.
 * I6  A call starts only when its name is known and not blank. From then on its `callId` is final.
 * I7  Text that resumes after another block is a new block. Reasoning blocks are never joined.
 * I8  The reason is `calls` only if a call exists and the model reported an ordinary end. A cap, a full window or a
 *     refusal never becomes `calls`.
 * I9  Usage reports are cumulative: the last value of each counter wins (see mergeUsage).
 * I10 `finish` needs the upstream's own evidence of completion, or a stop sequence that the gateway enforces.
 */
export type AnswerEvent =
  | { type: 'start' }
  | { type: 'block_start'; index: number; block: AnswerBlock }
  | { type: 'block_delta'; index: number; text: string }
  /** A proof of the open reasoning block (ruling T7). Only the model's provider can read the proof. */
  | { type: 'block_seal'; index: number; sealed: Sealed }
  | { type: 'block_stop'; index: number; cut: boolean }
  | { type: 'usage'; report: UsageReport }
  /** A sign of life without content. `reasons` is true if reasoning begins, and false if reasoning ends. */
  | { type: 'alive'; reasons?: boolean }
  /**
   * The answer contains media. No client's wire can carry media in an answer (ruling Y9).
   * @property source identifies one image or sound, so that a repetition counts once. Undefined for a transcript, which
   *   replaces the audio
   */
  | { type: 'media'; media: MediaKind; source: string | undefined }
  | { type: 'finish'; reason: StopReason; stopSequence?: string; report: UsageReport }
  | { type: 'fail'; fault: Fault }

/** An event after the filters, which have replaced all media by a sentence. */
export type ShownEvent = Exclude<AnswerEvent, { type: 'media' }>

/**
 * The events as an encoder receives them. `finish` and `fail` have the billed counters, since clients see these
 * counters (ruling C3).
 */
export type BilledEvent =
  | Exclude<ShownEvent, { type: 'finish' | 'fail' }>
  | (Extract<AnswerEvent, { type: 'finish' | 'fail' }> & { usage: Usage })

/**
 * The kind of a block, known when the block starts. `name` is the name of the tool at the upstream, until a filter
 * restores the client's name.
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
   * credentials. `truncated`: the answer was cut. `broken`: all else.
   */
  kind: 'rejected' | 'capacity' | 'account' | 'broken' | 'truncated'
  /** The HTTP status that the model sent, or that its error type means, if known. */
  status?: number
  /**
   * The first 1,000 characters of the model's error text, decoded. The limit bounds all later searches in the text
   * (ruling U11). Encoders receive the text without parts that reveal the upstream (ruling U3).
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
   * Set if the gateway wrote `text`, because it could not read the model's answer. The answer did not have the form of
   * the wire (`no_answer`), or was too large (`oversize`).
   */
  unread?: 'no_answer' | 'oversize'
  /** Set if the body of the refusal was an HTML or XML page. Model servers send JSON; firewalls send pages. */
  isPage?: boolean
  /** Set if the gateway itself ended the answer. The error then does not blame the model. */
  isOurs?: boolean
}

/** A whole answer, made from its events. */
export type Answer = {
  blocks: FoldedBlock[]
  reason: StopReason
  stopSequence?: string
  report: UsageReport
}

export type FoldedBlock = { block: AnswerBlock; text: string; sealed?: Sealed; cut: boolean }
