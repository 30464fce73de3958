/*
 * Where what is under way is kept while it is: thousands come and go in a second.
 *
 * Not in a Map or a Set. When the table of one is full it is replaced, and V8 has the old table point to the new one and
 * keep its entries. Once a table has become old, in a quiet minute, every table after it hangs on it until a full
 * collection, and on each what it held: then every request outlives itself by seconds, is copied twice by the collector, and costs
 * a sixth more. A Map of what stays, or of plain numbers and texts, is no trouble.
 */

/** Things by their ids, in the order in which they came. */
export class Register<Value> {
  // A dictionary's table is replaced too, but nothing points from one to the next.
  readonly #values: Record<string, Value> = Object.create(null)
  #size = 0

  get size(): number {
    return this.#size
  }

  has(id: string): boolean {
    return this.#values[id] !== undefined
  }

  get(id: string): Value | undefined {
    return this.#values[id]
  }

  set(id: string, value: Value): void {
    if (!this.has(id)) this.#size++
    this.#values[id] = value
  }

  /** @returns whether it was there */
  delete(id: string): boolean {
    if (!this.has(id)) return false
    this.#size--
    return delete this.#values[id]
  }

  *values(): IterableIterator<Value> {
    for (const id in this.#values) yield this.#values[id]!
  }
}

/** What knows its place in a roster: undefined while it is in none. One thing is in one roster at most. */
export interface Listed {
  place: number | undefined
}

/** Things that know their places, in no order. */
export class Roster<Item extends Listed> implements Iterable<Item> {
  readonly #items: Item[] = []

  get size(): number {
    return this.#items.length
  }

  add(item: Item): void {
    if (item.place !== undefined) return
    item.place = this.#items.length
    this.#items.push(item)
  }

  delete(item: Item): void {
    const { place } = item
    if (place === undefined) return
    item.place = undefined
    const last = this.#items.pop()!
    if (last === item) return
    this.#items[place] = last
    last.place = place
  }

  /** Those who are there at the beginning, unless they have left by their turn. */
  *[Symbol.iterator](): IterableIterator<Item> {
    for (const item of [...this.#items]) if (item.place !== undefined) yield item
  }
}
