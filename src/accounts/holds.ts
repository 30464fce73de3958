/*
 * What running requests will probably cost is held back, so that many at once cannot spend the same credit (ruling C2).
 * A request is admitted while balance − holds is above zero, then holds its estimate. The law of overdraft:
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold
 *
 * because the last request admitted found at least one nano-credit not yet held.
 */

/** What an account has, in nano-credits. One live object per account: all its requests see the same. */
export type Balance = {
  /** Sum of the account's ledger entries, as the store last told it, less what is owed. */
  balanceNanos: bigint
  /** Debits that the store should have taken and has not: nobody may spend them again (ruling C5). */
  owedNanos: bigint
  /** Sum of the holds of requests that are running. */
  heldNanos: bigint
  /** Requests that hold. */
  running: number
}

/** With nothing running a positive balance always admits: then nothing is held. */
export function isAdmitted(balance: Balance): boolean {
  return balance.balanceNanos - balance.heldNanos > 0n
}

/**
 * Holds an estimate until the request is settled, of the account and of the key's budget (ruling R15). Ask `isAdmitted` in
 * the same turn of the event loop.
 * @returns the release; it takes effect once.
 */
export function hold(balance: Balance, amountNanos: bigint, key?: { heldNanos: bigint }): () => void {
  balance.heldNanos += amountNanos
  balance.running++
  if (key !== undefined) key.heldNanos += amountNanos
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    balance.heldNanos -= amountNanos
    balance.running--
    if (key !== undefined) key.heldNanos -= amountNanos
  }
}
