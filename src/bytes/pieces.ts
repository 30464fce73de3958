/** Pieces are joined once there are this many, because a piece of one byte takes hundreds of times its size. */
const piecesMax = 1_024

/** Bytes that arrive in pieces and are read once all have come. */
export class Pieces {
  readonly #discard: ((piece: Buffer) => void) | undefined
  #joined: Buffer[] | undefined
  #pieces: Buffer[] = []

  /** @param discard called with each piece that was joined with others */
  constructor(discard?: (piece: Buffer) => void) {
    this.#discard = discard
  }

  add(piece: Buffer): void {
    if (this.#pieces.push(piece) < piecesMax) return
    this.#joined ??= []
    this.#joined.push(this.#join(this.#pieces))
    this.#pieces = []
  }

  /** Returns all bytes in one buffer. */
  join(): Buffer {
    const all = this.#joined ? [...this.#joined, ...this.#pieces] : this.#pieces
    return all.length === 1 ? all[0]! : this.#join(all)
  }

  #join(pieces: readonly Buffer[]): Buffer {
    const whole = Buffer.concat(pieces)
    if (this.#discard) for (const piece of pieces) this.#discard(piece)
    return whole
  }
}
