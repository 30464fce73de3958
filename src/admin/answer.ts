import type { GatewayError } from '../errors.ts'
import { ClientGone } from '../gateway/call.ts'
import type { CallRecord } from '../gateway/record.ts'
import { answerUnread, type FormError } from '../http/answer.ts'
import { type BodyRoom, readBody } from '../http/body.ts'
import type { HttpExchange } from '../http/http-exchange.ts'
import { ProblemError, problems } from '../operations/problem.ts'
import { guardHeaders } from './guard.ts'

/** A request on the admin listener, or a request on the clients' listener that is not for a model. */
export type AdminRequest = {
  exchange: HttpExchange
  /** The request id, which is also in the answer and in the log. */
  id: string
  /** The path, without the prefix of the listener (see `prefixOf`). */
  path: string
  /** The query with its question mark, or an empty text. */
  query: string
  /** The log record; only for requests on the clients' listener, so that their log lines name the owner of the key. */
  record?: CallRecord
  /**
   * Reads the whole body, at most `bytesMax` bytes.
   * @param large what the body needs if it may contain a client's request
   * @throws the errors of `readBody` in `src/http`, and of `large.begin`
   */
  readBody(bytesMax: number, large?: LargeBody): Promise<Buffer>
  /**
   * Counts the request for an account, where all accounts share a number of places.
   * @throws ProblemError if the account has as many requests as it may have
   */
  countFor?(accountId: string): void
}

/** @property room counts the memory of a body @property begin waits for the turn of the body, as parsing takes long */
export type LargeBody = { room: BodyRoom; begin(bytes: number): Promise<void> }

/** Memory without a limit, for small bodies that belong to no account. */
const ampleRoom = { take: () => true }

/** Makes the request of an exchange. @param limits the time limits of its body, in ms */
export function requestOf(
  exchange: HttpExchange,
  id: string,
  path: string,
  limits: { bodyMs: number; bodyGapMs: number },
): AdminRequest {
  const { target } = exchange
  const queryAt = target.indexOf('?')
  return {
    ...{ exchange, id, path },
    query: queryAt < 0 ? '' : target.slice(queryAt),
    async readBody(bodyBytesMax, large) {
      const bytes = await readBody(exchange, { ...limits, bodyBytesMax }, large?.room ?? ampleRoom)
      await large?.begin(bytes.length)
      if (exchange.body.isGone) throw new ClientGone()
      return bytes
    },
  }
}

/** Handles a request. @returns undefined if another part sends the answer, as for the playground */
export type AdminHandler = (request: AdminRequest) => Promise<ApiAnswer | undefined>

/** An answer of the admin listener: a whole body, or pieces that are produced while the client reads. */
export type ApiAnswer = {
  status: number
  /** With `connection: close`, the connection is closed after the answer. */
  headers: Readonly<Record<string, string>>
  body?: string | Uint8Array
  pieces?: AsyncIterable<string>
  /** With `latin1`, each character of the pieces is one byte. */
  encoding?: 'latin1'
  /** Called once, when the client has read the answer or has left, even if no piece was read. */
  onClose?: () => void
}

/** Formats a body as JSON, with a line break for people at a terminal. */
export function formatJson(body: unknown): string {
  return `${JSON.stringify(body)}\n`
}

/** Makes an answer with a problem object (RFC 9457). */
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

/** Converts an error of the HTTP server to a problem with the same status. The connection closes. */
export function problemBelow({ code, message, status }: GatewayError): ProblemError {
  const problem = code === 'unknown_url' ? 'not_found' : 'invalid_request'
  return new ProblemError(problem, message, { status, headers: { connection: 'close' } })
}

/** Makes the answer to a request that the HTTP server refuses before any handler gets it. */
export const formProblem: FormError = (error, _, id) => {
  const { headers, body } = guard(tellProblem(problemBelow(error), id), id)
  return { lines: linesOf(headers), body: String(body) }
}

/** Adds the headers that all answers of the API have. */
export function guard(answer: ApiAnswer, id: string): ApiAnswer {
  const type = answer.status === 204 ? undefined : { 'content-type': 'application/json' }
  return { ...answer, headers: { ...guardHeaders, 'x-request-id': id, ...type, vary: 'accept', ...answer.headers } }
}

/** Formats headers as lines. Values have no line breaks, as they are our own or checked parts of a request's head. */
export function linesOf(headers: ApiAnswer['headers']): string {
  let lines = ''
  for (const [name, value] of Object.entries(headers)) if (name !== 'connection') lines += `${name}: ${value}\r\n`
  return lines
}

/**
 * Limits of an answer, in ms. `lingerMs` is the time to read the rest of a request. If the client reads nothing for
 * `stallMs`, the answer is cut. Time in which the client itself waits, for a report or a model, does not count.
 */
export const answerLimits = { lingerMs: 5_000, stallMs: 120_000 }

/** Sends an answer. If its pieces end with an error, the connection is cut, so that the answer does not look whole. */
export async function send(exchange: HttpExchange, answer: ApiAnswer, limits = answerLimits): Promise<void> {
  const { status, headers, body, pieces, onClose } = answer
  if (onClose) exchange.whenOver(onClose)
  if (headers['connection'] === 'close') exchange.keepsAlive = false
  if (pieces === undefined) {
    if (!exchange.isOver) answerUnread(exchange, status, linesOf(headers), limits, body)
    return
  }
  if (exchange.isOver) return
  // While a stream is sent, the rest of the request's body is not read.
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
      // Nobody needs the next piece any more, so its errors are ignored.
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
