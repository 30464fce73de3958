import type { Socket } from 'node:net'
import { isProxysAnswer } from '../config/egress.ts'
import { ChunkedReader } from '../http1/chunked.ts'
import {
  canStandInHead,
  framingOf,
  inOnePiece,
  ownBytes,
  type ResponseHead,
  readResponseHead,
  staysOpen,
} from '../http1/heads.ts'
import { ProxyRefusal } from './dial.ts'
import {
  type ConnectionTerms,
  type Flight,
  informationalMax,
  type TransportFault,
  type UnaskedPlace,
  type UpstreamListener,
} from './target.ts'
import { faultOfProxy, judgeTransport, raceMs } from './transport-fault.ts'

/** The way (all connections to one origin) that owns a connection. */
export interface ConnectionHost {
  /** The upstream's name, for reports. */
  readonly name: string
  /** The host that answers, with its port. */
  readonly host: string
  /**
   * Whether the connection goes to a proxy that forwards single requests. The proxy's own answers then come on the same
   * connection as the upstream's.
   */
  readonly isForwarded: boolean
  readonly terms: ConnectionTerms
  /** Takes back a connection that is now free for another request. */
  giveBack(connection: WayConnection): void
  forget(connection: WayConnection): void
  /** Closes all idle connections. If a more recently used connection is dead, these are probably dead too. */
  dropIdle(): void
}

const headEnd = Buffer.from('\r\n\r\n')
/** The maximum number of fields in a head (faults F-U30). Providers send some forty. */
const headersMax = 500
/**
 * How long an idle connection is kept, in ms. `keptMs` applies if the server names no time. `keptMsMax` is the longest
 * time.
 */
const keptMs = 30_000
const keptMsMax = 600_000
/**
 * We close an idle connection this much earlier than its server would, in ms. So no request is sent while the server
 * closes the connection.
 */
const marginMs = 2_000
/**
 * After each answer, a connection pauses before its next request, so that late bytes are noticed (ruling Y14). The
 * pause is the longest wait for a first byte in the last `restAnswers` answers. `restMsMin` and `restMsMax` limit the
 * pause, in ms.
 */
const restAnswers = 8
const restMsMin = 1
const restMsMax = 30_000

/** How the end of a body is known: by the number of bytes left, by its chunks, or by the end of the connection. */
type BodyEnd = { left: number } | ChunkedReader | 'until_close'

/**
 * A connection to an upstream, with one request at a time. It is closed after bytes that are not exactly an HTTP/1.1
 * response (RFC 9112), or that no request has asked for. Two parsers could read different answers from such bytes.
 */
export class WayConnection implements Carrier {
  /** Always true, because this object is created only when its connection is ready for a request. */
  readonly isOpen = true
  readonly #socket: Socket
  readonly #host: ConnectionHost
  #flight: WayFlight | undefined
  /** How the body ends; undefined while a head is awaited. */
  #body: BodyEnd | undefined
  /** Whether the whole body has arrived. While reading is paused, the request does not learn this until it resumes. */
  #isWhole = false
  /** Bytes that are not read yet. They are a part of a head, or wait until a paused request resumes. */
  #ahead: Buffer | undefined
  #isReading = false
  /** The reason why the connection has closed. It is kept until the paused request resumes. */
  #closedBy: Error | undefined
  /** The number of bytes of a head in which its end was searched for without success. */
  #lookedAt = 0
  #informational = 0
  /** The number of answers before the current one, and whether the current answer has begun. */
  #served = 0
  #isHeard = false
  #sentMs = 0
  /** How long the first bytes of this connection's last answers took, in ms. */
  readonly #firstByteMs: number[] = []
  #status = 0
  #keepsAlive = true
  #keptMs = keptMs
  #idleSinceMs = 0
  restedAtMs = 0

