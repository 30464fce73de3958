import { createServer, type Server, type Socket } from 'node:net'
import type { Server as SecureServer } from 'node:tls'
import type { TlsPair } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import { newRequestId } from '../ids.ts'
import { type FormError, sendError } from './answer.ts'
import { Connection, type ListenerHost, type Refused } from './connection.ts'
import { refusal, tooLate } from './framing.ts'
import { answerHead } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import { pathOf, plain } from './paths.ts'

/**
 * Limits of a listener (reliability §3). Times are in ms, and sizes in bytes. `headersMs` and `keepAliveMs` are rounded
 * to whole seconds.
 */
type EdgeLimits = {
  headersMs: number
  keepAliveMs: number
  /** A reload of the configuration may change this limit. */
  readonly lingerMs: number
  connectionsMax: number
  headerBytesMax: number
  headersMax: number
}

/**
 * The most bytes that wait for a client before the gateway stops reading from the model. With Node's default of 64 KiB,
 * a client that stops reading would take four times the memory (docs/decisions/0052-stopped-readers.md).
 */
const waitingBytesMax = 16_384

/** A listener. @property running the number of requests without a complete answer */
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
  /** While this returns true, every answer closes its connection. */
  isDraining?: () => boolean
}

/**
 * An idle connection stays open this much longer than its answers promise, because a request may come late (faults
 * F-C48).
 */
const graceSeconds = 1

