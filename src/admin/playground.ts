import type { ServerResponse } from 'node:http'
import { failureTexts, GatewayError } from '../errors.ts'
import { type Call, type CallListener, ClientGone } from '../gateway/call.ts'
import { type BodyShare, tooLarge } from '../gateway/fairness/bodies.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { play as playFor } from '../gateway/play.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'
import { errorBody } from '../http/answer.ts'
import { Backlog } from '../http/backlog.ts'
import { NoRoom } from '../http/body.ts'
import { cutLeftOpen, noteRefusal } from '../http/refusals.ts'
import type { Play } from '../operations/operation.ts'
import { wires } from '../wires/wires.ts'
import { guardHeaders } from './guard.ts'

/**
 * Serves an operator's request for an account by the walk of all requests (`infer`): its account's window and credit, its
 * hold and its debit. Only a key is not asked for, and the debit names none.
 * @param isDraining nothing new is begun then; `held` of one that is played: what its body has taken, given back here
 */
export function createPlayground(
  gateway: Gateway,
  listeners: readonly RecordListener[],
  isDraining: () => boolean,
): { play(response: ServerResponse, asked: Play, by: AskedBy, held?: BodyShare): void; playing(): number } {
  let playing = 0
  return { play, playing: () => playing }

  function play(response: ServerResponse, asked: Play, { requestId, ip }: AskedBy, held?: BodyShare): void {
    const beganMs = gateway.clockMs()
    const sinceMs = () => gateway.clockMs() - beganMs
    const { path } = wires[asked.wire]
    const named = { id: requestId, method: 'POST', path, ip, walk: 'infer', wire: asked.wire } as const
    const record: CallRecord = { ...named, startedMs: gateway.nowMs(), beganMs }
    const bytesMax = () => gateway.snapshots.current.config.limits.bodyBytesMax
    const call = new PlayedCall(response, asked, record, bytesMax, held)
    call.onFirstByte = (status) => {
      record.status = status
      record.firstByteMs = sinceMs()
    }
    // Of who has left already nothing more is heard.
    if (!response.destroyed) {
      playing++
      response.once('close', () => {
        playing--
      })
    }
    begin().then(() => finish(cutLeftOpen(call, record)), refuse)

    async function begin(): Promise<void> {
      if (isDraining()) throw new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { reason: 'busy' })
      await playFor(gateway, call, record, { ...asked.account })
    }

    function refuse(thrown: unknown): void {
      if (thrown instanceof ClientGone) {
        record.outcome = 'client_abort'
        finish()
        return
      }
      const { error, bug } = noteRefusal(record, thrown)
      if (response.headersSent || response.destroyed) response.destroy()
      else {
        if (error.retryAfterSeconds !== undefined) response.setHeader('retry-after', error.retryAfterSeconds)
        call.reply(error.status, 'application/json', errorBody(error, requestId, wires[asked.wire]))
      }
      finish(bug)
    }

    function finish(bug?: unknown): void {
      held?.release()
      record.endMs = sinceMs()
      for (const listen of listeners) listen(record, bug)
    }
  }
}

/** The operator's address, and the id of what he asked: his request has it too. */
type AskedBy = { requestId: string; ip: string }

/** An operator's request and its answer, as a walk sees them: the body is there. */
class PlayedCall implements Call {
  readonly requestId: string
  readonly wire: Call['wire']
  readonly ip: string
  isGone = false
  listener: CallListener | undefined
  onFirstByte: (status: number) => void = () => {}
  readonly #response: ServerResponse
  readonly #body: Buffer
  readonly #bytesMax: () => number
  readonly #held: BodyShare | undefined
  #hasBegun = false
  #backlog: Backlog | undefined

  constructor(
    response: ServerResponse,
    { wire, body }: Play,
    { id, ip }: CallRecord,
    bytesMax: () => number,
    held: BodyShare | undefined,
  ) {
    this.requestId = id
    this.wire = wire
    this.ip = ip
    this.#response = response
    this.#body = Buffer.from(body)
    this.#bytesMax = bytesMax
    this.#held = held
    response.on('close', () => {
      if (response.writableFinished) return
      this.isGone = true
      this.listener?.clientGone()
    })
    response.on('drain', () => this.listener?.clientReady())
  }

  /** Nothing but the body is a client's. */
  header(): undefined {}

  async readBody(share: BodyShare): Promise<Buffer> {
    const bytes = this.#body
    // From here on it is the account's.
    this.#held?.release()
    if (bytes.length > this.#bytesMax()) throw tooLarge(this.#bytesMax())
    if (!share.take(bytes.length)) throw new NoRoom()
    if (this.#response.destroyed) throw new ClientGone()
    return bytes
  }

  reply(status: number, contentType: string, body: string | Uint8Array): void {
    this.#begin(status)
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    this.#response.writeHead(status, { ...this.#headers(contentType), 'content-length': length })
    this.#response.end(body)
  }

  begin(): void {
    const headers = { ...this.#headers('text/event-stream; charset=utf-8'), 'x-accel-buffering': 'no' }
    this.#response.writeHead(200, headers)
  }

  write(text: string, encoding: BufferEncoding): boolean {
    this.#begin(200)
    const isTaken = this.#response.write(text, encoding)
    const { socket } = this.#response
    if (!isTaken && socket) this.#backlog = new Backlog(socket)
    return isTaken
  }

  end(text: string, encoding: BufferEncoding): void {
    this.#begin(200)
    if (text === '') this.#response.end()
    else this.#response.end(text, encoding)
  }

  isTaking(): boolean {
    return this.#backlog?.hasShrunk() === true
  }

  destroy(): void {
    this.#response.destroy()
  }

  get isOver(): boolean {
    return this.#response.writableEnded || this.#response.destroyed
  }

  #headers(contentType: string): Record<string, string> {
    return { ...guardHeaders, 'x-request-id': this.requestId, 'content-type': contentType }
  }

  #begin(status: number): void {
    if (this.#hasBegun) return
    this.#hasBegun = true
    this.onFirstByte(status)
  }
}
