import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { Fields } from '../http1/fields.ts'
import type { Framing } from '../http1/framing.ts'
import { inOnePiece } from '../http1/one-piece.ts'
import { staysOpen } from '../http1/persistence.ts'
import type { RequestHead } from '../http1/request-head.ts'
import { answerHead } from './answer-head.ts'
import { Backlog } from './backlog.ts'
import { IncomingBody } from './incoming-body.ts'

/** Who hears of the client while it is answered. */
export interface AnswerListener {
  /** It has gone before it had taken its whole answer. */
  clientGone(): void
  /** It had fallen behind and has caught up. */
  clientReady(): void
}

/** What an exchange tells the connection that it is on. */
export interface ExchangeHost {
  readonly socket: Socket
  /** What an answer says of how long the connection is kept, in whole seconds. */
  readonly keepAliveSeconds: number
  /** Each answer that begins now closes its connection. */
  readonly isDraining: boolean
  /** The system has taken the whole answer. */
  answered(exchange: HttpExchange): void
}

/** Each exchange that begins, for whoever watches in a test. */
const begun = channel('triwire:http:exchange')

/** How often it is looked whether a client takes the rest of its answer, in ms. */
const lookMs = 1_000

/**
 * A request and its answer on one connection, in the sense of RFC 9110 (what passes between two wires is another `Exchange`, the
 * gateway's). The answer is one `answer`, or `begin`, any number of `write`s and `end`.
 * Headers are given as lines: their values are ours, or were checked as parts of the request's head.
 */
export class HttpExchange {
  readonly method: string
  readonly target: string
  readonly fields: Fields
  readonly minor: number
  readonly body: IncomingBody
  /** The connection takes another request behind this one. */
  keepsAlive: boolean
  /** The head of the answer has been given. */
  isBegun = false
  /** All of the answer has been given. */
  isEnded = false
  /** Nobody waits for anything but the rest of a request that was refused. */
  isLingering = false
  listener: AnswerListener | undefined
  readonly #host: ExchangeHost
  /** The head of a stream, which goes out with its first piece. */
  #head = ''
  /** The stream is told in chunks. */
  #isChunked = false
  #stallWatch: NodeJS.Timeout | undefined
  /** Of a client that has fallen behind. */
  #backlog: Backlog | undefined

  constructor(host: ExchangeHost, { method, target, minor, fields }: RequestHead, framing: Framing) {
    this.#host = host
    this.method = method
    this.target = target
    this.minor = minor
    this.fields = fields
    this.body = new IncomingBody(host.socket, framing)
    this.keepsAlive = staysOpen(fields.get('connection'), minor)
    if (begun.hasSubscribers) begun.publish(this)
  }

  get socket(): Socket {
    return this.#host.socket
  }

  /** All of the answer was given, or nobody is there to be given it. */
  get isOver(): boolean {
    return this.isEnded || this.socket.destroyed
  }

  /** A header of the request by its lower-case name; repeated ones joined by a comma. */
  header(name: string): string | undefined {
    return this.fields.get(name)
  }

  /** The length that its client has said, in bytes. */
  get declaredBytes(): number | undefined {
    const declared = this.fields.get('content-length')
    return declared === undefined ? undefined : Number(declared)
  }

  /** Its client waits for a word before it sends the body (RFC 9110 10.1.1). */
  get awaitsContinue(): boolean {
    return this.minor > 0 && this.fields.get('expect') !== undefined
  }

  continue(): void {
    this.socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  /** A whole answer. @param lines headers of it, each with its end; `content-length` and those of the connection are put in */
  answer(status: number, lines: string, body: string | Uint8Array = ''): void {
    this.isBegun = true
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    const length = status === 204 ? '' : `content-length: ${bytes}\r\n`
    const head = this.#headOf(status, lines + length)
    if (this.method === 'HEAD' || bytes === 0) this.#finish(head, 'latin1')
    else if (typeof body === 'string') this.#finish(head + body, bytes === body.length ? 'latin1' : 'utf8')
    else {
      const piece = inOnePiece(head, body)
      if (piece === undefined) this.#finishInTwo(head, body)
      else this.#finish(piece, 'latin1')
    }
  }

  #finishInTwo(head: string, body: Uint8Array): void {
    this.socket.cork()
    this.socket.write(head, 'latin1')
    this.#finish(body)
    this.socket.uncork()
  }

