import { BookError } from './book-error.ts'
import type { AccountRow, IssuedKey, KeyRow } from './book-rows.ts'
import { type Change, createAccount, createKey, credit, revokeKey, rotateKey, setAccountState } from './book-rules.ts'
import type { Entry, VerifyOptions } from './entries.ts'
import type { Eventual } from './eventual.ts'

/**
 * What may be done with accounts, keys, credits and entries, by the command line and by whatever else an operator uses. The
 * same on every store; a running server follows (faults F-C45), a key works from the moment it was made (ruling R16).
 * An account is named by id or name, a key by id or by its first characters. All throw BookError where a rule forbids it.
 */
export interface Books {
  /** Credit given at once is booked with the reference `create:<id>` (ruling C8). */
  createAccount(name: string, creditNanos?: bigint): Promise<AccountRow>
  listAccounts(): Promise<AccountRow[]>
  findAccount(account: string): Promise<AccountRow>
  setAccountState(account: string, state: AccountRow['state']): Promise<AccountRow>
  /**
   * A top-up, or a correction when negative. The same reference with the same account and amount is the same top-up, however
   * often it is asked for (ruling C8).
   */
  credit(account: string, amountNanos: bigint, reference: string): Promise<'posted' | 'exists'>
  createKey(account: string): Promise<IssuedKey>
  /** Of all accounts where none is named. */
  listKeys(account?: string): Promise<KeyRow[]>
  /** For good, and again without harm. */
  revokeKey(key: string): Promise<KeyRow>
  /** A new key for the account; the old one is good for `graceMs` more, never longer than it already was. */
  rotateKey(key: string, graceMs: number): Promise<IssuedKey>
  /** The debit of a request. */
  findEntry(requestId: string): Promise<Entry | undefined>
  /** The newest first, of one account by its id or of all. */
  listEntries(which: { accountId?: string; limit: number }): Promise<Entry[]>
  /** The oldest first, read as they are asked for. */
  eachEntry(): AsyncIterable<Entry>
  /** Findings in words; none when the books are right. */
  verify(options: VerifyOptions): Promise<string[]>
}

/** What a store does for the books: it reads, and it makes changes whole or not at all. It knows no rule of theirs. */
export interface BookStore {
  /**
   * In one transaction that nobody else's writes come between: finds what the change asks about, lets it decide, and
   * writes what it says. @throws what `decide` throws, with nothing written.
   */
  change<T>(change: Change<T>): Eventual<T>
  findAccount(idOrName: string): Eventual<AccountRow | undefined>
  listAccounts(): Eventual<AccountRow[]>
  listKeys(accountId?: string): Eventual<KeyRow[]>
  findEntry(requestId: string): Eventual<Entry | undefined>
  listEntries(which: { accountId?: string; limit: number }): Eventual<Entry[]>
  eachEntry(): Iterable<Entry> | AsyncIterable<Entry>
  verify(options: VerifyOptions): Eventual<string[]>
}

/** @param nowMs Unix milliseconds. */
export function createBooks(store: BookStore, nowMs: () => number): Books {
  return {
    createAccount: async (name, creditNanos = 0n) => store.change(createAccount(name, creditNanos, nowMs())),
    listAccounts: async () => store.listAccounts(),
    findAccount,
    setAccountState: async (account, state) => store.change(setAccountState(account, state)),
    credit: async (account, amountNanos, reference) => store.change(credit(account, amountNanos, reference)),
    createKey: async (account) => store.change(createKey(account, nowMs())),
    listKeys: async (account) => store.listKeys(account === undefined ? undefined : (await findAccount(account)).id),
    revokeKey: async (key) => store.change(revokeKey(key, nowMs())),
    rotateKey: async (key, graceMs) => store.change(rotateKey(key, graceMs, nowMs())),
    findEntry: async (requestId) => store.findEntry(requestId),
    listEntries: async (which) => store.listEntries(which),
    eachEntry: async function* () {
      yield* store.eachEntry()
    },
    verify: async (options) => store.verify(options),
  }

  async function findAccount(account: string): Promise<AccountRow> {
    const row = await store.findAccount(account)
    if (!row) throw new BookError('no_account', account)
    return row
  }
}
