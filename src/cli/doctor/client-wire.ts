import { clientWires, type JsonObject, type Reading, type Wire } from '#probes'

/** An answer as a client reads it. @property turn the answer as the client sends it back in the next request */
export type ProbeReply = Reading & { turn: JsonObject[] }

/** The name of the error for each status: `type` on messages, `code` on chat and responses (spec 7). */
const refusals: Readonly<Record<number, { type: string; code: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_body' },
  401: { type: 'authentication_error', code: 'invalid_api_key' },
  404: { type: 'not_found_error', code: 'model_not_found' },
}

/** Finds a fault in the body of an error response. @param requestId the header `x-request-id` of the response */
export function findMistake(
  wire: Wire,
  body: JsonObject,
  status: number,
  requestId: string | undefined,
): string | undefined {
  const error = clientWires[wire].readError(body)
  const isTyped = wire === 'messages'
  if (!error || typeof error.message !== 'string') return `it is not ${isTyped ? '{type, error: {…}}' : '{error: {…}}'}`
  if (isTyped && body['type'] !== 'error') return 'it is not {type, error: {…}}'
  if (isTyped && body['request_id'] !== requestId) return 'its request_id is not the x-request-id of its header'
  const needed = isTyped ? [] : (['type', 'param', 'code'] as const)
  const missing = needed.find((field) => error[field] === undefined)
  if (missing) return `error.${missing} is missing`
  const field = isTyped ? 'type' : 'code'
  const right = refusals[status]![field]
  return error[field] === right ? undefined : `error.${field} is ${error[field]} and not ${right}`
}
