import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WireName } from '../catalog/model.ts'
import type { BodyShare } from '../gateway/bodies.ts'
import type { Call, CallListener } from '../gateway/call.ts'
import type { CallRecord } from '../gateway/record.ts'
import { wires } from '../wires/wires.ts'
import { type BodyLimits, readBody } from './body.ts'
import { commonHeaders } from './headers.ts'

export type CallLimits = BodyLimits & { writeStallMs: number; lingerMs: number }

/** Up to here copying a body behind its head is cheaper than writing two pieces. */
const onePieceBytesMax = 16_384

/** Into the headers of an answer to a request whose account is known. */
export type AddStanding = (headers: Record<string, string>, record: CallRecord) => void

export type HttpCallParts = {
  request: IncomingMessage
  response: ServerResponse
  wire: WireName
  record: CallRecord
  limits: CallLimits
  /** Puts in what every answer to this account's requests tells of it (ruling R13). */
  addStanding: AddStanding
  /** Since the request began, in ms, measured. */
  sinceMs: () => number
}

/** A request and its answer, without the socket: what a walk is given. */
export class HttpCall implements Call {
  readonly requestId: string
  readonly wire: WireName
  readonly ip: string
  isGone = false
  #hasBegun = false
  /** The stream is told in chunks, which are framed here: Node would make four writes of each. */
  #isChunked = false
  /** What became of the request before anybody read its body: its key may be looked for meanwhile (ruling R16). */
  #earlyError: Error | undefined
  listener: CallListener | undefined
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #limits: CallLimits
  readonly #record: CallRecord
  readonly #addStanding: AddStanding
  readonly #sinceMs: () => number

  constructor({ request, response, wire, record, limits, addStanding, sinceMs }: HttpCallParts) {
    this.#request = request
    this.#response = response
    this.#limits = limits
    this.#record = record
    this.#addStanding = addStanding
    this.#sinceMs = sinceMs
    this.requestId = record.id
    this.wire = wire
    this.ip = record.ip
    // Without it the edge takes a malformed body for one that nobody will answer.
    request.on('error', (error) => {
      this.#earlyError ??= error
    })
    response.on('close', () => {
      // Node reports an aborted stream as a finished request; what was not written out tells (reliability §2).
      if (response.writableFinished) return
      this.isGone = true
      this.listener?.clientGone()
    })
    response.on('drain', () => this.listener?.clientReady())
  }

  header(name: string): string | undefined {
    // Sent twice with one value it is one credential; the parser joins the two (ruling R7).
    const value = this.#request.headers[name]
    if (name === 'x-api-key' && value !== undefined) return this.#request.headersDistinct[name]?.[0]
    return Array.isArray(value) ? value.join(', ') : value
  }

  readBody(share: BodyShare): Promise<Buffer> {
    return readBody(this.#request, this.#response, this.#limits, share, this.#earlyError)
  }

  reply(status: number, contentType: string, body: string | Uint8Array): void {
    this.#noteFirstByte(status)
    const headers = this.#headers(contentType)
    headers['content-length'] = String(typeof body === 'string' ? Buffer.byteLength(body) : body.length)
    this.#response.writeHead(status, headers)
    // Text goes out in one piece with the head; the bytes are the same.
    if (typeof body !== 'string' && body.length <= onePieceBytesMax) {
      const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
      this.#response.end(bytes.toString('latin1'), 'latin1')
    } else this.#response.end(body)
    this.#watchStall()
  }

  begin(): void {
    const headers = this.#headers('text/event-stream; charset=utf-8')
    headers['cache-control'] = 'no-cache, no-store'
    // Proxies in between would otherwise hold events back.
    headers['x-accel-buffering'] = 'no'
    this.#response.writeHead(200, headers)
    // It has decided, by the version of HTTP that the client speaks.
    this.#isChunked = this.#response.chunkedEncoding
    this.#response.chunkedEncoding = false
  }

  write(text: string, encoding: BufferEncoding): boolean {
    this.#noteFirstByte(200)
    return this.#response.write(this.#frame(text, encoding), encoding)
  }

  end(text: string, encoding: BufferEncoding): void {
    this.#noteFirstByte(200)
    const last = this.#frame(text, encoding) + (this.#isChunked ? '0\r\n\r\n' : '')
    if (last === '') this.#response.end()
    else this.#response.end(last, encoding)
    this.#watchStall()
  }

  #frame(text: string, encoding: BufferEncoding): string {
    if (!this.#isChunked || text === '') return text
    const bytes = encoding === 'latin1' ? text.length : Buffer.byteLength(text)
    return `${bytes.toString(16)}\r\n${text}\r\n`
  }

  destroy(): void {
    this.#response.destroy()
  }

  /** What the client has not taken yet is not kept for ever: the walk is over and its deadlines with it (faults F-C9). */
  #watchStall(): void {
    const { socket } = this.#request
    if (socket.writableLength > 0) this.#response.setTimeout(this.#limits.writeStallMs)
  }

  #headers(contentType: string): Record<string, string> {
    const headers = commonHeaders(this.requestId, wires[this.wire])
    headers['content-type'] = contentType
    headers['cache-control'] = 'no-store'
    this.#addStanding(headers, this.#record)
    return headers
  }

  #noteFirstByte(status: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.#record.status = status
    this.#record.firstByteMs = this.#sinceMs()
  }
}
