import type { ErrorFacts } from '../answers/envelope.ts'

/** `error.type` follows the status and nothing else (spec 7.2, ruling R12). */
const types = new Map<number, string>([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
])

/** `{type: "error", error: {type, message}, request_id}`: the error envelope of the messages wire (spec 7.1). */
export function envelope(facts: ErrorFacts, requestId: string): string {
  const error = { type: types.get(facts.status) ?? 'api_error', message: facts.message }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}
