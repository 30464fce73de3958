import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { buildConnector, Pool as ConnectionPool, type Dispatcher } from 'undici'
import type { Upstream } from '../config/config.ts'
import { credentialOf } from './credential.ts'
import { takeContinue } from './interim.ts'
import { OnceBody, onceBytesMin } from './once-body.ts'
import type { Target } from './target.ts'
import type { Flight, TransportFault, UpstreamListener, UpstreamRequest, Upstreams } from './upstreams.ts'

/** How many informational answers are passed over before the upstream counts as broken (faults F-U28). */
const informationalMax = 10

export type SendLimits = { connectMs: number; headerBytesMax: number }

/**
 * Sends through undici's `dispatch`, bodies as Buffers, chunks straight to the listener: the cheapest way there is
 * short of a client of our own (docs/decisions). Redirects are not followed, nothing is decompressed. Deadlines are the
 * listener's: it sees every byte and has the clock.
 */
export function createUpstreams(config: ReadonlyMap<string, Upstream>, limits: SendLimits): Upstreams {
  const routes = new Map([...config].map(([name, upstream]) => [name, createRoute(upstream, limits)]))
  return {
    send(target, request, listener) {
      const route = routes.get(target.upstream.name)
      if (route === undefined) throw new Error(`${target.upstream.name} is no upstream of this configuration`)
      return fly(route, target, request, listener)
    },
    async retire() {
      // What is cut while it retires is closed too.
      await Promise.allSettled([...routes.values()].map((route) => route.connections.close()))
    },
    async close() {
      await Promise.all([...routes.values()].map((route) => route.connections.destroy()))
    },
  }
}

type Route = { connections: ConnectionPool; prefix: string }

function createRoute(upstream: Upstream, limits: SendLimits): Route {
  const url = new URL(upstream.baseUrl)
  const connections = new ConnectionPool(url.origin, {
    connections: null,
    pipelining: 1,
    connect: connectorOf(limits),
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    maxHeaderSize: limits.headerBytesMax,
    allowH2: false,
  })
  return { connections, prefix: url.pathname.replace(/\/$/, '') }
}

/** What is to be told of each connection that a head is awaited on it. */
const awaits = new WeakMap<Socket, () => void>()

function connectorOf({ connectMs }: SendLimits): buildConnector.connector {
  const connect = buildConnector({ timeout: connectMs, allowH2: false })
  return (options, callback) =>
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (!socket) return callback(error!, null)
      awaits.set(socket, takeContinue(socket))
      callback(null, socket)
    })
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
  awaits.get(socket)?.()
  starting = undefined
})

function fly(route: Route, target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight {
  let controller: Dispatcher.DispatchController | undefined
  let isOver = false
  let isPaused = false
  let informational = 0
  const line: Line = { socket: undefined, bytesRead: 0 }
  const { path, body } = request

  route.connections.dispatch(
    {
      path: route.prefix + path,
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
        listener.onError(judgeError(error, line))
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
  }
}

const fixedHeaders = ['content-type', 'application/json', 'accept-encoding', 'identity', 'user-agent', 'triwire']

function headersOf(target: Target, request: UpstreamRequest): string[] {
  const headers = [...fixedHeaders, ...target.headers, 'content-length', String(request.body.length)]
  const credential = credentialOf(target, request.credential)
  if (credential) headers.push(...credential)
  for (const [name, value] of request.headers) headers.push(name, value)
  return headers
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

function judgeError(error: Error, { socket, bytesRead }: Line): TransportFault {
  const { code = '' } = error as NodeJS.ErrnoException
  const cause = causeOfCode.get(code) ?? (isTls(code, error) ? 'upstream_tls' : 'upstream_protocol')
  // A connection that had brought an earlier answer, and nothing of this one.
  const isReuseRace = cause === 'upstream_reset' && bytesRead > 0 && socket?.bytesRead === bytesRead
  return { cause, isReuseRace }
}

function isTls(code: string, error: Error): boolean {
  return (
    code.startsWith('ERR_TLS') ||
    code.startsWith('ERR_SSL') ||
    code.includes('CERT') ||
    /certificate/i.test(error.message)
  )
}
