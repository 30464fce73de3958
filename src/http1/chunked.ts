import { hexDigit } from '../bytes/hex-digit.ts'
import { canStandInHead, isTokenOctet, ownIfLittle, readFields } from './heads.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const semicolon = 0x3b
const equals = 0x3d
const quote = 0x22
const backslash = 0x5c

/** The most octets of all chunk extensions of a body, and the most octets of its trailer. Both are ignored. */
const ignoredMax = 16_384
/** The largest size of a chunk, chosen so that it stays an exact integer. */
const sizeMax = 2 ** 52
/** The most digits of a size, leading zeros included. */
const digitsMax = 64

type InExtension = 'extension' | 'quoted' | 'escaped' | 'unquoted'
type ChunkState = InExtension | 'size' | 'size_end' | 'data' | 'data_end' | 'data_feed' | 'trailer' | 'over' | 'broken'

/**
 * Reads a body in chunks (RFC 9112 7.1), wherever the network splits it.
 *
 * Malformed input is rejected and never repaired, because two readers that repair differently would see two different
 * bodies. A size has only hexadecimal digits, and each line ends with CR and LF. Extensions and trailers are skipped,
 * but must be well-formed, because another reader might treat a quoted line end differently.
 */
export class ChunkedReader {
  /** The range of data that `#readOn` has found last. The range is empty if no data was found. */
  #dataStart = 0
  #dataEnd = 0
  #place: ChunkState = 'size'
  /** While the size of a chunk is read: the size so far. Afterwards: how many octets of the chunk are still missing. */
  #left = 0
  #digits = 0
  #ignored = 0
  #trailer = ''

  get isOver(): boolean {
    return this.#place === 'over'
  }

  get isBroken(): boolean {
    return this.#place === 'broken'
  }

  /** Reads to the end of the next range of data, of the body, or of the bytes. @returns the offset that was reached */
  #readOn(bytes: Uint8Array, from: number): number {
    this.#dataStart = this.#dataEnd = from
    let at = from
    while (at < bytes.length) {
      if (this.#place === 'data') {
        this.#dataStart = at
        this.#dataEnd = Math.min(bytes.length, at + this.#left)
        this.#left -= this.#dataEnd - at
        if (this.#left === 0) this.#place = 'data_end'
        return this.#dataEnd
      }
      if (this.#place === 'trailer') return this.#readTrailer(bytes, at)
      if (this.#place === 'over' || this.#place === 'broken') return at
      this.#place = this.#next(bytes[at++]!)
    }
    return at
  }

  /**
   * Reads as many of the bytes as belong to the body. Data of several chunks is returned as one piece. With a buffer
   * per chunk, a body with chunks of one octet would take a hundred times its size.
   * @param isShared whether the buffer is reused afterwards, so that the data must be copied
   * @returns the offset where it stopped, and the data, which is undefined if there is none
   */
  read(bytes: Buffer, from: number, isShared = false): { at: number; data: Buffer | undefined } {
    let [at, end] = [from, 0]
    let data: Buffer | undefined
    while (at < bytes.length && !this.isOver && !this.isBroken) {
      at = this.#readOn(bytes, at)
      const [start, length] = [this.#dataStart, this.#dataEnd - this.#dataStart]
      if (length === 0) continue
      if (data === undefined && at === bytes.length && !isShared)
        return { at, data: bytes.subarray(start, start + length) }
      data ??= Buffer.allocUnsafeSlow(bytes.length - start)
      end += bytes.copy(data, end, start, start + length)
    }
    return { at, data: data && ownIfLittle(data.subarray(0, end)) }
  }

  /** Returns the state after one octet of the framing. */
  #next(octet: number): ChunkState {
    switch (this.#place) {
      case 'size': {
        const digit = hexDigit(octet)
        if (digit >= 0) {
          this.#left = this.#left * 16 + digit
          return ++this.#digits > digitsMax || this.#left > sizeMax ? 'broken' : 'size'
        }
        if (this.#digits === 0) return 'broken'
        if (octet === semicolon) return 'extension'
        return octet === carriageReturn ? 'size_end' : 'broken'
      }
      case 'extension':
      case 'quoted':
      case 'escaped':
      case 'unquoted':
        return ++this.#ignored > ignoredMax ? 'broken' : nextInExtension(this.#place, octet)
      case 'size_end':
        this.#digits = 0
        if (octet !== lineFeed) return 'broken'
        return this.#left === 0 ? 'trailer' : 'data'
      case 'data_end':
        return octet === carriageReturn ? 'data_feed' : 'broken'
      default:
        return octet === lineFeed ? 'size' : 'broken'
    }
  }

  #readTrailer(bytes: Uint8Array, from: number): number {
    const before = this.#trailer.length
    const { buffer, byteOffset, length } = bytes
    this.#trailer += Buffer.from(buffer, byteOffset, length).toString(
      'latin1',
      from,
      Math.min(length, from + ignoredMax - before),
    )
    const isNone = this.#trailer.startsWith('\r\n')
    const end = isNone ? 0 : this.#trailer.indexOf('\r\n\r\n', Math.max(0, before - 3)) + 2
    if (!isNone && end === 1) {
      // Invalid octets are rejected at once, because the end of the trailer may never come.
      if (this.#trailer.length >= ignoredMax || !canStandInHead(this.#trailer, Math.max(0, before - 2)))
        this.#place = 'broken'
      return length
    }
    const isRead = isNone || readFields(this.#trailer.slice(0, end), 0) !== undefined
    this.#place = isRead ? 'over' : 'broken'
    return from + end + 2 - before
  }
}

/**
 * Returns the state after one octet of a chunk extension (RFC 9112 7.1.1, RFC 9110 5.6.4). Parts may come in any order.
 */
function nextInExtension(place: InExtension, octet: number): ChunkState {
  const isBlank = octet === 0x20 || octet === 0x09
  if (place === 'quoted' || place === 'escaped') {
    if (!isBlank && (octet < 0x20 || octet === 0x7f)) return 'broken'
    if (place === 'escaped') return 'quoted'
    return octet === quote ? 'unquoted' : octet === backslash ? 'escaped' : 'quoted'
  }
  if (octet === carriageReturn) return 'size_end'
  if (octet === semicolon) return 'extension'
  if (isBlank) return place
  if (place === 'unquoted') return 'broken'
  if (octet === quote) return 'quoted'
  return isTokenOctet(octet) || octet === equals ? 'extension' : 'broken'
}