  /** A whole answer to a request that is still coming in: all of it can be read now, and it is not over before `end('')`. */
  answerOpen(status: number, lines: string, body: string): void {
    this.isBegun = true
    const length = status === 204 ? '' : `content-length: ${Buffer.byteLength(body)}\r\n`
    this.socket.write(
      this.#headOf(status, lines + length) + (this.method === 'HEAD' ? '' : body),
      body === '' ? 'latin1' : 'utf8',
    )
  }

  /** The head of a stream. It goes out with its first piece. */
  begin(status: number, lines: string): void {
    this.isBegun = true
    this.#isChunked = this.minor > 0
    if (!this.#isChunked) this.keepsAlive = false
    this.#head = this.#headOf(status, this.#isChunked ? `${lines}transfer-encoding: chunked\r\n` : lines)
  }

  /**
   * @param text in Latin-1 none of whose characters is above U+00FF
   * @returns false where the client falls behind: its listener hears when it has caught up
   */
  write(text: string, encoding: BufferEncoding): boolean {
    corkForTurn(this.socket)
    const isTaken = this.socket.write(this.#takeHead() + this.#frame(text, encoding), encoding)
    if (!isTaken) this.#backlog = new Backlog(this.socket)
    return isTaken
  }

  /** Where a `write` was false: whether the client has taken anything since the last one, or since this was last asked. */
  isTaking(): boolean {
    return this.#backlog?.hasShrunk() === true
  }

  end(text: string, encoding: BufferEncoding = 'latin1'): void {
    this.#finish(this.#takeHead() + this.#frame(text, encoding) + (this.#isChunked ? '0\r\n\r\n' : ''), encoding)
  }

  /** Where the client takes nothing of the rest for so long, it is cut (faults F-C9). */
  watchStall(stallMs: number): void {
    const { socket } = this
    if (socket.writableLength === 0) return
    const backlog = new Backlog(socket)
    let takenMs = performance.now()
    // A socket's own timer would begin anew with each byte that is read.
    const look = () => {
      const nowMs = performance.now()
      if (backlog.hasShrunk()) takenMs = nowMs
      else if (nowMs - takenMs >= stallMs) socket.destroy()
    }
    this.#stallWatch = setInterval(look, Math.min(lookMs, stallMs / 8))
  }

  /** Closes the connection, whatever was said on it. */
  destroy(): void {
    this.socket.destroy()
  }

  /** The client has taken its whole answer. */
  taken(): void {
    this.#forget()
  }

  /** Its connection is closed, and the client had not. */
  gone(): void {
    const { listener } = this
    this.#forget()
    this.body.gone()
    listener?.clientGone()
  }

  #forget(): void {
    this.listener = undefined
    clearInterval(this.#stallWatch)
  }

  #finish(last: string | Uint8Array, encoding?: BufferEncoding): void {
    this.isEnded = true
    const { socket } = this
    // One that cannot be written tells so before it closes its connection.
    const taken = (error?: Error | null) => {
      if (!error) this.#host.answered(this)
    }
    if (typeof last === 'string') socket.write(last, encoding, taken)
    else socket.write(last, taken)
  }

  #headOf(status: number, lines: string): string {
    const { keepAliveSeconds, isDraining } = this.#host
    if (isDraining || this.body.isBroken) this.keepsAlive = false
    const connection = this.keepsAlive ? `keep-alive\r\nkeep-alive: timeout=${keepAliveSeconds}` : 'close'
    return answerHead(status, lines, connection)
  }

  #takeHead(): string {
    const head = this.#head
    this.#head = ''
    return head
  }

  /** A piece is one chunk: Node would make four writes of each (docs/decisions/0047-own-chunks.md). */
  #frame(text: string, encoding: BufferEncoding): string {
    if (!this.#isChunked || text === '') return text
    const bytes = encoding === 'latin1' ? text.length : Buffer.byteLength(text)
    return `${bytes.toString(16)}\r\n${text}\r\n`
  }
}

let corked: Socket[] = []

/**
 * What is written to clients in one turn of the event loop goes out behind its other work, in one go: each write wakes whoever reads.
 */
function corkForTurn(socket: Socket): void {
  socket.cork()
  if (corked.push(socket) === 1) setImmediate(uncorkAll)
}

function uncorkAll(): void {
  const sockets = corked
  corked = []
  for (const socket of sockets) socket.uncork()
}
