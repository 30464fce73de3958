import { ownCopy } from './own-copy.ts'

/** So many pieces are joined to one. */
const piecesMax = 64

/**
 * A text that comes in small pieces and is read at its end. The engine joins pieces by keeping each of them and a node for
 * it: ten times the memory of a text that is told word by word, for as long as its stream lives.
 */
export class KeptText {
  readonly #blocks: string[] = []
  #rest = ''
  #pieces = 0

  add(piece: string): void {
    this.#rest += piece
    if (++this.#pieces < piecesMax) return
    this.#blocks.push(ownCopy(this.#rest))
    this.#rest = ''
    this.#pieces = 0
  }

  /** All that came so far. */
  toString(): string {
    return this.#blocks.length === 0 ? this.#rest : this.#blocks.join('') + this.#rest
  }
}
