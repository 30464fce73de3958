import { type Budget, type Spend, spentAt } from './budget.ts'
import { isBounded, type KeyBounds, unbounded } from './key-bounds.ts'

/** The bounds of a key, or of several of one line, as the store last told them. One live object: all requests see the same. */
export type LiveBounds = KeyBounds & {
  /** Names the line, and what of it is counted (ruling R15). */
  readonly scope: string
  /** Of its budget, as the store last told it. A store that others use too is asked instead. */
  spend: Spend | undefined
  /** Sum of the holds of its requests that are running here. */
  heldNanos: bigint
  readonly keyIds: Set<string>
}

/** What the store says of a key. */
export type BoundKey = { id: string; scope: string; bounds: KeyBounds; spend: Spend | undefined }

/** The bounds of all keys that have some, and what is owed of their budgets. */
export type BoundsBook = {
  /** @returns undefined for a key that is as wide as its account. */
  note(key: BoundKey): LiveBounds | undefined
  /**
   * These keys are no more. Each is kept for as long as requests of its line run or something is owed by it; to be called again
   * now and then, also without any.
   */
  forget(keyIds: readonly string[]): void
  /** By the id of any of its keys. */
  of(keyId: string): LiveBounds | undefined
  /** What the store says now. What it does not know yet stays owed. */
  set(scope: string, spend: Spend): void
  /** A debit that is due and that the store has not taken; the same amount, negative, when it has. */
  owe(keyId: string, amountNanos: bigint): void
  /** What is left of a budget for who comes now, in nano-credits, and what of that nobody holds. */
  left(bounds: LiveBounds, budget: Budget, nowMs: number): { creditNanos: bigint; freeNanos: bigint }
}

export function createBoundsBook(): BoundsBook {
  const byScope = new Map<string, LiveBounds>()
  const byKey = new Map<string, LiveBounds>()
  // By the key and not by its scope: it may get bounds, or lose them, before the debit is in the ledger.
  const owed = new Map<string, bigint>()
  const leaving = new Set<string>()
  return { note, forget, of: (keyId) => byKey.get(keyId), set, owe, left }

  function note({ id, scope, bounds, spend }: BoundKey): LiveBounds | undefined {
    leaving.delete(id)
    const known = byScope.get(scope)
    if (!isBounded(bounds)) {
      // Requests that run know it still, and it may get bounds again while they do.
      if (known) Object.assign(known, unbounded)
      return undefined
    }
    const live = known ?? { ...bounds, scope, spend, heldNanos: 0n, keyIds: new Set<string>() }
    if (known) Object.assign(known, bounds, { spend })
    live.keyIds.add(id)
    byScope.set(scope, live)
    byKey.set(id, live)
    return live
  }

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

  function set(scope: string, spend: Spend): void {
    const live = byScope.get(scope)
    if (live) live.spend = spend
  }

  function owe(keyId: string, amountNanos: bigint): void {
    const sum = (owed.get(keyId) ?? 0n) + amountNanos
    if (sum === 0n) owed.delete(keyId)
    else owed.set(keyId, sum)
  }

  function left({ spend, heldNanos, keyIds }: LiveBounds, budget: Budget, nowMs: number) {
    let creditNanos = budget.nanos - spentAt(spend, nowMs)
    if (owed.size > 0) for (const id of keyIds) creditNanos -= owed.get(id) ?? 0n
    return { creditNanos, freeNanos: creditNanos - heldNanos }
  }
}
