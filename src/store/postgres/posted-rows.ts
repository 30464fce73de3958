import type { DebitRow } from '../../accounts/poster.ts'

/** A server that takes over from another one may lack what was committed there in the last seconds: far fewer than these. */
const keptMs = 60_000

type RememberedRows<Value> = { atMs: number; values: readonly Value[] }

/**
 * Debits of the last minute that the database reported as posted. They are looked up again after a lost connection: the
 * server found then may be another one, to which everything came late (docs/scaling.md).
 */
export class PostedRows {
  readonly #clockMs: () => number
  #rows: RememberedRows<DebitRow>[] = []
  #gifts: RememberedRows<string>[] = []

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** @param isHolding nothing is forgotten meanwhile. */
  keep(rows: readonly DebitRow[], isHolding: boolean): void {
    this.#rows = this.#add(this.#rows, rows, isHolding)
  }

  keepGifts(requestIds: readonly string[], isHolding: boolean): void {
    this.#gifts = this.#add(this.#gifts, requestIds, isHolding)
  }

  rows(): DebitRow[] {
    return this.#rows.flatMap(({ values }) => values)
  }

  gifts(): string[] {
    return this.#gifts.flatMap(({ values }) => values)
  }

  has(requestId: string): boolean {
    return this.#rows.some(({ values }) => values.some((row) => row.requestId === requestId))
  }

  #add<Value>(kept: RememberedRows<Value>[], values: readonly Value[], isHolding: boolean): RememberedRows<Value>[] {
    const nowMs = this.#clockMs()
    if (values.length > 0) kept.push({ atMs: nowMs, values })
    if (isHolding || kept[0] === undefined || nowMs - kept[0].atMs < 2 * keptMs) return kept
    return kept.filter(({ atMs }) => nowMs - atMs < keptMs)
  }
}