/**
 * Creates a listener with our own HTTP/1.1 (docs/decisions/0058-own-http.md). A request that the listener refuses is
 * answered with a body and a request id, and then the connection closes (ruling R11, reliability §2).
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
  // An error of accepting a connection, such as EMFILE, must not end the process (faults F-P11).
  server.on('error', () => {})
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

  /**
   * Creates the server for TLS. Requests arrive on the TLS socket, which replaces the plain socket after the handshake.
   */
  function createSecure(pair: TlsPair): SecureServer {
    /** Connections in their handshake, by client address and port. */
    const greeting = new Map<string, Guest>()
    const own = { ...secureOptions(pair), handshakeTimeout: limits.headersMs, ALPNProtocols: ['http/1.1'] }
    const secured = process.getBuiltinModule('node:tls').createServer({ ...socketOptions, ...own })
    secured.on('connection', (socket: Socket) => {
      const guest = { isIdle: true, isAnswered: false, isSpare: false, destroy: () => void socket.destroy() }
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
    if (!exchange.awaitsContinue || exchange.header('expect')!.toLowerCase() === '100-continue') {
      handle(exchange, newRequestId())
      return
    }
    const error = refusal('The header expect has an unknown value: send 100-continue, or leave it out.', 417)
    const { socket, method, target } = exchange
    const form = formRefusal(socket, { error, method, target })
    sendError(exchange, { ...form, status: error.status, closes: true, lingerMs: limits.lingerMs })
  }

  /** Answers a request that reaches no handler, because it is invalid or incomplete. */
  function refuse(connection: Connection, refused: Refused): void {
    const form = formRefusal(connection.socket, refused)
    connection.sayLast(lastAnswer(refused.error.status, refused.method, form))
  }

  function formRefusal({ remoteAddress = '' }: Socket, { error, method, target }: Refused): ReturnType<FormError> {
    const requestId = newRequestId()
    const path = target === '' ? '' : pathOf(target)
    const cause = error.status === 408 ? 'client_timeout' : 'bad_http'
    onRefusal({ requestId, error, method, path, ip: plain(remoteAddress), cause })
    return formError(error, path, requestId)
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

/** Allows only TLS 1.2 and later versions. Older ones are insecure, and no supported client needs them. */
function secureOptions({ cert, key }: TlsPair) {
  return { cert, key: key.reveal(), minVersion: 'TLSv1.2' as const }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}

/** Makes a whole answer as text, after which the connection closes. @param method empty if it is unknown */
function lastAnswer(status: number, method: string, { lines, body }: ReturnType<FormError>): string {
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`
  return answerHead(status, lines + length, 'close') + (method === 'HEAD' ? '' : body)
}

/** An entry in the list of connections: a connection for requests, or a connection in its TLS handshake. */
type Guest = Pick<Connection, 'isIdle' | 'isAnswered' | 'isSpare' | 'destroy'>

/**
 * Limits the connections of a listener (faults F-C49). If a new connection would exceed the limit, another connection
 * is closed. It is chosen in this order:
 * - a connection whose request was refused before it had arrived completely. Without this rule, a client over its rate
 *   limit could take all connections by sending large bodies;
 * - the oldest connection that never sent a request, as in a flood of connections;
 * - the connection with the oldest last answer, because clients use recent connections for their next request;
 * - a connection whose request asks no model. Without this rule, anybody could take all connections, by requests for
 *   pages or tokens whose bodies or answers stall.
 *
 * Connections with a request to a model stay.
 * An idle connection is read once more before it closes. Its request may have arrived while the event loop was busy.
 */
class Guests {
  readonly #max: number
  readonly #silent = new Set<Guest>()
  /** Connections that have sent a request, in the order of their last answers. */
  readonly #known = new Set<Guest>()
  /**
   * Idle connections that close after two turns of the event loop unless a request arrives on them. There are never
   * more of them than connections that are accepted in two turns.
   */
  readonly #leaving = new Set<Guest>()

  constructor(max: number) {
    this.#max = max
  }

  /** Admits a connection. @returns false if all connections are in use */
  enter(guest: Guest): boolean {
    if (this.#silent.size + this.#known.size >= this.#max && !this.#makeRoom()) return false
    this.#silent.add(guest)
    return true
  }

  /** Replaces the guest of a TLS handshake by the guest of the same connection after the handshake. */
  replace(before: Guest, guest: Guest): void {
    this.leave(before)
    this.#silent.add(guest)
  }

  noteRequest(guest: Guest): void {
    if (this.#silent.delete(guest) || this.#leaving.delete(guest)) this.#known.add(guest)
  }

  /** Notes an answer on a connection. Of all connections, this one is now the most recently used. */
  noteAnswer(guest: Guest): void {
    if (this.#known.delete(guest)) this.#known.add(guest)
  }

  leave(guest: Guest): void {
    this.#silent.delete(guest)
    this.#known.delete(guest)
    this.#leaving.delete(guest)
  }

  closeIdle(): void {
    for (const guest of this.#all()) if (guest.isIdle) guest.destroy()
  }

  closeAll(): void {
    for (const guest of this.#all()) guest.destroy()
  }

  #all(): Guest[] {
    return [...this.#silent, ...this.#known, ...this.#leaving]
  }

  /** Closes a connection to make room for another. @returns false if all connections are in use */
  #makeRoom(): boolean {
    const known = (is: (guest: Guest) => boolean) => this.#known.values().find(is)
    const isIdle = (guest: Guest) => guest.isIdle
    const answered = known((guest) => guest.isAnswered)
    const idle = answered ? undefined : (this.#silent.values().find(isIdle) ?? known(isIdle))
    const closed = answered ?? idle ?? known((guest) => guest.isSpare)
    if (!closed) return false
    this.leave(closed)
    if (closed === idle) {
      this.#leaving.add(closed)
      // A request on a new connection may still be unread. After two turns of the event loop, it has been read.
      setImmediate(() => setImmediate(() => this.#closeUnread(closed)))
    } else closed.destroy()
    return true
  }

  /** Closes a connection that was idle. If a request has arrived on it meanwhile, closes another connection instead. */
  #closeUnread(idle: Guest): void {
    if (this.#leaving.delete(idle)) idle.destroy()
    else if (this.#silent.size + this.#known.size > this.#max) this.#makeRoom()
  }
}
