import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { free } from './free.ts'
import { ownCopy } from './own-copy.ts'

/** So many pieces are joined to one. */
const piecesMax = 64

/** Less than this is not worth packing, in UTF-16 units. */
const packedMin = 16_384

/** A megabyte takes two milliseconds, and the next better level three. */
const packing = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/**
 * Some of a text.
 * @property packed a string with a character for each byte. A buffer might keep a whole pool, and the allocator does not give back
 * the memory of a buffer that is gone.
 * @property encoding one that gives every unit back: half a character may stand at either end
 */
type Pack = { packed: string; encoding: 'latin1' | 'utf16le' }

/**
 * A text that comes in small pieces and is read at its end. The engine joins pieces by keeping each of them and a node for it.
 * For a text that comes word by word that is ten times its memory, for as long as its stream lives.
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

  /** Nothing is added for a while: what came since the last time is packed (docs/decisions/0052-stopped-readers.md). */
  compact(): void {
    const text = this.#unpacked()
    if (text.length < packedMin) return
    const encoding = isLatin1(text) ? 'latin1' : 'utf16le'
    const plain = Buffer.from(text, encoding)
    const packed = zstdCompressSync(plain, packing)
    free(plain)
    this.#packs.push({ packed: packed.toString('latin1'), encoding })
    this.#keep([])
  }

  /** All that came so far. It is joined and unpacked once, since a text that is read at its end is read again. */
  toString(): string {
    const text = this.#packs.map(unpack).join('') + this.#unpacked()
    this.#packs = []
    this.#keep([text])
    return text
  }

  /** In place of what is not packed. */
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
