import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Running } from '../operations/operation.ts'
import { pathOf } from './paths.ts'

/** What operators ask of a running server. Nothing of it changes anything. */
export type AdminOperations = Running & {
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
}

const apiPrefix = '/api/v1/'

/** An operator's request is small, and comes at once. */
const timeouts = { headersTimeout: 10_000, requestTimeout: 30_000, keepAliveTimeout: 65_000 }

/**
 * The second listener: what an orchestrator and an operator ask, never a client (rulings X2 and X9). Of health anyone may
 * ask; the API wants a token, and what it tells is free of content (ruling U5).
 */
export function createAdmin(
  isReady: () => boolean | Promise<boolean>,
  api: (request: IncomingMessage, response: ServerResponse) => void,
  metrics: (request: IncomingMessage, response: ServerResponse) => void,
): Server {
  const server = createServer(timeouts, (request, response) => {
    const path = pathOf(request.url)
    if (path === '/metrics') metrics(request, response)
    else if (path.startsWith(apiPrefix)) api(request, response)
    else void probe(request, response, path)
  })
  server.maxConnections = 100
  return server

  async function probe(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    request.resume()
    // Who has left hears nothing.
    response.on('error', () => {})
    const { status, body } = await answerProbe(request, path, isReady)
    const text = `${JSON.stringify(body)}\n`
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    response.end(request.method === 'HEAD' ? undefined : text)
  }
}

async function answerProbe(
  { method }: IncomingMessage,
  path: string,
  isReady: () => boolean | Promise<boolean>,
): Promise<{ status: number; body: object }> {
  const isRead = method === 'GET' || method === 'HEAD'
  if (isRead && path === '/healthz') return { status: 200, body: { status: 'ok' } }
  if (isRead && path === '/readyz')
    return (await isReady())
      ? { status: 200, body: { status: 'ready' } }
      : { status: 503, body: { status: 'not_ready' } }
  return { status: 404, body: { status: 'not_found', paths: ['/healthz', '/readyz', '/metrics'] } }
}
