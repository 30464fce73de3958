import type { ErrorFacts } from '../answers/faults.ts'

/** The `error.type` of each HTTP status. Only the status decides it (spec 7.2, ruling R12). */
const types = new Map<number, string>([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
])

/**
 * The error body of the messages wire: `{type: "error", error: {type, message}, request_id}` (spec 7.1), with
 * `error.details` (T22).
 */
export function envelope(facts: ErrorFacts, requestId: string): string {
  const { status, message, details } = facts
  const error = { type: types.get(status) ?? 'api_error', message, ...(details && { details }) }
  return JSON.stringify({ type: 'error', error, request_id: requestId })
}