  constructor(socket: Socket, host: ConnectionHost) {
    this.#socket = socket
    this.#host = host
    let failure: Error | undefined
    socket.on('error', (error) => {
      failure = error
    })
    socket.on('end', () => this.#takeEnd())
    socket.on('close', () => {
      host.forget(this)
      this.#takeClose(failure)
    })
  }

  /** Whether the system has taken all bytes that were sent. */
  get isSent(): boolean {
    return this.#socket.writableLength === 0
  }

  /** Whether the connection is open, and has not been idle so long that its server may close it. */
  get isUsable(): boolean {
    return !this.#socket.destroyed && this.#host.terms.clockMs() - this.#idleSinceMs < this.#keptMs
  }

  destroy(): void {
    this.#socket.destroy()
  }

  /**
   * Pauses reading once the answer's body has begun. The head of the answer is always read and passed on, even in a
   * pause.
   */
  pause(): void {
    if (this.#body !== undefined) this.#socket.pause()
  }

  resume(): void {
    // If a listener calls `resume` during a read, that read continues by itself.
    if (!this.#isReading) this.#goOn()
    if (this.#flight?.isPaused !== true) this.#socket.resume()
  }

  #goOn(): void {
    this.#contain(() => {
      const ahead = this.#body === undefined ? undefined : this.#ahead
      if (ahead) {
        this.#ahead = undefined
        this.#read(ahead, false)
      }
      if (this.#isWhole && this.#flight?.isPaused === false) this.#finish()
      else if (this.#closedBy && this.#flight?.isPaused === false) this.#fail(this.#closedBy)
    })
  }

  fly(flight: WayFlight, head: string, body: Buffer): void {
    this.#flight = flight
    flight.connection = this
    this.#isHeard = false
    this.#sentMs = this.#host.terms.clockMs()
    this.#informational = 0
    const piece = inOnePiece(head, body)
    if (piece !== undefined) this.#socket.write(piece, 'latin1')
    else {
      this.#socket.cork()
      this.#socket.write(head, 'latin1')
      this.#socket.write(body)
      this.#socket.uncork()
    }
  }

  /**
   * Takes bytes that have arrived.
   * @param isShared true if the buffer is overwritten after this call, so that bytes to keep must be copied
   */
  take(bytes: Buffer, isShared: boolean): void {
    if (this.#flight === undefined) {
      this.#noteUnasked('idle')
      this.destroy()
      return
    }
    if (this.#isWhole) {
      if (this.#keepsAlive) this.#noteUnasked('behind_answer')
      return
    }
    this.#isHeard = true
    const ahead = this.#ahead
    this.#ahead = undefined
    this.#contain(() => {
      if (ahead) this.#read(Buffer.concat([ahead, bytes]), false)
      else this.#read(bytes, isShared)
    })
  }

  /** Catches exceptions, so that a bug ends this connection and no other. */
  #contain(work: () => void): void {
    this.#isReading = true
    try {
      work()
    } catch (bug) {
      this.#host.terms.reportBug(bug as Error)
      this.destroy()
    }
    this.#isReading = false
  }

  #read(bytes: Buffer, isShared: boolean): void {
    let at = 0
    while (at < bytes.length) {
      const flight = this.#flight
      if (flight === undefined || flight.isOver) {
        this.destroy()
        return
      }
      if (this.#body !== undefined && flight.isPaused) {
        this.#ahead = keep(bytes, at, isShared)
        return
      }
      at =
        this.#body === undefined
          ? this.#readHead(flight, bytes, at, isShared)
          : this.#readBody(flight, bytes, at, isShared)
      if (this.#isWhole && at < bytes.length) {
        // The answer is complete and counts, although bytes follow that nobody asked for.
        this.#noteUnasked('behind_answer')
        at = bytes.length
      }
      if (this.#isWhole && !flight.isPaused) this.#finish()
    }
  }

  /** Reads a head. @returns where the body begins, or the length of the bytes if the head is incomplete or invalid */
  #readHead(flight: WayFlight, bytes: Buffer, from: number, isShared: boolean): number {
    const end = bytes.indexOf(headEnd, Math.max(from, from + this.#lookedAt - headEnd.length))
    const isTooLong = (end < 0 ? bytes.length : end) - from > this.#host.terms.headerBytesMax
    if (isTooLong || !startsAsHttp(bytes, from)) {
      this.#break()
      return bytes.length
    }
    if (end < 0) {
      this.#awaitHead(bytes, from, isShared)
      return bytes.length
    }
    this.#lookedAt = 0
    const head = readResponseHead(bytes.toString('latin1', from, end + 2))
    if (head === undefined || head.fields.count > headersMax) this.#break()
    else if (head.status >= 200) this.#begin(flight, head)
    // Status 101 begins another protocol, which no request of the gateway asks for.
    else if (head.status === 101 || ++this.#informational > informationalMax) this.#break()
    return end + headEnd.length
  }

  #awaitHead(bytes: Buffer, from: number, isShared: boolean): void {
    // The last two of the checked bytes are checked again, because a line end may begin in them.
    const seen = Math.max(0, this.#lookedAt - 2)
    if (canStandInHead(bytes.toString('latin1', from + seen), Math.min(2, seen))) {
      this.#ahead = keep(bytes, from, isShared)
      this.#lookedAt = bytes.length - from
    } else this.#break()
  }

  #begin(flight: WayFlight, { status, minor, fields }: ResponseHead): void {
    const framing = framingOf(fields, minor)
    if (typeof framing === 'object') {
      this.#break()
      return
    }
    const isEmpty = status === 204 || status === 304
    if (framing === 'chunked' && !isEmpty) this.#body = new ChunkedReader()
    else this.#body = framing === undefined && !isEmpty ? 'until_close' : { left: isEmpty ? 0 : Number(framing) }
    this.#keepsAlive = this.#body !== 'until_close' && staysOpen(fields.get('connection'), minor)
    // With a 408, a server says that no request came in time. It has not processed our request, so the request can be
    // sent again (golang/go#32310, 2019-05-29).
    if (status === 408 && !this.#keepsAlive && this.#served > 0 && this.#waitedMs < raceMs) {
      this.#isHeard = false
      this.#noteUnasked('timeout')
      this.#break(reset())
      return
    }
    if (this.#host.isForwarded && isProxysAnswer(status, (name) => fields.get(name))) {
      this.#break(new ProxyRefusal(status))
      return
    }
    this.#keptMs = keptMsOf(fields.get('keep-alive'))
    this.#status = status
    // The time to the first byte is noted only here, because an interim response (1xx) does not count.
    this.#firstByteMs[this.#served % restAnswers] = this.#waitedMs
    this.#isWhole = typeof this.#body === 'object' && 'left' in this.#body && this.#body.left === 0
    const date = this.#host.terms.onDate && fields.first('date')
    if (date !== undefined) this.#host.terms.onDate!(this.#host.host, date)
    flight.listener!.onHead(status, mediaTypeOf(fields.first('content-type')), fields)
    if (flight.isPaused) this.#socket.pause()
  }

  #readBody(flight: WayFlight, bytes: Buffer, from: number, isShared: boolean): number {
    const body = this.#body!
    if (body instanceof ChunkedReader) return this.#readChunks(flight, body, bytes, from, isShared)
    let end = bytes.length
    if (body !== 'until_close') {
      end = Math.min(end, from + body.left)
      body.left -= end - from
      this.#isWhole = body.left === 0
    }
    const piece = bytes.subarray(from, end)
    flight.listener!.onData(isShared ? ownBytes(piece) : piece)
    return end
  }

  /** Reads chunks. All chunks that came at once are passed on as one piece. */
  #readChunks(flight: WayFlight, chunks: ChunkedReader, bytes: Buffer, from: number, isShared: boolean): number {
    const { at, data } = chunks.read(bytes, from, isShared)
    this.#isWhole = chunks.isOver
    if (data) flight.listener!.onData(data)
    if (!chunks.isBroken) return at
    if (!flight.isOver) this.#break()
    return bytes.length
  }

