import type { Debit } from './ledger.ts'

/** A debit as it travels to the store: the account by its id. */
export type DebitRow = Omit<Debit, 'account'> & { accountId: string }

/** What became of a debit. Only `rejected` leaves no entry: no such account, or an amount no account can hold. */
export type Posting = 'posted' | 'exists' | 'conflict' | 'rejected'

export type Posted = {
  /** One for each debit, in their order. */
  postings: readonly Posting[]
  /** What the accounts have behind these debits, in nano-credits. */
  balances: readonly (readonly [accountId: string, storedNanos: bigint])[]
}

/** Brings debits into a ledger. Posting is repeatable: a request id is booked once, however often it comes (ruling R5). */
export interface Poster {
  /**
   * Resolves when all of them are durable. A store that is busy or broken is tried again, for as long as it takes.
   * @throws when the poster dies first; then nobody knows what became of them.
   */
  post(debits: readonly DebitRow[]): Promise<Posted>
  /** Resolves with the cause when it dies; never after `close`. */
  readonly death: Promise<Error>
  /** Ends it behind all that it was given, or after a while without: in a time that no store can make longer. */
  close(): Promise<void>
}

/** Where debits wait that the store could not take in time. Written without the store's help. */
export interface Spool {
  /** Resolves when all are durable. @throws when they may not be. */
  append(debits: readonly DebitRow[]): Promise<void>
  /** Forgets everything, unless more has come meanwhile: then `isEmpty` says no and nothing is done. */
  clear(isEmpty: () => boolean): Promise<void>
  close(): Promise<void>
}
