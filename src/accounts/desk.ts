import type { AdmissionRefusal } from './admission.ts'
import type { KeyBounds } from './key-bounds.ts'

/*
 * Messages between a server and its desk, which asks a store that others use too, on behalf of that server. A desk may
 * be in another thread, so messages are plain data. They are handled in the order in which they were sent.
 */

/** A key, or a person, with limits of its own (rulings R15, Y20). */
export type KeyScope = Pick<KeyBounds, 'requestsPerMinute'> & {
  /** The scope of its limits, which all keys of its line, or of the person, share. */
  id: string
  /** The most that it may spend in a window; the store knows which window is the current one. */
  budgetNanos: bigint | undefined
}

export type DeskQuestion = {
  id: number
  accountId: string
  requestsPerMinute: number
  /** The most that the account may spend in a window over all its keys; missing if it has no budget. */
  budgetNanos?: bigint
  key?: KeyScope
  person?: KeyScope
  /** The amount to hold; 0 holds nothing. */
  holdNanos: bigint
  /** `take` takes a place in the windows. A place that was taken before is given back if credit is refused (ruling R1). */
  place: 'take' | PlaceTaken
}

/** The starts of the windows in which a place was taken, as the store reported them. */
export type PlaceTaken = { accountMs: number; keyMs: number | undefined; personMs?: number | undefined }

/** The account that holds or owes an amount, with those scopes of its keys and people that do so too. */
export type ClaimScopes = { accountId: string; keyId: string | undefined; personId?: string | undefined }

export type DeskOrder =
  | { say: 'ask'; ask: DeskQuestion }
  /** Ends a hold: the debit is durable, or there is none. */
  | ({ say: 'release'; holdNanos: bigint } & ClaimScopes)
  /** A due debit that the store has not taken; sent with the negative amount once it has. */
  | ({ say: 'owe'; amountNanos: bigint } & ClaimScopes)

export type DeskVerdict = 'admitted' | Exclude<AdmissionRefusal['why'], 'unwritable' | 'busy'>

export type DeskAnswer = {
  id: number
  /** `silent`: the store did not answer in time. */
  verdict: DeskVerdict | 'silent'
  /** With `silent`: the store has answered nobody since the question, so it is not only a row that is locked. */
  isStoreSilent?: boolean
  /** The figures of the account; undefined if the store is silent. */
  figures: DeskFigures | undefined
  /** Undefined if no place was taken. */
  place: PlaceTaken | undefined
}

export type DeskFigures = {
  balanceNanos: bigint
  /** The part of the balance that no running request of any server holds. */
  freeNanos: bigint
  window: WindowCount
  /** The rest of the account's budget; undefined if it has none. */
  budget: BudgetLeft | undefined
  /** The figures of the key and the person in the question. */
  key: KeyFigures | undefined
  person?: KeyFigures | undefined
}

/** A field is undefined if the key, or the person, has no such limit. */
export type KeyFigures = {
  window: WindowCount | undefined
  budget: BudgetLeft | undefined
}

/** @property renewsMs Unix milliseconds; undefined if nothing was spent in the current window. */
export type BudgetLeft = { leftNanos: bigint; freeNanos: bigint; renewsMs: number | undefined }

/** A rate window, counted over all servers. */
export type WindowCount = {
  taken: number
  /** Time until it ends, in ms; 0 if none is open. */
  endsInMs: number
}
