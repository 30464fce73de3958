import type { Socket } from 'node:net'
import { ChunkedReader } from '../http1/chunked.ts'
import type { Framing } from '../http1/framing.ts'

/** Who takes a request's body. Exactly one of the last three is told, and nothing behind it. */
export interface BodyReader {
  take(piece: Buffer): void
  whole(): void
  /** It is framed wrongly. */
  broken(): void
  /** The client has left before it was whole. */
  gone(): void
}

/** Of a body that nobody reads yet, in bytes: behind that its connection waits. */
const earlyBytesMax = 65_536

/** The body of a request, handed on as it comes; what comes before somebody takes it waits. */
export class IncomingBody {
  /** All of it has come. */
  isComplete: boolean
  /** It is framed wrongly: nobody can say where it ends. */
  isBroken = false
  /** Its connection is closed. */
  isGone = false
  readonly #socket: Socket
  readonly #chunks: ChunkedReader | undefined
  /** Of its length, what is to come. */
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

  /** The body, from its beginning or, where another reader had some of it, from there. */
  read(reader: BodyReader): void {
    this.#reader = reader
    const early = this.#early
    this.#early = undefined
    if (early && this.#socket.isPaused()) this.#socket.resume()
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

  /** Nothing of its connection is read for now. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Bytes of its connection, from there on. @returns where its body ended, or the length of them */
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

  /** The client has left, before it was whole or behind that. */
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

  /** What happened before there was a reader. */
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
