import { hexDigit } from '../bytes/hex-digit.ts'
import { canStandInHead, isTokenOctet, readFields } from './fields.ts'
import { ownIfLittle } from './own-bytes.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const semicolon = 0x3b
const equals = 0x3d
const quote = 0x22
const backslash = 0x5c

/** Of all extensions of a body, and again of its trailer, in octets: nobody here reads them. */
const ignoredMax = 16_384
/** The largest size of a chunk: it stays an integer. */
const sizeMax = 2 ** 52
/** Digits of a size, with the zeros before them. */
const digitsMax = 64

type InExtension = 'extension' | 'quoted' | 'escaped' | 'unquoted'
type ChunkState = InExtension | 'size' | 'size_end' | 'data' | 'data_end' | 'data_feed' | 'trailer' | 'over' | 'broken'

/**
 * Reads a body in chunks (RFC 9112 7.1), wherever the network cuts it. Nothing is mended, since two readers who mend differently
 * see two different bodies: a size is hexadecimal digits alone, each line ends with both characters. Extensions and trailers are
 * read over, but not beyond their grammar: within quotes another reader might see no end of the line.
 */
export class ChunkedReader {
  /** Of the bytes that were read last: where their data begins and ends. */
  #dataStart = 0
  #dataEnd = 0
  #place: ChunkState = 'size'
  /** Of the size as far as it is read, then of the chunk what is to come. */
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

  /** Reads on up to the end of some data, of the body, or of the bytes. @returns where it stopped */
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
   * Reads all bytes, or as many as belong to the body. Chunks that came at once become one piece. With an object for
   * each, a body of one octet a chunk would take a hundred times its size.
   * @param isShared the bytes are others' afterwards: their data is copied
   * @returns where it stopped, and the data; undefined where there is none
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

  /** The place after one octet of the framing. */
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
      Math.min(length, from + ignoredMax + 1),
    )
    const isNone = this.#trailer.startsWith('\r\n')
    const end = isNone ? 0 : this.#trailer.indexOf('\r\n\r\n', Math.max(0, before - 3)) + 2
    if (!isNone && end === 1) {
      // Octets that no head may have break it now, rather than when its end does not come.
      if (this.#trailer.length > ignoredMax || !canStandInHead(this.#trailer, Math.max(0, before - 2)))
        this.#place = 'broken'
      return length
    }
    const isRead = isNone || readFields(this.#trailer.slice(0, end), 0) !== undefined
    this.#place = isRead ? 'over' : 'broken'
    return from + end + 2 - before
  }
}

/** Names, values that may be quoted, and what stands between them, in whatever order (RFC 9112 7.1.1, RFC 9110 5.6.4). */
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
