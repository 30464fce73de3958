/*
 * The probable cost of running requests is held back, so that many at once cannot spend the same credit (ruling C2). A
 * request is admitted while balance − holds is above zero, then holds its estimate. The law of overdraft:
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold
 *
 * because the last request admitted found at least one nano-credit that was not held.
 */

/** The credit of an account, in nano-credits. There is one live object per account, which all its requests share. */
export type Balance = {
  /** Sum of the account's ledger entries, as the store last reported it, less what is owed. */
  balanceNanos: bigint
  /** Debits that the store should have taken and has not; they must not be spent again (ruling C5). */
  owedNanos: bigint
  /** Sum of the holds of requests that are running. */
  heldNanos: bigint
  /** The number of requests that hold. */
  running: number
}

/** A positive balance always admits if no request is running, since nothing is held then. */
export function isAdmitted(balance: Balance): boolean {
  return balance.balanceNanos - balance.heldNanos > 0n
}

/**
 * Holds an estimate until the request is settled, of the account and of the key's budget (ruling R15). Call
 * `isAdmitted` in the same turn of the event loop.
 * @returns the release; only the first call has an effect.
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
