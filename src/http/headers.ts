import type { GatewayError } from '../errors.ts'
import type { ToldStanding } from '../gateway/standing.ts'
import type { ClientHalf } from '../wires/wire.ts'

/** The headers that a page in a browser may read (rulings R8, R13). */
const exposed = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-triwire-balance',
].join(', ')

/*
 * Headers are lines with their ends. Their values are our own ids, numbers and fixed words, or parts of the request's head.
 * Those were checked (`http1/fields.ts`), so no value can contain a line end.
 */

/** The headers with window and balance when the head is sent (ruling R13). Costs and prices are in no header (spec 1.8). */
export function standingLines({ balance, window }: ToldStanding, tellsBalance: boolean): string {
  const ofWindow = window
    ? `x-ratelimit-limit-requests: ${window.limit}\r\nx-ratelimit-remaining-requests: ${window.left}\r\nx-ratelimit-reset-requests: ${window.resetSeconds}\r\n`
    : ''
  return tellsBalance ? `${ofWindow}x-triwire-balance: ${balance}\r\n` : ofWindow
}

const onEvery = `access-control-allow-origin: *\r\naccess-control-expose-headers: ${exposed}\r\n`

/** The headers of every answer (rulings R5, R8). @param wire the wire of the endpoint, if it has one */
export function commonLines(requestId: string, wire: ClientHalf | undefined): string {
  const name = wire?.requestIdHeader
  const own = `x-request-id: ${requestId}\r\n${onEvery}`
  return name === undefined ? own : `${own}${name}: ${requestId}\r\n`
}

/** The header of every 401 (RFC 9110 15.5.2). A browser shows no dialog for this scheme. */
const challengeLine = 'www-authenticate: Bearer\r\n'

/** The headers of an error (ruling R6). */
export function errorLines(requestId: string, wire: ClientHalf | undefined, error: GatewayError): string {
  const { shouldRetry, retryAfterSeconds } = error
  const retry = retryAfterSeconds === undefined ? '' : `retry-after: ${retryAfterSeconds}\r\n`
  const challenge = error.status === 401 ? challengeLine : ''
  return `${commonLines(requestId, wire)}content-type: application/json\r\ncache-control: no-store\r\nx-should-retry: ${shouldRetry}\r\n${retry}${challenge}`
}

/** The headers that answer a preflight. They repeat every header asked for, as `*` does not cover `authorization` (ruling R8). */
export function preflightLines(requestId: string, asked: string | undefined, method: string | undefined): string {
  const methods = `access-control-allow-methods: ${method ?? 'GET, POST, OPTIONS'}\r\n`
  const headers = `access-control-allow-headers: ${asked ?? 'authorization, content-type, x-api-key'}\r\n`
  return `${commonLines(requestId, undefined)}${methods}${headers}access-control-max-age: 86400\r\n`
}
