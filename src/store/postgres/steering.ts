import type { CooldownBoard } from './cooldown-board.ts'
import { isRefused } from './trouble.ts'

/**
 * An operator's wish for a place. @property isLate it could not be written at once: others may have wanted something else
 * since
 */
type Wish = { steering: 'disable' | 'enable'; sinceMs: number; isLate: boolean }

/** So many are kept; of more the newest. */
const wishesMax = 1_000

/**
 * The wishes of operators for upstream accounts, until the database has them. Others find out a cooldown by themselves, but
 * not a wish. Of a place the last wish counts.
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
    // The newest is the last of all.
    this.#unwritten.delete(place)
    this.#unwritten.set(place, { steering, sinceMs: this.#clockMs(), isLate: false })
    if (this.#unwritten.size > wishesMax) this.#unwritten.delete(this.#unwritten.keys().next().value!)
    void this.write()
  }

  /**
   * Called at once, after a connection was lost, and with each beat. Never rejects: a failed write is tried with the next
   * beat.
   */
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
        // A fault of this one delays no other.
        continue
      }
      if (this.#unwritten.get(place) === wish) this.#unwritten.delete(place)
    }
  }

  async #tell(place: string, { steering, sinceMs, isLate }: Wish): Promise<void> {
    const agoMs = Math.floor(this.#clockMs() - sinceMs)
    if (steering === 'disable') return this.#board.disable(place, agoMs)
    // Its other cooldowns end as well, unless they may be newer.
    if (!isLate) await this.#board.lift(place)
    await this.#board.enable(place, agoMs)
  }
}
