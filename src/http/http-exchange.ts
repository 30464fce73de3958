import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { ChunkedReader } from '../http1/chunked.ts'
import type { Fields } from '../http1/fields.ts'
import type { Framing } from '../http1/framing.ts'
import { staysOpen } from '../http1/persistence.ts'
import type { RequestHead } from '../http1/request-head.ts'
import { answerHead } from './answer-head.ts'

/** Who takes a request's body. Exactly one of the last three is told, and nothing behind it. */
export interface BodyReader {
  take(piece: Buffer): void
  whole(): void
  /** It is framed wrongly. */
  broken(): void
  /** The client has left before it was whole. */
  gone(): void
}

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

/** Up to here copying a body behind its head is cheaper than writing two pieces, in bytes. */
const onePieceBytesMax = 16_384
/** Of a body that nobody reads yet, in bytes: behind that its connection waits. */
const earlyBytesMax = 65_536

/**
 * A request and its answer on one connection, in the sense of RFC 9110 (what passes between two wires is another `Exchange`, the
 * gateway's). The request's body is handed on as it comes; the answer is one `answer`, or `begin`, any number of `write`s and `end`.
 * Headers are given as lines: their values are ours, or were checked as parts of the request's head.
 */
export class HttpExchange {
  readonly method: string
  readonly target: string
  readonly fields: Fields
  readonly minor: number
  /** Its whole body has come. */
  isComplete: boolean
  /** The connection takes another request behind this one. */
  keepsAlive: boolean
  /** The head of the answer has been given. */
  isBegun = false
  /** All of the answer has been given. */
  isEnded = false
  /** Its connection is closed. */
  isClosed = false
  /** Nobody waits for anything but the rest of a request that was refused. */
  isLingering = false
  listener: AnswerListener | undefined
  readonly #host: ExchangeHost
  /** Of the body's length, or of its chunk, what is to come. */
  #left: number
  readonly #chunks: ChunkedReader | undefined
  #isBroken = false
  #reader: BodyReader | undefined
  #early: Buffer[] | undefined
  #earlyBytes = 0
  /** The head of a stream, which goes out with its first piece. */
  #head = ''
  /** The stream is told in chunks. */
  #isChunked = false
  #stallWatch: NodeJS.Timeout | undefined

