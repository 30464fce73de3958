import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Upstream } from '../config/config.ts'
import { isProxysAnswer } from '../config/egress.ts'
import { awaitHead, type ConnectionLimits, type Connections, openConnections } from './connections.ts'
import { OnceBody, onceBytesMin } from './once-body.ts'
import { headersOf } from './request-headers.ts'
import type { Target } from './target.ts'
import type { Flight, TransportFault, UpstreamListener, UpstreamRequest, Upstreams } from './upstreams.ts'

/** How many informational answers are passed over before the upstream counts as broken (faults F-U28). */
const informationalMax = 10

/**
 * Sends through undici's `dispatch`, bodies as Buffers, chunks straight to the listener: the cheapest way there is
 * short of a client of our own (docs/decisions/0013-undici-dispatch.md). Redirects are not followed, nothing is
 * decompressed. Deadlines are the listener's: it sees every byte and has the clock.
 */
export function createUpstreams(config: ReadonlyMap<string, Upstream>, limits: ConnectionLimits): Upstreams {
  const routes = new Map([...config].map(([name, upstream]) => [name, openConnections(upstream, limits)]))
  return {
    send(target, request, listener) {
      const route = routes.get(target.upstream.name)
      if (route === undefined) throw new Error(`${target.upstream.name} is no upstream of this configuration`)
      return fly(route, target, request, listener)
    },
    async retire() {
      // What is cut while it retires is closed too.
      await Promise.allSettled([...routes.values()].map(({ dispatcher }) => dispatcher.close()))
    },
    async close() {
      await Promise.all([...routes.values()].map(({ dispatcher }) => dispatcher.destroy()))
    },
  }
}

/** The connection a request is sent on, and how much had been read from it by then. */
type Line = { socket: Socket | undefined; bytesRead: number }

/**
 * undici tells which socket a request goes out on only here, in the same turn as `onRequestStart`. It is what a reset is
 * judged by: whether the connection had served before, and whether a byte of this answer had come (ruling U1).
 */
let starting: Line | undefined
subscribe('undici:client:sendHeaders', (message) => {
  if (starting === undefined) return
  const { socket } = message as { socket: Socket }
  starting.socket = socket
  starting.bytesRead = socket.bytesRead
  awaitHead(socket)
  starting = undefined
})

function fly(route: Connections, target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight {
  let controller: Dispatcher.DispatchController | undefined
  let isOver = false
  let isPaused = false
  let informational = 0
  const line: Line = { socket: undefined, bytesRead: 0 }
  const { body } = request

  route.dispatcher.dispatch(
    {
      origin: route.origin,
      path: target.path,
      method: 'POST',
      headers: headersOf(target, request),
      // Its types leave iterables out; its documentation and its code take them.
      body: body.length < onceBytesMin ? body : (new OnceBody(body) as unknown as Readable),
    },
    {
      onRequestStart(started) {
        controller = started
        starting = line
        if (isOver) controller.abort(new Error('aborted'))
      },
      onResponseStart(answering, status, responseHeaders) {
        if (isOver) return
        if (status < 200) {
          // It comes back as the error of this answer.
          if (++informational > informationalMax) answering.abort(new Error('too many informational answers'))
          return
        }
        if (route.isForwarded && isProxysAnswer(status, (name) => responseHeaders[name])) {
          isOver = true
          answering.abort(new Error('the proxy refuses'))
          listener.onError({ cause: 'upstream_proxy', isReuseRace: false })
          return
        }
        // Pieces of the first bytes that came, which they would keep as long as the answer lasts.
        answering.rawHeaders = null
        const type = responseHeaders['content-type']
        const contentType = (Array.isArray(type) ? type[0] : type)?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
        listener.onHead(status, contentType, responseHeaders)
        if (isPaused) answering.pause()
      },
      onResponseData(_, chunk) {
        if (!isOver) listener.onData(chunk)
      },
      onResponseEnd() {
        if (isOver) return
        isOver = true
        listener.onEnd()
      },
      onResponseError(_, error) {
        if (isOver) return
        isOver = true
        listener.onError(judgeError(error, line, route))
      },
    },
  )
  return {
    abort() {
      isOver = true
      controller?.abort(new Error('aborted'))
    },
    pause() {
      isPaused = true
      controller?.pause()
    },
    resume() {
      isPaused = false
      controller?.resume()
    },
    // No accessor: the engine would make each flight a shape of its own, 1 KB of the old heap a request.
    isSent() {
      // An upstream that answers before it has read everything leaves some of it in the socket.
      return line.socket?.writableLength === 0
    },
  }
}

/** What is missing, and not about TLS, is `upstream_protocol`. */
const causeOfCode = new Map<string, TransportFault['cause']>([
  ['ECONNREFUSED', 'upstream_connect'],
  ['EHOSTUNREACH', 'upstream_connect'],
  ['ENETUNREACH', 'upstream_connect'],
  ['EADDRNOTAVAIL', 'upstream_connect'],
  ['UND_ERR_CONNECT_TIMEOUT', 'upstream_connect'],
  ['ETIMEDOUT', 'upstream_connect'],
  ['ENOTFOUND', 'upstream_dns'],
  ['EAI_AGAIN', 'upstream_dns'],
  ['ECONNRESET', 'upstream_reset'],
  ['EPIPE', 'upstream_reset'],
  ['UND_ERR_SOCKET', 'upstream_reset'],
  ['EMFILE', 'no_descriptors'],
  ['ENFILE', 'no_descriptors'],
])

function judgeError(error: Error, { socket, bytesRead }: Line, { isProxied }: Connections): TransportFault {
  const { code = '' } = error as NodeJS.ErrnoException
  const own = causeOfCode.get(code) ?? (isTls(code, error) ? 'upstream_tls' : 'upstream_protocol')
  // What never had a connection, or was refused by its name (407): the proxy's doing, unless the upstream's certificate is bad.
  const isProxys = isProxied && own !== 'upstream_tls' && own !== 'no_descriptors'
  const cause = isProxys && (socket === undefined || code === 'UND_ERR_INVALID_ARG') ? 'upstream_proxy' : own
  // A connection that had brought an earlier answer, and nothing of this one.
  const isReuseRace = cause === 'upstream_reset' && bytesRead > 0 && socket?.bytesRead === bytesRead
  return { cause, isReuseRace, ...(cause === 'upstream_tls' && { reason: code }) }
}

function isTls(code: string, error: Error): boolean {
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    code.includes('CERT') ||
    /certificate/i.test(error.message)
  )
}
