import type { SseFrame } from '../../bytes/sse.ts'
import type { ProbeJson } from './json.ts'

/*
 * Each wire as a client sees it, for the probes of the doctor. The doctor knows no more of the gateway than a client does, and
 * does not use the decoders of the wires. Otherwise it could not find their faults.
 */

/** The request of one probe. */
export type ProbeQuestion = {
  model: string
  text: string
  stream: boolean
  /** Offers one function, `report`, and requires a call of it. */
  isCall?: boolean
  /** The answer with the call. It is sent back with the result of every call, and the function is offered again. */
  called?: ProbeReply
  isReasoning?: boolean
  /** A long system text with a conversation key, marked for the cache if the wire has marks. */
  cached?: { text: string; key: string }
}

/** An answer as a client reads it. Missing token counts are undefined. */
export type ProbeReply = {
  text: string
  reasoning: string
  calls: ReportCall[]
  /** The answer as a client sends it back in its next request. */
  turn: ProbeJson[]
  /** All tokens of the prompt, cached or not. */
  inputTokens: number | undefined
  outputTokens: number | undefined
  cachedTokens: number | undefined
}

/** A call of `report`, with its arguments as text. */
type ReportCall = { id: string; arguments: string }

export type ProbedWire = {
  path: string
  /** The header in which clients of this wire send their key. */
  keyHeaders(key: string): Record<string, string>
  /** Builds a request with the field names of the wire. */
  body(question: ProbeQuestion): ProbeJson
  cacheHeaders(question: ProbeQuestion): Record<string, string>
  /** Reads a whole answer. */
  read(body: ProbeJson): ProbeReply
  /** Assembles the frames of a stream to a whole answer; undefined without the end that the wire requires. */
  collect(frames: readonly SseFrame[]): ProbeJson | undefined
  /** Finds a fault in the body of a refusal. `requestId` is the one in its header. */
  findMistake(body: ProbeJson, status: number, requestId: string | undefined): string | undefined
}
