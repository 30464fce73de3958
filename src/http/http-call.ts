import type { WireName } from '../catalog/model.ts'
import type { Call, CallListener } from '../gateway/call.ts'
import type { BodyShare } from '../gateway/fairness/bodies.ts'
import type { CallRecord } from '../gateway/record.ts'
import { wires } from '../wires/wires.ts'
import { type BodyLimits, readBody } from './body.ts'
import { isCredential } from './framing.ts'
import { commonLines } from './headers.ts'
import type { AnswerListener, HttpExchange } from './http-exchange.ts'

export type CallLimits = BodyLimits & { writeStallMs: number; lingerMs: number }

/** Headers, in lines, of an answer to a request whose account is known. */
export type TellStanding = (record: CallRecord) => string

export type HttpCallParts = {
  exchange: HttpExchange
  wire: WireName
  record: CallRecord
  limits: CallLimits
  /** What every answer to this account's requests tells of it (ruling R13). */
  tellStanding: TellStanding
  /** Since the request began, in ms, measured. */
  sinceMs: () => number
}

/** A request and its answer, without the socket: what a walk is given. */
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
  readonly #tellStanding: TellStanding
  readonly #sinceMs: () => number

  constructor({ exchange, wire, record, limits, tellStanding, sinceMs }: HttpCallParts) {
    this.#exchange = exchange
    this.#limits = limits
    this.#record = record
    this.#tellStanding = tellStanding
    this.#sinceMs = sinceMs
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
    // Sent twice with one value it is one credential (ruling R7).
    return isCredential(name) ? this.#exchange.fields.first(name) : this.#exchange.header(name)
  }

  readBody(share: BodyShare): Promise<Buffer> {
    return readBody(this.#exchange, this.#limits, share)
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
    const common = commonLines(this.requestId, wires[this.wire])
    return `${common}content-type: ${contentType}\r\n${this.#tellStanding(this.#record)}`
  }

  #noteFirstByte(status: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#record.status = status
    this.#record.firstByteMs = this.#sinceMs()
  }
}
