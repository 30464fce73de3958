import { type Accounts, createAccounts } from './accounts.ts'
import { createEntries, type Entries } from './entries.ts'
import { type OpenOptions, openDatabase } from './open.ts'
import { type VerifyOptions, verify } from './verify.ts'

/** Everything one connection can do, each operation one transaction. The command line and the server's worker share it. */
export type Store = Accounts &
  Omit<Entries, 'postCredit'> & {
    /** Findings in words; none when the books are right. */
    verify(options: VerifyOptions): string[]
    close(): void
  }

/** @param nowMs Unix milliseconds. @throws StoreError */
export function openStore(path: string, options: OpenOptions & { nowMs?: () => number } = {}): Store {
  const db = openDatabase(path, options)
  const nowMs = options.nowMs ?? Date.now
  const { postCredit, ...entries } = createEntries(db, nowMs)
  const accounts = createAccounts(db, { postCredit, ...entries }, nowMs)
  return { ...accounts, ...entries, verify: (options) => verify(db, options), close: () => db.close() }
}
