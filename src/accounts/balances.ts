import type { Spend } from './budget.ts'
import type { Balance } from './holds.ts'

/** Receives from a settlement the balances of accounts and the spending of keys with budgets. */
export type BalanceListener = Pick<Balances, 'set' | 'owe'> & {
  /** Sets what a key and all of its line have spent so far; missing if this process does not keep that. */
  spend?(scope: string, spend: Spend): void
}

/** The balances of all accounts, in the memory of the only serving process. */
export interface Balances {
  /** Undefined for an account that the store has not reported. */
  get(accountId: string): Balance | undefined
  /** Sets the balance that the store reports, in nano-credits. Debits that it does not have yet stay deducted (ruling C5). */
  set(accountId: string, storedNanos: bigint): void
  /** Deducts a due debit that the store has not taken; called with the negative amount once it has. */
  owe(accountId: string, amountNanos: bigint, keyId?: string): void
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
