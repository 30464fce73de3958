import type { DeskQuestion, WindowCount } from '../../accounts/desk.ts'
import { windowMs } from './admit.ts'

/** A question that somebody waits for. */
export type OpenAsk = DeskQuestion & { dueMs: number; isOver: boolean }

/** The figures of this replica for one scope, and those of them that the database knows. */
export type Share = {
  readonly scope: string
  /** The sum of the holds of running requests, and of debits that the ledger has not taken. */
  heldNanos: bigint
  /** The beginning of the window in which `taken` were taken, by the database's time. */
  windowMs: number
  taken: number
  /** As it was last written; `unknown` where a call ended without an answer. */
  told: { heldNanos: bigint; taken: number } | 'never' | 'unknown'
}

/** The figures of this replica for an account, with its keys and people that have limits, and the asks that wait for it. */
export type AccountShares = {
  readonly own: Share
  readonly keys: Map<string, Share>
  /** As the database last reported it. */
  balanceNanos: bigint
  /** The account has a budget over all its keys, of which the desk does not know how short it is. */
  hasBudget: boolean
  asks: OpenAsk[]
  /** Whether its figures were sent in a call that has no answer yet. */
  isAsked: boolean
}

/** The figures of one replica, in memory: the truth, of which the database has a copy. */
export class ShareBook {
  readonly #accounts = new Map<string, AccountShares>()

  of(accountId: string): AccountShares {
    const known = this.#accounts.get(accountId)
    if (known) return known
    const nothing = { balanceNanos: 0n, hasBudget: false, asks: [], isAsked: false }
    const made = { own: emptyShare(accountId), keys: new Map(), ...nothing }
    this.#accounts.set(accountId, made)
    return made
  }

  /** All that is not nothing. */
  *worthTelling(): Iterable<Share> {
    for (const account of this.#accounts.values()) {
      for (const share of sharesOf(account)) if (!isEmpty(share)) yield share
    }
  }

  /** Accounts of which nothing is held and whose windows are over have nothing to remember. @param nowMs the database's. */
  forgetIdle(nowMs: number): void {
    for (const [id, account] of this.#accounts) {
      // The answer comes to these figures, and what it grants is held by them.
      if (account.isAsked) continue
      for (const key of account.keys.values()) if (isOver(key, nowMs)) account.keys.delete(key.scope)
      const isIdle = account.asks.length === 0 && account.keys.size === 0 && isOver(account.own, nowMs)
      if (isIdle) this.#accounts.delete(id)
    }
  }

  get size(): number {
    return this.#accounts.size
  }
}

export function sharesOf({ own, keys }: AccountShares): Share[] {
  return keys.size === 0 ? [own] : [own, ...keys.values()]
}

/** That of a key or a person of the account, from now on. */
export function keyOf({ keys }: AccountShares, scope: string): Share {
  const known = keys.get(scope)
  if (known) return known
  const made = emptyShare(scope)
  keys.set(scope, made)
  return made
}

function emptyShare(scope: string): Share {
  return { scope, heldNanos: 0n, windowMs: 0, taken: 0, told: 'never' }
}

/** Nothing of it counts any more, and the database knows that nothing is held. Its row there goes by `sweep`. */
function isOver({ heldNanos, windowMs: beganMs, told }: Share, nowMs: number): boolean {
  if (heldNanos !== 0n || beganMs + windowMs > nowMs || told === 'unknown') return false
  return told === 'never' || told.heldNanos === 0n
}

function isEmpty({ heldNanos, taken }: Share): boolean {
  return heldNanos === 0n && taken === 0
}

/** The database has other figures, or may have. It need not know a share that was never sent and is empty. */
export function isDirty(share: Share): boolean {
  const { told } = share
  if (told === 'unknown') return true
  if (told === 'never') return !isEmpty(share)
  return told.heldNanos !== share.heldNanos || told.taken !== share.taken
}

/** The figures of a share, for those who asked. */
export function countOf(share: Share, all: number, nowMs: number): WindowCount {
  const endsInMs = share.windowMs === 0 ? 0 : share.windowMs + windowMs - nowMs
  return { taken: all, endsInMs: Math.max(0, endsInMs) }
}

/** A place that credit took back, where it was taken in the window that is open (ruling R1). */
export function giveBack(share: Share, takenInMs: number | undefined): void {
  if (share.taken > 0 && takenInMs !== 0 && share.windowMs === takenInMs) share.taken--
}
