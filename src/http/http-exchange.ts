import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { CallListener } from '../gateway/call.ts'
import { type Fields, type Framing, inOnePiece, type RequestHead, staysOpen } from '../http1/heads.ts'
import { IncomingBody, isCredential } from './framing.ts'
import { answerHead } from './headers.ts'

/** Facts of the listener. They decide how an answer is sent. */
export interface ListenerTerms {
  /** The idle time that answers announce to clients, in whole seconds. */
  readonly keepAliveSeconds: number
  /** While true, a new answer closes its connection when it ends. */
  readonly isDraining: boolean
}

/** The connection of an exchange. */
export interface ExchangeHost {
  readonly socket: Socket
  readonly host: ListenerTerms
  /** Called when the operating system has taken the whole answer. */
  answered(exchange: HttpExchange): void
}

/** Publishes each exchange that begins, for tests. */
const begun = channel('triwire:http:exchange')

/** Texts of more characters than this are encoded before they are written. */
const textMax = 8_192

/** The time between two checks that a slow client still reads its answer, in ms. */
const lookMs = 1_000

/**
 * A request and its answer on one connection, as in RFC 9110. It is not the gateway's `Exchange` between two wires. The
 * answer is one `answer`, or a `begin`, any number of `write`s, and an `end`. Header lines have only values of our own,
 * or parts of the request's head that were checked.
 */
export class HttpExchange {
  readonly method: string
  readonly target: string
  readonly fields: Fields
  readonly minor: number
  readonly body: IncomingBody
  /** Whether the connection accepts another request after this one. */
  keepsAlive: boolean
  isBegun = false
  isEnded = false
  /** Whether the answer is written, and only the rest of a refused request is still awaited. */
  isLingering = false
  listener: CallListener | undefined
  readonly #connection: ExchangeHost
  /** The head of a stream, which is sent with its first piece. */
  #head = ''
  #isChunked = false
  #stallWatch: NodeJS.Timeout | undefined
  /** Set while the client reads more slowly than we write. */
  #backlog: Backlog | undefined
  #isForgotten = false
  #endings: (() => void)[] | undefined

  constructor(connection: ExchangeHost, { method, target, minor, fields }: RequestHead, framing: Framing) {
    this.#connection = connection
    this.method = method
    this.target = target
    this.minor = minor
    this.fields = fields
    this.body = new IncomingBody(connection.socket, framing)
    this.keepsAlive = staysOpen(fields.get('connection'), minor)
    if (begun.hasSubscribers) begun.publish(this)
  }

  get socket(): Socket {
    return this.#connection.socket
  }

  /** Whether all of the answer was written, or its connection is closed. */
  get isOver(): boolean {
    return this.isEnded || this.socket.destroyed
  }

