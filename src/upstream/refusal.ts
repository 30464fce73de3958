import { failureTexts, GatewayError } from '../errors.ts'
import { keepCharacters, relayedCharactersMax, type ScrubContext, scrub } from './scrub.ts'
import type { ResponseHeaders } from './target.ts'
import type { Failure, Verdict } from './verdict.ts'

/** The gateway's own sentence for a refusal by a model, used if the model's text must not be shown. */
export const rejected = 'The model rejected the request.'

/** Causes of attempts whose connection was never made, broke, or was silent too long. */
const connectionCauses = new Set([
  'upstream_connect',
  'upstream_dns',
  'upstream_tls',
  'upstream_proxy',
  'upstream_reset',
  'upstream_stall',
])

/**
 * Makes the client's error for a failed request (ruling U2). If the request is at fault, the error has the model's
 * scrubbed text. Problems between us and the provider, such as an unpaid bill, are never shown. If our shutdown cut the
 * answer, the error does not blame the model.
 * @param inClientWords replaces the terms of the model's wire by the terms of the client's wire
 */
export function refusalOf(
  tell: Verdict['tell'],
  { fault, cause, retryAfterSeconds, isOfChain }: Failure,
  context: () => Omit<ScrubContext, 'generic'>,
  inClientWords: (text: string) => string = (text) => text,
): GatewayError {
  const wait = retryAfterSeconds === undefined ? {} : { retryAfterSeconds }
  const chainWait = isOfChain ? wait : {}
  switch (tell) {
    case 'rejected': {
      const status = fault.status === 404 || fault.status === 422 ? fault.status : 400
      const code = fault.code === undefined ? {} : { code: fault.code }
      const said = scrub(fault.text, { ...context(), ...code, generic: rejected })
      const message = keepCharacters(inClientWords(said), relayedCharactersMax)
      const details = fault.threadCode && { details: { error_code: fault.threadCode } }
      return new GatewayError('invalid_request', message, { status, shouldRetry: false, ...details })
    }
    case 'capacity':
      return new GatewayError('rate_limit_exceeded', failureTexts.modelFull, wait)
    case 'account':
      return new GatewayError('no_upstream_account', failureTexts.noUpstream, chainWait)
    case 'broken': {
      if (cause === 'shutdown') return new GatewayError('internal_error', failureTexts.serviceStops, { reason: cause })
      const isLost = fault.kind === 'truncated' || connectionCauses.has(cause)
      return new GatewayError('upstream_error', isLost ? failureTexts.modelLost : failureTexts.modelFailed, chainWait)
    }
  }
}

/**
 * The longest wait that is taken from an upstream's answer, in seconds. It equals an account's longest cooldown. The
 * wait in an answer to a client is shorter (ruling R6).
 */
const waitMaxSeconds = 300

const decimal = /^\s*\d{1,9}(?:\.\d{0,9})?\s*$/

/**
 * Reads how long an upstream asks to wait. `retry-after-ms` (sent by OpenAI and Azure) comes first, as in the vendors'
 * SDKs. `retry-after` is a number, with or without a fraction, or a date. Anything else is unknown (faults F-U16).
 * @returns whole seconds, rounded up, at most 300
 */
export function readRetryAfter(headers: ResponseHeaders, nowMs: number): number | undefined {
  const ms = headers.get('retry-after-ms') ?? ''
  const value = headers.get('retry-after') ?? ''
  const atMs = decimal.test(value) ? nowMs + 1000 * Number(value) : Date.parse(value)
  const waitMs = decimal.test(ms) && Number(ms) > 0 ? Number(ms) : atMs - nowMs
  // A wait of zero means that the next request may come at once. It counts as one second (ruling Y26).
  if (waitMs === 0) return 1
  return waitMs > 0 ? Math.min(waitMaxSeconds, Math.ceil(waitMs / 1000)) : undefined
}
