import type { AdmissionRefusal } from './admission.ts'
import type { KeyBounds, UncheckedBound } from './key-bounds.ts'

/*
 * Messages between a server and its desk. The desk is the part that queries a shared store for the server. A desk may
 * run in another thread, so messages are plain data. They are handled in the order in which they were sent.
 */

/** A key or a person with limits of its own (rulings R15, Y20). */
export type KeyScope = Omit<KeyBounds, 'budget' | UncheckedBound> & {
  /** The id under which the limits are counted: the id of the person, or of the first key in a line of rotated keys. */
  id: string
  /** The most that may be spent in one window of the budget. The store determines the current window. */
  budgetNanos: bigint | undefined
}

export type DeskQuestion = {
  id: number
  accountId: string
  requestsPerMinute: number
  /** The most that the account may spend in a window over all its keys. Missing if the account has no budget. */
  budgetNanos?: bigint
  key?: KeyScope
  person?: KeyScope
  /** The amount to hold, in nano-credits. With 0, nothing is held. */
  holdNanos: bigint
  /**
   * `take`: the request takes a place in each rate window. Otherwise: the places that the request took with an earlier
   * question. These places are given back if credit is refused (ruling R1).
   */
  place: 'take' | PlaceTaken
}

/** The starts of the rate windows in which a request took a place, as the store reported them. */
export type PlaceTaken = { accountMs: number; keyMs: number | undefined; personMs?: number | undefined }

/** The account that holds or owes an amount. The key and the person are set only if their budgets count the amount. */
export type ClaimScopes = { accountId: string; keyId: string | undefined; personId?: string | undefined }

export type DeskOrder =
  | { say: 'ask'; ask: DeskQuestion }
  /** Ends a hold (reserved credit), because the debit is durable or there will be no debit. */
  | ({ say: 'release'; holdNanos: bigint } & ClaimScopes)
  /** A debit that is due but not in the store yet. Once it is there, the order is sent again with a negative amount. */
  | ({ say: 'owe'; amountNanos: bigint } & ClaimScopes)
  /** Asks whether the store answered any query in the last `forMs`. If so, the desk sends an empty list of answers. */
  | { say: 'silent'; forMs: number }

export type DeskVerdict = 'admitted' | Exclude<AdmissionRefusal['why'], 'unwritable' | 'busy'>

export type DeskAnswer = {
  id: number
  /** The store's decision. `silent`: the store did not answer in time. */
  verdict: DeskVerdict | 'silent'
  /** For `silent`: whether the store answers nobody. If false, perhaps only this account waits, for a locked row. */
  isStoreSilent?: boolean
  /** The figures of the account; undefined if the store is silent. */
  figures: DeskFigures | undefined
  /** The places that the request took in rate windows. Undefined if the request took none. */
  place: PlaceTaken | undefined
}

export type DeskFigures = {
  balanceNanos: bigint
  /** The part of the balance that no running request of any server holds. */
  freeNanos: bigint
  window: WindowCount
  /** The unspent part of the account's budget; undefined if the account has no budget. */
  budget: BudgetLeft | undefined
  /** The figures of the key and the person that the question names. */
  key: KeyFigures | undefined
  person?: KeyFigures | undefined
}

/** The figures of a key or a person. A field is undefined if there is no such limit. */
export type KeyFigures = {
  window: WindowCount | undefined
  budget: BudgetLeft | undefined
}

/**
 * The unspent part of a budget. @property freeNanos the part of it that no request holds @property renewsMs undefined
 * if nothing was spent in the window yet
 */
export type BudgetLeft = { leftNanos: bigint; freeNanos: bigint; renewsMs: number | undefined }

/** The figures of a rate window, counted over all servers. */
export type WindowCount = {
  taken: number
  /** The time until the window ends, in ms; 0 if no window is open. */
  endsInMs: number
}
