/*
 * What a server and its desk say to each other. The desk asks a store that others use too, on behalf of one server; it may
 * be in another thread, so all of this is plain data, and in the order in which it was said.
 */

/** A key that is narrower than its account (ruling R15). */
export type KeyScope = {
  /** The scope of its bounds, which all of its line have. */
  id: string
  requestsPerMinute: number | undefined
  /** What it may spend in a window; which one it is now the store knows. */
  budgetNanos: bigint | undefined
}

export type DeskQuestion = {
  id: number
  accountId: string
  requestsPerMinute: number
  key?: KeyScope
  /** 0 holds nothing. */
  holdNanos: bigint
  /** Takes a place in the windows; else it has its place, and gives it back where credit refuses it (ruling R1). */
  place: 'take' | PlaceTaken
}

/** Where windows began in which a place was taken, as the store told it. */
export type PlaceTaken = { accountMs: number; keyMs: number | undefined }

export type DeskOrder =
  | { say: 'ask'; ask: DeskQuestion }
  /** The debit is durable, or there is none. */
  | { say: 'release'; accountId: string; keyId: string | undefined; holdNanos: bigint }
  /** A debit is due that the store has not taken; the same amount, negative, when it has. */
  | { say: 'owe'; accountId: string; keyId: string | undefined; amountNanos: bigint }

export type DeskVerdict = 'admitted' | 'no_credit' | 'all_held' | 'budget_spent' | 'budget_held' | 'rate' | 'key_rate'

export type DeskAnswer = {
  id: number
  /** `silent`: the store did not say in time. */
  verdict: DeskVerdict | 'silent'
  /** How the account stands; undefined of a silent store. */
  figures: DeskFigures | undefined
  /** Undefined where it took no place. */
  place: PlaceTaken | undefined
}

export type DeskFigures = {
  balanceNanos: bigint
  /** What of it no running request of any server holds. */
  freeNanos: bigint
  window: WindowCount
  /** Of the key that was asked for. */
  key: KeyFigures | undefined
}

/** Undefined where it has no limit of its own. */
export type KeyFigures = {
  window: WindowCount | undefined
  /** `renewsMs` in Unix milliseconds; undefined where nothing was spent in the window of now. */
  budget: { leftNanos: bigint; freeNanos: bigint; renewsMs: number | undefined } | undefined
}

/** Of all servers. */
export type WindowCount = {
  taken: number
  /** Until it ends, in ms; 0 where none is open. */
  endsInMs: number
}
