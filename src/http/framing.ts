import { isIPv6, type Socket } from 'node:net'
import { GatewayError } from '../errors.ts'
import { ChunkedReader } from '../http1/chunked.ts'
import { type Framing, type FramingFault, framingOf, type RequestHead } from '../http1/heads.ts'

/** Headers that carry a credential. Two different values are refused, because we would have to guess (ruling R7). */
const credentialHeaders = ['authorization', 'x-api-key']

export function isCredential(name: string): boolean {
  return credentialHeaders.includes(name)
}

/** The longest URL or header value, in bytes (reliability §3). */
const lineBytesMax = 8_192

const faults: Record<FramingFault, string> = {
  length: 'The request must have one content-length, a plain number.',
  encoding: 'The only transfer-encoding accepted is chunked.',
  both: 'Send content-length or transfer-encoding, not both.',
  old: 'HTTP/1.0 has no transfer-encoding: send content-length.',
}

/**
 * Refuses heads that are well-formed but that two programs could read as different requests (reliability §2).
 * @returns the framing of the body, or the refusal
 */
export function judgeFraming({ target, minor, fields }: RequestHead, headersMax: number): Framing | GatewayError {
  if (fields.count > headersMax) return refusal(`The request has more than ${headersMax} headers: send fewer.`, 431)
  if (target.length > lineBytesMax) return refusal(`The URL is longer than ${lineBytesMax} bytes: shorten it.`, 431)
  if (fields.longestValue > lineBytesMax)
    return refusal(`A request header is longer than ${lineBytesMax} bytes: shorten it.`, 431)
  const hosts = fields.countOf('host')
  if (hosts > 1 || (hosts === 0 && minor > 0)) return refusal('The request must have exactly one host header.')
  if (hosts === 1 && !isHost(fields.first('host')!)) return refusal('The host header is not a valid host and port.')
  const authority = target.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(target)?.[1]
  // The name of the host may be empty in a host header, but not in a URL (RFC 9110 4.2.1).
  if (authority !== undefined && (/^(?::|$)/.test(authority) || !isHost(authority)))
    return refusal('The URL of the request has no valid host and port.')
  const framing = framingOf(fields, minor)
  if (typeof framing === 'object') return refusal(faults[framing.fault])
  for (const name of credentialHeaders) {
    if (fields.countOf(name) > 1 && new Set(fields.all(name)).size > 1)
      return refusal(`The header ${name} is sent twice with different values: send it once.`)
  }
  return framing
}

/** Whether a value is the host and port of a URI; the name may be empty (RFC 9112 3.2, RFC 3986 3.2.2). */
function isHost(value: string): boolean {
  const [, address, port = ''] = /^(?:\[([^\]]*)\]|(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*)(?::(\d*))?$/i.exec(value) ?? [
    undefined,
    '',
  ]
  return (address === undefined || (isIPv6(address) && !address.includes('%'))) && Number(port) <= 65_535
}

/**
 * Makes the refusal of malformed HTTP. It has the same code as an invalid body, and the connection closes (ruling R11).
 */
export function refusal(message: string, status = 400): GatewayError {
  return new GatewayError('invalid_body', message, { status, shouldRetry: false })
}

/** Makes the refusal of bytes that are not HTTP. Its text quotes none of these bytes. */
export function notHttp(): GatewayError {
  return refusal('The request is not well-formed HTTP/1.1: check its framing and headers.')
}

/** The refusal of a head that is not complete in time. */
export function tooLate(): GatewayError {
  return refusal('The request did not arrive in time: send its headers at once.', 408)
}

/** Receives a request's body. The last call is exactly one of `whole`, `broken` and `gone`. */
export interface BodyReader {
  take(piece: Buffer): void
  whole(): void
  broken(): void
  gone(): void
}

/** The most bytes to keep for a body without a reader. The connection is then paused until a reader comes. */
const earlyBytesMax = 65_536

/** The body of a request, passed to its reader as it arrives. Bytes are kept if they arrive before a reader is set. */
export class IncomingBody {
  isComplete: boolean
  /** Whether the framing is malformed, so that the end of the body is unknown. */
  isBroken = false
  isGone = false
  readonly #socket: Socket
  readonly #chunks: ChunkedReader | undefined
  #left: number
  #reader: BodyReader | undefined
  #early: Buffer[] | undefined
  #earlyBytes = 0

  constructor(socket: Socket, framing: Framing) {
    this.#socket = socket
    this.#chunks = framing === 'chunked' ? new ChunkedReader() : undefined
    this.#left = typeof framing === 'number' ? framing : 0
    this.isComplete = this.#chunks === undefined && this.#left === 0
  }

  /** Sets the reader. It gets the body from the beginning, or the rest if another reader had the first part. */
  read(reader: BodyReader): void {
    this.#reader = reader
    const early = this.#early
    this.#early = undefined
    if (early && this.#socket.isPaused()) this.#socket.resume()
    for (const piece of early ?? []) {
      reader.take(piece)
      // The reader may have left because the body is too large.
      if (this.#reader !== reader) return
    }
    this.#tellEnd(reader)
  }

  /** Removes the reader. Later bytes wait for another reader. */
  letGo(reader: BodyReader): void {
    if (this.#reader === reader) this.#reader = undefined
  }

  /** The whole body if it arrived together with the head; otherwise undefined. */
  takeWhole(): Buffer | undefined {
    const early = this.#early
    if (!this.isComplete || (early !== undefined && early.length !== 1)) return undefined
    this.#early = undefined
    return early ? early[0] : Buffer.alloc(0)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Takes bytes of the connection. @returns the offset after the body; the length of `bytes` if the body goes on */
  feed(bytes: Buffer, from: number): number {
    if (this.isBroken) return bytes.length
    if (this.#chunks) return this.#feedChunks(this.#chunks, bytes, from)
    const end = Math.min(bytes.length, from + this.#left)
    this.#left -= end - from
    if (this.#left === 0) this.isComplete = true
    this.#hand(bytes, from, end)
    if (this.isComplete) this.#tellWhole()
    return end
  }

  /** Notes that the client has left, before or after the end of the body. */
  gone(): void {
    this.isGone = true
    this.#takeReader()?.gone()
  }

  #feedChunks(chunks: ChunkedReader, bytes: Buffer, from: number): number {
    const { at, data } = chunks.read(bytes, from)
    if (data) this.#hand(data, 0, data.length)
    if (chunks.isBroken) {
      this.isBroken = true
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
    if (this.#earlyBytes > earlyBytesMax && !this.isComplete) this.#socket.pause()
  }

  #tellWhole(): void {
    this.#takeReader()?.whole()
  }

  /** Tells a new reader how the body has ended, if it ended before the reader came. */
  #tellEnd(reader: BodyReader): void {
    if (this.isBroken) reader.broken()
    else if (this.isComplete) reader.whole()
    else if (this.isGone) reader.gone()
    else return
    this.letGo(reader)
  }

  #takeReader(): BodyReader | undefined {
    const reader = this.#reader
    this.#reader = undefined
    return reader
  }
}
