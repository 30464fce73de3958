import type { Zone } from '../../accounts/calendar.ts'
import type { Moved } from '../files/moved.ts'

/*
 * What a copy knows of a store, whichever its engine: rows in the words of their columns, integers as bigint. Entries are never
 * changed, so that what was read of an account up to a number is so for ever, and a copy may be made in slices while a server
 * goes on, or in several tries.
 */

/** Where the chain of an account ends. */
export type ChainEnd = { accountId: string; seq: number; balanceNanos: bigint; digest: string | null }

/** Entries of an account by their numbers: behind `after`, up to and with `upto`. */
export type EntryRange = { accountId: string; after: number; upto: number }

export type RegisterRow = Readonly<Record<string, unknown>>

/** All that is in a store beside its entries. */
export type Registers = {
  accounts: RegisterRow[]
  keys: RegisterRow[]
  prices: RegisterRow[]
  operators: RegisterRow[]
  /** What keys with budgets have spent. */
  spends: RegisterRow[]
  /** Warnings that wait to be told. */
  outbox: RegisterRow[]
  /** What came of creations that may be asked for again (Idempotency-Key). */
  made: RegisterRow[]
  /** The audit trail; its records are never changed. */
  audit: RegisterRow[]
  headMs: number
}

/** By their columns, in which both engines agree. */
export const registerColumns = {
  accounts: ['id', 'name', 'state', 'created_ms'],
  keys: [
    ...['id', 'account_id', 'digest', 'prefix', 'label'],
    ...['created_ms', 'expires_ms', 'revoked_ms', 'last_used_ms'],
    ...['scope', 'own_expires_ms', 'budget', 'budget_per', 'rpm', 'models'],
  ],
  prices: ['version', 'input', 'cache_read', 'cache_write', 'cache_write_1h', 'output', 'terms'],
  operators: ['id', 'name', 'role', 'digest', 'prefix', 'created_ms', 'expires_ms', 'revoked_ms'],
  spends: ['scope', 'from_ms', 'until_ms', 'spent', 'warned'],
  outbox: ['id', 'event', 'data', 'at_ms', 'next_ms', 'tries'],
  made: ['actor', 'once', 'asked', 'result', 'made_ms'],
  audit: ['seq', 'at_ms', 'actor', 'address', 'operation', 'object', 'before', 'after', 'digest'],
} as const

export type RegisterName = keyof typeof registerColumns

/** Those that are written whole: what is not among their rows is no more. */
export const replacedRegisters = ['spends', 'outbox', 'made'] as const

export type ChangedRegisters = Readonly<
  Record<'accounts' | 'keys' | 'operators' | 'audit' | (typeof replacedRegisters)[number], readonly RegisterRow[]> & {
    headMs: number
  }
>

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
  readOldestMs(): Promise<number | undefined>
  /** Whose days reports and budgets are by, where a server has recorded it (ruling X12). */
  readZone(): Promise<Zone | undefined>
  readMoved(): Promise<Moved | undefined>
  close(): Promise<void>
}

export type CopySource = CopyEnd & {
  /**
   * Runs `work` while no server serves from the store and nobody writes to it.
   * @returns what servers do, in words, where some still run; then nothing was run.
   */
  hold<T>(work: (held: HeldSource) => Promise<T>): Promise<{ servers: string } | { result: T }>
}

export type HeldSource = {
  /** Debits that waited beside the store were brought into it: a sentence for people, none where there were none. */
  readonly spooled: string | undefined
  /** Takes the moment of a last head, behind which all is posted from now on (ruling C15). */
  fixMoment(): Promise<number>
  /** Durable when `hold` resolves: from then on servers and operators are refused. */
  markMoved(to: string): Promise<void>
}

export type CopyTarget = CopyEnd & {
  /**
   * Marks it as being filled, so that nobody serves from half a copy.
   * @param oldestMs of the entries that will come. @throws StoreError where a server runs on it.
   */
  begin(oldestMs: number): Promise<void>
  /** Adds those that are not there yet, under no name of theirs. What is there stays as it is. */
  addAccounts(rows: readonly RegisterRow[]): Promise<void>
  addPrices(rows: readonly RegisterRow[]): Promise<void>
  /** Puts entries at the ends of their accounts, as they are. Account by account, oldest first. */
  addEntries(rows: readonly RegisterRow[]): Promise<void>
  /** After many entries: what makes reading them quick. */
  settle(): Promise<void>
  /** Rows that differ, or are not there: accounts by their new names and states, keys, operators, records of the audit. */
  write(changed: ChangedRegisters): Promise<void>
  /** Its days and weeks are those of this zone from now on. */
  setZone(zone: Zone): Promise<void>
  /** It may be served from. */
  finish(): Promise<void>
}
