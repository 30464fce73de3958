import type { Spend } from './budget.ts'
import type { Debit } from './ledger.ts'

/**
 * The result of posting a debit. Three results leave no entry:
 * - `rejected`: the account does not exist, or the amount is larger than any account can hold.
 * - `withdrawn`: the debit was taken back before it was tried again.
 * - `deferred`: another session has locked the account. Post the debit again, together with debits of that account
 *   only, so that other accounts do not wait.
 */
export type Posting = 'posted' | 'exists' | 'conflict' | 'rejected' | 'withdrawn' | 'deferred'

/** The balances and the spending that a store reports after it has taken debits. */
export type StoredFigures = {
  /** The balances of the debits' accounts, in nano-credits. */
  balances: readonly (readonly [accountId: string, storedNanos: bigint])[]
  /**
   * The spending against budgets, by scope: the id of the key, account or person that has the budget. Missing if the
   * server does not keep spending in memory.
   */
  spends?: readonly (readonly [scope: string, spend: Spend])[] | undefined
}

/** The result of `post`. @property postings one for each debit, in the order of the debits */
export type Posted = StoredFigures & { postings: readonly Posting[] }

/**
 * The result for a debit that was taken back. `booked`: the debit is durably in the ledger. `absent`: the debit is not
 * in the ledger and never will be. `unknown`: the store cannot decide, because a failed commit may have written it.
 */
export type WithdrawalFate = 'booked' | 'absent' | 'unknown'

/** The result of `withdraw`. @property fates one for each debit, in the order of the debits */
export type Withdrawn = StoredFigures & { fates: readonly WithdrawalFate[] }

/** The result of `giveBack`. @property returned the requests whose debits were in the ledger */
export type GivenBack = StoredFigures & { returned: readonly string[] }

/** Writes debits into a ledger. A request id is booked once, however often it is posted (ruling R5). */
export interface Poster {
  /**
   * Resolves when all debits are durable. If the store is busy or broken, the poster retries without a limit.
   * @throws if the poster dies first; the result of the debits is then unknown
   */
  post(debits: readonly Debit[]): Promise<Posted>
  /**
   * Takes debits back, so that none of them is tried again. Resolves when the attempt that is under way ends.
   * @throws if the poster dies first
   */
  withdraw(debits: readonly Debit[]): Promise<Withdrawn>
  /**
   * Reverses each of these debits that the ledger has (ruling C13). A repeated call reverses nothing twice. Resolves
   * once the commit is on disk. The number of attempts has no limit. @throws if the poster dies first
   */
  giveBack(requestIds: readonly string[]): Promise<GivenBack>
  /** Resolves with the cause when the poster dies. Never resolves after `close`. */
  readonly death: Promise<Error>
  /** Ends the poster when all its work is done. After a time limit it ends in any case, even if the store is silent. */
  close(): Promise<void>
}

/** A file for debits that the store did not accept in time. It is written independently of the store. */
export interface Spool {
  /**
   * Resolves when all debits are durable. @throws if they cannot be made durable. Then none of them is in the spool,
   * unless `isTorn` is true. A torn spool is repaired before the next line is written.
   */
  append(debits: readonly Debit[]): Promise<void>
  /** Records requests whose debits must be given back if the ledger has them. Resolves and throws like `append`. */
  appendReturns(requestIds: readonly string[]): Promise<void>
  /** Tests whether debits can be appended now. @throws if they cannot */
  probe(): Promise<void>
  /** Whether a failed write may have left lines in the spool that were never acknowledged and cannot be cut off. */
  readonly isTorn: boolean
  /** Empties the spool. @param isEmpty returns false if lines were added meanwhile; the spool then stays unchanged */
  clear(isEmpty: () => boolean): Promise<void>
  close(): Promise<void>
}
