import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import { newRequestId } from '../ids/request-id.ts'
import { errorBody, sendError, wireOfError } from './answer.ts'
import { findFramingFault, refusal } from './framing.ts'
import { errorHeaders } from './headers.ts'
import { pathOf } from './paths.ts'

/** Limits of the edge (reliability §3). Times in ms, sizes in bytes. */
export type EdgeLimits = {
  headersMs: number
  keepAliveMs: number
  connectionsMax: number
  headerBytesMax: number
  headersMax: number
}

/** The listener, and how many requests of it have no whole answer yet. */
export type Edge = { server: Server; readonly running: number }

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

/**
 * The listener. Every answer that Node would give bare comes from us instead, with a body, a request id and the
 * envelope, and then the connection closes (ruling R11, reliability §2).
 */
export function createEdge(
  limits: EdgeLimits,
  handle: RequestHandler,
  onRefusal: (refusal: EdgeRefusal) => void,
  isDraining: () => boolean,
): Edge {
  let running = 0
  /** The newest request of a connection: the one that is still being read, where one is. */
  const newest = new WeakMap<Socket, ServerResponse>()
  const open = new Set<Socket>()
  /** Connections that take no further request. */
  const closing = new WeakSet<Socket>()
  const server = createServer({
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersMs,
    // The body has deadlines of its own where it is read.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    noDelay: true,
    // An upgrade is not served: the request is an ordinary one that happens to carry a header (faults F-C26).
    shouldUpgradeCallback: () => false,
  })
  // More than are taken, so that too many are seen and refused by us.
  server.maxHeadersCount = 2 * limits.headersMax

  const receive = (request: IncomingMessage, response: ServerResponse) => {
    const requestId = admit(request, response)
    const fault = findFramingFault(request, limits.headersMax)
    if (fault) refuse(request, response, requestId, fault)
    else handle(request, response, requestId)
  }
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    if (open.size > limits.connectionsMax) closeOldestIdle()
  })
  // Node takes an answer for over when its last byte was handed to the socket; here its client has taken it.
  server.closeIdleConnections = () => {
    for (const socket of open) if (isIdle(socket)) socket.destroy()
  }
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
    refuseRaw(socket, error, request.method ?? '', pathOf(request.url), 'bad_http')
  })
  server.on('clientError', (error: ParserError, socket: Socket) => {
    // Bytes that come after a fault are faults again.
    if (closing.has(socket)) return
    const response = newest.get(socket)
    const isOpen = response !== undefined && !response.writableFinished && !response.destroyed
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!isOpen) {
      const [method, path] = requestLine(error.rawPacket)
      refuseRaw(
        socket,
        parserRefusal(error.code),
        method,
        path,
        error.code === timedOut ? 'client_timeout' : 'bad_http',
      )
    } else if (!response.req.complete) {
      // The fault is in a body that somebody reads, and who answers; a body that just ends is a client that left.
      const isFault = error.code !== 'HPE_INVALID_EOF_STATE' && response.req.listenerCount('error') > 0
      if (isFault) response.req.emit('error', parserRefusal(error.code))
      else socket.destroy()
    } else {
      // The request before is answered; what came behind it is not.
      closing.add(socket)
      if (!response.headersSent) response.shouldKeepAlive = false
      response.once('finish', () => socket.destroySoon())
    }
  })
  return {
    server,
    get running() {
      return running
    },
  }

  /** Nothing of an answer is under way; a request may be on its way in. */
  function isIdle(socket: Socket): boolean {
    const response = newest.get(socket)
    return socket.writableLength === 0 && (response === undefined || response.destroyed)
  }

  /** Makes room for a new connection; where all are in use the new one is the only idle one (faults F-C49). */
  function closeOldestIdle(): void {
    for (const socket of open) {
      if (!isIdle(socket)) continue
      open.delete(socket)
      socket.destroy()
      return
    }
  }

  function admit(request: IncomingMessage, response: ServerResponse): string {
    running++
    response.once('close', () => running--)
    newest.set(request.socket, response)
    if (isDraining()) response.shouldKeepAlive = false
    return newRequestId()
  }

  function refuse(request: IncomingMessage, response: ServerResponse, requestId: string, error: GatewayError): void {
    const path = pathOf(request.url)
    const ip = request.socket.remoteAddress ?? ''
    onRefusal({ requestId, error, method: request.method ?? '', path, ip, cause: 'bad_http' })
    sendError(response, error, path, requestId, true)
  }

  /** Answers on a socket whose request the parser could not or would not finish. */
  function refuseRaw(socket: Socket, error: GatewayError, method: string, path: string, cause: string): void {
    closing.add(socket)
    // Behind an answer that is under way there is no place for another.
    if ((socket as Socket & { _httpMessage?: unknown })._httpMessage) {
      socket.destroy()
      return
    }
    const requestId = newRequestId()
    onRefusal({ requestId, error, method, path, ip: socket.remoteAddress ?? '', cause })
    const wire = wireOfError(error, path)
    const body = errorBody(error, requestId, wire)
    let head = `HTTP/1.1 ${error.status} ${reasons.get(error.status) ?? 'Error'}\r\nconnection: close\r\n`
    for (const [name, value] of Object.entries(errorHeaders(requestId, wire, error))) head += `${name}: ${value}\r\n`
    socket.end(`${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    // Our side is finished; theirs gets a moment to read before what it still sends is answered with a reset.
    setTimeout(() => socket.destroy(), 1_000).unref()
  }
}

const timedOut = 'ERR_HTTP_REQUEST_TIMEOUT'

type ParserError = NodeJS.ErrnoException & { rawPacket?: Buffer }

/** Method and path of what the parser stopped in, as far as its last bytes hold a request line; they choose the envelope. */
function requestLine(rawPacket: Buffer | undefined): [method: string, path: string] {
  const line = rawPacket?.toString('latin1', 0, 8_192)
  const match = line && /^([A-Z]+) (\S+) HTTP\/1\.[01]\r?\n/.exec(line)
  return match ? [match[1]!, pathOf(match[2])] : ['', '']
}

/** What is said when the parser stops. Its own words are never sent: they quote the input. */
function parserRefusal(code: string | undefined): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return refusal('The request headers are too large: at most 16 KiB are taken.', 431)
  if (code === timedOut) return refusal('The request did not arrive in time: send its headers at once.', 408)
  return refusal('The request is not well-formed HTTP/1.1: check its framing and headers.')
}

const reasons = new Map([
  [400, 'Bad Request'],
  [404, 'Not Found'],
  [408, 'Request Timeout'],
  [431, 'Request Header Fields Too Large'],
])
