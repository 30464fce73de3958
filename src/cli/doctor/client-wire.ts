import { asObject, parseObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'

/*
 * Each wire as a client sees it, for the probes of the doctor. The doctor knows no more of the gateway than a client does, and
 * does not use the decoders of the wires. Otherwise it could not find their faults.
 */

export type ProbeJson = Record<string, unknown>

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
  /** Finds the first violation of the order of events (spec 6), as a client relies on it. A stream without an end is in order. */
  findDisorder(datas: readonly string[]): string | undefined
  /** Assembles the frames of a stream to a whole answer; undefined without the end that the wire requires. */
  collect(frames: readonly SseFrame[]): ProbeJson | undefined
  /** Finds a fault in the body of a refusal. `requestId` is the one in its header. */
  findMistake(body: ProbeJson, status: number, requestId: string | undefined): string | undefined
}

/** The parts that the questions of every wire share. */
export const asked = {
  parameters: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
  description: 'Report whether all is well.',
  result: 'The report has been filed.',
  /** The output cap. It leaves room for a model that reasons without being asked; few answers come near it. */
  outputTokens: 2_000,
  /** The smallest budget that the messages wire accepts. */
  thinkingTokens: 1_024,
}

/** The header in which clients of the chat and responses wires send their key. */
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/* Readers of bodies of answers, which may be anything. One that does not find its value returns undefined and never throws. */

export function join(parts: readonly ProbeJson[], field: string): string {
  return parts.map((part) => (typeof part[field] === 'string' ? part[field] : '')).join('')
}

export function list(value: unknown): ProbeJson[] {
  return Array.isArray(value)
    ? value.flatMap((one): ProbeJson[] => {
        const object = asObject(one)
        return object ? [object] : []
      })
    : []
}

export function count(value: unknown): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined
}

/** Returns the sum of counters; undefined without the first one. Others may be missing. */
export function sum(usage: ProbeJson, fields: readonly string[]): number | undefined {
  if (count(usage[fields[0]!]) === undefined) return undefined
  return fields.reduce((total, field) => total + (count(usage[field]) ?? 0), 0)
}

/** The error names by status: `type` on the messages wire, `code` on the others (spec 7). */
export const refusals: Readonly<Record<number, { type: string; code: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_body' },
  401: { type: 'authentication_error', code: 'invalid_api_key' },
  404: { type: 'not_found_error', code: 'model_not_found' },
}

/** Finds a fault in the body of a refusal, in the envelope that chat and responses share. */
export function findChatMistake(body: ProbeJson, status: number): string | undefined {
  const error = asObject(body['error'])
  if (!error || typeof error['message'] !== 'string') return 'it is not {error: {…}}'
  const missing = ['type', 'param', 'code'].find((field) => error[field] === undefined)
  if (missing) return `error.${missing} is missing`
  const { code } = refusals[status]!
  return error['code'] === code ? undefined : `error.code is ${error['code']} and not ${code}`
}

/** Returns the first violation that a function finds in the events of a stream, each of which must be an object. */
export function findInEvents(
  datas: readonly string[],
  find: (events: readonly ProbeJson[]) => string | undefined,
): string | undefined {
  const events = datas.map(parseObject)
  return events.every((event) => event !== undefined) ? find(events) : 'an event is not a JSON object'
}
