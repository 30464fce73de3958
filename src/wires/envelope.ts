import { type ErrorCode, errorTable } from '../errors.ts'

/** What both envelopes are made from; the message is the same on both (spec 7.1). */
export type ErrorFacts = { status: number; code: ErrorCode; message: string; param: string | null }

/** `error.type` on the messages wire follows the status and nothing else (spec 7.2, ruling R12). */
const messagesTypes = new Map<number, string>([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
])

/** Type of a messages-wire error by status (spec 7.2). */
export function messagesErrorType(status: number): string {
  return messagesTypes.get(status) ?? 'api_error'
}

/** `{type: "error", error: {type, message}, request_id}` (spec 7.1). */
export function messagesEnvelope(facts: ErrorFacts, requestId: string): string {
  const error = { type: messagesErrorType(facts.status), message: facts.message }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}

/** `{error: {message, type, param, code}}`: every path that is not a messages endpoint (spec 7.1). */
export function chatEnvelope(facts: ErrorFacts): string {
  const { message, param, code } = facts
  return JSON.stringify({ error: { message, type: errorTable[code].type, param, code } })
}
