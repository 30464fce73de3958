import type { Socket } from 'node:net'
import { ChunkedReader } from '../http1/chunked.ts'
import type { Framing } from '../http1/heads.ts'

/** Receives a request's body. The last call is exactly one of `whole`, `broken` and `gone`. */
export interface BodyReader {
  take(piece: Buffer): void
  whole(): void
  broken(): void
  gone(): void
}

/** The most bytes to keep for a body without a reader. After that the connection is not read. */
const earlyBytesMax = 65_536

/** The body of a request, passed to its reader as it arrives. Bytes that arrive before there is a reader wait. */
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

  /** Takes bytes from the connection. @returns the offset after the body, or the length of `bytes` */
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

  /** Reports an end that came before there was a reader. */
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
