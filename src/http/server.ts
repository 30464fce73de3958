import { createServer, type Server, type Socket } from 'node:net'
import type { Server as SecureServer } from 'node:tls'
import type { TlsPair } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import { newRequestId } from '../ids/request-id.ts'
import { type FormError, sendError } from './answer.ts'
import { Connection, type ListenerHost } from './connection.ts'
import { type Guest, Guests } from './connections.ts'
import { refusal, tooLate } from './framing.ts'
import { answerHead } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import { pathOf, plain } from './paths.ts'

/** Limits of a listener (reliability §3). Times in ms, the first two counted in whole seconds; sizes in bytes. */
type EdgeLimits = {
  headersMs: number
  keepAliveMs: number
  lingerMs: number
  connectionsMax: number
  headerBytesMax: number
  headersMax: number
}

/**
 * The most bytes that a client may leave unread before the model is paused. Node's default is 64 KiB. A client that stops
 * reading would then take four times the memory, and as much more of the model's bytes (docs/decisions/0052-stopped-readers.md).
 */
const waitingBytesMax = 16_384

/** A listener. @property running the number of its requests without a complete answer */
export type Edge = {
  server: Server
  readonly running: number
  /** Sets another certificate for new connections, if the listener speaks TLS. */
  renew(pair: TlsPair): void
  /** Closes the connections that have no request under way. */
  closeIdle(): void
  closeAll(): void
}

type RequestHandler = (exchange: HttpExchange, requestId: string) => void

/** A refused request that never reached a handler, for the log. */
export type EdgeRefusal = {
  requestId: string
  error: GatewayError
  method: string
  path: string
  ip: string
  cause: string
}

type EdgeParts = {
  limits: EdgeLimits
  tls?: TlsPair | undefined
  handle: RequestHandler
  /** Makes the text of the answer to a request that is refused here. */
  formError: FormError
  onRefusal?: (refusal: EdgeRefusal) => void
  /** While it returns true, every answer closes its connection. */
  isDraining?: () => boolean
}

/** An idle connection is kept longer than announced by this time, because a request may be on its way (faults F-C48). */
const graceSeconds = 1

/**
 * Makes a listener with our own HTTP/1.1 (docs/decisions/0058-own-http.md). A request that it refuses is answered with a
 * body and a request id, and then the connection closes (ruling R11, reliability §2).
 */
export function createEdge(parts: EdgeParts): Edge {
  const { limits, tls, handle, formError, onRefusal = () => {}, isDraining = () => false } = parts
  const guests = new Guests(limits.connectionsMax)
  const open = new Set<Connection>()
  let running = 0
  let second = 0
  const host: ListenerHost = {
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

  /** Requests arrive on the TLS socket. After the handshake it takes the place of the plain socket below it. */
  function createSecure(pair: TlsPair): SecureServer {
    /** Connections in their handshake, by client address and port. */
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
    // A failed handshake is not a request, and an answer could only be sent unencrypted.
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
    const form = formError(error, path, requestId)
    sendError(exchange, { ...form, status: error.status, closes: true, lingerMs: limits.lingerMs })
  }

  /** Answers bytes that no handler will get. */
  function refuse(
    connection: Connection,
    { error, method, target }: { error: GatewayError; method: string; target: string },
  ): void {
    const requestId = newRequestId()
    const path = target === '' ? '' : pathOf(target)
    const cause = error.status === 408 ? 'client_timeout' : 'bad_http'
    onRefusal({ requestId, error, method, path, ip: plain(connection.socket.remoteAddress ?? ''), cause })
    const form = formError(error, path, requestId)
    connection.sayLast(lastAnswer(error.status, method, form))
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

/** Older versions of TLS are broken, and no supported client is that old. */
function secureOptions({ cert, key }: TlsPair) {
  return { cert, key: key.reveal(), minVersion: 'TLSv1.2' as const }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** Makes a whole answer as text, after which the connection closes. @param method as far as it is known */
function lastAnswer(status: number, method: string, { lines, body }: ReturnType<FormError>): string {
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`
  return answerHead(status, lines + length, 'close') + (method === 'HEAD' ? '' : body)
}
