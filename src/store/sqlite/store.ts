import type { VerifyOptions } from '../../accounts/entries.ts'
import { type Accounts, createAccounts } from './accounts.ts'
import { createEntries, type Entries } from './entries.ts'
import { type OpenOptions, openDatabase } from './open.ts'
import { verify } from './verify.ts'

/** Everything one connection can do, each operation one transaction. The books and the server's worker share it. */
export type Store = Accounts &
  Omit<Entries, 'findCredit' | 'postCredit'> & {
    /** Findings in words; none when the books are right. */
    verify(options: VerifyOptions): string[]
    close(): void
  }

/** @param nowMs Unix milliseconds. @throws StoreError */
export function openStore(path: string, options: OpenOptions & { nowMs?: () => number } = {}): Store {
  const db = openDatabase(path, options)
  const nowMs = options.nowMs ?? Date.now
  const { findCredit, postCredit, ...entries } = createEntries(db, nowMs)
  const accounts = createAccounts(db, { findCredit, postCredit })
  return { ...accounts, ...entries, verify: (options) => verify(db, options), close: () => db.close() }
}
