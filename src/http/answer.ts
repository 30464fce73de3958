import type { IncomingMessage, ServerResponse } from 'node:http'
import type { GatewayError } from '../errors.ts'
import { plainEnvelope } from '../wires/answers/envelope.ts'
import type { Wire } from '../wires/wire.ts'
import { errorHeaders } from './headers.ts'
import { Leftovers } from './leftovers.ts'
import { wireAt } from './paths.ts'

/** The body of an error, in the envelope of its wire (spec 7.1), in the plain one where it has none. */
export function errorBody(error: GatewayError, requestId: string, wire: Wire | undefined): string {
  const { status, code, message, param, details } = error
  const facts = { status, code, message, param, details }
  return wire ? wire.envelope(facts, requestId) : plainEnvelope(facts)
}

/** Whose error one on this path is: nobody's for an unknown URL, which a wrong method makes of any path (ruling R3). */
export function wireOfError(error: GatewayError, path: string): Wire | undefined {
  return error.code === 'unknown_url' ? undefined : wireAt(path)
}

type ErrorAnswer = {
  error: GatewayError
  path: string
  requestId: string
  /** The connection is not used again. */
  closes: boolean
  lingerMs: number
  /** Puts in what else the headers tell. */
  more?: (headers: Record<string, string>) => void
}

/** Answers with an error, whatever of the request is still on its way. */
export function sendError(
  response: ServerResponse,
  { error, path, requestId, closes, lingerMs, more }: ErrorAnswer,
): void {
  const wire = wireOfError(error, path)
  const body = errorBody(error, requestId, wire)
  const headers = errorHeaders(requestId, wire, error)
  more?.(headers)
  headers['content-length'] = String(Buffer.byteLength(body))
  if (closes || !isReadable(response.req)) headers['connection'] = 'close'
  response.writeHead(error.status, headers)
  endUnread(response, lingerMs, body)
}

/** Of a request that is not wanted: so much is waited for to keep its connection. */
const keptBytesMax = 1_048_576
const lingerBytesMax = 33_554_432
/** Of the process: what is shared is its event loop. */
const leftovers = new Leftovers()
/** Answers that are said, and whose end waits for the rest of their requests. */
const lingering = new WeakSet<ServerResponse>()

/** Its client has been answered: its connection is only kept so that what that client still sends is no fault of the network. */
export function isLingering(response: ServerResponse): boolean {
  return lingering.has(response)
}

/**
 * Ends an answer whose request nobody reads: what is still to come is thrown away, up to 32 MiB and for a while, so that
 * a client that writes all of its request first gets to read the answer, where a reset would read as a fault of the network;
 * a connection that is not at its next request by then is closed (F-C29).
 */
export function endUnread(response: ServerResponse, lingerMs: number, body?: string): void {
  const { req } = response
  if (req.complete) {
    response.end(body)
    req.resume()
    return
  }
  // The answer goes out now. Only its end, and with it the connection's, waits for the rest of the request.
  if (body) response.write(body)
  else response.flushHeaders()
  let bytes = 0
  lingering.add(response)
  const timer = setTimeout(giveUp, lingerMs)
  req.on('data', count)
  req.on('end', done)
  req.on('error', giveUp)
  response.on('close', stop)
  leftovers.start(req)

  function count(chunk: Buffer): void {
    bytes += chunk.length
    if (bytes > lingerBytesMax) giveUp()
    else leftovers.note(req, chunk.length)
  }
  function done(): void {
    stop()
    response.end()
  }
  function stop(): void {
    clearTimeout(timer)
    lingering.delete(response)
    req.off('data', count)
    leftovers.stop(req)
  }
  function giveUp(): void {
    done()
    // Our side is closed; what they send after that is answered with a reset.
    req.socket.destroySoon()
  }
}

/** Whether the rest of the request is worth waiting for to keep the connection. */
function isReadable({ complete, headers }: IncomingMessage): boolean {
  if (complete) return true
  // A client that waits for 100 may leave its body out once it has our answer: what comes next has two meanings.
  if (headers.expect !== undefined || headers['transfer-encoding'] !== undefined) return false
  return Number(headers['content-length'] ?? 0) <= keptBytesMax
}
