import type { GatewayError } from '../errors.ts'
import type { Wire } from '../wires/wire.ts'

/** On every answer (rulings R5, R8). @param wire whose endpoint it is, if any's */
export function commonHeaders(requestId: string, wire: Wire | undefined): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': requestId,
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'x-request-id, request-id, retry-after',
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
