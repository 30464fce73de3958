import { Pieces } from '../bytes/pieces.ts'
import { tierHeader } from '../catalog/base-service.ts'
import type { Config } from '../config/config.ts'
import type { Fault } from '../inference/answer.ts'
import type { Listed } from '../registers.ts'
import { readRetryAfter } from '../upstream/refusal.ts'
import type {
  Flight,
  ResponseHeaders,
  Target,
  TransportFault,
  UpstreamListener,
  Upstreams,
} from '../upstream/target.ts'
import type { Failure } from '../upstream/verdict.ts'
import { decodeRefusal } from '../wires/answers/faults.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import type { Exchange } from './exchange.ts'
import type { Flow, Held } from './fairness/places.ts'
import type { Ticking } from './gateway.ts'
import { Pace } from './read-on.ts'

/** The largest answer that is not a stream, and the most that is read of a refusal, both in bytes (reliability §3). */
const wholeBytesMax = 32 * 1_048_576
const refusalBytesMax = 65_536
/** The longest wait for the text of a refusal, in ms. It is short because another target may be tried next. */
const refusalMs = 5_000

/** The time that an upstream has to end the stream after a complete answer, in ms. */
const lingerMs = 1_000

/** Receives the events of an attempt. No event follows `onWhole` or `onFailure`. */
export interface AttemptListener {
  /**
   * Called when a success status has come. If the first event is an error or refuses sealed parts of the history,
   * another attempt may still follow (ruling U13).
   */
  onAnswer(): void
  /**
   * Called for the first byte of a body or the first event of a stream. Blanks, comments and pings do not count (ruling
   * Y25).
   */
  onFirstByte(): void
  /** A piece of a stream as text for the client. It may be empty. `relay.state` says how far the answer has come. */
  onPiece(relay: StreamRelay, text: string): void
  onWhole(answer: WholeAnswer): void
  /**
   * Called when a stream ended at a stop sequence, if the stream is combined into one JSON answer. The upstream is
   * still read until it ends, or until `conclude` is called.
   */
  onStop(fold: StreamFold): void
  onFailure(failure: Failure): void
  /** Called when our own code threw while it handled bytes of the upstream. */
  onBug(error: Error): void
}

type AttemptParts = {
  upstreams: Upstreams
  target: Target
  /** Sends the request on a new connection (`UpstreamRequest`, faults F-U6). */
  isFresh: boolean
  traceparent?: string | undefined
  timeouts: Pick<Config['timeouts'], 'firstByteStreamMs' | 'firstByteJsonMs' | 'idleMs' | 'progressMs'>
  flow: Flow
  /** Unix milliseconds, to interpret dates in an upstream's headers. */
  nowMs: () => number
  /** A monotonic clock in ms. */
  clockMs: () => number
}

/**
 * - `waiting`: the head has not come.
 * - `refusing`: the text of an error status is read.
 * - `reading`: a whole body is read, or a stream is folded into one answer.
 * - `streaming`: a stream is read and passed on.
 * - `lingering`: the answer is complete, but the upstream has not closed.
 *
 * The listener is not called in `lingering` and `over`.
 */
type AttemptState = 'waiting' | 'refusing' | 'reading' | 'streaming' | 'lingering' | 'over'

const moves: Record<AttemptState, readonly AttemptState[]> = {
  waiting: ['refusing', 'reading', 'streaming', 'over'],
  refusing: ['over'],
  reading: ['streaming', 'lingering', 'over'],
  // The state goes to `reading` if the media type promised a stream, but a plain body comes.
  streaming: ['reading', 'lingering', 'over'],
  lingering: ['over'],
  over: [],
}

/**
 * One try at one upstream account. It receives the head of the response, the bytes, and then the end or a fault.
 * Silence is measured from the start of this try. An attempt knows neither client nor bill. It decodes the bytes by the
 * model's wire and reports to its listener.
 */
