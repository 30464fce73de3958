import type { Account, ApiKey, Directory } from '../../accounts/account.ts'
import type { Balances } from '../../accounts/balances.ts'
import type { Changes } from './accounts.ts'

/** Accounts and valid keys as the store last told them. An account keeps its object: requests that run know it. */
export type LiveDirectory = Directory & {
  accounts: ReadonlyMap<string, Account>
  apply(changes: Changes): void
  /** When which key was last used, since this was last asked. Unix milliseconds. */
  takeUses(): [keyId: string, usedMs: number][]
}

/** @param readAgain brings what is new in the store through `apply` before it resolves. */
export function createDirectory(balances: Balances, readAgain: () => Promise<void>): LiveDirectory {
  const accounts = new Map<string, Account>()
  const keys = new Map<string, ApiKey>()
  const digestsOf = new Map<string, string[]>()
  let uses = new Map<string, number>()
  const findKnownKey = (digest: string) => keys.get(digest)
  return {
    accounts,
    findKnownKey,
    findKey: (digest) => findKnownKey(digest) ?? readAgain().then(() => findKnownKey(digest)),
    touch: (key) => void uses.set(key.id, Date.now()),
    takeUses() {
      const taken = [...uses]
      uses = new Map()
      return taken
    },
    apply,
  }

  function apply(changes: Changes): void {
    for (const { id, name, state, balanceNanos } of changes.accounts) {
      const account = accounts.get(id)
      if (account) Object.assign(account, { name, state })
      else accounts.set(id, { id, name, state })
      balances.set(id, balanceNanos)
      // All its valid keys come with an account: one that does not come is revoked.
      for (const digest of digestsOf.get(id) ?? []) keys.delete(digest)
      digestsOf.set(id, [])
    }
    for (const { id, accountId, digest, prefix, expiresMs } of changes.keys) {
      keys.set(digest, { id, prefix, account: accounts.get(accountId)!, expiresMs })
      digestsOf.get(accountId)!.push(digest)
    }
  }
}
