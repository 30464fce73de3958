import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { type EventFrame, EventFrames, frameType } from '../clouds/event-frames.ts'
import type { Flight, ResponseHeaders, TransportFault, UpstreamListener } from './target.ts'

/** If a compressed answer breaks off, its content so far is passed on. The content shows whether it is complete. */
const asFarAsItCame = { finishFlush: constants.Z_SYNC_FLUSH }

/** Limits the window of a frame to 8 MB, as HTTP does (RFC 9659 3). A larger one is refused before it takes memory. */
const zstd = {
  finishFlush: constants.ZSTD_e_flush,
  params: { [constants.ZSTD_d_windowLogMax]: 23 },
}

/** Decompressors by content coding (RFC 9110 8.4.1, RFC 7932, RFC 9659). @param first the first byte of the body */
const codings = new Map<string, (first: number) => Transform>([
  ['gzip', () => createGunzip(asFarAsItCame)],
  ['x-gzip', () => createGunzip(asFarAsItCame)],
  ['deflate', (first) => (isUnframed(first) ? createInflateRaw(asFarAsItCame) : createInflate(asFarAsItCame))],
  ['br', () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })],
  ['zstd', () => createZstdDecompress(zstd)],
])

/**
 * Whether `deflate` data has no zlib header, as some servers send it. In a header, the low half of the first byte is 8
 * (the method). Other servers label uncompressed text as `deflate`. Text that begins with `{`, `[` or `:` could be
 * decoded to noise without a header (fixed codes, RFC 1951 3.2.6). So it is read as data with a header, which always
 * fails.
 */
function isUnframed(first: number): boolean {
  return (first & 0x0f) !== 8 && !'{[:'.includes(String.fromCharCode(first))
}

function withoutCoding(headers: ResponseHeaders): ResponseHeaders {
  return { get: (name) => (name === 'content-encoding' ? undefined : headers.get(name)) }
}

/**
 * Decompresses an answer that its server compressed without being asked (ruling Y1), and removes Amazon's event frames.
 * The listener gets the answer as if it had come uncompressed. An unknown coding stays in the head. The listener must
 * limit the whole size. It gets at most 16 KiB at once, and nothing while the flight (request) is paused.
 */
export class Unpacking implements UpstreamListener, Flight {
  #listener: UpstreamListener
  #flight: Flight | undefined
  #open: ((first: number) => Transform) | undefined
  #stream: Transform | undefined
  #isPaused = false
  /** Whether the transport has ended the answer, or failed. */
  #isOver = false
  #fault: [fault: TransportFault, error?: Error] | undefined

  constructor(listener: UpstreamListener) {
    this.#listener = listener
  }

  /**
   * Attaches a flight (a request under way), whose answer this listener gets.
   * @returns this object, through which the caller controls the flight
   */
  over(flight: Flight): Flight {
    this.#flight = flight
    return this
  }

  onHead(status: number, contentType: string, headers: ResponseHeaders): void {
    if (contentType === frameType && status >= 200 && status < 300)
      this.#listener = new Unframing(this.#listener, () => this.abort())
    const coding = headers.get('content-encoding')
    this.#open = coding === undefined ? undefined : codings.get(coding.trim().toLowerCase())
    const shown = this.#open ? withoutCoding(headers) : headers
    this.#listener.onHead(status, contentType, shown)
  }