export class Attempt implements UpstreamListener, Ticking, Held, Listed {
  /** The index of this attempt in its `Roster`. */
  place: number | undefined
  readonly target: Target
  /** The tier of service that the head of the answer names (ruling Y17). */
  tier: string | undefined
  readonly pace: Pace
  /** The time at which the head of the answer came, by the monotonic clock. */
  headMs: number | undefined
  /** The media type of the answer, `''` if it had none. It is logged if the answer cannot be read (ruling Y1). */
  contentType = ''
  /** The `Date` header of a refusal. */
  refusedAt: string | undefined
  /** The HTTP status of the upstream; 0 before its head came. */
  status = 0
  readonly #parts: AttemptParts
  #exchange: Exchange | undefined
  #listener: AttemptListener | undefined
  #flight: Flight | undefined
  /** The last value of `flight.isSent()`, kept when the flight (the request on its connection) ends. */
  #isSent = false
  #state: AttemptState = 'waiting'
  #relay: StreamRelay | undefined
  #fold: StreamFold | undefined
  #chunks = new Pieces()
  #bytes = 0
  /** Whether the text of a refusal is still compressed, so that it cannot be read. */
  #isPacked = false
  /** Whether the first bytes have shown the form of the answer: a stream or one body (ruling Y1). */
  #isFormKnown = false
  #retryAfterSeconds: number | undefined
  /** The AWS exception that the head of a refusal names. */
  #exception: string | undefined
  readonly #startedMs: number
  #lastByteMs: number
  #lastEventMs: number
  #lastEvents = 0
  #isPaused = false
  /** Whether the stream is paused because it brought more than its share in this turn of the ticker. */
  #isHeldBack = false
  #broughtBytes = 0
  #turn: number
  #lingersSinceMs = 0