  /** Ends the flight of a complete answer, and makes the connection free or closes it. */
  #finish(): void {
    const flight = this.#flight!
    this.#flight = undefined
    this.#body = undefined
    this.#isWhole = false
    const mayBeForeign = this.#served++ > 0 && this.#status < 300
    let restMs = restMsMin
    for (const ms of this.#firstByteMs) if (ms > restMs) restMs = ms
    this.#idleSinceMs = this.#host.terms.clockMs()
    this.restedAtMs = this.#idleSinceMs + restMs
    if (!this.#keepsAlive || flight.isOver || restMs > restMsMax || restMs >= this.#keptMs) this.destroy()
    else if (this.isSent) this.#host.giveBack(this)
    // If bytes are still unsent, the server has stopped reading, and the next request would wait. So the connection is
    // closed. With TLS, Node knows only in a later phase of the event loop which bytes were sent.
    else
      setImmediate(() => {
        if (mayBeForeign && !this.isSent) this.#noteUnasked('before_sent')
        this.destroy()
      })
    flight.end()
  }

  /** Reports bytes that no request asked for. This connection and all idle connections are not used again. */
  #noteUnasked(place: UnaskedPlace): void {
    this.#keepsAlive = false
    this.#host.dropIdle()
    this.#host.terms.onUnasked(this.#host.name, place)
  }

