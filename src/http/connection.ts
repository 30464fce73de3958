import type { Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import { mayBecomeHead, ownIfLittle, type RequestHead, readRequestHead } from '../http1/heads.ts'
import { judgeFraming, notHttp, refusal } from './framing.ts'
import { type ExchangeHost, HttpExchange, type ListenerTerms } from './http-exchange.ts'

/** A refused request. Method and target are empty if they are unknown. */
export type Refused = { error: GatewayError; method: string; target: string }

/** The part of the listener that a connection uses. */
export interface ListenerHost extends ListenerTerms {
  readonly headerBytesMax: number
  readonly headersMax: number
  readonly second: number
  /** Called when the head of a request has arrived. */
  admit(connection: Connection, exchange: HttpExchange): void
  /** Called when the newest exchange of a connection is over, or the connection is closed. */
  release(connection: Connection): void
  /** Called for bytes that are not a request, or for a request that is refused. */
  refuse(connection: Connection, refused: Refused): void
}

/** The accepted methods, the same as in Node's parser: those of the IANA registry, and common extensions. */
const methods = new Set(
  'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'.split(
    ' ',
  ),
)
/** The most bytes that a client may send ahead of the answer to its previous request. Further bytes are not read. */
const aheadBytesMax = 16_384
const headEnd = Buffer.from('\r\n\r\n')
const carriageReturn = 0x0d
const lineFeed = 0x0a
/** How long the client's bytes are discarded after the last answer, before the connection is destroyed, in ms. */
const lastWordsMs = 1_000
/** A client can send requests ahead. After this many immediate answers to them, other connections get a turn. */
const inARowMax = 16

/**
 * A client's connection. It reads a request, waits for its answer, and only then reads the next request. Bytes that are
 * sent ahead wait, as RFC 9112 9.3.2 allows. Bytes after a request whose answer closes the connection are never read.
 */
export class Connection implements ExchangeHost {
  readonly socket: Socket
  readonly host: ListenerHost
  /** The exchange under way, until the system has taken all of its answer. */
  exchange: HttpExchange | undefined
  #ahead: Buffer | undefined
  #isAheadJudged = false
  /** How many bytes of `#ahead` were searched for the end of a head, without finding it. */
  #lookedAt = 0
  #isClosing = false
  /** The time in seconds, by the host's clock, at which the connection became idle or the current head began. */
  #since: number
  #isHeadBegun = true
  /** The number of answers in a row after which bytes of the next request were already waiting. */
  #inARow = 0
  #leaving: NodeJS.Timeout | undefined

  constructor(socket: Socket, host: ListenerHost) {
    this.socket = socket
    this.host = host
    this.#since = host.second
    socket.on('data', (bytes: Buffer) => this.#take(bytes))
    socket.on('drain', () => this.exchange?.listener?.clientReady())
    socket.on('end', () => this.#takeEnd())
    // After a reset by the client, the `close` event follows and reports that the client is gone.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#takeClose())
  }

  /** Whether no answer is under way. A request may still be arriving. */
  get isIdle(): boolean {
    return this.exchange === undefined && this.socket.writableLength === 0
  }

  /** Whether the client has the answer, and only the rest of its request is being discarded. */
  get isAnswered(): boolean {
    return this.exchange?.isLingering === true && this.socket.writableLength === 0
  }

  /** Whether the request under way asks no model, such as a page or a sign-in. Nobody pays for such a request. */
  get isSpare(): boolean {
    return this.exchange !== undefined && this.exchange.listener === undefined
  }

  destroy(): void {
    this.socket.destroy()
  }

  /** How long the connection has waited for a request or the rest of a head, in s. Undefined during an exchange. */
  get waited(): { for: 'request' | 'head'; seconds: number } | undefined {
    if (this.exchange || this.#isClosing) return undefined
    return { for: this.#isHeadBegun ? 'head' : 'request', seconds: this.host.second - this.#since }
  }

  /** Sends a last answer. Nothing is read after it. */
  sayLast(text: string): void {
    this.socket.write(text)
    this.#leave()
  }

  /** Discards bytes that still arrive. Closing with unread bytes would reset the connection (RFC 9112 9.6). */
  #leave(): void {
    this.#isClosing = true
    this.#ahead = undefined
    this.socket.end()
    this.socket.resume()
    this.#leaving ??= setTimeout(() => this.socket.destroy(), lastWordsMs).unref()
  }

  answered(exchange: HttpExchange): void {
    // If the connection is closed or closing, the client did not get the answer.
    if (this.exchange !== exchange || this.socket.destroyed) return
    this.exchange = undefined
    exchange.taken()
    this.#since = this.host.second
    this.#isHeadBegun = false
    this.host.release(this)
    const { body } = exchange
    if (!body.isComplete && !body.isBroken) {
      // The body is not read to its end, so the connection cannot carry another request.
      this.#isClosing = true
      this.socket.destroySoon()
      return
    }
    if (!exchange.keepsAlive || this.socket.writableEnded) {
      this.#leave()
      return
    }
    // The reader of the body may have paused the socket and never resumed it.
    if (this.socket.isPaused()) this.socket.resume()
    this.#isAheadJudged = false
    if (this.#ahead === undefined) this.#inARow = 0
    else if (++this.#inARow % inARowMax === 0) setImmediate(() => this.#readAhead())
    else this.#readAhead()
  }

  #readAhead(): void {
    const ahead = this.#ahead
    if (ahead === undefined || this.exchange || this.#isClosing) return
    this.#ahead = undefined
    this.#read(ahead)
  }

  #take(bytes: Buffer): void {
    if (this.#isClosing) return
    const ahead = this.#ahead
    if (ahead === undefined) {
      this.#read(bytes)
      return
    }
    this.#ahead = undefined
    this.#read(Buffer.concat([ahead, bytes]))
  }

  #read(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length && !this.#isClosing) {
      const { exchange } = this
      if (exchange === undefined) {
        const next = this.#readHead(bytes, at)
        if (next < 0) return
        at = next
      } else if (exchange.body.isComplete) {
        this.#keep(bytes, at)
        return
      } else at = exchange.body.feed(bytes, at)
    }
  }

  /** Reads a head. @returns the offset of the body; -1 if the head is incomplete or refused */
  #readHead(bytes: Buffer, from: number): number {
    const start = skipEmptyLines(bytes, from)
    if (start === bytes.length) return start
    if (isHalfLine(bytes, start)) {
      this.#ahead = ownIfLittle(bytes.subarray(start))
      return -1
    }
    if (!this.#isHeadBegun) {
      this.#isHeadBegun = true
      this.#since = this.host.second
    }
    const end = bytes.indexOf(headEnd, Math.max(start, start + this.#lookedAt - headEnd.length))
    if (end < 0 || end - start > this.host.headerBytesMax) {
      this.#awaitHead(bytes, start)
      return -1
    }
    this.#lookedAt = 0
    const text = bytes.toString('latin1', start, end + 2)
    const head = readRequestHead(text)
    if (head === undefined || !methods.has(head.method)) {
      this.#refuse(notHttp(), text)
      return -1
    }
    return this.#begin(head, bytes, end + headEnd.length)
  }

  #awaitHead(bytes: Buffer, start: number): void {
    const { headerBytesMax } = this.host
    if (bytes.length - start > headerBytesMax) {
      const text = bytes.toString('latin1', start, start + headerBytesMax)
      this.#refuse(refusal('The request headers are too large: at most 16 KiB are accepted.', 431), text)
    } else if (!mayBecomeHead(bytes.toString('latin1', start), this.#lookedAt)) {
      const text = bytes.toString('latin1', start)
      this.#refuse(notHttp(), text)
    } else {
      this.#lookedAt = bytes.length - start
      this.#ahead = ownIfLittle(bytes.subarray(start))
    }
  }

  #begin(head: RequestHead, bytes: Buffer, bodyAt: number): number {
    const isTunnel = head.method === 'CONNECT'
    const framing = isTunnel
      ? new GatewayError('unknown_url', 'CONNECT is not served here.')
      : judgeFraming(head, this.host.headersMax)
    if (framing instanceof GatewayError) {
      this.host.refuse(this, { error: framing, method: head.method, target: head.target })
      return -1
    }
    const exchange = new HttpExchange(this, head, framing)
    this.exchange = exchange
    // Most bodies arrive together with their head. Such a body is complete before the handler runs.
    const at = exchange.body.isComplete ? bodyAt : exchange.body.feed(bytes, bodyAt)
    this.host.admit(this, exchange)
    return at
  }

  /** Refuses a head that is not complete in time. */
  refuse(error: GatewayError): void {
    this.#refuse(error, this.#ahead?.toString('latin1', 0, this.host.headerBytesMax) ?? '')
  }

  #refuse(error: GatewayError, text: string): void {
    const [method = '', target = ''] = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/.exec(text)?.slice(1) ?? []
    this.host.refuse(this, { error, method, target })
  }

  /** Keeps bytes that a client sends before it has the answer to its current request. */
  #keep(bytes: Buffer, at: number): void {
    this.#ahead = ownIfLittle(bytes.subarray(at))
    if (this.#ahead.length > aheadBytesMax) this.socket.pause()
    if (this.#isAheadJudged) return
    this.#isAheadJudged = true
    // Bytes that cannot become a request get no answer. The connection closes after the answer to the current request.
    if (!this.#mayBeRequest(this.#ahead)) {
      this.exchange!.keepsAlive = false
      this.#isClosing = true
    }
  }

  #mayBeRequest(bytes: Buffer): boolean {
    const start = skipEmptyLines(bytes, 0)
    const end = bytes.indexOf(headEnd, start)
    if (end < 0) return mayBecomeHead(bytes.toString('latin1', start, start + this.host.headerBytesMax), 0)
    const head = readRequestHead(bytes.toString('latin1', start, end + 2))
    return head !== undefined && methods.has(head.method)
  }

  /**
   * Called when the client sends nothing more (TCP FIN). If its answer is incomplete, it counts as gone (faults F-C7).
   */
  #takeEnd(): void {
    if (this.exchange && !this.exchange.isEnded) this.socket.destroy()
  }

  #takeClose(): void {
    this.#isClosing = true
    this.#ahead = undefined
    clearTimeout(this.#leaving)
    const { exchange } = this
    if (!exchange) return
    this.exchange = undefined
    exchange.gone()
    this.host.release(this)
  }
}

/** Skips empty lines before a request (RFC 9112 2.2). @returns the offset of the request */
function skipEmptyLines(bytes: Buffer, from: number): number {
  let start = from
  while (bytes[start] === carriageReturn && bytes[start + 1] === lineFeed) start += 2
  return start
}

/** Whether the bytes may be the first half of an empty line, so that no head has begun. */
function isHalfLine(bytes: Buffer, start: number): boolean {
  return start === bytes.length - 1 && bytes[start] === carriageReturn
}
