import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TlsPair } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { newRequestId } from '../ids/request-id.ts'
import { errorBody, sendError, wireOfError } from './answer.ts'
import { watchConnections } from './connections.ts'
import { findFramingFault, refusal } from './framing.ts'
import { errorHeaders } from './headers.ts'
import { causeOf, type ParserError, parserRefusal, requestLine } from './parser-refusal.ts'
import { pathOf } from './paths.ts'

/** Limits of the edge (reliability §3). Times in ms, sizes in bytes. */
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
}

export type RequestHandler = (request: IncomingMessage, response: ServerResponse, requestId: string) => void

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

/**
 * The listener. Every answer that Node would give bare comes from us instead, with a body, a request id and the
 * envelope, and then the connection closes (ruling R11, reliability §2).
 */
export function createEdge({ limits, tls, handle, onRefusal, isDraining }: EdgeParts): Edge {
  const server = createHttpServer(limits, tls)
  const connections = watchConnections(server, limits.connectionsMax, tls !== undefined)
  server.on('request', receive)
  // Node would say 100 before any check; the body's reader says it once key and size are known to be good.
  server.on('checkContinue', receive)
  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const fault = refusal('The header expect is not understood: send 100-continue, or leave it out.', 417)
    refuse(request, response, admit(request, response), fault)
  })
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    const error = new GatewayError('unknown_url', 'CONNECT is not served here.')
    // The server has let go of this socket, and of its errors with it.
    socket.on('error', () => socket.destroy())
    refuseRaw(socket, { error, method: request.method ?? '', path: pathOf(request.url), cause: 'bad_http' })
  })
  server.on('clientError', (error: ParserError, socket: Socket) => {
    // A handshake that fails is nobody's request, and there is nothing that could be said in clear.
    if (!connections.isOpen(socket)) socket.destroy()
    else if (connections.takesMore(socket)) takeParserError(error, socket)
  })
  return {
    server,
    get running() {
      return connections.running
    },
    renew(pair) {
      if (tls) (server as SecureServer).setSecureContext(secureOptions(pair))
    },
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    const requestId = admit(request, response)
    const fault = findFramingFault(request, limits.headersMax)
    if (fault) refuse(request, response, requestId, fault)
    else handle(request, response, requestId)
  }

  function admit(request: IncomingMessage, response: ServerResponse): string {
    connections.admit(request, response)
    if (isDraining()) response.shouldKeepAlive = false
    return newRequestId()
  }

  function refuse(request: IncomingMessage, response: ServerResponse, requestId: string, error: GatewayError): void {
    const path = pathOf(request.url)
    const ip = request.socket.remoteAddress ?? ''
    onRefusal({ requestId, error, method: request.method ?? '', path, ip, cause: 'bad_http' })
    sendError(response, { error, path, requestId, closes: true, lingerMs: limits.lingerMs })
  }

  function takeParserError(error: ParserError, socket: Socket): void {
    const response = connections.newestOf(socket)
    const isOpen = response !== undefined && !response.writableFinished && !response.destroyed
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!isOpen) {
      const [method, path] = requestLine(error.rawPacket)
      refuseRaw(socket, { error: parserRefusal(error.code), method, path, cause: causeOf(error.code) })
    } else if (!response.req.complete) {
      // The fault is in a body that somebody reads, and who answers; a body that just ends is a client that left.
      const isFault = error.code !== 'HPE_INVALID_EOF_STATE' && response.req.listenerCount('error') > 0
      if (isFault) response.req.emit('error', parserRefusal(error.code))
      else socket.destroy()
    } else {
      // The request before is answered; what came behind it is not.
      connections.refuseMore(socket)
      if (!response.headersSent) response.shouldKeepAlive = false
      response.once('finish', () => socket.destroySoon())
    }
  }

  /** Answers on a socket whose request the parser could not or would not finish. */
  function refuseRaw(socket: Socket, refused: Omit<EdgeRefusal, 'requestId' | 'ip'>): void {
    connections.refuseMore(socket)
    // Behind an answer that is under way there is no place for another.
    if ((socket as Socket & { _httpMessage?: unknown })._httpMessage) {
      socket.destroy()
      return
    }
    const requestId = newRequestId()
    onRefusal({ ...refused, requestId, ip: socket.remoteAddress ?? '' })
    socket.end(rawAnswer(refused.error, refused.path, requestId))
    // Our side is finished; theirs gets a moment to read before what it still sends is answered with a reset.
    setTimeout(() => socket.destroy(), 1_000).unref()
  }
}

/** Older versions are broken; nothing that speaks a wire is that old. */
export function secureOptions({ cert, key }: TlsPair) {
  return { cert, key: key.reveal(), minVersion: 'TLSv1.2' as const }
}

function createHttpServer(limits: EdgeLimits, tls: TlsPair | undefined): Server {
  const options = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersMs,
    // The body has deadlines of its own where it is read.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    noDelay: true,
    highWaterMark: waitingBytesMax,
    // An upgrade is not served: the request is an ordinary one that happens to carry a header (faults F-C26).
    shouldUpgradeCallback: () => false,
  }
  const server = tls
    ? createSecureServer({ ...options, ...secureOptions(tls), handshakeTimeout: limits.headersMs })
    : createServer(options)
  // More than are taken, so that too many are seen and refused by us.
  server.maxHeadersCount = 2 * limits.headersMax
  return server
}

/** A whole HTTP answer as text, for a socket that no response object stands for. */
function rawAnswer(error: GatewayError, path: string, requestId: string): string {
  const wire = wireOfError(error, path)
  const body = errorBody(error, requestId, wire)
  let head = `HTTP/1.1 ${error.status} ${reasons.get(error.status) ?? 'Error'}\r\nconnection: close\r\n`
  for (const [name, value] of Object.entries(errorHeaders(requestId, wire, error))) head += `${name}: ${value}\r\n`
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

const reasons = new Map([
  [400, 'Bad Request'],
  [404, 'Not Found'],
  [408, 'Request Timeout'],
  [431, 'Request Header Fields Too Large'],
])
