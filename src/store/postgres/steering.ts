import type { CooldownBoard } from './cooldown-board.ts'
import { isRefused } from './trouble.ts'

/** What an operator wants of a place. @property isLate it could not be written at once: others may have wanted something else since */
type Wish = { steering: 'disable' | 'enable'; sinceMs: number; isLate: boolean }

/** So many are kept; of more the newest. */
const wishesMax = 1_000

/**
 * What operators want of upstream accounts, until the database has it: a cooldown others find out for themselves, and this
 * nobody does. Of a place the last wish counts.
 */
export class Steering {
  readonly #board: Pick<CooldownBoard, 'disable' | 'enable' | 'lift'>
  readonly #clockMs: () => number
  readonly #unwritten = new Map<string, Wish>()
  #writing: Promise<void> | undefined

  constructor(board: Pick<CooldownBoard, 'disable' | 'enable' | 'lift'>, clockMs: () => number) {
    this.#board = board
    this.#clockMs = clockMs
  }

  take(steering: Wish['steering'], place: string): void {
    // The newest stands behind all others.
    this.#unwritten.delete(place)
    this.#unwritten.set(place, { steering, sinceMs: this.#clockMs(), isLate: false })
    if (this.#unwritten.size > wishesMax) this.#unwritten.delete(this.#unwritten.keys().next().value!)
    void this.write()
  }

  /** At once, behind a connection that was lost, and with each beat. Never rejects: what fails is tried with the next. */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  /** One after the other, with those that come meanwhile. */
  async #write(): Promise<void> {
    for (const [place, wish] of this.#unwritten) {
      try {
        await this.#tell(place, wish)
      } catch (error) {
        for (const late of this.#unwritten.values()) late.isLate = true
        if (!isRefused(error)) return
        // What is wrong with this one holds up no other.
        continue
      }
      if (this.#unwritten.get(place) === wish) this.#unwritten.delete(place)
    }
  }

  async #tell(place: string, { steering, sinceMs, isLate }: Wish): Promise<void> {
    const agoMs = Math.floor(this.#clockMs() - sinceMs)
    if (steering === 'disable') return this.#board.disable(place, agoMs)
    // What it was left alone for besides ends as well, unless that may be news.
    if (!isLate) await this.#board.lift(place)
    await this.#board.enable(place, agoMs)
  }
}
