import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type ProblemError, problems } from '../operations/problem.ts'
import { guardHeaders } from './guard.ts'

/** An answer of the admin API. */
export type Answer = {
  status: number
  headers?: Record<string, string>
  /** JSON, or a text that comes piece by piece. */
  body?: unknown
  pieces?: AsyncIterable<string>
  /** It is over, or its reader has left; once. */
  onClose?: () => void
}

/** A problem object (RFC 9457). */
export function tellProblem(
  { problem, message, mistakes, current, headers }: ProblemError,
  id: string,
  status: number = problems[problem][0],
): Answer {
  const [, title] = problems[problem]
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
    body: {
      type: `urn:triwire:problem:${problem}`,
      title,
      status,
      detail: message,
      request_id: id,
      ...(mistakes.length > 0 && { errors: mistakes }),
      ...(current !== undefined && { current }),
    },
  }
}

export async function send(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
  id: string,
): Promise<void> {
  const { status, headers, body, pieces, onClose } = answer
  if (onClose && response.destroyed) onClose()
  else if (onClose) response.once('close', onClose)
  const isBodiless = request.method === 'HEAD'
  const all = { ...guardHeaders, 'x-request-id': id, 'content-type': 'application/json', vary: 'accept', ...headers }
  if (pieces) {
    response.writeHead(status, all)
    if (isBodiless) {
      await pieces[Symbol.asyncIterator]().return?.(undefined)
      response.end()
    } else await pipeline(Readable.from(pieces), response)
    return
  }
  if (status === 204) {
    const { 'content-type': _, ...bare } = all
    response.writeHead(status, bare)
    response.end()
    return
  }
  const text = `${JSON.stringify(body)}\n`
  response.writeHead(status, { ...all, 'content-length': Buffer.byteLength(text) })
  response.end(isBodiless ? undefined : text)
}
