import { createServer, type Server } from 'node:http'
import { pathOf } from './paths.ts'

/** The second listener: what an orchestrator asks, never a client (ruling X2). Loopback unless configured otherwise. */
export function createAdmin(isReady: () => boolean): Server {
  const server = createServer((request, response) => {
    const path = pathOf(request.url)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    request.resume()
    if (isRead && path === '/healthz') answer(200, { status: 'ok' })
    else if (isRead && path === '/readyz') answer(isReady() ? 200 : 503, { status: isReady() ? 'ready' : 'not_ready' })
    else answer(404, { status: 'not_found', paths: ['/healthz', '/readyz'] })

    function answer(status: number, body: object): void {
      const text = `${JSON.stringify(body)}\n`
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
      response.end(request.method === 'HEAD' ? undefined : text)
    }
  })
  server.maxConnections = 100
  return server
}
