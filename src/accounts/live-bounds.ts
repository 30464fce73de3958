import { type Budget, type Spend, spentAt } from './budget.ts'
import { type KeyBounds, keyBounds } from './key-bounds.ts'

/**
 * The limits of an account, a person or a line of keys (a key and its rotations), as the store last reported them. All
 * requests share one object.
 */
export type LiveBounds = KeyBounds & {
  /** The id of the line of keys whose requests are counted together (ruling R15). */
  readonly scope: string
  /**
   * The spending of the budget, as the store last reported it. With a store that other servers share, the store is
   * queried instead.
   */
  spend: Spend | undefined
  /** The sum of the holds of requests that run in this process. */
  heldNanos: bigint
  readonly keyIds: Set<string>
}

/** A key, an account or a person as the store reports it. For an account or a person, `scope` equals `id`. */
type BoundKey = { id: string; scope: string; bounds: KeyBounds; spend: Spend | undefined }

export type BoundsBook = ReturnType<typeof createBoundsBook>

/**
 * Keeps the limits of all keys that have some, and the debits that count against their budgets but are not in the store
 * yet.
 */
export function createBoundsBook() {
  const byScope = new Map<string, LiveBounds>()
  const byKey = new Map<string, LiveBounds>()
  // Counted by key and not by scope, because a key may get or lose limits before its debit is in the ledger.
  const owed = new Map<string, bigint>()
  const leaving = new Set<string>()
  return { note, forget, of, set, owe, left }

  /** Notes the limits of a key. @returns undefined for a key without limits of its own */
  function note({ id, scope, bounds, spend }: BoundKey): LiveBounds | undefined {
    leaving.delete(id)
    const known = byScope.get(scope)
    if (!keyBounds.isBounded(bounds)) {
      // Running requests still use this object, and the key may get limits again while they run.
      if (known) Object.assign(known, keyBounds.none)
      return undefined
    }
    const live = known ?? { ...bounds, scope, spend, heldNanos: 0n, keyIds: new Set<string>() }
    if (known) Object.assign(known, bounds, { spend })
    live.keyIds.add(id)
    byScope.set(scope, live)
    byKey.set(id, live)
    return live
  }

  /**
   * Forgets keys that no longer exist. A key is kept while requests of its line run, or while a debit of it is not in
   * the store. Such a key is forgotten by a later call, so call this from time to time, also with an empty list.
   */
  function forget(gone: readonly string[]): void {
    for (const id of gone) if (byKey.has(id)) leaving.add(id)
    for (const id of leaving) {
      const { heldNanos, keyIds, scope } = byKey.get(id)!
      if (heldNanos !== 0n || owed.has(id)) continue
      leaving.delete(id)
      byKey.delete(id)
      keyIds.delete(id)
      if (keyIds.size === 0) byScope.delete(scope)
    }
  }

  /** Finds the limits by the id of any of their keys. */
  function of(keyId: string): LiveBounds | undefined {
    return byKey.get(keyId)
  }

  /** Sets the spending that the store reports. Debits that the store does not have yet stay added to it. */
  function set(scope: string, spend: Spend): void {
    const live = byScope.get(scope)
    if (live) live.spend = spend
  }

  /** Adds a debit that is due but not in the store yet. Called with the negative amount once the store has it. */
  function owe(keyId: string, amountNanos: bigint): void {
    const sum = (owed.get(keyId) ?? 0n) + amountNanos
    if (sum === 0n) owed.delete(keyId)
    else owed.set(keyId, sum)
  }

  /** Returns the unspent part of a budget now, in nano-credits, and how much of that part no request holds. */
  function left({ spend, heldNanos, keyIds }: LiveBounds, budget: Budget, nowMs: number) {
    let creditNanos = budget.nanos - spentAt(spend, nowMs)
    if (owed.size > 0) for (const id of keyIds) creditNanos -= owed.get(id) ?? 0n
    return { creditNanos, freeNanos: creditNanos - heldNanos }
  }
}