  #takeEnd(): void {
    this.#keepsAlive = false
    if (this.#flight !== undefined && this.#body === 'until_close') {
      this.#isWhole = true
      this.#contain(() => {
        if (!this.#flight!.isPaused) this.#finish()
      })
    } else if (!this.#isHeldBack) {
      // The connection is closed now, even if part of the request is unsent, because no more of the answer can come.
      this.#fail(reset())
      this.destroy()
    }
  }

  /** Handles the end of the connection. A paused flight gets the rest of its answer when it resumes. */
  #takeClose(failure: Error | undefined): void {
    this.#keepsAlive = false
    if (this.#isHeldBack) this.#closedBy = failure ?? reset()
    else this.#fail(failure ?? reset())
  }

  get #isHeldBack(): boolean {
    return this.#flight?.isPaused === true && this.#body !== undefined && (this.#isWhole || this.#ahead !== undefined)
  }

  #break(error: Error = Object.assign(new Error('it does not answer in HTTP/1.1'), { code: 'EBADMSG' })): void {
    this.#fail(error)
    this.destroy()
  }

  #fail(error: Error): void {
    const flight = this.#flight
    if (flight === undefined) return
    this.#flight = undefined
    const unheardMs = this.#served > 0 && !this.#isHeard ? this.#waitedMs : undefined
    const fault = error instanceof ProxyRefusal ? faultOfProxy(error) : judgeTransport(error, unheardMs)
    // If the request was given up, the gateway itself closed this connection. That says nothing about idle connections.
    if (fault.isReuseRace && !flight.isOver) this.#host.dropIdle()
    flight.fail(fault, error)
  }

  get #waitedMs(): number {
    return this.#host.terms.clockMs() - this.#sentMs
  }
}

const start = Buffer.from('HTTP/1.')

function startsAsHttp(bytes: Buffer, from: number): boolean {
  const length = Math.min(start.length, bytes.length - from)
  return bytes.compare(start, 0, length, from, from + length) === 0
}

function keptMsOf(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : /timeout=(\d{1,9})/i.exec(keepAlive)?.[1]
  return seconds === undefined ? keptMs : Math.min(keptMsMax, Number(seconds) * 1_000 - marginMs)
}

function keep(bytes: Buffer, from: number, isShared: boolean): Buffer {
  const rest = bytes.subarray(from)
  return isShared ? ownBytes(rest) : rest
}

function reset(): Error {
  return Object.assign(new Error('the upstream has closed the connection'), { code: 'ECONNRESET' })
}

/** Returns the media type of a `content-type` in lower case, without parameters; `''` if there is none. */
function mediaTypeOf(contentType: string | undefined): string {
  if (contentType === undefined || contentType === 'application/json') return contentType ?? ''
  const semicolon = contentType.indexOf(';')
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase()
}

/** The members of a connection that its flight (the request on this connection) uses. */
interface Carrier {
  /** Whether the connection is, or was, ready for a request. */
  readonly isOpen: boolean
  readonly isSent: boolean
  pause(): void
  resume(): void
  destroy(): void
}

/** A request under way. First its connection is opened, then the request runs on this connection. */
export class WayFlight implements Flight {
  isPaused = false
  connection: Carrier | undefined
  listener: UpstreamListener | undefined

  constructor(listener: UpstreamListener) {
    this.listener = listener
  }

  get isOver(): boolean {
    return this.listener === undefined
  }

  abort(): void {
    if (this.isOver) return
    this.listener = undefined
    this.connection?.destroy()
  }

  pause(): void {
    this.isPaused = true
    if (!this.isOver) this.connection?.pause()
  }

  resume(): void {
    this.isPaused = false
    if (!this.isOver) this.connection?.resume()
  }

  isSent(): boolean {
    return this.connection?.isSent === true
  }

  wasWritten(): boolean {
    return this.connection?.isOpen === true
  }

  /** Ends the flight. The listener gets the fault, and the error from which the fault was derived. */
  fail(fault: TransportFault, error: Error): void {
    const { listener } = this
    this.listener = undefined
    listener?.onError(fault, error)
  }

  end(): void {
    const { listener } = this
    this.listener = undefined
    listener?.onEnd()
  }
}
