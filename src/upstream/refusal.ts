import { GatewayError } from '../errors.ts'
import type { Fault } from '../inference/answer.ts'
import { type ScrubContext, scrub } from './scrub.ts'

const generic = {
  invalid_request: 'The model rejected the request.',
  rate_limit_exceeded: 'The model is at capacity right now: try again in a moment.',
  no_upstream_account: 'There is no capacity for this model now: try again later.',
  upstream_error: 'The model could not complete the request: try again.',
} as const

/**
 * What a client is told of a fault (ruling U2). The request's own fault is relayed in the model's scrubbed words;
 * whatever is wrong on our side of the bill is never told.
 * @param accountFaults parts of a 400's text by which the provider speaks of our account, from the profile.
 */
export function refusalOf(
  fault: Fault,
  context: Omit<ScrubContext, 'generic'>,
  accountFaults: readonly string[] = [],
  retryAfterSeconds?: number,
): GatewayError {
  switch (kindOf(fault, context.upstreamModel, accountFaults)) {
    case 'rejected': {
      const status = fault.status === 404 || fault.status === 422 ? fault.status : 400
      const message = scrub(fault.text, { ...context, generic: generic.invalid_request })
      return new GatewayError('invalid_request', message, { status, shouldRetry: false })
    }
    case 'capacity':
      return new GatewayError(
        'rate_limit_exceeded',
        generic.rate_limit_exceeded,
        retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
      )
    case 'account':
      return new GatewayError('no_upstream_account', generic.no_upstream_account)
    default:
      return new GatewayError('upstream_error', generic.upstream_error)
  }
}

function kindOf(fault: Fault, upstreamModel: string, accountFaults: readonly string[]): Fault['kind'] {
  if (fault.kind !== 'rejected') return fault.kind
  const text = fault.text.toLowerCase()
  if (accountFaults.some((part) => text.includes(part.toLowerCase()))) return 'account'
  // Our path or our name for the model is wrong: nothing the client could mend (ruling U2).
  if (fault.status === 404 && isAboutUs(text, upstreamModel.toLowerCase())) return 'broken'
  return 'rejected'
}

/** A 404 that speaks of the path or of the model, and not of something that the request names. */
function isAboutUs(text: string, upstreamModel: string): boolean {
  if (text === '' || text === 'not found' || text.includes(upstreamModel)) return true
  return (
    /\b(?:model|path|route|url|endpoint|page)\b/.test(text) &&
    /not (?:be )?found|not exist|unknown|no such|invalid|not support/.test(text)
  )
}

/** Seconds an upstream asks to wait: a number, or a date; anything else is unknown (faults F-U16). */
export function readRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  if (value === undefined) return undefined
  const seconds = /^\d{1,9}$/.test(value.trim()) ? Number(value) : (Date.parse(value) - nowMs) / 1000
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(60, Math.ceil(seconds)) : undefined
}
