import type { Zone } from '../../accounts/calendar.ts'
import type { RegisterName } from '../../accounts/registers.ts'
import type { Moved } from '../files/store-error.ts'

/*
 * The two ends of a copy: the source and the target. Each end is in SQLite or in PostgreSQL. A row is an object with a
 * value for each column name. Integers are bigint.
 *
 * Entries never change, so a range of an account's entries is always read with the same result. A copy can therefore be
 * made in slices while a server writes, or in several tries.
 */

/** The last entry of an account's chain. */
export type ChainEnd = { accountId: string; seq: number; balanceNanos: bigint; digest: string | null }

/** Entries of an account by number: above `after`, up to and including `upto`. */
export type EntryRange = { accountId: string; after: number; upto: number }

export type RegisterRow = Readonly<Record<string, unknown>>

/**
 * The registers (all tables except the entries) that are copied, and how:
 *
 * - `added`: rows never change once they exist;
 * - `changed`: existing rows get the columns of the source;
 * - `replaced`: the table becomes that of the source, and other rows are removed.
 */
export const copiedRegisters = {
  accounts: 'changed',
  persons: 'changed',
  keys: 'changed',
  sign_ins: 'changed',
  prices: 'added',
  lists: 'added',
  shifted: 'replaced',
  operators: 'changed',
  spends: 'replaced',
  outbox: 'replaced',
  needs: 'replaced',
  made: 'replaced',
  statements: 'added',
  statement_people: 'replaced',
  audit: 'added',
} as const satisfies Partial<Record<RegisterName, 'added' | 'changed' | 'replaced'>>

export type CopiedRegister = keyof typeof copiedRegisters

export const copiedNames = Object.keys(copiedRegisters) as CopiedRegister[]

/** All tables of a store except the entries, with the columns that both engines share. */
export type Registers = Record<CopiedRegister, RegisterRow[]> & { headMs: number }

export type CopyEnd = {
  /** The name of the store for people; a URL without its password. */
  readonly shown: string
  readTails(): Promise<ChainEnd[]>
  /** Returns the entries of the ranges, range by range, the oldest entry of each range first. */
  readEntries(ranges: readonly EntryRange[]): Promise<RegisterRow[]>
  readRegisters(): Promise<Registers>
  /**
   * Counts the entries and the references of credits. `numbered` is the sum of the accounts' last entry numbers. All
   * are read at one moment.
   */
  count(): Promise<{ entries: number; numbered: number; references: number }>
  /** The first month whose entries are detached. */
  readAwayMonth(): Promise<string | undefined>
  /** When the first entry was posted; undefined if there is none. */
  readOldestMs(): Promise<number | undefined>
  /** The zone of reports and budgets; undefined if no server has recorded a zone (ruling X12). */
  readZone(): Promise<Zone | undefined>
  readMoved(): Promise<Moved | undefined>
  close(): Promise<void>
}

export type CopySource = CopyEnd & {
  /**
   * Runs `work` while no server uses the store and nobody writes to it. If a server still runs, `work` is not called.
   * @returns the result of `work`, or the servers that still run, in words
   */
  hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }>
}

export type HeldSource = {
  /** A sentence about spooled debits that were posted to the store; undefined if there were none. */
  readonly spooled: string | undefined
  /**
   * Chooses the last moment of the source, and returns it in Unix milliseconds. The head (a digest of all entries)
   * covers all entries up to this moment. All later entries get a later time (ruling C15).
   */
  fixMoment(): Promise<number>
  /** Marks the store as moved, so that it refuses servers and operators. The mark is durable when `hold` resolves. */
  markMoved(to: string): Promise<void>
}

export type CopyTarget = CopyEnd & {
  /**
   * Marks the target as incomplete, so that no server uses it.
   * @param oldestMs the time of the oldest entry that will be copied
   * @throws StoreError if a server uses the target
   */
  begin(oldestMs: number): Promise<void>
  /** Adds missing accounts under placeholder names. Existing accounts stay as they are. */
  addAccounts(rows: readonly RegisterRow[]): Promise<void>
  addPrices(rows: readonly RegisterRow[]): Promise<void>
  /** Appends entries to their accounts unchanged. They come account by account, oldest first. */
  addEntries(rows: readonly RegisterRow[]): Promise<void>
  /** Prepares the tables for quick reading, after many entries were added. */
  settle(): Promise<void>
  /**
   * Writes registers. @param changed all rows of each `replaced` register. Of the other registers, only the rows that
   * are missing or different in the target.
   */
  write(changed: Registers): Promise<void>
  /** Sets the zone of the store's days and weeks. */
  setZone(zone: Zone): Promise<void>
  /** Allows servers to use the target. */
  finish(): Promise<void>
}
