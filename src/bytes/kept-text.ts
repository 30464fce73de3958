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
 * @property packed a character a byte: a buffer may be a place in a pool, which it keeps, and what it leaves behind the
 * allocator does not give back
 * @property encoding one that gives every unit back: half a character may stand at either end
 */
type Pack = { packed: string; encoding: 'latin1' | 'utf16le' }

/**
 * A text that comes in small pieces and is read at its end. The engine joins pieces by keeping each of them and a node for
 * it: ten times the memory of a text that is told word by word, for as long as its stream lives.
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

  /** All that came so far. Whoever reads it at its end reads it again: it is joined and unpacked once. */
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
