import type { Account, ApiKey } from '../../accounts/account.ts'
import type { Changes } from './accounts.ts'

/** Accounts and valid keys as the store last told them. An account keeps its object: requests that run hold it. */
export type People = {
  accounts: ReadonlyMap<string, Account>
  findKey(digest: string): ApiKey | undefined
  apply(changes: Changes): void
  /** @param nanos as the store has it. */
  setBalance(accountId: string, nanos: bigint): void
}

/** @param owedNanos what an account owes that the store does not know yet. */
export function createPeople(owedNanos: (accountId: string) => bigint): People {
  const accounts = new Map<string, Account>()
  const keys = new Map<string, ApiKey>()
  const digestsOf = new Map<string, string[]>()
  return { accounts, findKey: (digest) => keys.get(digest), apply, setBalance }

  function apply(changes: Changes): void {
    for (const { id, name, state, balanceNanos } of changes.accounts) {
      const account = accounts.get(id)
      if (account) Object.assign(account, { name, state })
      else accounts.set(id, { id, name, state, balanceNanos, heldNanos: 0n, running: 0 })
      setBalance(id, balanceNanos)
      // All its valid keys come with an account: one that does not come is revoked.
      for (const digest of digestsOf.get(id) ?? []) keys.delete(digest)
      digestsOf.set(id, [])
    }
    for (const { id, accountId, digest, prefix, expiresMs } of changes.keys) {
      keys.set(digest, { id, prefix, account: accounts.get(accountId)!, expiresMs })
      digestsOf.get(accountId)!.push(digest)
    }
  }

  function setBalance(accountId: string, nanos: bigint): void {
    const account = accounts.get(accountId)
    if (account) account.balanceNanos = nanos - owedNanos(accountId)
  }
}
