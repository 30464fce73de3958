import type { GatewayError } from '../errors.ts'
import { answerUnread, type FormError } from '../http/answer.ts'
import type { BodyRoom } from '../http/body.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { ProblemError, problems } from '../operations/problem.ts'
import { guardHeaders } from './guard.ts'

/** A request on the admin listener. */
export type AdminRequest = {
  exchange: HttpExchange
  /** The request id, as the answer and the log say it. */
  id: string
  /** The path, without the listener's prefix. */
  path: string
  /** The query with its question mark, or an empty text. */
  query: string
  /** The whole body, of at most `bytesMax` bytes. @throws as `readBody` of http */
  readBody(bytesMax: number, room?: BodyRoom): Promise<Buffer>
}

/** @returns undefined if the answer was sent, or will be, without the listener: the playground does so */
export type AdminHandler = (request: AdminRequest) => Promise<ApiAnswer | undefined>

/** An answer of the admin listener: a whole body, or pieces that are sent as fast as the client takes them. */
export type ApiAnswer = {
  status: number
  /** `connection: close` closes the connection after the answer. */
  headers: Readonly<Record<string, string>>
  body?: string | Uint8Array
  pieces?: AsyncIterable<string>
  /** Characters of the pieces are bytes with `latin1`. */
  encoding?: 'latin1'
  /** Is called once: when the client has taken the whole answer, or has gone. The pieces may not have been asked for then. */
  onClose?: () => void
}

/** A body in JSON, with a line end for people at a terminal. */
export function formatJson(body: unknown): string {
  return `${JSON.stringify(body)}\n`
}

/** A problem object (RFC 9457). */
export function tellProblem(
  { problem, status, message, mistakes, current, headers }: ProblemError,
  id: string,
): ApiAnswer {
  const body = formatJson({
    type: `urn:triwire:problem:${problem}`,
    title: problems[problem][1],
    status,
    detail: message,
    request_id: id,
    ...(mistakes.length > 0 && { errors: mistakes }),
    ...(current !== undefined && { current }),
  })
  return { status, headers: { 'content-type': 'application/problem+json', ...headers }, body }
}

/** A refusal of the HTTP server, which closes the connection, as a problem with the status of the refusal. */
export function problemBelow({ code, message, status }: GatewayError): ProblemError {
  const problem = code === 'unknown_url' ? 'not_found' : 'invalid_request'
  return new ProblemError(problem, message, { status, headers: { connection: 'close' } })
}

/** Words the answer to a request that no handler of this listener gets. */
export const formProblem: FormError = (error, _, id) => {
  const { headers, body } = guard(tellProblem(problemBelow(error), id), id)
  return { lines: linesOf(headers), body: String(body) }
}

/** An answer of the API: with the headers that all of them have. */
export function guard(answer: ApiAnswer, id: string): ApiAnswer {
  const type = answer.status === 204 ? undefined : { 'content-type': 'application/json' }
  return { ...answer, headers: { ...guardHeaders, 'x-request-id': id, ...type, vary: 'accept', ...answer.headers } }
}

/** Headers as lines, each with its end. Their values are ours, or parts of the request's head, which holds no line end. */
export function linesOf(headers: ApiAnswer['headers']): string {
  let lines = ''
  for (const [name, value] of Object.entries(headers)) if (name !== 'connection') lines += `${name}: ${value}\r\n`
  return lines
}

/**
 * Limits of an answer, in ms. `lingerMs`: so long the rest of an unread request is awaited. `stallMs`: the answer is cut if the
 * client takes nothing of it for so long. A client may wait longer for a report, or a model.
 */
export const answerLimits = { lingerMs: 5_000, stallMs: 120_000 }

/** Sends an answer. If its pieces end with an error, the connection is cut, so that the client sees no whole answer. */
export async function send(exchange: HttpExchange, answer: ApiAnswer, limits = answerLimits): Promise<void> {
  const { status, headers, body, pieces, onClose } = answer
  if (onClose) exchange.whenOver(onClose)
  if (headers['connection'] === 'close') exchange.keepsAlive = false
  if (pieces === undefined) {
    if (!exchange.isOver) answerUnread(exchange, status, linesOf(headers), limits, body)
    return
  }
  if (exchange.isOver) return
  // The rest of a body that is still coming is not read beside a stream.
  if (!exchange.body.isComplete) exchange.keepsAlive = false
  exchange.begin(status, linesOf(headers))
  if (exchange.method === 'HEAD') exchange.end('')
  else await sendPieces(exchange, pieces[Symbol.asyncIterator](), answer.encoding ?? 'utf8', limits.stallMs)
}

async function sendPieces(
  exchange: HttpExchange,
  pieces: AsyncIterator<string>,
  encoding: BufferEncoding,
  stallMs: number,
): Promise<void> {
  let wake = () => {}
  exchange.listener = {
    clientReady: () => wake(),
    clientGone() {
      // A piece that is on its way has no reader, and no error of it matters.
      pieces.return?.().catch(() => {})
      wake()
    },
  }
  exchange.watchStall(stallMs)
  try {
    for (let piece = await pieces.next(); !piece.done; piece = await pieces.next()) {
      if (exchange.isOver) return
      if (exchange.write(piece.value, encoding)) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } catch {
    exchange.destroy()
  }
  if (!exchange.isOver) exchange.end('')
}
