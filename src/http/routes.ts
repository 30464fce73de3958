import type { ClientWire } from '../catalog/wire-names.ts'
import type { Config } from '../config/config.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { spendOf, standingOf } from '../gateway/admit.ts'
import { type Call, type CallListener, ClientGone } from '../gateway/call.ts'
import { type BodyShare, tooLarge } from '../gateway/fairness/places.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { countTokens, infer } from '../gateway/infer.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'
import { wires } from '../wires/wires.ts'
import { answerUnread, formClientError, sendError } from './answer.ts'
import { type BodyLimits, isDeclaredTooLarge, readBody, takeBody } from './body.ts'
import { answeredByLine, commonLines, preflightLines, spendLines, standingLines } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import { baseUrlCure, createPeerReader, findRoute, pathOf, type ServedPath, servedText, wireAt } from './paths.ts'

type Router = (exchange: HttpExchange, requestId: string) => void

/**
 * Paths of the public listener that do not belong to models, such as pages (ruling Y19). They exist only if they are
 * configured. Their records go to `listeners` only, so usage reports do not count them.
 */
export type Side = {
  readonly listeners: readonly RecordListener[]
  /** Finds the answer to a path. @returns undefined if this configuration does not serve the path */
  find(path: string, config: Config, exchange: HttpExchange): SideAnswer | undefined
}

/**
 * Answers a request, and writes the status into its record. The promise rejects only because of a bug of ours.
 * @returns `handed_on` if the request was handed on as a request for a model, which has its own record
 */
export type SideAnswer = (exchange: HttpExchange, record: CallRecord) => Promise<'answered' | 'handed_on'>

/** Makes the function that runs the steps of a request (spec 7). If a step fails, it answers with the error. */
export function createRouter(gateway: Gateway, listeners: readonly RecordListener[], side?: Side): Router {
  let config: Config | undefined
  let limits: CallLimits
  let readPeer: ReturnType<typeof createPeerReader>

  /** Headers with rate window and balance. Answers of models have them once the account is known (ruling R13). */
  const formStanding = ({ accountId, bounds, personBounds }: CallRecord) => {
    const standing = accountId === undefined ? undefined : standingOf(gateway, accountId, bounds, personBounds)
    return standing ? standingLines(standing, config!.headers.balance) : ''
  }
  const formCommon: FormHeaders = ({ id, wire }) => commonLines(id, wire && wires[wire].client)
  const formSpend = (record: CallRecord) => {
    const spend = spendOf(gateway, record)
    return spend ? spendLines(spend) : ''
  }
  const formHeaders: FormHeaders = (record) =>
    formCommon(record) + answeredByLine(record) + formStanding(record) + formSpend(record)

  return (exchange, requestId) => {
    if (config !== gateway.snapshots.current.config) {
      config = gateway.snapshots.current.config
      limits = { ...config.limits, ...config.timeouts }
      readPeer = createPeerReader(config.trustedProxies)
    }
    const { method } = exchange
    const path = pathOf(exchange.target)
    const beganMs = gateway.clockMs()
    const sinceMs = () => gateway.clockMs() - beganMs
    const record: CallRecord = {
      id: requestId,
      startedMs: gateway.nowMs(),
      beganMs,
      method,
      path,
      ip: readPeer(exchange.socket.remoteAddress ?? '', exchange.header('x-forwarded-for')),
    }
    const trace = gateway.tracing?.begin(exchange.header('traceparent'))
    if (trace !== undefined) record.trace = trace
    const { lingerMs } = limits
    let isInference = false
    const route = findRoute(method, path)
    const answerAside = route ? undefined : side?.find(path, config, exchange)
    const told = answerAside ? side!.listeners : listeners
    const { ownPage } = config
    const ending = { exchange, record, listeners: told, sinceMs, answer: sendRefusal, ownPage }
    const { finish, refuse, follow } = endRecord(ending)
    // This limit is only for paths of the model API. Other paths have their own limit and their own form of errors.
    if (!answerAside && isDeclaredTooLarge(exchange, limits.bodyBytesMax)) {
      refuse(tooLarge(limits.bodyBytesMax))
      return
    }
    if (answerAside) {
      answerAside(exchange, record).then((how) => how === 'answered' && finish(), refuse)
      return
    }
    if (method === 'OPTIONS') {
      const asked = exchange.header('access-control-request-headers')
      const lines = preflightLines(requestId, asked, exchange.header('access-control-request-method'))
      record.status = 204
      answerUnread(exchange, 204, lines, { lingerMs })
      finish()
      return
    }
    if (!route) {
      refuse(unknownUrl(exchange, path))
      return
    }
    record.walk = route.walk
    if (route.walk === 'list_models') {
      listModels()
      return
    }
    follow(walk(route))

    function walk(route: Exclude<ServedPath, { walk: 'list_models' }>): Promise<void> {
      record.wire = route.wire
      isInference = route.walk === 'infer'
      const headers = isInference ? formHeaders : formCommon
      const call = new HttpCall({ exchange, wire: route.wire, record, limits, formHeaders: headers, sinceMs })
      return isInference ? infer(gateway, call, record) : countTokens(gateway, call, record)
    }

    function listModels(): void {
      record.status = 200
      record.firstByteMs = sinceMs()
      const body = gateway.snapshots.current.config.catalog.listBody
      const lines = `${commonLines(requestId, undefined)}content-type: application/json\r\n`
      answerUnread(exchange, 200, lines, { lingerMs }, body)
      finish()
    }

    function sendRefusal(error: GatewayError): void {
      // After an error in the middle of a body, the connection cannot take another request.
      const closes = error.status === 408 || error.status === 413 || error.reason === 'bodies'
      const { lines, body } = formClientError(error, path, requestId)
      // An answer to an invalid key says nothing about any account.
      const more = isInference && error.status !== 401 ? formStanding(record) : ''
      sendError(exchange, { status: error.status, lines: lines + more, body, closes, lingerMs })
    }
  }
}

