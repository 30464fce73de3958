/** A number for each account. A number of 0 takes no memory. */
export class Tally {
  readonly #numbers = new Map<string, number>()

  of(accountId: string): number {
    return this.#numbers.get(accountId) ?? 0
  }

  /** @param change is added to the number of the account, which must not become negative */
  add(accountId: string, change: number): void {
    const left = this.of(accountId) + change
    if (left === 0) this.#numbers.delete(accountId)
    else this.#numbers.set(accountId, left)
  }
}
