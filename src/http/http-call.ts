import type { ClientWire } from '../catalog/wire-names.ts'
import type { Call, CallListener } from '../gateway/call.ts'
import type { BodyShare } from '../gateway/fairness/places.ts'
import type { CallRecord } from '../gateway/record.ts'
import { type BodyLimits, readBody, takeBody } from './body.ts'
import type { HttpExchange } from './http-exchange.ts'

export type CallLimits = BodyLimits & { writeStallMs: number; lingerMs: number }

/** Makes the header lines of an answer, except `content-type` and `cache-control`. Called when the answer begins. */
export type FormHeaders = (record: CallRecord) => string

/** A body that an operator sent inside another request. @property release gives back the memory that it counts for */
type ReadyBody = { bytes: Buffer; release(): void }

type HttpCallParts = {
  exchange: HttpExchange
  wire: ClientWire
  record: CallRecord
  limits: CallLimits
  formHeaders: FormHeaders
  /** Time since the request began, in ms by the monotonic clock. */
  sinceMs: () => number
  /** Set if the body is already here. Then only the body is the client's; the headers are those of the operator's request. */
  body?: ReadyBody | undefined
}

/** A request and its answer as a walk sees them, without the socket. */
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

  async readBody(share: BodyShare): Promise<Buffer> {
    const { limits, body } = this.#parts
    if (!body) return readBody(this.#exchange, limits, share)
    // From here on the body counts for the account.
    body.release()
    return takeBody(this.#exchange, body.bytes, limits, share)
  }

  reply(status: number, contentType: string, body: string | Uint8Array): void {
    this.#noteFirstByte(status)
    this.#exchange.answer(status, `${this.#lines(contentType)}cache-control: no-store\r\n`, body)
    this.#exchange.watchStall(this.#parts.limits.writeStallMs)
  }

  begin(): void {
    const lines = this.#lines('text/event-stream; charset=utf-8')
    // Without this header, proxies may hold events back.
    this.#exchange.begin(200, `${lines}cache-control: no-cache, no-store\r\nx-accel-buffering: no\r\n`)
  }

  write(text: string, encoding: BufferEncoding): boolean {
    this.#noteFirstByte(200)
    return this.#exchange.write(text, encoding)
  }

  end(text: string, encoding: BufferEncoding): void {
    this.#noteFirstByte(200)
    this.#exchange.end(text, encoding)
    // The walk and its deadlines are over, so the exchange watches a slow client.
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
