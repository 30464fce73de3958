import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { buildConnector, Pool as ConnectionPool, Dispatcher } from 'undici'
import type { Upstream } from '../config/config.ts'
import { isProxysAnswer } from '../config/egress.ts'
import { takeContinue } from './interim.ts'
import { mediaTypeOf } from './media-type.ts'
import { OnceBody, onceBytesMin } from './once-body.ts'
import { headersOf } from './request-headers.ts'
import type { Target } from './target.ts'
import { judgeTransport } from './transport-fault.ts'
import { loadUndici } from './undici.ts'
import {
  type ConnectionTerms,
  type Flight,
  informationalMax,
  type TransportFault,
  type UpstreamListener,
  type UpstreamRequest,
  type Way,
} from './upstreams.ts'

type Proxied = {
  dispatcher: Dispatcher
  origin: string
  /** It is asked in absolute form, without a tunnel: its own answers come where the upstream's do. */
  isForwarded: boolean
  /** Connections without a request. */
  idle: Set<Socket>
}

/** The way to an upstream through a proxy, by undici: tunnels, absolute forms and their TLS are its. */
export function openProxied(upstream: Upstream, proxy: NonNullable<Upstream['proxy']>, terms: ConnectionTerms): Way {
  const proxied = openConnections(upstream, proxy, terms)
  return {
    send: (target, request, listener) => fly(proxied, target, request, listener),
    retire: () => proxied.dispatcher.close(),
    close: () => proxied.dispatcher.destroy(),
  }
}

/** Opens nothing yet. Redirects are not followed, and only HTTP/1.1 is spoken. */
function openConnections(
  upstream: Upstream,
  proxy: NonNullable<Upstream['proxy']>,
  { connectMs, headerBytesMax, onUnasked }: ConnectionTerms,
): Proxied {
  const { Pool, ProxyAgent } = loadUndici()
  const { origin } = new URL(upstream.baseUrl)
  const options: ConnectionPool.Options = {
    connections: null,
    // At 0 each connection has one request. For a rest between two requests undici has no means (decision 59).
    pipelining: upstream.reuses ? 1 : 0,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    maxHeaderSize: headerBytesMax,
    allowH2: false,
  }
  const tls = { allowH2: false, rejectUnauthorized: true, ...(upstream.ca !== undefined && { ca: upstream.ca }) }
  const dispatcher = new ProxyAgent({
    uri: proxy.url.reveal(),
    // Plain HTTP is asked for in absolute form: many proxies make no tunnel to another port than that of TLS.
    proxyTunnel: false,
    requestTls: tls,
    proxyTls: tls,
    connectTimeout: connectMs,
    factory: (place, { connect }: { connect?: buildConnector.connector }) =>
      new Pool(place, { ...options, connect: watched(connect!, watchSocket) }),
    // One that takes the connection and then says nothing is none.
    clientFactory: (place, { connect }: { connect?: buildConnector.connector }) =>
      new Pool(place, { ...options, connect: connect!, headersTimeout: connectMs }),
  })
  const idle = new Set<Socket>()
  return { dispatcher, origin, isForwarded: origin.startsWith('http:'), idle }

  function watchSocket(socket: Socket): void {
    socket.on('close', () => idle.delete(socket))
    // undici ends an idle connection that brings anything; this error tells it from all other ends.
    socket.on('error', ({ message }) => {
      if (!idle.has(socket) || message !== 'bad response') return
      for (const each of idle) each.destroy()
      onUnasked(upstream.name, 'idle')
    })
  }
}

/** What is to be told of each connection that a head is awaited on it. */
const awaits = new WeakMap<Socket, () => void>()

/** A request goes out on this connection. */
function awaitHead(socket: Socket): void {
  awaits.get(socket)?.()
}

function watched(connect: buildConnector.connector, watchSocket: (socket: Socket) => void): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (!socket) return callback(error!, null)
      awaits.set(socket, takeContinue(socket))
      watchSocket(socket)
      callback(null, socket)
    })
}

/** The connection a request is sent on, when that was, and how much had been read from it by then. */
type Line = { socket: Socket | undefined; bytesRead: number; sentMs: number; idle: Set<Socket> }

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
  starting.sentMs = performance.now()
  starting.idle.delete(socket)
  awaitHead(socket)
  starting = undefined
})

function fly(way: Proxied, target: Target, request: UpstreamRequest, listener: UpstreamListener): Flight {
  let controller: Dispatcher.DispatchController | undefined
  let isOver = false
  let isPaused = false
  let informational = 0
  const line: Line = { socket: undefined, bytesRead: 0, sentMs: 0, idle: way.idle }
  const { body } = request

  way.dispatcher.dispatch(
    {
      origin: way.origin,
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
        if (way.isForwarded && isProxysAnswer(status, (name) => responseHeaders[name])) {
          isOver = true
          answering.abort(new Error('the proxy refuses'))
          listener.onError({ cause: 'upstream_proxy', isReuseRace: false })
          return
        }
        // Pieces of the first bytes that came, which they would keep as long as the answer lasts.
        answering.rawHeaders = null
        const type = responseHeaders['content-type']
        const contentType = mediaTypeOf(Array.isArray(type) ? type[0] : type)
        listener.onHead(status, contentType, { get: (name) => joined(responseHeaders[name]) })
        if (isPaused) answering.pause()
      },
      onResponseData(_, chunk) {
        if (!isOver) listener.onData(chunk)
      },
      onResponseEnd() {
        if (isOver) return
        isOver = true
        if (line.socket?.destroyed === false) way.idle.add(line.socket)
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
    // No accessor: the engine would make each flight a shape of its own, 1 KB of the old heap a request.
    isSent() {
      // An upstream that answers before it has read everything leaves some of it in the socket.
      return line.socket?.writableLength === 0
    },
    wasWritten() {
      return line.socket !== undefined
    },
  }
}

function judgeError(error: Error, { socket, bytesRead, sentMs }: Line): TransportFault {
  const isUnheard = bytesRead > 0 && socket?.bytesRead === bytesRead
  const fault = judgeTransport(error, isUnheard ? performance.now() - sentMs : undefined)
  const { code } = error as NodeJS.ErrnoException
  // What never had a connection, or was refused by its name (407): the proxy's doing, unless the upstream's certificate is bad.
  const isProxys = fault.cause !== 'upstream_tls' && fault.cause !== 'no_descriptors'
  return isProxys && (socket === undefined || code === 'UND_ERR_INVALID_ARG')
    ? { cause: 'upstream_proxy', isReuseRace: false }
    : fault
}

function joined(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value
}
