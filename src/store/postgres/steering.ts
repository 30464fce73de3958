import type { CooldownBoard } from './cooldown-board.ts'
import { isRefused } from './trouble.ts'

/**
 * The wish of an operator to disable or enable a place, that is, a model at an upstream account.
 * @property isLate whether a write of the wish has failed. Another operator may have changed the place since the wish
 */
type Wish = { steering: 'disable' | 'enable'; sinceMs: number; isLate: boolean }

/** The most wishes of operators that are kept. If there are more, the oldest are dropped. */
const wishesMax = 1_000

/**
 * Keeps operators' wishes for places (upstream accounts for a model) until the database has them. Other servers find
 * out by themselves that a place fails, but not that an operator disabled it. The last wish for a place counts.
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
    // A repeated wish moves to the end of the map, because the wishes at its start are dropped first.
    this.#unwritten.delete(place)
    this.#unwritten.set(place, { steering, sinceMs: this.#clockMs(), isLate: false })
    if (this.#unwritten.size > wishesMax) this.#unwritten.delete(this.#unwritten.keys().next().value!)
    void this.write()
  }

  /**
   * Writes the operators' wishes to the database. Called for each new wish, after a lost connection and with each
   * heartbeat, so failed writes are repeated. Never rejects.
   */
  write(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  /** Writes the wishes one after the other. Wishes that arrive during the writing are written too. */
  async #write(): Promise<void> {
    for (const [place, wish] of this.#unwritten) {
      try {
        await this.#tell(place, wish)
      } catch (error) {
        for (const late of this.#unwritten.values()) late.isLate = true
        if (!isRefused(error)) return
        // If the database refuses this wish, the other wishes are still written.
        continue
      }
      if (this.#unwritten.get(place) === wish) this.#unwritten.delete(place)
    }
  }

  async #tell(place: string, { steering, sinceMs, isLate }: Wish): Promise<void> {
    const agoMs = Math.floor(this.#clockMs() - sinceMs)
    if (steering === 'disable') return this.#board.disable(place, agoMs)
    // Enabling an upstream account also ends its cooldowns. If a write has failed before, the cooldowns stay, because
    // they may have begun after the operator's wish.
    if (!isLate) await this.#board.lift(place)
    await this.#board.enable(place, agoMs)
  }
}
