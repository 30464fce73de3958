import type { Spend } from './budget.ts'
import type { Debit } from './ledger.ts'

/**
 * The result of posting a debit. Three leave no entry:
 * - `rejected`: there is no such account, or no account can hold the amount.
 * - `withdrawn`: the debit was taken back before it was tried again.
 * - `deferred`: another session has locked its account. Post it again with debits of that account only, so that
 *   others do not wait.
 */
export type Posting = 'posted' | 'exists' | 'conflict' | 'rejected' | 'withdrawn' | 'deferred'

/** The figures of a store after some debits. */
export type StoredFigures = {
  /** The balances of their accounts, in nano-credits. */
  balances: readonly (readonly [accountId: string, storedNanos: bigint])[]
  /** The same for keys with budgets, by their scopes, if the server keeps that in memory. */
  spends?: readonly (readonly [scope: string, spend: Spend])[] | undefined
}

/** @property postings one for each debit, in their order */
export type Posted = StoredFigures & { postings: readonly Posting[] }

/**
 * The fate of a debit that was taken back. `booked`: it is in the ledger, durably. `absent`: it is not, and never will
 * be. `unknown`: the store cannot say; a failed commit may have left it there.
 */
export type WithdrawalFate = 'booked' | 'absent' | 'unknown'

/** @property fates one for each debit, in their order */
export type Withdrawn = StoredFigures & { fates: readonly WithdrawalFate[] }

/** @property returned requests whose debit was in the ledger */
export type GivenBack = StoredFigures & { returned: readonly string[] }

/** Brings debits into a ledger. A request id is booked once, however often it is posted (ruling R5). */
export interface Poster {
  /**
   * Resolves when all of them are durable. A store that is busy or broken is tried again, for as long as it takes.
   * @throws if the poster dies first; the fate of the debits is then unknown.
   */
  post(debits: readonly Debit[]): Promise<Posted>
  /**
   * Takes debits back: none of them is tried again. Resolves after the try that is under way, without another one.
   * @throws if the poster dies first.
   */
  withdraw(debits: readonly Debit[]): Promise<Withdrawn>
  /**
   * Gives back each of these debits that the ledger has (ruling C13), once however often it is asked. Resolves after a
   * commit that has reached the disk, after as many tries as that takes. @throws if the poster dies first.
   */
  giveBack(requestIds: readonly string[]): Promise<GivenBack>
  /** Resolves with the cause when the poster dies; never after `close`. */
  readonly death: Promise<Error>
  /** Ends the poster after all that it was given, or after a limit of time that no store can extend. */
  close(): Promise<void>
}

/** Keeps debits that the store could not take in time. Written without the store's help. */
export interface Spool {
  /**
   * Resolves when all are durable. @throws if they may not be. Then the spool has nothing of them, unless it `isTorn`:
   * that is repaired before the next line.
   */
  append(debits: readonly Debit[]): Promise<void>
  /** Notes that the debits of these requests, if the ledger has any, are to be given back. Otherwise like `append`. */
  appendReturns(requestIds: readonly string[]): Promise<void>
  /** Resolves if debits could be appended now. @throws if they could not. */
  probe(): Promise<void>
  /** Whether it may have lines that were never acknowledged and cannot be cut off. */
  readonly isTorn: boolean
  /** Empties the spool, unless more has come meanwhile: then `isEmpty` returns false, and nothing is done. */
  clear(isEmpty: () => boolean): Promise<void>
  close(): Promise<void>
}
