import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { TlsPair } from '../config/config.ts'
import type { GatewayError } from '../errors.ts'
import { findFramingFault } from '../http/framing.ts'
import { pathOf } from '../http/paths.ts'
import { secureOptions } from '../http/server.ts'
import { newRequestId } from '../ids/request-id.ts'
import { createServer } from '../node-http.ts'
import type { Running } from '../operations/operation.ts'
import { ProblemError } from '../operations/problem.ts'
import { send, tellProblem } from './answer.ts'
import { consolePrefix } from './console.ts'

/** What operators ask of a running server. */
export type AdminOperations = Running & {
  /** Logs a bug of ours. */
  reportBug(bug: Error): void
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void

type AdminParts = {
  isReady: () => Promise<Readiness>
  api: Handler
  metrics: Handler
  /** The web console. */
  pages: Handler
  /** Of a process of several: for the one that has started it. */
  door?: { path: string; answer: Handler }
  /** Undefined: it speaks plain HTTP. */
  tls?: TlsPair | undefined
  /** What stands before all paths where people reach it, such as `/triwire`. */
  prefix?: string
  /** Other limits of time, for a test. */
  times?: Partial<typeof limits>
}

/** Connections from now on are shown this certificate, where it speaks TLS at all. */
export function renewAdmin(server: Server, pair: TlsPair): void {
  if ('setSecureContext' in server) (server as SecureServer).setSecureContext(secureOptions(pair))
}

const apiPrefix = '/api/v1/'

/** Or why not, or what should be known though it is, in fixed words: anyone may ask. */
export type Readiness = boolean | string | { note: string }

/** An operator's request is small, and comes at once. */
const limits = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 1_000,
  maxHeaderSize: 16_384,
  handshakeTimeout: 10_000,
  /** So long nothing of an answer that waits may be taken. */
  stallMs: 120_000,
}

const headersMax = 100

/**
 * The second listener: what an orchestrator and an operator ask, never a client (rulings X2 and X9). Of health anyone may
 * ask; the API wants a token, and what it tells is free of content (ruling U5). The console is pages that ask the API.
 */
export function createAdmin({ isReady, api, metrics, pages, door, tls, prefix = '', times }: AdminParts): Server {
  const options = { ...limits, ...times }
  const server = tls
    ? process.getBuiltinModule('node:https').createServer({ ...options, ...secureOptions(tls) }, receive)
    : createServer(options, receive)
  // More than are taken, so that too many are seen.
  server.maxHeadersCount = 2 * headersMax
  server.maxConnections = 500
  server.timeout = options.stallMs
  server.on('timeout', endStalled)
  server.on('drop', () => server.closeIdleConnections())
  /** Answers that are not over, by their connections. */
  const open = new WeakMap<Socket, Set<ServerResponse>>()
  return server

  /** Of this one nothing has come and nothing was taken for long. A model, or a report, may be silent for longer. */
  function endStalled(socket: Socket): void {
    const isAwaited = (open.get(socket)?.size ?? 0) > 0
    if (!isAwaited || socket.writableLength > 0) socket.destroy()
  }

  /** Before Node 26 an answer that waits behind another one hears nothing of the end of their connection. */
  function endWithConnection({ socket }: IncomingMessage, response: ServerResponse): void {
    const answers = open.get(socket) ?? openAnswers(socket)
    answers.add(response)
    response.once('close', () => answers.delete(response))
  }

  function openAnswers(socket: Socket): Set<ServerResponse> {
    const answers = new Set<ServerResponse>()
    open.set(socket, answers)
    socket.once('close', () => {
      for (const answer of answers) if (!answer.socket) answer.destroy().emit('close')
    })
    return answers
  }

  function receive(request: IncomingMessage, response: ServerResponse): void {
    endWithConnection(request, response)
    const fault = findFramingFault(request, headersMax)
    if (fault) {
      refuse(request, response, fault)
      return
    }
    // A proxy takes the prefix off, or leaves it.
    if (prefix !== '' && request.url?.startsWith(`${prefix}/`)) request.url = request.url.slice(prefix.length)
    const path = pathOf(request.url)
    if (path === '/metrics') metrics(request, response)
    else if (path.startsWith(apiPrefix)) api(request, response)
    else if (path === '/console' || path.startsWith(consolePrefix)) pages(request, response)
    else if (door && path.startsWith(door.path)) door.answer(request, response)
    else void probe(request, response, path)
  }

  async function probe(request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    request.resume()
    // Who has left hears nothing.
    response.on('error', () => {})
    const { status, body } = await answerProbe(request, path, isReady)
    const text = `${JSON.stringify(body)}\n`
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    response.end(request.method === 'HEAD' ? undefined : text)
  }
}

const close = { headers: { connection: 'close' } }

/** What two readers could take for two different requests is none. */
function refuse(request: IncomingMessage, response: ServerResponse, { status, message }: GatewayError): void {
  request.resume()
  response.on('error', () => {})
  const id = newRequestId()
  void send(request, response, tellProblem(new ProblemError('invalid_request', message, close), id, status), id)
}

async function answerProbe(
  { method }: IncomingMessage,
  path: string,
  isReady: () => Promise<Readiness>,
): Promise<{ status: number; body: object }> {
  const isRead = method === 'GET' || method === 'HEAD'
  if (isRead && path === '/healthz') return { status: 200, body: { status: 'ok' } }
  if (isRead && path === '/readyz') {
    const ready = await isReady()
    if (ready === true) return { status: 200, body: { status: 'ready' } }
    if (typeof ready === 'object') return { status: 200, body: { status: 'ready', ...ready } }
    return { status: 503, body: { status: 'not_ready', ...(ready !== false && { why: ready }) } }
  }
  return { status: 404, body: { status: 'not_found', paths: ['/healthz', '/readyz', '/metrics', '/console/'] } }
}
