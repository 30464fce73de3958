import type { DeskQuestion, WindowCount } from '../../accounts/desk.ts'
import { windowMs } from '../../accounts/limits.ts'

/**
 * The identity of a replica in the database. `id` alone is not unique, because a promoted standby may assign the same
 * id again.
 */
export type Identity = { id: number; startedMs: number }

/** The question whether a request may run. It expires at `dueMs`. `isOver` is true once it is answered or expired. */
export type OpenAsk = DeskQuestion & { dueMs: number; isOver: boolean }

/** The figures of this replica for one scope (an account, key or person), and what the database knows of them. */
export type Share = {
  readonly scope: string
  /** The sum of the holds (reserved credit) of running requests, and of debits that the ledger does not have yet. */
  heldNanos: bigint
  /** The start of the window to which `taken` belongs, in the database's time; 0 if no window is open. */
  windowMs: number
  taken: number
  /** The figures as they were last written to the database; `unknown` after a call without an answer. */
  told: { heldNanos: bigint; taken: number } | 'never' | 'unknown'
}

/**
 * The figures of this replica for an account, and for its keys and people with limits. `asks` are the questions about
 * the account that the database has not answered yet.
 */
export type AccountShares = {
  readonly own: Share
  readonly keys: Map<string, Share>
  /** The balance that the database last reported. */
  balanceNanos: bigint
  /** Whether the account has a budget over all its keys. Only the database knows how much of it is left. */
  hasBudget: boolean
  asks: OpenAsk[]
}

/**
 * The shares (held credit and places in rate windows) of one replica. If a share in memory differs from the copy in the
 * database, the share in memory is right.
 */
export class ShareBook {
  readonly #accounts = new Map<string, AccountShares>()

  of(accountId: string): AccountShares {
    const known = this.#accounts.get(accountId)
    if (known) return known
    const nothing = { balanceNanos: 0n, hasBudget: false, asks: [] }
    const made = { own: emptyShare(accountId), keys: new Map(), ...nothing }
    this.#accounts.set(accountId, made)
    return made
  }

  /** Returns the shares that must be written to the database. An empty share need not be written. */
  *worthTelling(): Iterable<Share> {
    for (const account of this.#accounts.values()) {
      for (const share of sharesOf(account)) if (!isEmpty(share)) yield share
    }
  }

  /**
   * Forgets accounts without holds (reserved credit) whose windows are over.
   * @param nowMs the database's time
   * @param isBusy whether figures of the account are being sent to the database, or will be. If the account were
   *   forgotten, they could later replace the figures of new requests
   */
  forgetIdle(nowMs: number, isBusy: (account: AccountShares) => boolean): void {
    for (const [id, account] of this.#accounts) {
      if (isBusy(account)) continue
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

/** Returns this replica's figures for a key or person of the account. Creates them if they are missing. */
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

/** Whether a share may be forgotten. Its window is over, and it has no hold, neither here nor in the database. */
function isOver({ heldNanos, windowMs: beganMs, told }: Share, nowMs: number): boolean {
  if (heldNanos !== 0n || beganMs + windowMs > nowMs || told === 'unknown') return false
  return told === 'never' || told.heldNanos === 0n
}

function isEmpty({ heldNanos, taken }: Share): boolean {
  return heldNanos === 0n && taken === 0
}

/**
 * Whether the figures in the database differ, or may differ, from this share. An empty share that was never sent needs
 * no row.
 */
export function isDirty(share: Share): boolean {
  const { told } = share
  if (told === 'unknown') return true
  if (told === 'never') return !isEmpty(share)
  return told.heldNanos !== share.heldNanos || told.taken !== share.taken
}

/** Describes the window of a scope. @param all the requests of the window over all replicas */
export function countOf(share: Share, all: number, nowMs: number): WindowCount {
  const endsInMs = share.windowMs === 0 ? 0 : share.windowMs + windowMs - nowMs
  return { taken: all, endsInMs: Math.max(0, endsInMs) }
}

/**
 * Gives back a request's place in its rate window, because credit was refused (ruling R1). If a later window has begun,
 * nothing changes.
 */
export function giveBack(share: Share, takenInMs: number | undefined): void {
  if (share.taken > 0 && takenInMs !== 0 && share.windowMs === takenInMs) share.taken--
}
