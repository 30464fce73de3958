import { createServer, type IncomingMessage, type Server } from 'node:http'
import { isIP } from 'node:net'
import type { Running } from '../operations/operation.ts'
import { pathOf } from './paths.ts'

/** What operators ask of a running server. Nothing of it changes anything. */
export type AdminOperations = Running & {
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
}

type Found = object | 'unknown' | 'silent'

type Operation = { path: RegExp; run(operations: AdminOperations, subject: string): Promise<Found> }

const apiPrefix = '/api/v1/'
const operations: readonly Operation[] = [
  { path: /^\/api\/v1\/requests\/([\w-]{1,100})\/explain$/, run: ({ explain }, id) => explain(id) },
  { path: /^\/api\/v1\/upstreams$/, run: async ({ listUpstreams }) => ({ items: await listUpstreams(), next: null }) },
]

type Answer = { status: number; body: object; headers?: Record<string, string> }

/**
 * The second listener: what an orchestrator and an operator ask, never a client (ruling X2). On loopback only: it asks for
 * no key, and what it tells is free of content (ruling U5).
 */
export function createAdmin(isReady: () => boolean, given: AdminOperations): Server {
  const server = createServer((request, response) => {
    const path = pathOf(request.url)
    request.resume()
    // Who has left hears nothing.
    response.on('error', () => {})
    if (path.startsWith(apiPrefix)) void answerApi(given, request, path).then(answer)
    else answer(answerProbe(request, path, isReady))

    function answer({ status, body, headers }: Answer): void {
      const text = `${JSON.stringify(body)}\n`
      const length = { 'content-length': Buffer.byteLength(text) }
      response.writeHead(status, { 'content-type': 'application/json', ...length, ...headers })
      response.end(request.method === 'HEAD' ? undefined : text)
    }
  })
  server.maxConnections = 100
  return server
}

function answerProbe(request: IncomingMessage, path: string, isReady: () => boolean): Answer {
  if (isRead(request) && path === '/healthz') return { status: 200, body: { status: 'ok' } }
  if (isRead(request) && path === '/readyz')
    return isReady() ? { status: 200, body: { status: 'ready' } } : { status: 503, body: { status: 'not_ready' } }
  return { status: 404, body: { status: 'not_found', paths: ['/healthz', '/readyz'] } }
}

async function answerApi(given: AdminOperations, request: IncomingMessage, path: string): Promise<Answer> {
  // A page in a browser on this machine can give its own name this address; the name is in what it asks then.
  if (!isNamedByAddress(request.headers.host)) return problem('misdirected', 'Ask by the address of this listener.')
  for (const operation of operations) {
    const match = operation.path.exec(path)
    if (!match) continue
    if (!isRead(request)) return problem('method_not_allowed', 'It is only read.', { allow: 'GET, HEAD' })
    try {
      const found = await operation.run(given, match[1] ?? '')
      if (found === 'unknown') return problem('not_found', 'Neither memory nor ledger has such a request.')
      if (found === 'silent') return problem('store_unavailable', 'The ledger cannot be read now: try again.')
      return { status: 200, body: found, headers: { 'cache-control': 'no-store' } }
    } catch (bug) {
      given.reportBug(bug as Error)
      return problem('internal', 'A bug of ours: the log has it.')
    }
  }
  return problem('not_found', 'Nothing is served at this path.')
}

function isRead({ method }: IncomingMessage): boolean {
  return method === 'GET' || method === 'HEAD'
}

function isNamedByAddress(host: string | undefined): boolean {
  const name = host?.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1') ?? ''
  return isIP(name) !== 0 || name.toLowerCase() === 'localhost'
}

/** By their names: the status, and what people call it. */
const problems = {
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'Method not allowed'],
  misdirected: [421, 'Misdirected request'],
  internal: [500, 'Internal error'],
  store_unavailable: [503, 'Store unavailable'],
} as const

/** A problem object (RFC 9457). */
function problem(name: keyof typeof problems, detail: string, headers: Record<string, string> = {}): Answer {
  const [status, title] = problems[name]
  return {
    status,
    body: { type: `urn:triwire:problem:${name}`, title, status, detail },
    headers: { 'content-type': 'application/problem+json', ...headers },
  }
}
