import type { ServerResponse } from 'node:http'
import type { GatewayError } from '../errors.ts'
import { chatEnvelope, messagesEnvelope } from '../wires/envelope.ts'
import { errorHeaders } from './headers.ts'
import { usesMessagesEnvelope } from './paths.ts'

/** The body of an error, in the envelope of its path (spec 7.1). An unknown URL has the chat envelope wherever it is (spec 4.6). */
export function errorBody(error: GatewayError, requestId: string, onMessages: boolean): string {
  const facts = { status: error.status, code: error.code, message: error.message, param: error.param }
  return onMessages ? messagesEnvelope(facts, requestId) : chatEnvelope(facts)
}

/** Which envelope an error on this path has; a wrong method there is an unknown URL (ruling R3). */
export function isMessagesError(error: GatewayError, path: string): boolean {
  return error.code !== 'unknown_url' && usesMessagesEnvelope(path)
}

/**
 * Answers with an error. What is left of the request is read and thrown away, so that the client gets to read the
 * answer: up to 1 MiB, for a second (faults F-C29); a connection that cannot be brought to its next request is closed.
 */
export function sendError(
  response: ServerResponse,
  error: GatewayError,
  path: string,
  requestId: string,
  closes: boolean,
): void {
  const onMessages = isMessagesError(error, path)
  const body = errorBody(error, requestId, onMessages)
  const headers = errorHeaders(requestId, onMessages, error)
  headers['content-length'] = String(Buffer.byteLength(body))
  const isReadable = response.req.complete || isSmall(response)
  if (!closes && isReadable) {
    response.writeHead(error.status, headers)
    response.end(body)
    response.req.resume()
    return
  }
  headers['connection'] = 'close'
  response.writeHead(error.status, headers)
  // The body is out with this write; the answer is ended, and with it the connection, only after the linger.
  response.write(body)
  linger(response)
}

const lingerBytesMax = 1_048_576
const lingerMs = 1_000

function isSmall(response: ServerResponse): boolean {
  const declared = response.req.headers['content-length']
  return declared === undefined
    ? response.req.headers['transfer-encoding'] === undefined
    : Number(declared) <= lingerBytesMax
}

function linger(response: ServerResponse): void {
  const { req } = response
  let bytes = 0
  const done = () => {
    clearTimeout(timer)
    req.off('data', count)
    req.off('end', done)
    if (!response.writableEnded) response.end()
  }
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > lingerBytesMax) done()
  }
  const timer = setTimeout(done, lingerMs)
  req.on('data', count)
  req.on('end', done)
  req.on('error', done)
  response.on('close', () => clearTimeout(timer))
}