  /** @param exchange is kept only until the answer is complete */
  constructor(parts: AttemptParts, exchange: Exchange, listener: AttemptListener) {
    this.target = parts.target
    this.#parts = parts
    this.#exchange = exchange
    this.#turn = parts.flow.turn
    this.#listener = listener
    this.#startedMs = this.#lastByteMs = this.#lastEventMs = parts.clockMs()
    this.pace = new Pace(this.#startedMs)
  }

  /** Sends the request. The upstream may call methods of this attempt before `start` returns. */
  start(): void {
    const exchange = this.#exchange!
    const { credential, asksForStream: isStream } = exchange
    const headers = exchange.headersFor(this.target)
    const { upstreams, traceparent, isFresh } = this.#parts
    if (traceparent !== undefined) headers.push(['traceparent', traceparent])
    const request = { credential, isStream, headers, body: exchange.bodyFor(this.target), isFresh }
    const flight = upstreams.send(this.target, request, this)
    if (this.#state !== 'over') this.#flight = flight
  }

  /** Whether the request body is no longer in use, so that its memory may be given back. */
  get isSent(): boolean {
    return this.#flight?.isSent() ?? this.#isSent
  }

  /** Whether the upstream may have received the request, and may charge for it. */
  get wasWritten(): boolean {
    return this.#state !== 'waiting' || this.#flight?.wasWritten() === true
  }

  /** Whether the upstream answered with an error status, and the text of the error is still being read. */
  get isRefusing(): boolean {
    return this.#state === 'refusing'
  }

  onHead(status: number, contentType: string, headers: ResponseHeaders): void {
    this.#contain(() => this.#takeHead(status, contentType, headers))
  }

  onData(chunk: Buffer): void {
    this.#contain(() => this.#takeData(chunk))
  }

  onEnd(): void {
    this.#isSent = this.isSent
    this.#takeClose(() => this.#takeEnd())
  }

  onError(fault: TransportFault): void {
    this.#takeClose(() => this.#takeError(fault))
  }

  /** Abandons an attempt that lingers for too long. Otherwise checks the upstream's silence. @param nowMs monotonic */
  tick(nowMs: number): void {
    if (this.#state === 'lingering') {
      if (nowMs - this.#lingersSinceMs >= lingerMs) this.abandon()
    } else this.#contain(() => this.#checkSilence(nowMs))
  }

  /**
   * Stops reading because the client does not take what it was sent. The upstream's silence does not count meanwhile.
   */
  pause(): void {
    this.#isPaused = true
    this.#notePace(this.#parts.clockMs())
    this.#relay?.compact()
    this.#flight?.pause()
  }

  /** Continues to read. The client caused the pause, so the time of the upstream's silence starts again. */
  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#lastByteMs = this.#lastEventMs = this.#parts.clockMs()
    this.pace.skip(this.#lastByteMs)
    if (!this.#isHeldBack) this.#flight?.resume()
  }

  /**
   * Resumes a stream that is paused because it brought more bytes than its share. Each turn of the ticker adds a share.
   * @returns false if the stream is still over its share
   */
  letOn(): boolean {
    if (this.#flight && this.#overdrawn() > 0) return false
    this.#isHeldBack = false
    this.#contain(() => {
      if (!this.#isPaused) this.#flight?.resume()
    })
    return true
  }

  /**
   * Ends the attempt after the gateway has cut its answer at a stop sequence. The listener gets the answer up to there.
   */
  conclude(): void {
    if (this.#fold) this.#finish(this.#fold.whole())
  }

  /**
   * Ends the attempt if the events so far show that the answer is complete (ruling T19). The listener gets the answer.
   * @returns false if the events do not show that the answer is complete
   */
  endByEvidence(): boolean {
    const text = this.#relay?.breakOff() ?? ''
    this.#fold?.breakOff()
    if (this.#relay?.state === 'finished') this.#tell(this.#relay, text)
    else if (this.#fold?.state === 'finished') this.#finish(this.#fold.whole())
    else return false
    return true
  }

  /** Closes the connection. The listener is not called any more. */
  abandon(): void {
    const flight = this.#flight
    this.#letGo('over')
    flight?.abort()
  }

  /** Whether the answer is complete but the upstream has not closed. The owner calls `tick` as long as this is true. */
  get isLingering(): boolean {
    return this.#state === 'lingering'
  }

  #takeHead(status: number, contentType: string, headers: ResponseHeaders): void {
    if (this.#state !== 'waiting') return
    this.headMs = this.#lastByteMs = this.#lastEventMs = this.#parts.clockMs()
    this.status = status
    const coding = headers.get('content-encoding')?.toLowerCase() || 'identity'
    if (status < 200 || status > 299) {
      this.#isPacked = coding !== 'identity'
      this.#retryAfterSeconds = readRetryAfter(headers, this.#parts.nowMs())
      this.#exception = headers.get('x-amzn-errortype')
      this.refusedAt = headers.get('date')
      this.#move('refusing')
      return
    }
    this.tier = headers.get(tierHeader)
    this.contentType = contentType
    if (coding !== 'identity') {
      this.#fail(broken, 'upstream_protocol')
      return
    }
    if (contentType === 'text/event-stream') this.#openStream()
    this.#move(this.#relay ? 'streaming' : 'reading')
    this.#listener!.onAnswer()
  }

  get #isStream(): boolean {
    return (this.#relay ?? this.#fold) !== undefined
  }

  #openStream(): void {
    const exchange = this.#exchange!
    if (exchange.stream) this.#relay = exchange.openStream()
    else this.#fold = exchange.openFold()
  }

  /**
   * Finds by the first bytes whether an answer is an event stream or a body (ruling Y1). The media type is not enough,
   * because servers and proxies often set a wrong one.
   * @returns the bytes to read; undefined if more are needed to decide
   */
  #readForm(chunk: Buffer): Buffer | undefined {
    this.#chunks.add(chunk)
    const start = this.#chunks.join()
    const form = formOf(start)
    if (form === undefined) return undefined
    this.#isFormKnown = true
    this.#chunks = new Pieces()
    if (form === 'body') [this.#relay, this.#fold] = [undefined, undefined]
    else if (form === 'events' && !this.#isStream) this.#openStream()
    const state = this.#relay ? 'streaming' : 'reading'
    if (state !== this.#state) this.#move(state)
    if (form === 'body') this.#listener!.onFirstByte()
    return form === 'body' && start[0] === 0xef ? start.subarray(3) : start
  }

  #takeData(piece: Buffer): void {
    this.#lastByteMs = this.#parts.clockMs()
    if (this.#isFormKnown || this.#state === 'refusing') {
      this.#read(piece)
      return
    }
    const start = this.#readForm(piece)
    if (start !== undefined) this.#read(start)
  }

  #read(chunk: Buffer): void {
    if (this.#isStream) this.#noteShare(chunk.length)
    if (this.#relay) {
      this.#tell(this.#relay, this.#relay.push(chunk))
      return
    }
    this.#bytes += chunk.length
    if (this.#fold) this.#pushFold(this.#fold, chunk)
    else if (this.#state === 'refusing') {
      this.#chunks.add(chunk)
      if (this.#bytes > refusalBytesMax) this.#refuse()
    } else if (this.#bytes > wholeBytesMax) this.#fail(broken, 'upstream_oversize')
    else this.#chunks.add(chunk)
  }

  /** Counts bytes of the stream. Pauses the stream if it has brought more than its share of bytes (B10). */
  #noteShare(bytes: number): void {
    const isOver = this.#overdrawn() + bytes > 0
    this.#broughtBytes += bytes
    if (!isOver || this.#isHeldBack || !this.#flight) return
    this.#isHeldBack = true
    this.#flight.pause()
    this.#parts.flow.hold(this)
  }

  /**
   * Returns by how many bytes the stream exceeds its share in this turn of the ticker (see `Flow`). Negative if some of
   * the share is left.
   */
  #overdrawn(): number {
    const { turn, share } = this.#parts.flow
    if (turn === this.#turn) return this.#broughtBytes - share
    // Each turn allows one more share of bytes. An unused part of an earlier share is not saved.
    this.#broughtBytes = Math.max(0, this.#broughtBytes - (turn - this.#turn) * share)
    this.#turn = turn
    return this.#broughtBytes - share
  }

  #pushFold(fold: StreamFold, chunk: Buffer): void {
    const { state: before } = fold
    fold.push(chunk)
    this.#noteProgress(fold.events)
    this.#notePace(this.#lastByteMs)
    if (fold.state === 'stopped' && !fold.isSpent) {
      if (before !== 'stopped') this.#listener!.onStop(fold)
    } else if (fold.state !== 'unseen' && fold.state !== 'shown') this.#finish(fold.whole())
  }

  /** Called when the connection has ended or broken. */
  #takeClose(work: () => void): void {
    this.#flight = undefined
    if (this.#state === 'lingering') this.#letGo('over')
    this.#contain(work)
  }

  #takeEnd(): void {
    if (this.#relay) this.#tell(this.#relay, this.#relay.end())
    else if (this.#fold) {
      this.#fold.end()
      this.#finish(this.#fold.whole())
    } else if (this.#state === 'refusing') this.#refuse()
    else this.#takeWhole(this.#takeChunks())
  }

  /** Handles a whole body: the answer in JSON, or JSON from an upstream that was asked for a stream. */
  #takeWhole(body: Buffer): void {
    const exchange = this.#exchange!
    if (!exchange.stream) {
      this.#finish(exchange.readWhole(body))
      return
    }
    this.#relay = exchange.openStream()
    this.#move('streaming')
    this.#tell(this.#relay, this.#relay.pushWhole(body))
  }

  #takeError({ cause, isReuseRace }: TransportFault): void {
    if (this.#state === 'refusing') this.#refuse()
    else if (cause === 'upstream_silent') this.#takeSilence()
    else if (this.#state === 'waiting') this.#fail(broken, cause, isReuseRace)
    else this.#breakOff(cause)
  }

  /**
   * Handles an upstream that was silent too long. No other target of the model is tried, because the provider could
   * then charge twice (faults F-U7).
   */
  #takeSilence(): void {
    if (this.#state === 'waiting') this.#fail(broken, 'upstream_ttfb_timeout')
    else this.#breakOff('upstream_stall')
  }

  /** Fails with an HTTP refusal. Its text may be incomplete, because the status alone shows that it is a refusal. */
  #refuse(): void {
    const text = this.#isPacked ? '' : this.#takeChunks().toString('utf8')
    const { status } = this
    const fault = status >= 400 ? decodeRefusal(status, text, this.#exception) : broken
    this.#fail(fault, status >= 300 && status < 400 ? 'upstream_redirect' : `upstream_${status}`)
  }

  #checkSilence(nowMs: number): void {
    if (this.#isPaused) return
    const { firstByteStreamMs, firstByteJsonMs, idleMs, progressMs } = this.#parts.timeouts
    if (this.#state === 'waiting') {
      const limitMs = this.#exchange!.stream ? firstByteStreamMs : firstByteJsonMs
      if (nowMs - this.#startedMs >= limitMs) this.#takeSilence()
      return
    }
    const isSilent = nowMs - this.#lastByteMs >= idleMs
    // An answer that is not a stream has no events, so only its bytes count as progress.
    const isStuck = this.#isStream && nowMs - this.#lastEventMs >= progressMs
    // A refusal whose text stalls is still a refusal, because the status alone is enough.
    if (this.#state === 'refusing') {
      if (isSilent || nowMs - this.headMs! >= refusalMs) this.#refuse()
    } else if (isSilent || isStuck) this.#takeSilence()
  }

  /**
   * Ends an answer that breaks off. The answer counts as complete if its own events show this (ruling T19). Otherwise
   * it counts as cut.
   */
  #breakOff(cause: string): void {
    if (!this.endByEvidence()) this.#fail({ kind: 'truncated', text: '' }, cause)
  }

  #tell(relay: StreamRelay, text: string): void {
    const listener = this.#listener!
    this.#noteProgress(relay.events)
    this.#notePace(this.#lastByteMs)
    // If we ended the answer at a stop sequence, the listener decides whether to read on or to abandon.
    if (relay.state === 'finished') this.#linger()
    else if (relay.state === 'failed') this.abandon()
    listener.onPiece(relay, text)
  }

  #notePace(nowMs: number): void {
    this.pace.note((this.#relay ?? this.#fold)?.stage ?? 'silent', nowMs)
  }

  #noteProgress(events: number): void {
    if (events === this.#lastEvents) return
    if (this.#lastEvents === 0) this.#listener!.onFirstByte()
    this.#lastEvents = events
    this.#lastEventMs = this.#lastByteMs
  }

  #finish(answer: WholeAnswer): void {
    const listener = this.#listener!
    if (answer.state === 'finished') this.#linger()
    else this.abandon()
    listener.onWhole(answer)
  }

  /**
   * Called when the answer is complete. The upstream gets a moment to close the stream, so that the connection can be
   * reused.
   */
  #linger(): void {
    const flight = this.#flight
    this.#letGo(flight ? 'lingering' : 'over')
    this.#lingersSinceMs = this.#parts.clockMs()
    this.#isPaused = false
    flight?.resume()
  }

  #fail(fault: Fault, cause: string, isReuseRace = false): void {
    // If we have ended the answer at a stop sequence, a later failure does not damage it.
    if (this.#fold?.state === 'stopped') {
      this.conclude()
      return
    }
    const listener = this.#listener!
    const retryAfterSeconds = this.#retryAfterSeconds
    this.abandon()
    listener.onFailure({ fault, cause, retryAfterSeconds, isReuseRace })
  }

  #takeChunks(): Buffer {
    const body = this.#chunks.join()
    this.#chunks = new Pieces()
    return body
  }

  /**
   * Does the work unless the answer is complete or the attempt is over. Catches exceptions of our own code, so that a
   * bug ends this request and no other (faults F-P7).
   */
  #contain(work: () => void): void {
    const listener = this.#listener
    if (listener === undefined) return
    try {
      work()
    } catch (error) {
      listener.onBug(error as Error)
    }
  }

  #letGo(state: 'lingering' | 'over'): void {
    if (this.#state !== 'over') this.#move(state)
    // An attempt that waits for the upstream's end must not keep the delivery, the exchange and the answer in memory.
    this.#listener = undefined
    this.#exchange = undefined
    this.#relay = undefined
    this.#fold = undefined
    this.#chunks = new Pieces()
    if (state === 'over') this.#flight = undefined
  }

  #move(to: AttemptState): void {
    if (!moves[this.#state].includes(to)) throw new Error(`an attempt cannot go from ${this.#state} to ${to}`)
    this.#state = to
  }
}

const broken: Fault = { kind: 'broken', text: '' }

/** The texts with which a line of an event stream can begin. A colon begins a comment. */
const fields = ['data:', 'event:', 'id:', 'retry:', ':']

/** This many bytes always suffice to see whether an event stream or a JSON body begins. */
const startBytes = 64

/** Finds the form of an answer by its first bytes. Skips a byte order mark and blanks. Undefined for too few bytes. */
function formOf(bytes: Buffer): 'events' | 'body' | 'other' | undefined {
  // Nearly every body begins with `{`. This check saves decoding it as text.
  if (bytes[0] === 0x7b) return 'body'
  const start = bytes
    .toString('latin1', 0, startBytes)
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
  if (start.startsWith('{')) return 'body'
  if (fields.some((field) => start.startsWith(field))) return 'events'
  const isShort =
    bytes.length < startBytes &&
    (start === '' || '\xef\xbb\xbf'.startsWith(start) || fields.some((field) => field.startsWith(start)))
  return isShort ? undefined : 'other'
}
