import { BookError } from './book-error.ts'
import type { AccountRow, IssuedKey, KeyRow } from './book-rows.ts'
import {
  type Change,
  createAccount,
  createKey,
  credit,
  renameAccount,
  revokeKey,
  rotateKey,
  setAccountState,
} from './book-rules.ts'
import type { EntryFilter, FoundDebit, Grouping, ListedEntry, Total, Verdict, VerifyOptions } from './entries.ts'
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
  /** Its id, keys and entries stay what they are. */
  renameAccount(account: string, name: string): Promise<AccountRow>
  /**
   * A top-up, or a correction when negative. The same reference with the same account and amount is the same top-up, however
   * often it is asked for (ruling C8).
   */
  credit(account: string, amountNanos: bigint, reference: string): Promise<'posted' | 'exists'>
  /** @param options.label what people call it; its successors keep it. */
  createKey(account: string, options?: { label?: string | undefined }): Promise<IssuedKey>
  /** Of all accounts where none is named. */
  listKeys(account?: string): Promise<KeyRow[]>
  /** By id, first characters or label: several keys may have one label. */
  findKeys(name: string): Promise<KeyRow[]>
  /** For good, and again without harm. */
  revokeKey(key: string): Promise<KeyRow>
  /** A new key for the account; the old one is good for `graceMs` more, never longer than it already was. */
  rotateKey(key: string, graceMs: number): Promise<IssuedKey>
  /** The debit of a request. */
  findEntry(requestId: string): Promise<ListedEntry | undefined>
  /** The same with its prices, and whether it was given back. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** The newest first. */
  listEntries(which: EntryFilter & { limit: number }): Promise<ListedEntry[]>
  /** The oldest first, read as they are asked for. */
  eachEntry(filter?: EntryFilter): AsyncIterable<ListedEntry>
  /** One row for each group that has entries, in the order of the groupings; one in all where there are none. */
  sumEntries(filter: EntryFilter, by: readonly Grouping[]): Promise<Total[]>
  /** The models that the ledger has entries of. */
  listModels(): Promise<string[]>
  /** Findings in words; none when the books are right. */
  verify(options: VerifyOptions): Promise<string[]>
  /** The same, and where nothing was found a head of what was read (ruling C15). It writes the head's moment down. */
  audit(options: VerifyOptions): Promise<Verdict>
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
  findKeys(name: string): Eventual<KeyRow[]>
  findEntry(requestId: string): Eventual<ListedEntry | undefined>
  findDebit(requestId: string): Eventual<FoundDebit | undefined>
  listEntries(which: EntryFilter & { limit: number }): Eventual<ListedEntry[]>
  eachEntry(filter?: EntryFilter): Iterable<ListedEntry> | AsyncIterable<ListedEntry>
  sumEntries(filter: EntryFilter, by: readonly Grouping[]): Eventual<Total[]>
  listModels(): Eventual<string[]>
  verify(options: VerifyOptions): Eventual<string[]>
  audit(options: VerifyOptions): Eventual<Verdict>
}

/** @param nowMs Unix milliseconds. */
export function createBooks(store: BookStore, nowMs: () => number): Books {
  return {
    createAccount: async (name, creditNanos = 0n) => store.change(createAccount(name, creditNanos, nowMs())),
    listAccounts: async () => store.listAccounts(),
    findAccount,
    setAccountState: async (account, state) => store.change(setAccountState(account, state)),
    renameAccount: async (account, name) => store.change(renameAccount(account, name)),
    credit: async (account, amountNanos, reference) => store.change(credit(account, amountNanos, reference)),
    createKey: async (account, { label } = {}) => store.change(createKey(account, label, nowMs())),
    listKeys: async (account) => store.listKeys(account === undefined ? undefined : (await findAccount(account)).id),
    findKeys: async (name) => store.findKeys(name),
    revokeKey: async (key) => store.change(revokeKey(key, nowMs())),
    rotateKey: async (key, graceMs) => store.change(rotateKey(key, graceMs, nowMs())),
    findEntry: async (requestId) => store.findEntry(requestId),
    findDebit: async (requestId) => store.findDebit(requestId),
    listEntries: async (which) => store.listEntries(which),
    eachEntry: async function* (filter) {
      yield* store.eachEntry(filter)
    },
    sumEntries: async (filter, by) => store.sumEntries(filter, by),
    listModels: async () => store.listModels(),
    verify: async (options) => store.verify(options),
    audit: async (options) => store.audit(options),
  }

  async function findAccount(account: string): Promise<AccountRow> {
    const row = await store.findAccount(account)
    if (!row) throw new BookError('no_account', account)
    return row
  }
}
