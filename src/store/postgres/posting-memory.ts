/* The posting desk's memory of its calls. */

/**
 * Accounts for whose locks a call waited in vain. In a call with others they make the others wait too, and those of other
 * servers that wait for the others. So they go by themselves, on a lane that no other account uses (ruling Y16).
 */
export class SlowAccounts {
  /** `seen`: its row was found locked. `suspect`: it failed, and something else may be locked; only a call that works acquits it. */
  readonly #slow = new Map<string, 'seen' | 'suspect'>()

  get size(): number {
    return this.#slow.size
  }

  has(accountId: string): boolean {
    return this.#slow.has(accountId)
  }

  /** Whose turn it is: who was tried the longest ago comes first. */
  list(): string[] {
    return [...this.#slow.keys()]
  }

  /**
   * Of a call that waited in vain. Those whose rows are locked are accused, and where none is, all of the call.
   * @param locked of these accounts and of all that are slow those whose rows are locked now; undefined where nobody can say
   */
  accuse(accountIds: ReadonlySet<string>, locked: ReadonlySet<string> | undefined): void {
    for (const [accountId, guilt] of this.#slow)
      if (locked && guilt === 'seen' && !locked.has(accountId)) this.#slow.delete(accountId)
    const isSeen = locked !== undefined && accountIds.size > 1 && !accountIds.isDisjointFrom(locked)
    for (const accountId of accountIds) {
      if (isSeen && !locked.has(accountId)) continue
      this.#slow.delete(accountId)
      this.#slow.set(accountId, locked?.has(accountId) ? 'seen' : 'suspect')
    }
  }

  /** Of a call that worked. */
  acquit(accountIds: ReadonlySet<string>): void {
    if (this.#slow.size > 0) for (const accountId of accountIds) this.#slow.delete(accountId)
  }
}

/** A server that takes over from another one may lack what was committed there in the last seconds: far fewer than these. */
const keptMs = 60_000

/**
 * Debits or returns that the database reported as posted in the last minute. They are looked up again after a lost connection: the server found
 * then may be another one, to which everything came late (docs/scaling.md).
 */
export class PostedLately<Value> {
  readonly #clockMs: () => number
  #kept: { atMs: number; values: readonly Value[] }[] = []

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** @param isHolding nothing is forgotten meanwhile. */
  keep(values: readonly Value[], isHolding: boolean): void {
    const nowMs = this.#clockMs()
    if (values.length > 0) this.#kept.push({ atMs: nowMs, values })
    if (isHolding || this.#kept[0] === undefined || nowMs - this.#kept[0].atMs < 2 * keptMs) return
    this.#kept = this.#kept.filter(({ atMs }) => nowMs - atMs < keptMs)
  }

  list(): Value[] {
    return this.#kept.flatMap(({ values }) => values)
  }
}