  /** Calls `act` once the operating system has taken the whole answer or the connection is closed; at once if it is. */
  whenOver(act: () => void): void {
    if (this.#isForgotten) act()
    else if (this.#endings) this.#endings.push(act)
    else this.#endings = [act]
  }

  /**
   * Returns a header by its lower-case name; repeated values are joined by a comma. A credential that is repeated with
   * the same value counts once (ruling R7).
   */
  header(name: string): string | undefined {
    return isCredential(name) ? this.fields.first(name) : this.fields.get(name)
  }

  get declaredBytes(): number | undefined {
    const declared = this.fields.get('content-length')
    return declared === undefined ? undefined : Number(declared)
  }

  /** Whether the client waits for `100 Continue` before it sends the body (RFC 9110 10.1.1). */
  get awaitsContinue(): boolean {
    return this.minor > 0 && this.fields.get('expect') !== undefined
  }

  continue(): void {
    this.socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  /**
   * Sends a whole answer.
   * @param lines its headers with line ends; `content-length` and the headers of the connection are added
   */
  answer(status: number, lines: string, body: string | Uint8Array = ''): void {
    this.isBegun = true
    const bytes = typeof body === 'string' ? Buffer.byteLength(body) : body.length
    const head = this.#headOf(status, lines + lengthLine(status, bytes))
    if (this.method === 'HEAD' || bytes === 0) this.#finish(head, 'latin1')
    else if (typeof body === 'string') this.#finish(head + body, bytes === body.length ? 'latin1' : 'utf8')
    else {
      const piece = inOnePiece(head, body)
      if (piece !== undefined) this.#finish(piece, 'latin1')
      else {
        this.socket.cork()
        this.socket.write(head, 'latin1')
        this.#finish(body)
        this.socket.uncork()
      }
    }
  }

  /**
   * Sends a whole answer while the request still arrives. The client can read it now, and `end('')` must end it later.
   */
  answerOpen(status: number, lines: string, body: string | Uint8Array): void {
    this.isBegun = true
    const { socket } = this
    socket.cork()
    socket.write(this.#headOf(status, lines + lengthLine(status, Buffer.byteLength(body))), 'latin1')
    if (this.method !== 'HEAD') socket.write(body)
    socket.uncork()
  }

  /** Prepares a stream's head, which is sent with its first piece. The answer to a HEAD has no pieces and no length. */
  begin(status: number, lines: string): void {
    this.isBegun = true
    const isEmpty = this.method === 'HEAD'
    this.#isChunked = this.minor > 0 && !isEmpty
    if (!this.#isChunked && !isEmpty) this.keepsAlive = false
    this.#head = this.#headOf(status, this.#isChunked ? `${lines}transfer-encoding: chunked\r\n` : lines)
  }

  /**
   * Writes a piece of a stream.
   * @param text must have no character above U+00FF if the encoding is `latin1`
   * @returns false if the client falls behind. The listener is called when the client has caught up
   */
  write(text: string, encoding: BufferEncoding): boolean {
    corkForTurn(this.socket)
    const piece = this.#takeHead() + this.#frame(text, encoding)
    // If the system does not take a string in UTF-8 at once, Node reserves three bytes per character for it.
    const isTaken =
      encoding === 'utf8' && piece.length > textMax
        ? this.socket.write(Buffer.from(piece, encoding))
        : this.socket.write(piece, encoding)
    if (!isTaken) this.#backlog = new Backlog(this.socket)
    return isTaken
  }

  /** Whether the client has taken bytes since the last call, or since the `write` that returned false. */
  isTaking(): boolean {
    return this.#backlog?.hasShrunk() === true
  }

  end(text: string, encoding: BufferEncoding = 'latin1'): void {
    this.#finish(this.#takeHead() + this.#frame(text, encoding) + (this.#isChunked ? '0\r\n\r\n' : ''), encoding)
  }

  /** From now on, closes the connection if the client reads nothing of a waiting answer for `stallMs` (faults F-C9). */
  watchStall(stallMs: number): void {
    const { socket } = this
    if (this.isEnded && socket.writableLength === 0) return
    const backlog = new Backlog(socket)
    let takenMs = performance.now()
    // The socket's own timer cannot be used, because every byte that the client sends resets it.
    const look = () => {
      const nowMs = performance.now()
      if (backlog.hasShrunk() || socket.writableLength === 0) takenMs = nowMs
      else if (nowMs - takenMs >= stallMs) socket.destroy()
    }
    this.#stallWatch = setInterval(look, Math.min(lookMs, stallMs / 8))
  }

  destroy(): void {
    this.socket.destroy()
  }

  taken(): void {
    this.#forget()
  }

  /** Called when the connection was closed before the operating system had taken the whole answer. */
  gone(): void {
    const { listener } = this
    this.#forget()
    this.body.gone()
    listener?.clientGone()
  }

  #forget(): void {
    this.listener = undefined
    clearInterval(this.#stallWatch)
    this.#isForgotten = true
    const endings = this.#endings
    this.#endings = undefined
    if (endings) for (const end of endings) end()
  }

  #finish(last: string | Uint8Array, encoding?: BufferEncoding): void {
    this.isEnded = true
    const { socket } = this
    // A failed write is not handled here, because the `close` event of the connection follows.
    const taken = (error?: Error | null) => {
      if (!error) this.#connection.answered(this)
    }
    if (typeof last === 'string') socket.write(last, encoding, taken)
    else socket.write(last, taken)
  }

  #headOf(status: number, lines: string): string {
    const { keepAliveSeconds, isDraining } = this.#connection.host
    if (isDraining || this.body.isBroken) this.keepsAlive = false
    const connection = this.keepsAlive ? `keep-alive\r\nkeep-alive: timeout=${keepAliveSeconds}` : 'close'
    return answerHead(status, lines, connection)
  }

  #takeHead(): string {
    const head = this.#head
    this.#head = ''
    return head
  }

  /** Frames a piece as one chunk. Node's own framing would need four writes (docs/decisions/0047-own-chunks.md). */
  #frame(text: string, encoding: BufferEncoding): string {
    if (!this.#isChunked || text === '') return text
    const bytes = encoding === 'latin1' ? text.length : Buffer.byteLength(text)
    return `${bytes.toString(16)}\r\n${text}\r\n`
  }
}

/**
 * Returns the `content-length` line. A 204 or 304 gets none. In a 304 it would mean the length of the 200 (RFC 9110
 * 8.6).
 */
function lengthLine(status: number, bytes: number): string {
  return status === 204 || status === 304 ? '' : `content-length: ${bytes}\r\n`
}

let corked: Socket[] = []

/** Sends all pieces of one turn of the event loop together. Each separate write would wake the reading process. */
function corkForTurn(socket: Socket): void {
  socket.cork()
  if (corked.push(socket) === 1) setImmediate(uncorkAll)
}

function uncorkAll(): void {
  const sockets = corked
  corked = []
  for (const socket of sockets) socket.uncork()
}

/**
 * The bytes that were given to a socket, but not yet taken by the system. They become fewer whenever the client reads.
 */
export class Backlog {
  readonly #socket: Socket
  #waiting: readonly number[]

  constructor(socket: Socket) {
    this.#socket = socket
    this.#waiting = waitingIn(socket)
  }

  /** Whether the system has taken any of the waiting bytes since the last call, or since this object was created. */
  hasShrunk(): boolean {
    const before = this.#waiting
    this.#waiting = waitingIn(this.#socket)
    return this.#waiting.some((bytes, at) => bytes < before[at]!)
  }
}

/**
 * The handle of a socket, an internal object of `net` that Node's own timers use too. With TLS, its `_parent` writes.
 */
type Handle = { writeQueueSize: number; _parent?: Handle }

/**
 * Returns the bytes of all waiting writes, and the bytes of the write under way. The second count stays the same until
 * the system has taken that whole write. One count can shrink while the other grows, so each count is compared alone.
 */
function waitingIn(socket: Socket): number[] {
  const { writableLength } = socket
  const { _handle: handle } = socket as unknown as { _handle?: Handle | null }
  return [writableLength, (handle?._parent ?? handle)?.writeQueueSize || writableLength]
}
