/* Facts that the posting desk remembers about its calls. */

/**
 * Remembers slow accounts, whose locks a call did not get in time. While a call waits for a lock, it keeps its other
 * accounts locked, also for other servers. So the debits of a slow account are posted alone, in a lane that no other
 * account uses (Y16).
 */
export class SlowAccounts {
  /**
   * The reason why each account counts as slow. `seen`: its row was found locked. `suspect`: a call that contained the
   * account failed, perhaps because of another account's lock. Only a successful call clears a suspect.
   */
  readonly #slow = new Map<string, 'seen' | 'suspect'>()

  get size(): number {
    return this.#slow.size
  }

  has(accountId: string): boolean {
    return this.#slow.has(accountId)
  }

  /** Lists the slow accounts. The account whose last try is the oldest comes first. */
  list(): string[] {
    return [...this.#slow.keys()]
  }

  /**
   * Notes a call that did not get a lock in time. The locked accounts of the call become slow. If no account of the
   * call is known to be locked, all accounts of the call become slow.
   * @param accountIds the accounts of the call
   * @param locked which accounts of the call, and which slow accounts, are locked; undefined if unknown
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

  /** Notes that a call succeeded. The accounts of the call no longer count as slow. */
  acquit(accountIds: ReadonlySet<string>): void {
    if (this.#slow.size > 0) for (const accountId of accountIds) this.#slow.delete(accountId)
  }
}

/** How long posted debits are kept here, in ms. A standby that takes over may lack commits of the last seconds. */
const keptMs = 60_000

/**
 * Debits and reversals that the database reported as posted in the last minute. After a lost connection, the posting
 * desk checks whether the ledger has them. The next server may be a standby that lacks commits (docs/scaling.md).
 */
export class PostedLately<Value> {
  readonly #clockMs: () => number
  #kept: { atMs: number; values: readonly Value[] }[] = []

  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** Adds values, and forgets old values. @param isHolding whether all values must be kept for now */
  keep(values: readonly Value[], isHolding: boolean): void {
    const nowMs = this.#clockMs()
    if (values.length > 0) this.#kept.push({ atMs: nowMs, values })
    if (isHolding || this.#kept[0] === undefined || nowMs - this.#kept[0].atMs < 2 * keptMs) return
    this.#kept = this.#kept.filter(({ atMs }) => nowMs - atMs < keptMs)
  }

  list(): Value[] {
    // Values that were posted again are kept twice.
    return [...new Set(this.#kept.flatMap(({ values }) => values))]
  }
}
