/** The result of one attempt at an upstream account. The set of values is small, so one chart can show them all. */
type AttemptResult =
  | 'ok'
  /** The client left, or the process ended, before there was a result. */
  | 'abandoned'
  /** The account has a problem with its key, its billing, its permissions or its limits. */
  | 'status_401'
  | 'status_402'
  | 'status_403'
  | 'status_429'
  | 'status_529'
  | 'status_4xx'
  | 'status_5xx'
  /** The connection could not be made, or it broke. These four values tell what failed. */
  | 'connect'
  | 'tls'
  | 'reset'
  | 'timeout'
  /** The answer ended before it was complete. */
  | 'cut'
  /** The answer was invalid or too large. */
  | 'protocol'
  /** The upstream sent an error with a success status. */
  | 'error'

/** Results by cause, in the words of the log (docs/operating.md). HTTP statuses are handled separately. */
const results = new Map<string, AttemptResult>([
  ['upstream_connect', 'connect'],
  ['upstream_dns', 'connect'],
  ['upstream_proxy', 'connect'],
  ['no_descriptors', 'connect'],
  ['upstream_tls', 'tls'],
  ['upstream_reset', 'reset'],
  ['upstream_ttfb_timeout', 'timeout'],
  ['upstream_stall', 'timeout'],
  ['upstream_hangs', 'timeout'],
  ['upstream_cut', 'cut'],
  ['upstream_protocol', 'protocol'],
  ['upstream_oversize', 'protocol'],
  ['upstream_redirect', 'protocol'],
  ['upstream_error_event', 'error'],
  ['upstream_error_body', 'error'],
  ['upstream_model_not_found', 'status_4xx'],
  ['upstream_account_key', 'status_401'],
  ['upstream_account_spent', 'status_402'],
  ['upstream_account_denied', 'status_403'],
  ['client_abort', 'abandoned'],
  ['client_stall', 'abandoned'],
  ['shutdown', 'abandoned'],
])

const ownStatuses = new Set(['401', '402', '403', '429', '529'])

/** Returns the result of an attempt that failed. @param cause the cause, in the words of the log */
export function resultOf(cause: string): AttemptResult {
  const found = results.get(cause)
  if (found !== undefined) return found
  const [, status] = /^upstream_(\d{3})$/.exec(cause) ?? []
  const result = status === undefined ? 'protocol' : resultOfStatus(status)
  if (status !== undefined) results.set(cause, result)
  return result
}

function resultOfStatus(status: string): AttemptResult {
  if (ownStatuses.has(status)) return `status_${status}` as AttemptResult
  return status >= '500' ? 'status_5xx' : 'status_4xx'
}
