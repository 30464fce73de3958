import type { Spend } from './budget.ts'
import type { Debit } from './ledger.ts'

/** A debit as it travels to the store: the account by its id. */
export type DebitRow = Omit<Debit, 'account'> & { accountId: string }

/**
 * What became of a debit. Three leave no entry: `rejected` (no such account, or an amount no account can hold), `withdrawn`
 * (taken back before it was tried again), and `deferred` (somebody has locked its account: it is to be posted again, with
 * debits of that account only, so that nobody else's wait for its answer).
 */
export type Posting = 'posted' | 'exists' | 'conflict' | 'rejected' | 'withdrawn' | 'deferred'

export type Posted = {
  /** One for each debit, in their order. */
  postings: readonly Posting[]
  /** What the accounts have behind these debits, in nano-credits. */
  balances: readonly (readonly [accountId: string, storedNanos: bigint])[]
  /** The same of keys with budgets, by their scopes, where the server keeps that in memory. */
  spends?: readonly (readonly [scope: string, spend: Spend])[] | undefined
}

/**
 * Of a debit that was taken back: it is in the ledger, durably; it is not, and never will be; or the store cannot say, and
 * may find it later in what a failed commit has left.
 */
export type WithdrawalFate = 'booked' | 'absent' | 'unknown'

export type Withdrawn = {
  /** One for each debit, in their order. */
  fates: readonly WithdrawalFate[]
  balances: Posted['balances']
  spends?: Posted['spends']
}

export type GivenBack = {
  /** Requests whose debit was in the ledger. */
  returned: readonly string[]
  balances: Posted['balances']
  spends?: Posted['spends']
}

/** Brings debits into a ledger. Posting is repeatable: a request id is booked once, however often it comes (ruling R5). */
export interface Poster {
  /**
   * Resolves when all of them are durable. A store that is busy or broken is tried again, for as long as it takes.
   * @throws when the poster dies first; then nobody knows what became of them.
   */
  post(debits: readonly DebitRow[]): Promise<Posted>
  /**
   * Takes debits back that it was given: from here on none of them is tried again. Answered behind the try that is under
   * way, and without another. @throws when the poster dies first.
   */
  withdraw(debits: readonly DebitRow[]): Promise<Withdrawn>
  /**
   * Resolves behind a commit that has written to the disk, in which each of these debits that the ledger has is given back
   * (ruling C13), once however often it comes. Tried for as long as it takes. @throws when the poster dies first.
   */
  giveBack(requestIds: readonly string[]): Promise<GivenBack>
  /** Resolves with the cause when it dies; never after `close`. */
  readonly death: Promise<Error>
  /** Ends it behind all that it was given, or after a while without: in a time that no store can make longer. */
  close(): Promise<void>
}

/** Where debits wait that the store could not take in time. Written without the store's help. */
export interface Spool {
  /**
   * Resolves when all are durable. @throws when they may not be; then nothing of them is left in it, unless it `isTorn`:
   * that is made good before the next line.
   */
  append(debits: readonly DebitRow[]): Promise<void>
  /** Notes that these requests are to be given back, if the ledger should have a debit of theirs. As `append`. */
  appendReturns(requestIds: readonly string[]): Promise<void>
  /** Resolves when debits could be appended now. @throws when they could not. */
  probe(): Promise<void>
  /** It may have lines that were never acknowledged, and cannot be cut. */
  readonly isTorn: boolean
  /** Forgets everything, unless more has come meanwhile: then `isEmpty` says no and nothing is done. */
  clear(isEmpty: () => boolean): Promise<void>
  close(): Promise<void>
}
