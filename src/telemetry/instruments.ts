import type { FamilyFacts } from './families.ts'

/*
 * Counters, gauges and histograms. A request updates a dozen of them, and each update costs some hundredths of a
 * microsecond. Label values are looked up in nested maps. They are joined into text only at a scrape.
 */

/** One series as an exporter sees it. */
export type Sample = {
  /** The label values, in the order of the family's labels. */
  readonly values: readonly string[]
  /** The value of a counter or a gauge. */
  readonly value: number
  /** For a histogram: the count of each bucket, with the unbounded bucket last, and the sum of the values. */
  readonly counts?: readonly number[]
  readonly sum?: number
}

export type Family = { readonly facts: FamilyFacts; samples(): Iterable<Sample> }

/** The most series of a family. Further label values share one series. Real configurations have far fewer. */
const seriesMax = 5_000
const together = 'other'

/**
 * Series by the values of at most three labels. The value of a fourth label is joined to the third, see `withFourth`.
 */
class Cells<Cell> {
  readonly #root = new Map<string, Map<string, Map<string, Cell>>>()
  readonly #make: () => Cell
  readonly #together: readonly [string, string, string]
  #count = 0

  /** @param labels the number of the family's labels. In the shared series, the values of unused labels are empty */
  constructor(labels: number, make: () => Cell) {
    this.#make = make
    const standIn = (at: number) => (at < labels ? together : '')
    this.#together = [standIn(0), standIn(1), labels > 3 ? withFourth(together, together) : standIn(2)]
  }

  at(a: string, b: string, c: string): Cell {
    return this.#root.get(a)?.get(b)?.get(c) ?? this.#open(a, b, c)
  }

  #open(a: string, b: string, c: string): Cell {
    const [otherA, otherB, otherC] = this.#together
    const isTogether = a === otherA && b === otherB && c === otherC
    if (this.#count >= seriesMax && !isTogether) return this.at(otherA, otherB, otherC)
    const second = findOrMake(this.#root, a, () => new Map<string, Map<string, Cell>>())
    const third = findOrMake(second, b, () => new Map<string, Cell>())
    this.#count++
    return findOrMake(third, c, this.#make)
  }

  *list(labels: number): Iterable<[values: string[], cell: Cell]> {
    for (const [a, second] of this.#root)
      for (const [b, third] of second)
        for (const [c, cell] of third) yield [[a, b, ...c.split(between)].slice(0, labels), cell]
  }
}

const between = '\u0000'

/** Joins the values of the third and fourth label into one value, because a counter accepts three. */
export function withFourth(third: string, fourth: string): string {
  return third + between + fourth
}

function findOrMake<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = make()
  map.set(key, made)
  return made
}

/** A counter, whose value only grows. */
export class Counter implements Family {
  readonly facts: FamilyFacts
  readonly #cells: Cells<{ value: number }>

  constructor(facts: FamilyFacts) {
    this.facts = facts
    this.#cells = new Cells(facts.labels.length, () => ({ value: 0 }))
    // A family without labels has one series, which exists from the start.
    if (facts.labels.length === 0) this.add(0)
  }

  /** Adds to a series. @param a the value of the first label; `b` and `c` are those of the second and third label */
  add(amount: number, a = '', b = '', c = ''): void {
    this.#cells.at(a, b, c).value += amount
  }

  *samples(): Iterable<Sample> {
    for (const [values, { value }] of this.#cells.list(this.facts.labels.length)) yield { values, value }
  }
}

export class Histogram implements Family {
  readonly facts: FamilyFacts
  readonly #bounds: readonly number[]
  readonly #cells: Cells<{ counts: number[]; sum: number }>

  constructor(facts: FamilyFacts) {
    this.facts = facts
    this.#bounds = facts.bounds!
    this.#cells = new Cells(facts.labels.length, () => ({
      counts: new Array(facts.bounds!.length + 1).fill(0),
      sum: 0,
    }))
    if (facts.labels.length === 0) this.#cells.at('', '', '')
  }

  observe(value: number, a = '', b = '', c = ''): void {
    const cell = this.#cells.at(a, b, c)
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    cell.counts[bucket]!++
    cell.sum += value
  }

  *samples(): Iterable<Sample> {
    for (const [values, { counts, sum }] of this.#cells.list(this.facts.labels.length))
      yield { values, value: counts.reduce((all, one) => all + one, 0), counts, sum }
  }
}

/** A family whose values are read at a scrape: gauges, and counters that other modules maintain. */
export class Reading implements Family {
  readonly facts: FamilyFacts
  readonly #read: (set: (value: number, ...values: string[]) => void) => void

  /** @param read calls `set` once for each series; a series for which it makes no call is left out */
  constructor(facts: FamilyFacts, read: (set: (value: number, ...values: string[]) => void) => void) {
    this.facts = facts
    this.#read = read
  }

  samples(): Iterable<Sample> {
    const samples: Sample[] = []
    this.#read((value, ...values) => void samples.push({ values, value }))
    return samples
  }
}
