import { isIP } from 'node:net'
import type { HttpExchange } from '../http/http-exchange.ts'
import { isSameSecret } from '../ids.ts'
import { type AdminHandler, type ApiAnswer, formatJson } from './answer.ts'

/** The metrics of a running server, for a scraper. */
type ScrapedMetrics = {
  /** Whether the listener is on loopback. Then only this machine reaches it. */
  isLoopback: boolean
  /** Returns the token that scrapers must send. A reload may change it. */
  token(): string | undefined
  contentType: string
  write(): Promise<string>
  /** Logs a bug of the gateway. */
  reportBug(bug: Error): void
}

/** Serves `/metrics`, which is read-only. */
export function createMetricsHandler(metrics: ScrapedMetrics): AdminHandler {
  return async ({ exchange }) => {
    const refusal = judgeScrape(exchange, metrics)
    if (refusal) return tellProblem(refusal)
    try {
      const headers = { 'content-type': metrics.contentType, 'cache-control': 'no-store' }
      return { status: 200, headers, body: await metrics.write() }
    } catch (bug) {
      metrics.reportBug(bug as Error)
      return tellProblem('internal')
    }
  }
}

/**
 * Decides whether a request may read the metrics (ruling X9). A scraper needs the token. If no token is configured and
 * only this machine reaches the listener, any program may read them.
 */
export function judgeScrape(
  request: Pick<HttpExchange, 'method' | 'header'>,
  { isLoopback, token }: ScrapedMetrics,
): ScrapeProblem | undefined {
  const wanted = token()
  if (wanted === undefined) {
    if (!isLoopback) return 'unauthenticated'
    // The name of a foreign site can resolve to this address. A browser on this machine then sends that name as `Host`.
    if (!isNamedByAddress(request.header('host'))) return 'misdirected'
  } else {
    const [, brought] = /^Bearer +(\S+)$/i.exec(request.header('authorization') ?? '') ?? []
    if (brought === undefined || !isSameSecret(brought, wanted)) return 'unauthenticated'
  }
  return request.method === 'GET' || request.method === 'HEAD' ? undefined : 'method_not_allowed'
}

function isNamedByAddress(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  return isIP(name) !== 0 || name.toLowerCase() === 'localhost'
}

type ScrapeProblem = keyof typeof problems

/** The status, the title and the advice of each problem (RFC 9457). */
const problems = {
  unauthenticated: [401, 'Unauthenticated', 'Ask with `authorization: Bearer` and the `metrics.token` of the file.'],
  method_not_allowed: [405, 'Method not allowed', 'It is only read.'],
  misdirected: [421, 'Misdirected request', 'Ask by the address of this listener.'],
  internal: [500, 'Internal error', 'A bug of ours: the log has it.'],
} as const

const moreHeaders: Partial<Record<ScrapeProblem, Record<string, string>>> = {
  unauthenticated: { 'www-authenticate': 'Bearer' },
  method_not_allowed: { allow: 'GET, HEAD' },
}

function tellProblem(name: ScrapeProblem): ApiAnswer {
  const [status, title, detail] = problems[name]
  const headers = { 'content-type': 'application/problem+json', ...moreHeaders[name] }
  return { status, headers, body: formatJson({ type: `urn:triwire:problem:${name}`, title, status, detail }) }
}