/**
 * Makes the error for a path and method that is not served (spec 4.6). Some agents first try a WebSocket on a wire's
 * path. They get the status that makes a common agent use HTTP immediately (ruling R3).
 */
function unknownUrl(exchange: HttpExchange, path: string): GatewayError {
  const isProbe = exchange.method === 'GET' && exchange.header('upgrade')?.toLowerCase() === 'websocket'
  const status = isProbe ? wireAt(path)?.probeStatus : undefined
  const cure = baseUrlCure(path)
  const text = `Nothing is served at this path and method: ${cure ?? `use ${servedText}`}.`
  return new GatewayError('unknown_url', text, status === undefined ? {} : { status })
}

type RecordParts = {
  /** @property isOver whether the answer was ended, or its connection is closed */
  exchange: { readonly isBegun: boolean; readonly isOver: boolean; destroy(): void }
  record: CallRecord
  listeners: readonly RecordListener[]
  /** The time since the request began, in ms of the monotonic clock. */
  sinceMs: () => number
  /** Sends an error to a client that has received nothing of its answer yet. */
  answer: (error: GatewayError) => void
  /** The URL of the page where people see their own use, if there is one. */
  ownPage: string | undefined
}

/**
 * Creates the functions that end a request. Each of them completes the request's record and calls the listeners.
 *
 * - `finish`: the request is answered.
 * - `refuse`: an error was thrown.
 * - `follow`: waits for the walk (the handler of the path), which answers the request or throws.
 */
export function endRecord({ exchange, record, listeners, sinceMs, answer, ownPage }: RecordParts) {
  return { finish, refuse, follow }

  function follow(walk: Promise<void>): void {
    walk.then(() => finish(cutLeftOpen()), refuse)
  }

  function finish(bug?: unknown): void {
    record.endMs = sinceMs()
    for (const listen of listeners) listen(record, bug)
  }

  function refuse(thrown: unknown): void {
    if (thrown instanceof ClientGone) {
      record.outcome = 'client_abort'
      finish()
      return
    }
    const { error, bug } = noteRefusal(record, thrown, ownPage)
    if (exchange.isBegun || exchange.isOver) exchange.destroy()
    else {
      record.status = error.status
      record.firstByteMs = sinceMs()
      answer(error)
    }
    finish(bug)
  }

  /**
   * Closes an answer that the walk (the handler of the path) has left open.
   * @returns an error for the log, because every walk must end or cut its answer
   */
  function cutLeftOpen(): Error | undefined {
    const { outcome } = record
    if (exchange.isOver || outcome === 'client_abort') return undefined
    exchange.destroy()
    return new Error(`an answer was left open: ${outcome ?? 'no outcome'}`)
  }
}