  onData(chunk: Buffer): void {
    if (this.#open === undefined) this.#listener.onData(chunk)
    else if (!this.#unpack(chunk).write(chunk)) this.#flight?.pause()
  }

  onEnd(): void {
    this.#isOver = true
    if (this.#stream) this.#stream.end()
    else this.#listener.onEnd()
  }

  onError(fault: TransportFault, error?: Error): void {
    this.#isOver = true
    if (this.#stream === undefined) this.#listener.onError(fault, error)
    else {
      this.#fault = [fault, error]
      this.#stream.end()
    }
  }

  abort(): void {
    this.#flight?.abort()
    this.#stream
      ?.removeAllListeners()
      .on('error', () => {})
      .destroy()
  }

  pause(): void {
    this.#isPaused = true
    this.#stream?.pause()
    this.#flight?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#stream?.resume()
    if (!this.#stream?.writableNeedDrain) this.#flight?.resume()
  }

  isSent(): boolean {
    return this.#flight?.isSent() === true
  }

  wasWritten(): boolean {
    return this.#flight?.wasWritten() === true
  }

  #unpack(first: Buffer): Transform {
    if (this.#stream) return this.#stream
    const listener = this.#listener
    const stream = this.#open!(first[0]!)
    this.#stream = stream
    stream.on('data', (piece: Buffer) => listener.onData(piece))
    stream.on('drain', () => {
      if (!this.#isPaused) this.#flight?.resume()
    })
    stream.on('end', () => {
      // Most of Node's decompressors end at the first byte after the compressed data, although the answer may go on. So
      // the connection is closed here.
      if (!this.#isOver) this.abort()
      if (this.#fault) listener.onError(...this.#fault)
      else listener.onEnd()
    })
    stream.on('error', (error) => {
      this.abort()
      listener.onError({ cause: 'upstream_protocol', isReuseRace: false }, error)
    })
    if (this.#isPaused) stream.pause()
    return stream
  }
}

/**
 * Extracts the event stream from a stream of Amazon's event frames, and passes it to the listener of a flight (a
 * request under way). An exception becomes an `error` event of the messages wire, with the name of the exception as its
 * type. A wrong checksum ends the answer with a fault, and so does a stream that ends within a frame.
 */
class Unframing implements UpstreamListener {
  readonly #frames = new EventFrames()
  readonly #listener: UpstreamListener
  readonly #abort: () => void

  constructor(listener: UpstreamListener, abort: () => void) {
    this.#listener = listener
    this.#abort = abort
  }

  onHead(status: number, _contentType: string, headers: ResponseHeaders): void {
    this.#listener.onHead(status, 'text/event-stream', headers)
  }

  onData(piece: Buffer): void {
    let text = ''
    try {
      for (const frame of this.#frames.push(Buffer.from(piece))) text += eventOf(frame)
    } catch (error) {
      this.#tell(text)
      this.#abort()
      this.onError({ cause: 'upstream_protocol', isReuseRace: false }, error as Error)
      return
    }
    this.#tell(text)
  }

  onEnd(): void {
    if (this.#frames.isWhole) this.#listener.onEnd()
    else this.#listener.onError({ cause: 'upstream_protocol', isReuseRace: false })
  }

  onError(fault: TransportFault, error?: Error): void {
    this.#listener.onError(fault, error)
  }

  #tell(text: string): void {
    if (text !== '') this.#listener.onData(Buffer.from(text))
  }
}

/**
 * Returns the event in a frame, or `''` if the frame has no event. @throws Error if the frame's payload cannot be read
 */
function eventOf({ headers, payload }: EventFrame): string {
  const kind = headers.get(':message-type')
  if (kind === 'error') return errorOf(headers.get(':error-code'), { message: headers.get(':error-message') })
  const said = JSON.parse(payload.toString('utf8')) as Record<string, unknown>
  if (kind === 'exception') return errorOf(headers.get(':exception-type'), said)
  if (typeof said['bytes'] !== 'string') return ''
  const event = Buffer.from(said['bytes'], 'base64').toString('utf8')
  // A line end in JSON is white space, so a blank can replace it.
  return event.includes('"type"') ? `data: ${event.replaceAll('\n', ' ').replaceAll('\r', ' ')}\n\n` : ''
}

/**
 * Makes an error event. If the model itself has failed, `originalStatusCode` and `originalMessage` have its status and
 * text (botocore 1.44.8, `ModelStreamErrorException`).
 */
function errorOf(name = '', { message, originalStatusCode: status, originalMessage }: Record<string, unknown>): string {
  const type = name.charAt(0).toUpperCase() + name.slice(1)
  const error = { type, message: originalMessage ?? message ?? '', ...(typeof status === 'number' && { status }) }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
}
