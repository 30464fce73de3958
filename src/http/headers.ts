import type { GatewayError } from '../errors.ts'
import type { PersonSpend, ToldStanding } from '../gateway/admit.ts'
import type { CallRecord } from '../gateway/record.ts'
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
  'x-triwire-answered-by',
].join(', ')

/*
 * Headers are lines with their line ends. Their values are our own ids, numbers and fixed words, or parts of the
 * request's head. The head was checked (`http1/heads.ts`), so no value can contain a line end.
 */

/** The current rate window and balance as headers (ruling R13). No header has costs or prices (spec 1.8). */
export function standingLines({ balance, window }: ToldStanding, tellsBalance: boolean): string {
  const ofWindow = window
    ? `x-ratelimit-limit-requests: ${window.limit}\r\nx-ratelimit-remaining-requests: ${window.left}\r\nx-ratelimit-reset-requests: ${window.resetSeconds}\r\n`
    : ''
  return tellsBalance ? `${ofWindow}x-triwire-balance: ${balance}\r\n` : ofWindow
}

/** Clients warn their user when one of these shares of a budget is spent. The highest share comes first. */
const warnedShares = [0.95, 0.75] as const

/** The headers by which Claude Code warns a person of the end of their budget (observed on 27 November 2026). */
export function spendLines({ share, resetsMs }: PersonSpend): string {
  const passed = warnedShares.find((one) => share >= one)
  const status = passed === undefined ? 'allowed' : 'allowed_warning'
  const reset = resetsMs === undefined ? undefined : Math.ceil(resetsMs / 1000)
  const headers = {
    status,
    'representative-claim': 'overage',
    'overage-status': status,
    // The value 1 would mean that nothing is left, but this request was admitted.
    'overage-utilization': Math.min(0.99, share).toFixed(2),
    'overage-surpassed-threshold': passed,
    reset,
    'overage-reset': reset,
  }
  return Object.entries(headers)
    .flatMap(([name, value]) => (value === undefined ? [] : `anthropic-ratelimit-unified-${name}: ${value}\r\n`))
    .join('')
}

/** The header that names the answering model of a chain (ruling Y23), for clients that do not read the body. */
export function answeredByLine({ hops, model = '' }: Pick<CallRecord, 'hops' | 'model'>): string {
  return hops === undefined
    ? ''
    : `x-triwire-answered-by: ${/^[!-~]+$/.test(model) ? model : encodeURIComponent(model)}\r\n`
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
  return `${commonLines(requestId, wire)}content-type: application/json\r\ncache-control: no-store\r\n${retryLines(error)}`
}

/** The headers that say what a client can do after an error. */
export function retryLines({ status, shouldRetry, retryAfterSeconds }: GatewayError): string {
  const retry = retryAfterSeconds === undefined ? '' : `retry-after: ${retryAfterSeconds}\r\n`
  return `x-should-retry: ${shouldRetry}\r\n${retry}${status === 401 ? challengeLine : ''}`
}

/**
 * The headers that answer a preflight. They repeat all requested names, since `*` does not include `authorization`
 * (R8).
 */
export function preflightLines(requestId: string, asked: string | undefined, method: string | undefined): string {
  const methods = `access-control-allow-methods: ${method ?? 'GET, POST, OPTIONS'}\r\n`
  const headers = `access-control-allow-headers: ${asked ?? 'authorization, content-type, x-api-key, x-triwire-labels'}\r\n`
  return `${commonLines(requestId, undefined)}${methods}${headers}access-control-max-age: 86400\r\n`
}

/** The reason phrase of every status that the server sends (RFC 9110 15; 428, 429 and 431: RFC 6585). */
const reasons: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  204: 'No Content',
  303: 'See Other',
  304: 'Not Modified',
  307: 'Temporary Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  421: 'Misdirected Request',
  422: 'Unprocessable Entity',
  426: 'Upgrade Required',
  428: 'Precondition Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
}

/**
 * Makes the head of an answer, including the empty line at its end.
 * @param lines headers of the answer, each with its line end
 * @param connection the value of the `connection` header. Further headers may follow in it, each after a line end
 */
export function answerHead(status: number, lines: string, connection: string): string {
  // An empty reason phrase is allowed (RFC 9112 4).
  return `HTTP/1.1 ${status} ${reasons[status] ?? ''}\r\n${lines}date: ${httpDate()}\r\nconnection: ${connection}\r\n\r\n`
}

let [second, text] = [Number.NaN, '']

/** The `date` of an answer (RFC 9110 6.6.1). It has whole seconds, so the text is made once a second. */
function httpDate(nowMs = Date.now()): string {
  const now = Math.floor(nowMs / 1_000)
  if (now !== second) [second, text] = [now, new Date(nowMs).toUTCString()]
  return text
}
