import type { Account } from './account.ts'

/*
 * What running requests will probably cost is held back, so that many at once cannot spend the same credit (ruling C2).
 * A request is admitted while balance − holds is above zero, then holds its estimate. The law of overdraft:
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold
 *
 * because the last request admitted found at least one nano-credit not yet held.
 */

/** With nothing running a positive balance always admits: then nothing is held. */
export function isAdmitted(account: Account): boolean {
  return account.balanceNanos - account.heldNanos > 0n
}

/**
 * Holds an estimate until the request is settled. Ask `isAdmitted` in the same turn of the event loop.
 * @returns the release; it takes effect once.
 */
export function hold(account: Account, amountNanos: bigint): () => void {
  account.heldNanos += amountNanos
  account.running++
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    account.heldNanos -= amountNanos
    account.running--
  }
}
