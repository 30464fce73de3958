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
    const connect = watched(buildConnector({ timeout: connectMs, ...tls }))
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

function watched(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...[error, socket]: Parameters<buildConnector.Callback>) => {
      if (!socket) return callback(error!, null)
      awaits.set(socket, takeContinue(socket))
      callback(null, socket)
    })
}
