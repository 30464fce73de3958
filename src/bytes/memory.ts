import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'

/**
 * Copies a text. In V8, a text that was cut from a longer one keeps the whole longer text alive. Then twenty characters
 * may occupy 64 KiB. Use this for a text that outlives the piece from which it was cut.
 */
export function ownCopy(text: string): string {
  // The conversion would destroy an unpaired half of a surrogate pair.
  return text.isWellFormed() ? Buffer.from(text, 'utf8').toString('utf8') : text
}

/**
 * Appends a piece to a text. V8 keeps every piece of a concatenated text, so the text is copied each time its length
 * has doubled.
 */
export function appendOwn(before: string, piece: string): string {
  const text = before + piece
  return Math.clz32(text.length) < Math.clz32(before.length) ? ownCopy(text) : text
}

/** The smallest buffer that is freed, in bytes. A smaller buffer is not worth the call, and usually shares a pool. */
const freedMin = 16_384

/**
 * Frees the memory of a buffer that is no longer used, and leaves the buffer empty. Nothing happens if the buffer
 * shares its memory with others. Without this, V8 collects the whole heap for every few dozen megabytes of buffers.
 * That would be two thirds of the cost of a request of 1 MB.
 */
export function free({ buffer, byteLength }: Buffer): void {
  if (byteLength >= freedMin && buffer.byteLength === byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** The number of pieces that are joined into one block. */
const piecesMax = 64

/** The shortest text that is compressed, in UTF-16 units. Compressing a shorter text saves too little. */
const packedMin = 16_384

/** The fastest level of zstd. A megabyte takes two milliseconds, against three at the next level. */
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/**
 * A compressed part of a text.
 * @property packed a string with one character for each byte. It is not a buffer, because a buffer might keep a whole
 *   pool alive, and the allocator does not return the memory of freed buffers.
 * @property encoding how the part was encoded. Both encodings restore every UTF-16 unit, because the part may begin or
 *   end with half of a surrogate pair.
 */
type Pack = { packed: string; encoding: 'latin1' | 'utf16le' }

/**
 * A text that arrives in small pieces and is read once it is complete. V8 would join pieces by keeping each piece and a
 * node for it. For a text that arrives word by word, that takes ten times the text's memory for as long as the stream
 * lives.
 */
export class KeptText {
  #packs: Pack[] = []
  #blocks: string[] = []
  #rest = ''
  #pieces = 0

  add(piece: string): void {
    this.#rest += piece
    if (++this.#pieces < piecesMax) return
    this.#blocks.push(ownCopy(this.#rest))
    this.#rest = ''
    this.#pieces = 0
  }

  /**
   * Compresses the text added since the last call, or copies it if it is short. Call this when no more text is expected
   * for a while (docs/decisions/0052-stopped-readers.md).
   */
  compact(): void {
    const text = this.#unpacked()
    if (text.length < packedMin) {
      // A piece may be a part of a larger string and keep that in memory, so the text is copied.
      if (this.#rest !== '') this.#keep([ownCopy(text)])
      return
    }
    const encoding = isLatin1(text) ? 'latin1' : 'utf16le'
    const plain = Buffer.from(text, encoding)
    const packed = zstdCompressSync(plain, packing)
    free(plain)
    this.#packs.push({ packed: packed.toString('latin1'), encoding })
    this.#keep([])
  }

  /** Returns all text so far. The decompressed text is kept, because a text that is read once is usually read again. */
  toString(): string {
    const text = this.#packs.map(unpack).join('') + this.#unpacked()
    this.#packs = []
    this.#keep([text])
    return text
  }

  /** Sets the part of the text that is not compressed. */
  #keep(blocks: string[]): void {
    this.#blocks = blocks
    this.#rest = ''
    this.#pieces = 0
  }

  #unpacked(): string {
    return this.#blocks.length === 0 ? this.#rest : this.#blocks.join('') + this.#rest
  }
}

function unpack({ packed, encoding }: Pack): string {
  return zstdDecompressSync(Buffer.from(packed, 'latin1')).toString(encoding)
}

function isLatin1(text: string): boolean {
  return !/[^\0-\xff]/.test(text)
}
