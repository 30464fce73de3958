/*
 * What a server and its desk say to each other. The desk asks a store that others use too, on behalf of one server; it may
 * be in another thread, so all of this is plain data, and in the order in which it was said.
 */

/** A key that is narrower than its account (ruling R15). */
export type KeyScope = {
  id: string
  requestsPerMinute: number | undefined
  /** Nano-credits that it may spend in a period, and where this one began, in Unix milliseconds. */
  budget: { nanos: bigint; periodMs: number } | undefined
}

export type Ask = {
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
  | { say: 'ask'; ask: Ask }
  /** The debit is durable, or there is none. */
  | { say: 'release'; accountId: string; keyId: string | undefined; holdNanos: bigint }
  /** A debit is due that the store has not taken; the same amount, negative, when it has. */
  | { say: 'owe'; accountId: string; amountNanos: bigint }

export type Verdict = 'admitted' | 'no_credit' | 'all_held' | 'budget_spent' | 'budget_held' | 'rate' | 'key_rate'

export type DeskAnswer = {
  id: number
  /** `silent`: the store did not say in time. */
  verdict: Verdict | 'silent'
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
  /** Of the key; undefined where it has no window of its own. */
  keyWindow: WindowCount | undefined
}

/** Of all servers. */
export type WindowCount = {
  taken: number
  /** Until it ends, in ms; 0 where none is open. */
  endsInMs: number
}
