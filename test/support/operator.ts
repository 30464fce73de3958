import type { AccountRow, IssuedKey, KeyRow } from '../../src/accounts/book-rows.ts'
import {
  type AccountWishes,
  type BookChange,
  confirmClock,
  createAccount,
  createKey,
  credit,
  type KeyWishes,
  revokeKey,
  rotateKey,
  updateAccount,
  updateKey,
} from '../../src/accounts/book-rules.ts'
import type { BookStore } from '../../src/accounts/books.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import type { EntryFilter, ListedEntry } from '../../src/accounts/entries.ts'
import { onBehalf } from '../../src/accounts/on-behalf.ts'
import { openStore as open, type Store } from '../../src/store/sqlite/store.ts'
import { copyEmptyStore } from './empty-store.ts'

/** A separate connection to a store, as of an operator, with a function for each change of the books. */
export type Operator = Omit<Store, keyof BookStore> &
  Omit<Store['atOnce'], 'findAccount' | 'listKeys'> & {
    /** The same store in the form that `Books` uses. */
    asked: BookStore
    eachEntry(filter?: EntryFilter): Iterable<ListedEntry>
    createAccount(name: string, creditNanos?: bigint, wishes?: AccountWishes): AccountRow
    findAccount(idOrName: string): AccountRow
    updateAccount(idOrName: string, changes: AccountWishes): AccountRow
    credit(idOrName: string, amountNanos: bigint, reference: string): 'posted' | 'exists'
    createKey(idOrName: string, wishes?: KeyWishes): IssuedKey
    updateKey(idOrPrefix: string, wishes: KeyWishes): KeyRow
    listKeys(idOrName?: string): KeyRow[]
    revokeKey(idOrPrefix: string): KeyRow
    rotateKey(idOrPrefix: string, graceMs: number): IssuedKey
    /** Confirms the clock, like `triwire clock confirm`. */
    confirmClock(): { time: string }
  }

/** Opens a store. SQLite is synchronous, so tests need not await results that `Books` returns as promises. */
export function openStore(path: string, options: Parameters<typeof open>[1] = {}): Operator {
  copyEmptyStore(path)
  const opened = open(path, options)
  const store = opened.atOnce
  const nowMs = options.nowMs ?? Date.now
  const calendar = createCalendar(options.zone ?? utc)
  const change = <T>(one: BookChange<T>): T => store.change(one)
  return {
    ...opened,
    ...store,
    asked: opened,
    eachEntry: (filter = {}) => store.listEntries({ ...filter, first: 'oldest', limit: Number.MAX_SAFE_INTEGER }),
    createAccount: (name, creditNanos = 0n, wishes = {}) =>
      change(createAccount(name, creditNanos, { nowMs: nowMs(), calendar }, wishes)),
    findAccount: (idOrName) => store.findAccount(idOrName)!,
    updateAccount: (idOrName, changes) => change(updateAccount(idOrName, changes, calendar)),
    credit: (idOrName, amountNanos, reference) => change(credit(idOrName, amountNanos, reference)),
    createKey: (idOrName, wishes = {}) => change(createKey(idOrName, wishes, { nowMs: nowMs(), calendar })),
    updateKey: (idOrPrefix, wishes) => change(updateKey(idOrPrefix, wishes, calendar)),
    listKeys: (idOrName) => store.listKeys(idOrName === undefined ? undefined : store.findAccount(idOrName)!.id),
    revokeKey: (idOrPrefix) => change(revokeKey(idOrPrefix, nowMs())),
    rotateKey: (idOrPrefix, graceMs) => change(rotateKey(idOrPrefix, graceMs)),
    confirmClock: () => change(onBehalf({ actor: 'tester' }, confirmClock(), nowMs())),
  }
}
