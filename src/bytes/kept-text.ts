import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { free } from './free.ts'
import { ownCopy } from './own-copy.ts'

/** The number of pieces after which they are joined. */
const piecesMax = 64

/** A shorter text is not worth packing, in UTF-16 units. */
const packedMin = 16_384

/** The fastest level: a megabyte takes two milliseconds, and three at the next level. */
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/**
 * A packed part of a text.
 * @property packed a string with a character for each byte. A buffer might keep a whole pool alive, and the allocator does not
 * give back the memory of freed buffers.
 * @property encoding the one that restores every unit, because either end may be half of a surrogate pair
 */
type Pack = { packed: string; encoding: 'latin1' | 'utf16le' }

/**
 * A text that arrives in small pieces and is read at its end. V8 joins pieces by keeping each of them and a node for it. For
 * a text that arrives word by word that takes ten times its memory, as long as its stream lives.
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

  /** Packs the text since the last call, or makes a short one its own. Call it when no text will come for a while (docs/decisions/0052-stopped-readers.md). */
  compact(): void {
    const text = this.#unpacked()
    if (text.length < packedMin) {
      // A piece may refer to all that was read with it.
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

  /** Returns all text so far. It is unpacked once and kept so, because text that is read once is read again. */
  toString(): string {
    const text = this.#packs.map(unpack).join('') + this.#unpacked()
    this.#packs = []
    this.#keep([text])
    return text
  }

  /** Replaces the part that is not packed. */
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
