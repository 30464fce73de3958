import type { Verdict, VerifyOptions } from '../../accounts/entries.ts'
import { type Accounts, createAccounts } from './accounts.ts'
import { createEntries, type Entries } from './entries.ts'
import { createListing, type Listing } from './listing.ts'
import { lockStore } from './lock.ts'
import { type OpenOptions, openDatabase } from './open.ts'
import { audit, verify } from './verify.ts'

/** Everything one connection can do, each operation one transaction. The books and the server's worker share it. */
export type Store = Accounts &
  Omit<Entries, 'findCredit' | 'postCredit'> &
  Listing & {
    /** Findings in words; none when the books are right. */
    verify(options: VerifyOptions): string[]
    /** The same, and where nothing was found a head of what was read (ruling C15). It writes the head's moment down. */
    audit(options: VerifyOptions): Verdict
    close(): void
  }

export type StoreOptions = Omit<OpenOptions, 'lock'> & {
  nowMs?: () => number
  /** The caller is the server that holds the store's lock. Everybody else migrates only where no server runs. */
  isServer?: boolean
}

/** @param nowMs Unix milliseconds. @throws StoreError */
export function openStore(path: string, { nowMs = Date.now, isServer, ...options }: StoreOptions = {}): Store {
  const db = openDatabase(path, { ...options, lock: isServer ? undefined : lockStore })
  const { findCredit, postCredit, ...entries } = createEntries(db, nowMs)
  return {
    ...createAccounts(db, { findCredit, postCredit }),
    ...entries,
    ...createListing(db),
    verify: (options) => verify(db, nowMs(), options),
    audit: (options) => audit(db, nowMs(), options),
    close: () => db.close(),
  }
}
