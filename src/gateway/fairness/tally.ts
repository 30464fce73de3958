/** A number for each account; who has none takes no room. */
export class Tally {
  readonly #numbers = new Map<string, number>()

  of(accountId: string): number {
    return this.#numbers.get(accountId) ?? 0
  }

  /** @param change to what the account has; never to less than nothing */
  add(accountId: string, change: number): void {
    const left = this.of(accountId) + change
    if (left === 0) this.#numbers.delete(accountId)
    else this.#numbers.set(accountId, left)
  }
}
