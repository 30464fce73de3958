/** So many that wait are sent without waiting for the time. */
const enough = 512

/** Requests that wait to be told. It never grows beyond its size: what comes then is dropped, and counted. */
export class SpanQueue<Item> {
  readonly #max: number
  readonly #hurry: () => void
  readonly #drop: (count: number) => void
  #items: Item[] = []

  /** @param hurry called when many wait; @param drop told what was not taken */
  constructor(max: number, hurry: () => void, drop: (count: number) => void) {
    this.#max = max
    this.#hurry = hurry
    this.#drop = drop
  }

  get size(): number {
    return this.#items.length
  }

  push(item: Item): void {
    if (this.#items.length >= this.#max) {
      this.#drop(1)
      return
    }
    this.#items.push(item)
    if (this.#items.length === Math.min(enough, this.#max)) this.#hurry()
  }

  /** The oldest, as many as there are of so many. */
  take(most: number): Item[] {
    return this.#items.splice(0, most)
  }
}
