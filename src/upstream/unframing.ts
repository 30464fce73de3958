import { type EventFrame, EventFrames } from '../clouds/event-frames.ts'
import type { ResponseHeaders, TransportFault, UpstreamListener } from './target.ts'

/**
 * Turns a stream of Amazon's event frames into the event stream in them, for the listener of a flight. An exception
 * becomes an `error` event of the messages wire, with the name of the exception as its type. A wrong checksum, or an
 * end within a frame, ends the answer.
 */
export class Unframing implements UpstreamListener {
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

/** Returns the event in a frame, or `''` if it has none. @throws Error if its payload cannot be read */
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
 * Makes an error event. An exception of a model has the model's status and text (botocore 1.44.8,
 * `ModelStreamErrorException`).
 */
function errorOf(name = '', { message, originalStatusCode: status, originalMessage }: Record<string, unknown>): string {
  const type = name.charAt(0).toUpperCase() + name.slice(1)
  const error = { type, message: originalMessage ?? message ?? '', ...(typeof status === 'number' && { status }) }
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
}
