import type { Spend } from './budget.ts'
import type { Balance } from './holds.ts'

/** What a settlement tells of accounts, and of keys with budgets. */
export type BalanceListener = Pick<Balances, 'set' | 'owe'> & {
  /** What a key, and all of its line, has spent by now, where this process keeps that. */
  spend?(scope: string, spend: Spend): void
}

/** The balances of all accounts, for a store that keeps them in the memory of the one process that serves. */
export interface Balances {
  /** Undefined for an account that the store has not told of. */
  get(accountId: string): Balance | undefined
  /** What the store says now, in nano-credits. What it does not know yet stays owed, however often it is asked (ruling C5). */
  set(accountId: string, storedNanos: bigint): void
  /** A debit that is due and that the store has not taken; the same amount, negative, when it has. */
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
