import type { Zone } from '../../accounts/calendar.ts'
import type { RegisterName } from '../../accounts/registers.ts'
import type { Moved } from '../files/store-error.ts'

/*
 * The two ends of a copy, whichever their engines: rows by the names of their columns, integers as bigint. Entries are never
 * changed, so an account's entries up to a number stay as they were read. A copy may therefore be made in slices while a server
 * goes on, or in several tries.
 */

/** The end of the chain of an account. */
export type ChainEnd = { accountId: string; seq: number; balanceNanos: bigint; digest: string | null }

/** Entries of an account by their numbers: above `after`, up to and with `upto`. */
export type EntryRange = { accountId: string; after: number; upto: number }

export type RegisterRow = Readonly<Record<string, unknown>>

/**
 * The registers that are copied. Rows that are `added` never change. Rows that are `changed` get the columns of the source. Those
 * that are `replaced` are written whole: rows that the source does not have are removed.
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

/** All that is in a store beside its entries, with the columns in which both engines agree. */
export type Registers = Record<CopiedRegister, RegisterRow[]> & { headMs: number }

export type CopyEnd = {
  /** For people; of a URL without its password. */
  readonly shown: string
  readTails(): Promise<ChainEnd[]>
  /** Account by account as the ranges come, oldest first. */
  readEntries(ranges: readonly EntryRange[]): Promise<RegisterRow[]>
  readRegisters(): Promise<Registers>
  /** In one moment: all entries, those that the accounts say they have, and references that are taken. */
  count(): Promise<{ entries: number; numbered: number; references: number }>
  /** When the first entry was posted. */
  /** The first month of which entries are away. */
  readAwayMonth(): Promise<string | undefined>
  readOldestMs(): Promise<number | undefined>
  /** Whose days reports and budgets are by, where a server has recorded it (ruling X12). */
  readZone(): Promise<Zone | undefined>
  readMoved(): Promise<Moved | undefined>
  close(): Promise<void>
}

export type CopySource = CopyEnd & {
  /**
   * Runs `work` while no server serves from the store and nobody writes to it.
   * @returns what servers do, in words, if some still run; then nothing was run.
   */
  hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }>
}

export type HeldSource = {
  /** Debits that waited beside the store were brought into it: a sentence for people, none where there were none. */
  readonly spooled: string | undefined
  /** Takes the moment of a last head: all is posted after it from now on (ruling C15). */
  fixMoment(): Promise<number>
  /** Durable when `hold` resolves: from then on servers and operators are refused. */
  markMoved(to: string): Promise<void>
}

export type CopyTarget = CopyEnd & {
  /**
   * Marks it as being filled, so that nobody serves from half a copy.
   * @param oldestMs the time of the oldest entry that will be copied. @throws StoreError if a server runs on it.
   */
  begin(oldestMs: number): Promise<void>
  /** Adds those that are not there yet, under no name of theirs. What is there stays as it is. */
  addAccounts(rows: readonly RegisterRow[]): Promise<void>
  addPrices(rows: readonly RegisterRow[]): Promise<void>
  /** Puts entries at the ends of their accounts, as they are. Account by account, oldest first. */
  addEntries(rows: readonly RegisterRow[]): Promise<void>
  /** After many entries: what makes reading them quick. */
  settle(): Promise<void>
  /** @param changed of registers that are replaced all rows; of all others those that differ, or are not there */
  write(changed: Registers): Promise<void>
  /** Its days and weeks are those of this zone from now on. */
  setZone(zone: Zone): Promise<void>
  /** Servers may serve from the target now. */
  finish(): Promise<void>
}
