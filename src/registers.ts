/*
 * Containers for objects that live only as long as a request. In one Map for all requests, these objects would stay in
 * memory for seconds after their request. When the table of a Map is full, V8 replaces it, and the old table points to
 * the new one. If the old table is in the old generation of the heap, all later tables and their entries stay alive
 * until a full collection. Collections then stop the event loop five times as long (decision 51). A Map of lasting
 * objects, or of numbers and strings, has no such problem.
 */

/** Values by id, in the order in which they were added. */
export class Register<Value> {
  // A plain object would cost 2 µs a request, because V8 makes each id a property name first.
  #values = new Map<string, Value>()
  #added = 0

  get size(): number {
    return this.#values.size
  }

  has(id: string): boolean {
    return this.#values.has(id)
  }

  get(id: string): Value | undefined {
    return this.#values.get(id)
  }

  set(id: string, value: Value): void {
    // The values are copied into a new Map, because the table of the old Map would keep removed values in memory.
    if (++this.#added > addedMax && this.#added > 2 * this.size) {
      this.#values = new Map(this.#values)
      this.#added = 0
    }
    this.#values.set(id, value)
  }

  /** @returns whether the id was present */
  delete(id: string): boolean {
    return this.#values.delete(id)
  }

  values(): IterableIterator<Value> {
    return this.#values.values()
  }
}

/** After more additions than this, the values move to a new Map if over half of the added values are gone. */
const addedMax = 64

/** An item that can be in one roster at a time. `place` is its index in that roster. Undefined if it is in none. */
export interface Listed {
  place: number | undefined
}

/**
 * A collection from which an item is deleted in constant time, because each item stores its index. Deleting changes the
 * order of the items.
 */
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

  /** Yields the items that are present when the loop begins. An item that is removed before its turn is skipped. */
  *[Symbol.iterator](): IterableIterator<Item> {
    for (const item of [...this.#items]) if (item.place !== undefined) yield item
  }
}
