/** The result of one try at an upstream account. There are few values, so that one chart can show all of them. */
type AttemptResult =
  | 'ok'
  /** The client left, or the process ended, before there was a result. */
  | 'abandoned'
  /** A problem of the account: its key, its bill, its rights or its limits. */
  | 'status_401'
  | 'status_402'
  | 'status_403'
  | 'status_429'
  | 'status_529'
  | 'status_4xx'
  | 'status_5xx'
  /** No connection, or a broken one, by the part that failed. */
  | 'connect'
  | 'tls'
  | 'reset'
  | 'timeout'
  /** An answer that broke off. */
  | 'cut'
  /** An invalid answer, or one that is too large. */
  | 'protocol'
  /** An error with a status of success. */
  | 'error'

/** Results by causes in the words of the log (docs/operating.md). Statuses have a rule of their own. */
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

/** Returns the result for a cause in the words of the log. */
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
