import type { LimitReason } from './limit-reasons.ts'

/** Every error that a client can get (spec 7.3): its HTTP status and its `type` in the chat-wire envelope. */
export const errorTable = {
  invalid_body: { status: 400, type: 'invalid_request_error' },
  invalid_cache_key: { status: 400, type: 'invalid_request_error' },
  /** The model refused the request. The status is the model's own if it is 404 or 422, and otherwise 400. */
  invalid_request: { status: 400, type: 'invalid_request_error' },
  unsupported_parameter: { status: 400, type: 'invalid_request_error' },
  invalid_api_key: { status: 401, type: 'invalid_request_error' },
  account_suspended: { status: 401, type: 'invalid_request_error' },
  insufficient_credits: { status: 402, type: 'insufficient_quota' },
  model_not_found: { status: 404, type: 'invalid_request_error' },
  unknown_url: { status: 404, type: 'invalid_request_error' },
  request_too_large: { status: 413, type: 'invalid_request_error' },
  rate_limit_exceeded: { status: 429, type: 'rate_limit_error' },
  too_many_failed_auth: { status: 429, type: 'rate_limit_error' },
  internal_error: { status: 500, type: 'api_error' },
  upstream_error: { status: 502, type: 'api_error' },
  no_upstream_account: { status: 503, type: 'api_error' },
} as const

export type ErrorCode = keyof typeof errorTable

/**
 * The texts for temporary failures. Clients, most of all agents, search the text for words that decide whether they
 * retry (ruling U10). A text for lack of capacity has "overloaded" and "rate limit". A text for a 5xx or a broken
 * answer has "server error". A text for a lost connection has "connection" too. Each text has "try again".
 */
export const failureTexts = {
  modelFull: 'The model is overloaded right now (rate limit): try again in a moment.',
  modelFailed: 'The model had a server error: try again.',
  modelLost: 'The connection to the model was lost (server error, connection reset): try again.',
  noUpstream: 'There is no capacity for this model now (overloaded, rate limit or server error): try again later.',
  serviceFull: 'The service is overloaded right now (rate limit): try again in a moment.',
  counterFull:
    'The token counter is overloaded right now (rate limit): try again in a second, with at most two requests at a time.',
  serviceFailed: 'The service had a server error: try again.',
  serviceStops: 'The service is shutting down and ended this answer before it was complete (server error): try again.',
  noLedger: 'The service cannot record usage right now (server error): try again in a moment.',
  silentStore: 'The service cannot check API keys right now (server error): try again in a moment.',
  silentAccounts: 'The service cannot check the credit of accounts right now (server error): try again in a moment.',
  usageFull:
    'You have asked for your usage too often in this minute (rate limit): try again after retry-after seconds.',
  throttled:
    'Too many failed authentications from this address (rate limit): wait, then try again with a valid API key.',
} as const

/** Why a request was refused, for metrics. One error code can have several reasons. Clients do not get the reason. */
export type RefusalReason = LimitReason | 'ledger' | 'store' | 'session' | 'shutdown'

export type ErrorDetail = {
  reason?: RefusalReason
  /** The field at the top level of the body, or the header, that caused the error (spec 7.3). */
  param?: string
  /** Overrides the status that belongs to the code: for a model's 404 or 422, or for malformed HTTP (ruling R11). */
  status?: number
  /** Whole seconds until a retry can succeed. The constructor limits them to 1…60 (ruling R6). */
  retryAfterSeconds?: number
  /** Data that SDKs read beside the message. Not every wire's error format has a place for it (ruling T22). */
  details?: Readonly<Record<string, unknown>>
  /** Overrides the value of the header `x-should-retry`, which otherwise follows from the status (rulings R1, R6). */
  shouldRetry?: boolean
}

/** An error that the client gets as it is. Any other thrown error is our bug and becomes `internal_error`. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly param: string | null
  readonly retryAfterSeconds: number | undefined
  readonly shouldRetry: boolean
  readonly reason: RefusalReason | undefined
  readonly details: ErrorDetail['details']

  constructor(code: ErrorCode, message: string, detail: ErrorDetail = {}) {
    super(message)
    this.code = code
    this.status = detail.status ?? errorTable[code].status
    this.param = detail.param ?? null
    this.details = detail.details
    this.reason = detail.reason
    // After a 429 without `retry-after` an agent gives up, and SDKs ignore a wait of more than a minute (ruling R6).
    const wait = this.status === 429 ? (detail.retryAfterSeconds ?? 5) : detail.retryAfterSeconds
    this.retryAfterSeconds = wait === undefined ? undefined : Math.min(60, Math.max(1, Math.ceil(wait)))
    this.shouldRetry = detail.shouldRetry ?? (this.status === 429 || this.status >= 500)
  }

  withMore(sentence: string): GatewayError {
    const { code, param, ...rest } = this
    return new GatewayError(code, `${this.message} ${sentence}`, {
      ...rest,
      ...(param !== null && { param }),
    } as ErrorDetail)
  }
}
