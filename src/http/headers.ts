import type { GatewayError } from '../errors.ts'
import type { ToldStanding } from '../gateway/standing.ts'
import type { Wire } from '../wires/wire.ts'

/** What a page in a browser may read besides the body (rulings R8, R13). */
const exposed = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-triwire-balance',
].join(', ')

/** How the account stands when the head is sent (ruling R13). No cost and no price: they are in no header (spec 1.8). */
export function addStanding(
  headers: Record<string, string>,
  { balance, window }: ToldStanding,
  tellsBalance: boolean,
): void {
  if (window) {
    headers['x-ratelimit-limit-requests'] = `${window.limit}`
    headers['x-ratelimit-remaining-requests'] = `${window.left}`
    headers['x-ratelimit-reset-requests'] = `${window.resetSeconds}`
  }
  if (tellsBalance) headers['x-triwire-balance'] = balance
}

/** On every answer (rulings R5, R8). @param wire whose endpoint it is, if any's */
export function commonHeaders(requestId: string, wire: Wire | undefined): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': requestId,
    'access-control-allow-origin': '*',
    'access-control-expose-headers': exposed,
  }
  if (wire?.requestIdHeader) headers[wire.requestIdHeader] = requestId
  return headers
}

/** What goes with an error besides its body (ruling R6). */
export function errorHeaders(requestId: string, wire: Wire | undefined, error: GatewayError): Record<string, string> {
  const headers = commonHeaders(requestId, wire)
  headers['content-type'] = 'application/json'
  headers['cache-control'] = 'no-store'
  headers['x-should-retry'] = error.shouldRetry ? 'true' : 'false'
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds)
  return headers
}

/** The answer to a preflight: whatever it asks for, since `*` does not cover `authorization` (ruling R8). */
export function preflightHeaders(
  requestId: string,
  asked: string | undefined,
  method: string | undefined,
): Record<string, string> {
  return {
    ...commonHeaders(requestId, undefined),
    'access-control-allow-methods': method ?? 'GET, POST, OPTIONS',
    'access-control-allow-headers': asked ?? 'authorization, content-type, x-api-key',
    'access-control-max-age': '86400',
  }
}
