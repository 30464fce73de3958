/* The posting desk's memory of its calls. */

/**
 * The accounts whose locks a call waited for in vain. In a call with other accounts they would delay those too, and
 * calls of other servers for those. So their debits are posted alone, in a lane that no other account uses (ruling
 * Y16).
 */
export class SlowAccounts {
  /**
   * With `seen`, the row of the account was found locked. With `suspect`, its call failed, perhaps because of another
   * lock. Only a successful call removes a suspect.
   */
  readonly #slow = new Map<string, 'seen' | 'suspect'>()

  get size(): number {
    return this.#slow.size
  }

  has(accountId: string): boolean {
    return this.#slow.has(accountId)
  }

  /** @returns the accounts, the one whose last try is longest ago first */
  list(): string[] {
    return [...this.#slow.keys()]
  }

  /**
   * Notes a call that waited for a lock in vain. Accounts whose rows are locked become slow; if no row is, all accounts
   * of the call do.
   * @param accountIds the accounts of the call
   * @param locked of these and of all slow accounts, those whose rows are locked now; undefined if that is unknown
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

  /** Notes a call that succeeded. */
  acquit(accountIds: ReadonlySet<string>): void {
    if (this.#slow.size > 0) for (const accountId of accountIds) this.#slow.delete(accountId)
  }
}

/** How long to keep posted debits, in ms. A server that takes over may lack commits of the last seconds. */
const keptMs = 60_000

/**
 * Debits or returns that the database reported as posted in the last minute. They are looked up again after a lost
 * connection. The next server may be a standby that received commits late (docs/scaling.md).
 */
export class PostedLately<Value> {
  readonly #clockMs: () => number
  #kept: { atMs: number; values: readonly Value[] }[] = []

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** @param isHolding true: nothing is forgotten for now */
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
