import type { Spend } from './budget.ts'
import type { StoredFigures } from './poster.ts'

/** Receives the balances of accounts, and the spending of keys with budgets, from the settlement. */
export type BalanceListener = Pick<Balances, 'set' | 'owe'> & {
  /**
   * Sets what a key and the keys that it replaced have spent so far. Absent if this process does not track spending.
   */
  spend?(scope: string, spend: Spend): void
}

/** Passes the figures of a store to the listener. */
export function setFigures(listener: BalanceListener, { balances, spends = [] }: StoredFigures): void {
  for (const [accountId, storedNanos] of balances) listener.set(accountId, storedNanos)
  for (const [scope, spend] of spends) listener.spend?.(scope, spend)
}

/** The balances of all accounts, in the memory of the only serving process. */
export interface Balances {
  /** Returns undefined for an account that the store has not reported. */
  get(accountId: string): Balance | undefined
  /**
   * Sets the balance that the store reports, in nano-credits. Debits that the store does not have yet stay deducted
   * (ruling C5).
   */
  set(accountId: string, storedNanos: bigint): void
  /** Deducts a debit that is due but not in the store yet. Called with the negative amount once the store has it. */
  owe(accountId: string, amountNanos: bigint, keyId?: string, personId?: string): void
}

export function createBalances(): Balances {
  const balances = new Map<string, Balance>()
  return { get: (accountId) => balances.get(accountId), set, owe }

  function set(accountId: string, storedNanos: bigint): void {
    const balance = balances.get(accountId)
    if (balance) balance.balanceNanos = storedNanos - balance.owedNanos
    else balances.set(accountId, { balanceNanos: storedNanos, owedNanos: 0n, heldNanos: 0n, running: 0 })
  }

  function owe(accountId: string, amountNanos: bigint): void {
    const balance = balances.get(accountId)
    if (!balance) return
    balance.owedNanos += amountNanos
    balance.balanceNanos -= amountNanos
  }
}

/*
 * The estimated cost of running requests is held back, so that parallel requests cannot spend the same credit (ruling
 * C2). A request is admitted while balance − holds is above zero. The admitted request then holds its estimate. The law
 * of overdraft:
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold
 *
 * The reason: when the last request was admitted, at least one nano-credit was not held.
 */

/** The credit of an account, in nano-credits. All requests of the account share one live object. */
export type Balance = {
  /** The sum of the account's ledger entries, as the store last reported it, minus `owedNanos`. */
  balanceNanos: bigint
  /** Debits that are due but not in the store yet. Their amount must not be spent again (ruling C5). */
  owedNanos: bigint
  /** The sum of the holds of running requests. */
  heldNanos: bigint
  /** The number of running requests that hold credit. */
  running: number
}

/**
 * Whether the account may start another request. With a positive balance, an account without running requests may
 * always start one, because it holds nothing.
 */
export function isAdmitted(balance: Balance): boolean {
  return balance.balanceNanos - balance.heldNanos > 0n
}

/**
 * Holds an estimate until the request is settled. The hold counts for the account and for the budgets of key and person
 * (rulings R15, Y20). Call `isAdmitted` in the same turn of the event loop.
 * @returns a function that releases the hold, or all of it except an amount to keep. After a full release, further
 *   calls do nothing.
 */
export function hold(
  balance: Balance,
  amountNanos: bigint,
  key?: { heldNanos: bigint },
  person?: { heldNanos: bigint },
): (keptNanos?: bigint) => void {
  balance.heldNanos += amountNanos
  balance.running++
  if (key !== undefined) key.heldNanos += amountNanos
  if (person !== undefined) person.heldNanos += amountNanos
  let heldNanos = amountNanos
  let isHeld = true
  return (keptNanos = 0n) => {
    if (!isHeld || keptNanos > heldNanos) return
    const freedNanos = heldNanos - keptNanos
    heldNanos = keptNanos
    balance.heldNanos -= freedNanos
    if (key !== undefined) key.heldNanos -= freedNanos
    if (person !== undefined) person.heldNanos -= freedNanos
    if (keptNanos > 0n) return
    isHeld = false
    balance.running--
  }
}
