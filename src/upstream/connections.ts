import type { Socket } from 'node:net'
import { buildConnector, Pool as ConnectionPool, type Dispatcher, ProxyAgent } from 'undici'
import type { Upstream } from '../config/config.ts'
import { takeContinue } from './interim.ts'

export type ConnectionLimits = { connectMs: number; headerBytesMax: number }

/** The connections to one upstream. */
export type Connections = {
  dispatcher: Dispatcher
  origin: string
  /** There is a proxy between: what cannot be reached may be that. */
  isProxied: boolean
  /** It is asked in absolute form, without a tunnel: its own answers come where the upstream's do. */
  isForwarded: boolean
}

/**
 * The most that is read of a connection at once, and read ahead of an answer that is held back, in bytes. Node reads 64 KiB
 * by default, into memory that whoever waits for a stopped reader keeps (docs/decisions/0052-stopped-readers.md).
 */
const pieceBytesMax = 16_384
/** All connections read into it: what came is copied before the next one is read. */
const incoming = Buffer.allocUnsafeSlow(pieceBytesMax)

/** Opens nothing yet. Redirects are not followed, and only HTTP/1.1 is spoken. */
export function openConnections(upstream: Upstream, { connectMs, headerBytesMax }: ConnectionLimits): Connections {
  const { origin } = new URL(upstream.baseUrl)
  const options: ConnectionPool.Options = {
    connections: null,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    maxHeaderSize: headerBytesMax,
    allowH2: false,
  }
  const tls = { allowH2: false, ...(upstream.ca !== undefined && { ca: upstream.ca }) }
  const { proxy } = upstream
  if (proxy === undefined) {
    const isPlain = origin.startsWith('http:')
    const connect = watched(isPlain ? inPieces({ timeout: connectMs }) : buildConnector({ timeout: connectMs, ...tls }))
    return {
      dispatcher: new ConnectionPool(origin, { ...options, connect }),
      origin,
      isProxied: false,
      isForwarded: false,
    }
  }
  const dispatcher = new ProxyAgent({
    uri: proxy.url.reveal(),
    // Plain HTTP is asked for in absolute form: many proxies make no tunnel to another port than that of TLS.
    proxyTunnel: false,
    requestTls: tls,
    proxyTls: tls,
    connectTimeout: connectMs,
    factory: (place, { connect }: { connect?: buildConnector.connector }) =>
      new ConnectionPool(place, { ...options, connect: watched(connect!) }),
    // One that takes the connection and then says nothing is none.
    clientFactory: (place, { connect }: { connect?: buildConnector.connector }) =>
      new ConnectionPool(place, { ...options, connect: connect!, headersTimeout: connectMs }),
  })
  return { dispatcher, origin, isProxied: true, isForwarded: origin.startsWith('http:') }
}

/** What is to be told of each connection that a head is awaited on it. */
const awaits = new WeakMap<Socket, () => void>()

/** A request goes out on this connection. */
export function awaitHead(socket: Socket): void {
  awaits.get(socket)?.()
}

/** Connections without TLS, whose records are as small by themselves. */
function inPieces(options: buildConnector.BuildOptions): buildConnector.connector {
  return (place, callback) => {
    let opened: Socket | undefined
    const take = (bytes: number) => {
      const piece = Buffer.allocUnsafeSlow(bytes)
      incoming.copy(piece, 0, 0, bytes)
      return opened!.push(piece)
    }
    const reading = { highWaterMark: pieceBytesMax, onread: { buffer: incoming, callback: take } }
    // Before it is open nothing is read.
    buildConnector({ ...options, ...reading } as buildConnector.BuildOptions)(
      place,
      (...[error, socket]: Parameters<buildConnector.Callback>) => {
        if (!socket) return callback(error!, null)
        opened = socket
        callback(null, socket)
      },
    )
  }
}

function watched(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (!socket) return callback(error!, null)
      awaits.set(socket, takeContinue(socket))
      callback(null, socket)
    })
}
