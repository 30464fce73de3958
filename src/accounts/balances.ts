import type { Spend } from './budget.ts'
import type { StoredFigures } from './poster.ts'

/** Receives from a settlement the balances of accounts and the spending of keys with budgets. */
export type BalanceListener = Pick<Balances, 'set' | 'owe'> & {
  /** Sets what a key and all of its line have spent so far; absent if this process does not keep spending. */
  spend?(scope: string, spend: Spend): void
}

/** Passes on the figures that a store has reported. */
export function setFigures(listener: BalanceListener, { balances, spends = [] }: StoredFigures): void {
  for (const [accountId, storedNanos] of balances) listener.set(accountId, storedNanos)
  for (const [scope, spend] of spends) listener.spend?.(scope, spend)
}

/** The balances of all accounts, in the memory of the only serving process. */
export interface Balances {
  /** Undefined for an account that the store has not reported. */
  get(accountId: string): Balance | undefined
  /** Sets the balance that the store reports, in nano-credits. Debits that it does not have yet stay deducted (ruling C5). */
  set(accountId: string, storedNanos: bigint): void
  /** Deducts a due debit that the store has not taken; called with the negative amount once it has. */
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
 * Holds an estimate until the request is settled, of the account and of the budgets of key and person (rulings R15, Y20). Call
 * `isAdmitted` in the same turn of the event loop.
 * @returns the release, whole or down to what is kept; after the whole one no call has an effect.
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
