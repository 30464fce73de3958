import type { WireName } from '../catalog/model.ts'
import type { Call, CallListener } from '../gateway/call.ts'
import type { BodyShare } from '../gateway/fairness/bodies.ts'
import type { CallRecord } from '../gateway/record.ts'
import { type BodyLimits, readBody, takeBody } from './body.ts'
import type { AnswerListener, HttpExchange } from './http-exchange.ts'

export type CallLimits = BodyLimits & { writeStallMs: number; lingerMs: number }

/** The headers of an answer in lines, beside its content type and `cache-control`. They are asked for when the answer begins. */
export type FormHeaders = (record: CallRecord) => string

/** The body of a request that an operator sent inside a request of their own. @property release gives back the memory it counts for */
export type ReadyBody = { bytes: Buffer; release(): void }

export type HttpCallParts = {
  exchange: HttpExchange
  wire: WireName
  record: CallRecord
  limits: CallLimits
  formHeaders: FormHeaders
  /** Measured time since the request began, in ms. */
  sinceMs: () => number
  /** Set if the body is there already: only the body is the client's then, and no header of the exchange. */
  body?: ReadyBody | undefined
}

/** A request and its answer as a walk sees them, without the socket. */
export class HttpCall implements Call, AnswerListener {
  readonly requestId: string
  readonly wire: WireName
  readonly ip: string
  isGone = false
  listener: CallListener | undefined
  #hasBegun = false
  readonly #exchange: HttpExchange
  readonly #limits: CallLimits
  readonly #record: CallRecord
  readonly #formHeaders: FormHeaders
  readonly #sinceMs: () => number
  readonly #body: ReadyBody | undefined

  constructor({ exchange, wire, record, limits, formHeaders, sinceMs, body }: HttpCallParts) {
    this.#exchange = exchange
    this.#limits = limits
    this.#record = record
    this.#formHeaders = formHeaders
    this.#sinceMs = sinceMs
    this.#body = body
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
    return this.#body ? undefined : this.#exchange.header(name)
  }

  async readBody(share: BodyShare): Promise<Buffer> {
    if (!this.#body) return readBody(this.#exchange, this.#limits, share)
    // From here on the body counts for the account.
    this.#body.release()
    return takeBody(this.#exchange, this.#body.bytes, this.#limits, share)
  }

  reply(status: number, contentType: string, body: string | Uint8Array): void {
    this.#noteFirstByte(status)
    this.#exchange.answer(status, `${this.#lines(contentType)}cache-control: no-store\r\n`, body)
    this.#exchange.watchStall(this.#limits.writeStallMs)
  }

  begin(): void {
    const lines = this.#lines('text/event-stream; charset=utf-8')
    // Proxies in between would otherwise hold events back.
    this.#exchange.begin(200, `${lines}cache-control: no-cache, no-store\r\nx-accel-buffering: no\r\n`)
  }

  write(text: string, encoding: BufferEncoding): boolean {
    this.#noteFirstByte(200)
    return this.#exchange.write(text, encoding)
  }

  end(text: string, encoding: BufferEncoding): void {
    this.#noteFirstByte(200)
    this.#exchange.end(text, encoding)
    // The walk is over, and its deadlines with it.
    this.#exchange.watchStall(this.#limits.writeStallMs)
  }

  isTaking(): boolean {
    return this.#exchange.isTaking()
  }

  destroy(): void {
    this.#exchange.destroy()
  }

  #lines(contentType: string): string {
    return `${this.#formHeaders(this.#record)}content-type: ${contentType}\r\n`
  }

  #noteFirstByte(status: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#record.status = status
    this.#record.firstByteMs = this.#sinceMs()
  }
}
