/**
 * Accounts whose debits had to wait for somebody's lock until nobody would wait any more. In a call with others they make the
 * others wait too: so they go by themselves, and those that were slow even then only where nobody else goes.
 */
export class SlowAccounts {
  readonly #slow = new Map<string, 'suspect' | 'locked'>()

  get size(): number {
    return this.#slow.size
  }

  has(accountId: string): boolean {
    return this.#slow.has(accountId)
  }

  isLocked(accountId: string): boolean {
    return this.#slow.get(accountId) === 'locked'
  }

  /** Who was tried the longest ago comes first. */
  locked(): string[] {
    return [...this.#slow.keys()].filter((accountId) => this.isLocked(accountId))
  }

  /** Of a call that waited in vain. */
  accuse(accountIds: ReadonlySet<string>): void {
    for (const accountId of accountIds) {
      const guilt = accountIds.size === 1 ? 'locked' : 'suspect'
      this.#slow.delete(accountId)
      this.#slow.set(accountId, guilt)
    }
  }

  /** Of a call that worked. */
  acquit(accountIds: ReadonlySet<string>): void {
    if (this.#slow.size > 0) for (const accountId of accountIds) this.#slow.delete(accountId)
  }
}
