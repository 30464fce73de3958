import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'

/** What a scraper may have of a running server. */
export type ScrapedMetrics = {
  /** The listener is on loopback: who reaches it is on this machine. */
  isLoopback: boolean
  /** What a scraper has to bring; a reload may change it. */
  token(): string | undefined
  contentType: string
  write(): Promise<string>
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
}

/** Answers `/metrics`, which is only read. */
export function createMetricsHandler(metrics: ScrapedMetrics) {
  return (request: IncomingMessage, response: ServerResponse): void => {
    request.resume()
    // Who has left hears nothing.
    response.on('error', () => {})
    const refusal = judgeScrape(request, metrics)
    if (refusal) {
      tellProblem(response, refusal)
      return
    }
    metrics.write().then(
      (text) => {
        const length = { 'content-length': Buffer.byteLength(text), 'cache-control': 'no-store' }
        response.writeHead(200, { 'content-type': metrics.contentType, ...length })
        response.end(request.method === 'HEAD' ? undefined : text)
      },
      (bug: Error) => {
        metrics.reportBug(bug)
        tellProblem(response, 'internal')
      },
    )
  }
}

/**
 * Who may read the metrics (ruling X9), and nowhere else is that judged: whoever brings the token. Where none is
 * configured it is everybody on this machine, and nobody where the listener is reached from others.
 */
export function judgeScrape(request: IncomingMessage, { isLoopback, token }: ScrapedMetrics): Problem | undefined {
  const wanted = token()
  if (wanted === undefined) {
    if (!isLoopback) return 'unauthenticated'
    // A page in a browser on this machine can give its own name this address; the name is in what it asks then.
    if (!isNamedByAddress(request.headers.host)) return 'misdirected'
  } else {
    const [, brought] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? []
    if (brought === undefined || !timingSafeEqual(digestOf(brought), digestOf(wanted))) return 'unauthenticated'
  }
  return request.method === 'GET' || request.method === 'HEAD' ? undefined : 'method_not_allowed'
}

/** Of equal length, whatever was brought. */
function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function isNamedByAddress(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  return isIP(name) !== 0 || name.toLowerCase() === 'localhost'
}

type Problem = keyof typeof problems

/** By their names: the status, what people call it, and the cure (RFC 9457). */
const problems = {
  unauthenticated: [401, 'Unauthenticated', 'Ask with `authorization: Bearer` and the `metrics.token` of the file.'],
  method_not_allowed: [405, 'Method not allowed', 'It is only read.'],
  misdirected: [421, 'Misdirected request', 'Ask by the address of this listener.'],
  internal: [500, 'Internal error', 'A bug of ours: the log has it.'],
} as const

const moreHeaders: Partial<Record<Problem, Record<string, string>>> = {
  unauthenticated: { 'www-authenticate': 'Bearer' },
  method_not_allowed: { allow: 'GET, HEAD' },
}

function tellProblem(response: ServerResponse, name: Problem): void {
  const [status, title, detail] = problems[name]
  const text = `${JSON.stringify({ type: `urn:triwire:problem:${name}`, title, status, detail })}\n`
  const length = { 'content-length': Buffer.byteLength(text) }
  response.writeHead(status, { 'content-type': 'application/problem+json', ...length, ...moreHeaders[name] })
  response.end(text)
}
