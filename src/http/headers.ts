import type { GatewayError } from '../errors.ts'

/** On every answer (rulings R5, R8). The messages wire's SDKs look for `request-id`. */
export function commonHeaders(requestId: string, onMessages: boolean): Record<string, string> {
  const headers: Record<string, string> = {
    'x-request-id': requestId,
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'x-request-id, request-id, retry-after',
  }
  if (onMessages) headers['request-id'] = requestId
  return headers
}

/** What goes with an error besides its body (ruling R6). */
export function errorHeaders(requestId: string, onMessages: boolean, error: GatewayError): Record<string, string> {
  const headers = commonHeaders(requestId, onMessages)
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
    ...commonHeaders(requestId, false),
    'access-control-allow-methods': method ?? 'GET, POST, OPTIONS',
    'access-control-allow-headers': asked ?? 'authorization, content-type, x-api-key',
    'access-control-max-age': '86400',
  }
}
