import { GatewayError } from '../errors.ts'
import type { Fault } from '../inference/answer.ts'
import { type ScrubContext, scrub } from './scrub.ts'
import type { Verdict } from './verdict.ts'

const generic = {
  invalid_request: 'The model rejected the request.',
  rate_limit_exceeded: 'The model is at capacity right now: try again in a moment.',
  no_upstream_account: 'There is no capacity for this model now: try again later.',
  upstream_error: 'The model could not complete the request: try again.',
} as const

/**
 * What a client is told of a failed request (ruling U2). The request's own fault is relayed in the model's scrubbed
 * words; whatever is wrong on our side of the bill is never told.
 */
export function refusalOf(
  tell: Verdict['tell'],
  fault: Fault,
  context: Omit<ScrubContext, 'generic'>,
  retryAfterSeconds?: number,
): GatewayError {
  switch (tell) {
    case 'rejected': {
      const status = fault.status === 404 || fault.status === 422 ? fault.status : 400
      const message = scrub(fault.text, { ...context, generic: generic.invalid_request })
      const details = fault.threadCode && { details: { error_code: fault.threadCode } }
      return new GatewayError('invalid_request', message, { status, shouldRetry: false, ...details })
    }
    case 'capacity': {
      const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
      return new GatewayError('rate_limit_exceeded', generic.rate_limit_exceeded, wait)
    }
    case 'account':
      return new GatewayError('no_upstream_account', generic.no_upstream_account)
    case 'broken':
      return new GatewayError('upstream_error', generic.upstream_error)
  }
}

/** Seconds an upstream asks to wait: a number, or a date; anything else is unknown (faults F-U16). */
export function readRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(value.trim()) ? Number(value) : (Date.parse(value) - nowMs) / 1000
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(60, Math.ceil(seconds)) : undefined
}