  constructor(host: ExchangeHost, { method, target, minor, fields }: RequestHead, framing: Framing) {
    this.#host = host
    this.method = method
    this.target = target
    this.minor = minor
    this.fields = fields
    this.#chunks = framing === 'chunked' ? new ChunkedReader() : undefined
    this.#left = typeof framing === 'number' ? framing : 0
    this.isComplete = this.#chunks === undefined && this.#left === 0
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

  /** The body, from its beginning or, where another reader had some of it, from there. */
  read(reader: BodyReader): void {
    this.#reader = reader
    const early = this.#early
    this.#early = undefined
    if (early && this.socket.isPaused()) this.socket.resume()
    for (const piece of early ?? []) {
      reader.take(piece)
      // It lets go where that was too much.
      if (this.#reader !== reader) return
    }
    this.#tellEnd(reader)
  }

  /** Nobody takes the body any more. */
  letGo(reader: BodyReader): void {
    if (this.#reader === reader) this.#reader = undefined
  }

  /** The whole body, where it came with the head: nobody has to wait for it. */
  takeWhole(): Buffer | undefined {
    const early = this.#early
    if (!this.isComplete || (early !== undefined && early.length !== 1)) return undefined
    this.#early = undefined
    return early ? early[0] : Buffer.alloc(0)
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }

  /** Bytes of its connection, from there on. @returns where its body ended, or the length of them */
  feed(bytes: Buffer, from: number): number {
    if (this.#isBroken) return bytes.length
    if (this.#chunks) return this.#feedChunks(this.#chunks, bytes, from)
    const end = Math.min(bytes.length, from + this.#left)
    this.#left -= end - from
    if (this.#left === 0) this.isComplete = true
    this.#hand(bytes, from, end)
    if (this.isComplete) this.#tellWhole()
    return end
  }

  #feedChunks(chunks: ChunkedReader, bytes: Buffer, from: number): number {
    const { at, data } = chunks.read(bytes, from)
    if (data) this.#hand(data, 0, data.length)
    if (chunks.isBroken) {
      this.#isBroken = true
      this.keepsAlive = false
      this.#takeReader()?.broken()
      return bytes.length
    }
    if (chunks.isOver) {
      this.isComplete = true
      this.#tellWhole()
    }
    return at
  }

  #hand(bytes: Buffer, from: number, end: number): void {
    if (end === from) return
    const piece = from === 0 && end === bytes.length ? bytes : bytes.subarray(from, end)
    if (this.#reader) this.#reader.take(piece)
    else this.#keep(piece)
  }

  #keep(piece: Buffer): void {
    if (this.#early) this.#early.push(piece)
    else this.#early = [piece]
    this.#earlyBytes += piece.length
    if (this.#earlyBytes > earlyBytesMax && !this.isComplete) this.socket.pause()
  }

  #tellWhole(): void {
    this.#takeReader()?.whole()
  }

  /** What happened before there was a reader. */
  #tellEnd(reader: BodyReader): void {
    if (this.#isBroken) reader.broken()
    else if (this.isComplete) reader.whole()
    else if (this.isClosed) reader.gone()
    else return
    this.letGo(reader)
  }

  #takeReader(): BodyReader | undefined {
    const reader = this.#reader
    this.#reader = undefined
    return reader
  }

  /** A whole answer. @param lines headers of it, each with its end; `content-length` and those of the connection are put in */
  answer(status: number, lines: string, body: string | Uint8Array = ''): void {
    this.isBegun = true
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    const length = status === 204 ? '' : `content-length: ${bytes}\r\n`
    const head = this.#headOf(status, lines + length)
    if (this.method === 'HEAD' || bytes === 0) this.#finish(head, 'latin1')
    else if (typeof body === 'string') this.#finish(head + body, bytes === body.length ? 'latin1' : 'utf8')
    else if (bytes <= onePieceBytesMax)
      this.#finish(head + Buffer.from(body.buffer, body.byteOffset, bytes).toString('latin1', 0, bytes), 'latin1')
    else {
      this.socket.cork()
      this.socket.write(head, 'latin1')
      this.#finish(body)
      this.socket.uncork()
    }
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
    return this.socket.write(this.#takeHead() + this.#frame(text, encoding), encoding)
  }

  end(text: string, encoding: BufferEncoding = 'latin1'): void {
    this.#finish(this.#takeHead() + this.#frame(text, encoding) + (this.#isChunked ? '0\r\n\r\n' : ''), encoding)
  }

  /** What the client has not taken by then is not kept: it is cut (faults F-C9). */
  watchStall(stallMs: number): void {
    const { socket } = this
    if (socket.writableLength === 0) return
    // Node begins this anew with each read, as with what is taken of the write: whoever also sends has so long once.
    socket.setTimeout(stallMs)
    let { bytesRead } = socket
    this.#stallWatch = setInterval(() => {
      if (socket.bytesRead > bytesRead) socket.destroy()
      bytesRead = socket.bytesRead
    }, stallMs)
  }

  /** Closes the connection, whatever was said on it. */
  destroy(): void {
    this.socket.destroy()
  }

  /** Nothing more happens to it: the client has taken its whole answer, or it has gone. */
  over(isGone: boolean): void {
    const { listener } = this
    this.listener = undefined
    clearInterval(this.#stallWatch)
    if (!isGone) return
    this.isClosed = true
    this.#takeReader()?.gone()
    listener?.clientGone()
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
    if (isDraining) this.keepsAlive = false
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
