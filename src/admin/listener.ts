import type { TlsPair } from '../config/config.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { pathOf } from '../http/paths.ts'
import { createEdge, type Edge } from '../http/server.ts'
import type { Running } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import {
  type AdminHandler,
  type AdminRequest,
  type ApiAnswer,
  answerLimits,
  formatJson,
  formProblem,
  guard,
  requestOf,
  send,
  tellProblem,
} from './answer.ts'
import { consolePrefix, isBrowsing, toConsole } from './console.ts'

/** The parts of a running server that operations need. */
export type AdminOperations = Running & {
  /** Logs a bug of the gateway. */
  reportBug(bug: Error): void
}

type AdminParts = {
  isReady: () => Promise<Readiness>
  api: AdminHandler
  /** Serves the API of the demo (invented data), below `/demo`. */
  demoApi?: AdminHandler
  metrics: AdminHandler
  /** The web console. */
  pages: AdminHandler
  /** Serves requests that other servers of the store send. */
  door?: { path: string; answer: AdminHandler }
  /** Undefined: the listener speaks plain HTTP. */
  tls?: TlsPair | undefined
  /**
   * Set if other machines can reach this listener without TLS. The listener then serves only health checks and metrics.
   * Returns the loopback address at which all paths are served.
   */
  besideOf?: (() => string) | undefined
  /** The path below which people reach the listener, such as `/triwire`. */
  prefix?: string
  /** Logs a bug of the gateway. */
  reportBug(bug: Error): void
  /** Overrides the limits in a test. */
  limits?: Partial<typeof adminLimits>
}

const apiPrefix = '/api/v1/'
/** The path of the demo. Its API is below this path. */
const demoPath = '/demo'

/** Whether the server is ready. A text says why it is not. A `note` is about a ready server. Anyone may read them. */
export type Readiness = boolean | string | { note: string }

/** Limits for requests of operators, which are small and arrive quickly. Times are in ms, sizes in bytes. */
const adminLimits = {
  ...answerLimits,
  headersMs: 10_000,
  bodyMs: 30_000,
  bodyGapMs: 30_000,
  keepAliveMs: 65_000,
  connectionsMax: 500,
  headerBytesMax: 16_384,
  headersMax: 100,
}

/**
 * Creates the admin listener, which orchestrators and operators use, but not clients (rulings X2 and X9). Health checks
 * are open to anyone. The API requires a token, and its answers contain no text of requests (ruling U5). The console's
 * pages call the API. Over plain HTTP, other machines get only health and metrics, because anybody on the network could
 * read tokens and cookies.
 */
export function createAdmin(parts: AdminParts): Edge {
  const { isReady, api, demoApi, metrics, pages, door, tls, besideOf, prefix = '', reportBug } = parts
  const limits = { ...adminLimits, ...parts.limits }
  return createEdge({ limits, tls, handle: (exchange, id) => void serve(exchange, id), formError: formProblem })

  async function serve(exchange: HttpExchange, id: string): Promise<void> {
    const path = pathOf(exchange.target)
    // Some proxies remove the prefix, and some do not.
    const own = prefix !== '' && path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path
    const request = requestOf(exchange, id, own, limits)
    try {
      const answer = await handlerOf(request)(request)
      if (answer) await send(exchange, answer, limits)
    } catch (bug) {
      reportBug(bug as Error)
      exchange.destroy()
    }
  }

  function handlerOf({ path, exchange: { method } }: AdminRequest): AdminHandler {
    if (path === '/metrics') return metrics
    if (besideOf) return (path === '/healthz' || path === '/readyz') && isRead(method) ? answerInAWord : refuse
    if (path.startsWith(apiPrefix)) return api
    if (demoApi && path.startsWith(demoPath + apiPrefix))
      return (request) => demoApi({ ...request, path: path.slice(demoPath.length) })
    if (path === '/console' || path.startsWith(consolePrefix)) return pages
    return door && path.startsWith(door.path) ? door.answer : answerProbe
  }

  async function answerProbe({ exchange, path }: AdminRequest): Promise<ApiAnswer> {
    const { method } = exchange
    if (path === '/' && isBrowsing(exchange)) return toConsole
    if (isRead(method) && path === '/healthz') return tell(200, { status: 'ok' })
    if (isRead(method) && path === '/readyz') {
      const ready = await isReady()
      if (ready === true) return tell(200, { status: 'ready' })
      if (typeof ready === 'object') return tell(200, { status: 'ready', ...ready })
      return tell(503, { status: 'not_ready', ...(ready !== false && { why: ready }) })
    }
    return tell(404, { status: 'not_found', paths: ['/healthz', '/readyz', '/metrics', '/console/'] })
  }

  /** Serves a health check over plain HTTP to other machines. Unlike `answerProbe`, it gives no reasons. */
  async function answerInAWord({ path }: AdminRequest): Promise<ApiAnswer> {
    const ready = path === '/healthz' || (await isReady())
    const [status, word] = ready === true || typeof ready === 'object' ? [200, 'ok'] : [503, 'unready']
    return { status, headers: { 'content-type': 'text/plain', 'cache-control': 'no-store' }, body: `${word}\n` }
  }

  async function refuse({ id }: AdminRequest): Promise<ApiAnswer> {
    const cure = `Name a certificate and its key with admin.tls, or ask on this machine: http://${besideOf!()}, as by a proxy with TLS (admin.public_url) or a port forwarded to it.`
    const problem = new ProblemError(
      'forbidden',
      `Over plain HTTP from other machines there are only /healthz, /readyz and /metrics. ${cure}`,
    )
    return guard(tellProblem(problem, id), id)
  }
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

function tell(status: number, body: object): ApiAnswer {
  return { status, headers: { 'content-type': 'application/json' }, body: formatJson(body) }
}
