import type { SseFrame } from '../../bytes/sse.ts'
import type { ProbeJson } from './json.ts'

/*
 * Each wire as a client sees it, for the probes of the doctor. It knows no more of the gateway than a client does, so
 * that it can find fault with it: the decoders of the wires are not used here.
 */

/** What is asked in one probe. */
export type ProbeQuestion = {
  model: string
  text: string
  stream: boolean
  /** Offers one function, `report`, and insists on it. */
  isCall?: boolean
  /** The answer that called it: goes back with the result of every call, and the function is offered again. */
  called?: ProbeReply
  isReasoning?: boolean
  /** A long text of the operator under a conversation key, marked for the cache where the wire has marks. */
  cached?: { text: string; key: string }
}

/** What a client makes of an answer. Token counts are undefined where they are missing. */
export type ProbeReply = {
  text: string
  reasoning: string
  calls: ReportCall[]
  /** The answer as a client sends it back in its next request. */
  turn: ProbeJson[]
  /** All of the prompt, cached or not. */
  inputTokens: number | undefined
  outputTokens: number | undefined
  cachedTokens: number | undefined
}

/** A call of `report`; its arguments as text. */
export type ReportCall = { id: string; arguments: string }

export type ClientWire = {
  path: string
  /** How the clients of this wire send their key. */
  keyHeaders(key: string): Record<string, string>
  /** Field names in the words of the wire. */
  body(question: ProbeQuestion): ProbeJson
  cacheHeaders(question: ProbeQuestion): Record<string, string>
  /** A whole answer. */
  read(body: ProbeJson): ProbeReply
  /** The frames of a stream as the whole answer they add up to; undefined without the end that the wire demands. */
  collect(frames: readonly SseFrame[]): ProbeJson | undefined
  /** What is wrong with the body of a refusal, if anything. `requestId` is the one of its header. */
  findMistake(body: ProbeJson, status: number, requestId: string | null): string | undefined
}
