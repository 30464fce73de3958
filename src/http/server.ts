import { createServer, type Server, type Socket } from 'node:net'
import type { Server as SecureServer } from 'node:tls'
import type { TlsPair } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import { newRequestId } from '../ids/request-id.ts'
import { errorBody, sendError, wireOfError } from './answer.ts'
import { answerHead } from './answer-head.ts'
import { Connection, type ConnectionHost } from './connection.ts'
import { type Guest, Guests } from './connections.ts'
import { refusal, tooLate } from './framing.ts'
import { errorLines } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import { pathOf } from './paths.ts'
import { plain } from './peer.ts'

/** Limits of the edge (reliability §3). Times in ms, of which the first two are kept in whole seconds; sizes in bytes. */
export type EdgeLimits = {
  headersMs: number
  keepAliveMs: number
  lingerMs: number
  connectionsMax: number
  headerBytesMax: number
  headersMax: number
}

/**
 * What waits for a client before its model is held back, in bytes. With Node's 64 KiB a reader who stops before a model that
 * goes on holds four times as much: here, and of the model's bytes the same (docs/decisions/0052-stopped-readers.md).
 */
const waitingBytesMax = 16_384

/** The listener, and how many requests of it have no whole answer yet. */
export type Edge = {
  server: Server
  readonly running: number
  /** Connections from now on are shown this certificate, where it speaks TLS at all. */
  renew(pair: TlsPair): void
  /** Closes those connections that nothing is under way on. */
  closeIdle(): void
  closeAll(): void
}

export type RequestHandler = (exchange: HttpExchange, requestId: string) => void

/** A request that was refused before it could be routed; for the log. */
export type EdgeRefusal = {
  requestId: string
  error: GatewayError
  method: string
  path: string
  ip: string
  cause: string
}

export type EdgeParts = {
  limits: EdgeLimits
  /** Undefined: plain HTTP. */
  tls?: TlsPair | undefined
  handle: RequestHandler
  onRefusal: (refusal: EdgeRefusal) => void
  /** While it says so every answer closes its connection. */
  isDraining: () => boolean
}

/** How long an idle connection is kept longer than is announced: a request may be on its way (faults F-C48). */
const graceSeconds = 1

/**
 * The listener. It speaks HTTP/1.1 itself (docs/decisions/0058-own-http.md): whatever it refuses is told with a body, a request id and
 * the envelope, and then the connection closes (ruling R11, reliability §2).
 */
export function createEdge({ limits, tls, handle, onRefusal, isDraining }: EdgeParts): Edge {
  const guests = new Guests(limits.connectionsMax)
  const open = new Set<Connection>()
  let running = 0
  let second = 0
  const host: ConnectionHost = {
    headerBytesMax: limits.headerBytesMax,
    headersMax: limits.headersMax,
    keepAliveSeconds: Math.max(1, Math.floor(limits.keepAliveMs / 1_000)),
    get isDraining() {
      return isDraining()
    },
    get second() {
      return second
    },
    admit(connection, exchange) {
      running++
      guests.noteRequest(connection)
      receive(exchange)
    },
    release(connection) {
      running--
      guests.noteAnswer(connection)
    },
    refuse,
  }
  const server = tls ? createSecure(tls) : createServer({ ...socketOptions }, (socket) => welcome(socket))
  const sweeps = setInterval(sweep, 1_000).unref()
  server.on('close', () => clearInterval(sweeps))
  return {
    server,
    get running() {
      return running
    },
    renew(pair) {
      if (tls) (server as SecureServer).setSecureContext(secureOptions(pair))
    },
    closeIdle: () => guests.closeIdle(),
    closeAll: () => guests.closeAll(),
  }

  function welcome(socket: Socket, before?: Guest): void {
    const connection = new Connection(socket, host)
    if (before) guests.replace(before, connection)
    else if (!guests.enter(connection)) {
      socket.destroy()
      return
    }
    open.add(connection)
    socket.once('close', () => {
      open.delete(connection)
      guests.leave(connection)
    })
  }

  /** Requests come on the secured socket, and not on the one that it is in: once there is one it stands for both. */
  function createSecure(pair: TlsPair): SecureServer {
    /** Those that are in their handshake, by their other ends. */
    const greeting = new Map<string, Guest>()
    const own = { ...secureOptions(pair), handshakeTimeout: limits.headersMs, ALPNProtocols: ['http/1.1'] }
    const secured = process.getBuiltinModule('node:tls').createServer({ ...socketOptions, ...own })
    secured.on('connection', (socket: Socket) => {
      const guest = { isIdle: true, isAnswered: false, destroy: () => void socket.destroy() }
      if (!guests.enter(guest)) {
        socket.destroy()
        return
      }
      const end = endOf(socket)
      greeting.set(end, guest)
      socket.once('close', () => {
        guests.leave(guest)
        if (greeting.get(end) === guest) greeting.delete(end)
      })
    })
    secured.on('secureConnection', (socket) => {
      const end = endOf(socket)
      const guest = greeting.get(end)
      greeting.delete(end)
      if (guest && socket.destroyed) guests.leave(guest)
      else if (!socket.destroyed) welcome(socket, guest)
    })
    // A handshake that fails is nobody's request, and there is nothing that could be said in clear.
    secured.on('tlsClientError', (_, socket) => socket.destroy())
    return secured
  }

  function receive(exchange: HttpExchange): void {
    const requestId = newRequestId()
    if (!exchange.awaitsContinue || exchange.header('expect')?.toLowerCase() === '100-continue') {
      handle(exchange, requestId)
      return
    }
    const error = refusal('The header expect is not understood: send 100-continue, or leave it out.', 417)
    const path = pathOf(exchange.target)
    const ip = plain(exchange.socket.remoteAddress ?? '')
    onRefusal({ requestId, error, method: exchange.method, path, ip, cause: 'bad_http' })
    sendError(exchange, { error, path, requestId, closes: true, lingerMs: limits.lingerMs })
  }

  /** Answers what is no request that anybody could be given. */
  function refuse(
    connection: Connection,
    { error, method, target }: { error: GatewayError; method: string; target: string },
  ): void {
    const requestId = newRequestId()
    const path = target === '' ? '' : pathOf(target)
    const cause = error.status === 408 ? 'client_timeout' : 'bad_http'
    onRefusal({ requestId, error, method, path, ip: plain(connection.socket.remoteAddress ?? ''), cause })
    connection.sayLast(rawAnswer({ error, method, path, requestId }))
  }

  function sweep(): void {
    second++
    for (const connection of open) {
      const { waited } = connection
      if (waited === undefined) continue
      if (waited.for === 'request') {
        if (waited.seconds > host.keepAliveSeconds + graceSeconds) connection.destroy()
      } else if (waited.seconds > Math.ceil(limits.headersMs / 1_000)) connection.refuse(tooLate())
    }
  }
}

const socketOptions = { noDelay: true, highWaterMark: waitingBytesMax }

/** Older versions are broken; nothing that speaks a wire is that old. */
export function secureOptions({ cert, key }: TlsPair) {
  return { cert, key: key.reveal(), minVersion: 'TLSv1.2' as const }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** A whole HTTP answer as text, for a connection on which no request stands for it. */
function rawAnswer({
  error,
  method,
  path,
  requestId,
}: {
  error: GatewayError
  method: string
  path: string
  requestId: string
}): string {
  const wire = wireOfError(error, path)
  const body = errorBody(error, requestId, wire)
  const lines = `${errorLines(requestId, wire, error)}content-length: ${Buffer.byteLength(body)}\r\n`
  return answerHead(error.status, lines, 'close') + (method === 'HEAD' ? '' : body)
}
