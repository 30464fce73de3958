import { crc32 } from 'node:zlib'
import { Pieces } from '../bytes/pieces.ts'

/** One message of `application/vnd.amazon.eventstream`. Headers that are not texts are left out. */
export type EventFrame = { headers: ReadonlyMap<string, string>; payload: Buffer }

/** The media type of streams of event frames. */
export const frameType = 'application/vnd.amazon.eventstream'

/** The largest frame. The format allows 24 MiB, but a model's event is small, and an incomplete frame takes memory. */
const frameBytesMax = 1_048_576

/** A frame begins with two lengths and the checksum of these lengths. It ends with the checksum of the whole frame. */
const preludeBytes = 12
const sumBytes = 4

/** A header value's length in bytes, by its type. `-1`: the value begins with two bytes of length. Type 7 is text. */
const valueBytes = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const textType = 7

/**
 * Decodes frames from bytes in pieces of any size (smithy.io/2.0/aws/amazon-eventstream.html, 2026-11). A frame
 * consists of its length, the length of the headers, the CRC-32 of both, the headers and the payload. Last comes the
 * CRC-32 of everything before it. Numbers are big-endian.
 */
export class EventFrames {
  #kept = new Pieces()
  #bytes = 0
  /** The number of bytes that are needed before anything more can be read. */
  #needed = preludeBytes

  /** Whether all bytes so far belong to complete frames. */
  get isWhole(): boolean {
    return this.#bytes === 0
  }

  /**
   * Reads a piece of the stream.
   * @returns the frames that are complete after this piece
   * @throws Error if a length or a checksum is wrong. The wrong frame is not returned, and no later frame can be read.
   */
  *push(piece: Buffer): Generator<EventFrame> {
    this.#kept.add(piece)
    this.#bytes += piece.length
    while (this.#bytes >= this.#needed) {
      const bytes = this.#kept.join()
      const length = checkPrelude(bytes)
      if (bytes.length < length) {
        this.#keep(bytes, length)
        return
      }
      this.#keep(bytes.subarray(length), preludeBytes)
      yield readFrame(bytes.subarray(0, length))
    }
  }

  #keep(bytes: Buffer, needed: number): void {
    this.#kept = new Pieces()
    this.#kept.add(bytes)
    this.#bytes = bytes.length
    this.#needed = needed
  }
}

/** Checks the lengths at the beginning of a frame. @returns the length of the frame */
function checkPrelude(bytes: Buffer): number {
  const [length, headersLength] = [bytes.readUInt32BE(0), bytes.readUInt32BE(4)]
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw new Error('the checksum of the lengths is wrong')
  if (length > frameBytesMax || preludeBytes + headersLength + sumBytes > length) throw new Error('a length is wrong')
  return length
}

function readFrame(frame: Buffer): EventFrame {
  const end = frame.length - sumBytes
  if (crc32(frame.subarray(0, end)) !== frame.readUInt32BE(end)) throw new Error('the checksum of a frame is wrong')
  const payloadStart = preludeBytes + frame.readUInt32BE(4)
  return {
    headers: readHeaders(frame.subarray(preludeBytes, payloadStart)),
    payload: frame.subarray(payloadStart, end),
  }
}

/** A header is the length of its name, the name, the type of the value, and the value. Reading past the end throws. */
function readHeaders(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>()
  let at = 0
  const skip = (length: number): number => {
    const start = at
    at += length
    if (at > bytes.length) throw new Error('a header is longer than the frame')
    return start
  }
  while (at < bytes.length) {
    const nameLength = bytes.readUInt8(skip(1))
    const name = bytes.toString('utf8', skip(nameLength), at)
    const type = bytes.readUInt8(skip(1))
    const fixed = valueBytes[type]
    if (fixed === undefined) throw new Error('a header has an unknown type')
    const start = skip(fixed < 0 ? bytes.readUInt16BE(skip(2)) : fixed)
    if (type === textType) headers.set(name, bytes.toString('utf8', start, at))
  }
  return headers
}