/** Writes an error into the record. @returns the error for the client, and the thrown value if it is a bug of ours */
function noteRefusal(
  record: CallRecord,
  thrown: unknown,
  ownPage: string | undefined,
): { error: GatewayError; bug: unknown } {
  const isOurs = !(thrown instanceof GatewayError)
  const error = isOurs ? new GatewayError('internal_error', failureTexts.serviceFailed) : namePage(thrown, ownPage)
  record.code = error.code
  record.message ??= error.message
  record.param = error.param
  if (error.reason !== undefined) record.reason = error.reason
  const isFault = error.code === 'internal_error'
  record.outcome ??= isFault ? 'internal_error' : error.status === 408 ? 'client_timeout' : 'refused'
  return { error, bug: isOurs ? thrown : undefined }
}

/** Adds the URL of the page that explains a lack of credit, a full rate window, or an invalid key (CON-P2). */
function namePage(error: GatewayError, ownPage: string | undefined): GatewayError {
  if (ownPage === undefined) return error
  const { code, reason = '' } = error
  if (code === 'invalid_api_key') return error.withMore(`See ${ownPage} for the settings of your client.`)
  const isLimit = code === 'insufficient_credits' || reason.endsWith('window')
  return isLimit ? error.withMore(`See ${ownPage} for your requests and what is left.`) : error
}

type CallLimits = BodyLimits & { writeStallMs: number; lingerMs: number }

/** Makes the header lines of an answer, except `content-type` and `cache-control`. Called when the answer begins. */
export type FormHeaders = (record: CallRecord) => string

/** A body that an operator sent inside another request. @property release gives back the memory counted for the body */
type ReadyBody = { bytes: Buffer; release(): void }

type HttpCallParts = {
  exchange: HttpExchange
  wire: ClientWire
  record: CallRecord
  limits: CallLimits
  formHeaders: FormHeaders
  /** The time since the request began, in ms of the monotonic clock. */
  sinceMs: () => number
  /** Set if an operator's request contains the body. The headers are then those of the operator's request. */
  body?: ReadyBody | undefined
}

/** A request and its answer without the socket, for the walk (the code that answers the request). */
export class HttpCall implements Call, CallListener {
  readonly requestId: string
  readonly wire: ClientWire
  readonly ip: string
  isGone = false
  listener: CallListener | undefined
  #hasBegun = false
  readonly #exchange: HttpExchange
  readonly #parts: HttpCallParts

  constructor(parts: HttpCallParts) {
    const { exchange, wire, record } = parts
    this.#exchange = exchange
    this.#parts = parts
    this.requestId = record.id
    this.wire = wire
    this.ip = record.ip
    exchange.listener = this
  }

  clientGone(): void {
    this.isGone = true
    this.listener?.clientGone()
  }

  clientReady(): void {
    this.listener?.clientReady()
  }

  header(name: string): string | undefined {
    return this.#parts.body ? undefined : this.#exchange.header(name)
  }

  readBody(share: BodyShare): Promise<Buffer> {
    const { limits, body } = this.#parts
    return body ? this.#takeReady(body, share) : readBody(this.#exchange, limits, share)
  }

  async #takeReady(body: ReadyBody, share: BodyShare): Promise<Buffer> {
    // From here on, `takeBody` counts the memory of the body in the account's share.
    body.release()
    return takeBody(this.#exchange, body.bytes, this.#parts.limits, share)
  }

  reply(status: number, contentType: string, body: string | Uint8Array): void {
    this.#noteFirstByte(status)
    this.#exchange.answer(status, `${this.#lines(contentType)}cache-control: no-store\r\n`, body)
    this.#exchange.watchStall(this.#parts.limits.writeStallMs)
  }

  begin(): void {
    const lines = this.#lines('text/event-stream; charset=utf-8')
    // Without this header, proxies may buffer events.
    this.#exchange.begin(200, `${lines}cache-control: no-cache, no-store\r\nx-accel-buffering: no\r\n`)
  }

  write(text: string, encoding: BufferEncoding): boolean {
    this.#noteFirstByte(200)
    return this.#exchange.write(text, encoding)
  }

  end(text: string, encoding: BufferEncoding): void {
    this.#noteFirstByte(200)
    this.#exchange.end(text, encoding)
    // The gateway's deadlines for the answer are over. From now on the exchange itself watches for a slow client.
    this.#exchange.watchStall(this.#parts.limits.writeStallMs)
  }

  isTaking(): boolean {
    return this.#exchange.isTaking()
  }

  destroy(): void {
    this.#exchange.destroy()
  }

  #lines(contentType: string): string {
    const { formHeaders, record } = this.#parts
    return `${formHeaders(record)}content-type: ${contentType}\r\n`
  }

  #noteFirstByte(status: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    const { record, sinceMs } = this.#parts
    record.status = status
    record.firstByteMs = sinceMs()
  }
}
