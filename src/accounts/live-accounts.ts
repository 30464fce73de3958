import type { Account, ApiKey, Directory, LiveBounds } from './account.ts'
import type { AccountRow, KeyRow } from './book-rows.ts'
import { type Budget, type Spend, spentAt } from './budget.ts'
import { monthOfGrant } from './grants.ts'
import { type KeyBounds, keyBounds } from './key-bounds.ts'
import type { StoredFigures } from './poster.ts'
import { kindOfScope } from './warnings.ts'

/** Receives the balances of accounts, and the spending of keys with budgets, from the settlement. */
export type BalanceListener = Pick<Balances, 'set' | 'owe'> & {
  /**
   * Sets the spending of an account, of a person, or of a key together with the keys that it replaced. This member is
   * absent if the process does not track spending.
   */
  spend?(scope: string, spend: Spend): void
}

/** Passes balances and spending, as a store has reported them, to the listener. */
export function setFigures(listener: BalanceListener, { balances, spends = [] }: StoredFigures): void {
  for (const [accountId, storedNanos] of balances) listener.set(accountId, storedNanos)
  for (const [scope, spend] of spends) listener.spend?.(scope, spend)
}

/** The balances of all accounts, in the memory of a process that alone serves its store. */
export interface Balances {
  /** Returns undefined for an account that the store has not reported. */
  get(accountId: string): Balance | undefined
  /**
   * Sets the balance that the store reports, in nano-credits. Debits that the store does not have yet stay deducted
   * (ruling C5).
   */
  set(accountId: string, storedNanos: bigint): void
  /** Deducts a due debit that is not in the store yet. Once the store has it, call this with the amount negated. */
  owe(accountId: string, amountNanos: bigint, keyId?: string, personId?: string): void
}

export function createBalances(): Balances {
  const balances = new Map<string, Balance>()
  return { get: (accountId) => balances.get(accountId), set, owe }

  function set(accountId: string, storedNanos: bigint): void {
    const balance = balances.get(accountId)
    if (balance) balance.balanceNanos = storedNanos - balance.owedNanos
    else balances.set(accountId, { balanceNanos: storedNanos, owedNanos: 0n, heldNanos: 0n, running: 0 })
  }

  function owe(accountId: string, amountNanos: bigint): void {
    const balance = balances.get(accountId)
    if (!balance) return
    balance.owedNanos += amountNanos
    balance.balanceNanos -= amountNanos
  }
}

/*
 * The estimated cost of a running request is held back, so that parallel requests cannot spend the same credit (ruling
 * C2). A request is admitted while balance − holds is above zero. The admitted request then holds its estimate. This
 * limits the overdraft:
 *
 *     overdraft ≤ Σ max(0, actual − hold) + the last hold
 */

/** The credit of an account, in nano-credits. All requests of the account share one live object. */
export type Balance = {
  /** The sum of the account's ledger entries, as the store last reported it, minus `owedNanos`. */
  balanceNanos: bigint
  /** The amount of debits that are due but not in the store yet. This amount must not be spent again (ruling C5). */
  owedNanos: bigint
  /** The sum of the holds of running requests. */
  heldNanos: bigint
  /** The number of running requests that hold credit. */
  running: number
}

/**
 * Whether the account may start another request. An account without running requests holds nothing, so a positive
 * balance is enough.
 */
export function isAdmitted(balance: Balance): boolean {
  return balance.balanceNanos - balance.heldNanos > 0n
}

/**
 * Holds an estimate until the request is settled. The hold lowers the free credit of the account, and what is left of
 * the budgets of key and person (rulings R15, Y20). Call `isAdmitted` in the same turn of the event loop.
 * @returns a function that releases the hold. With an amount, it keeps that part of the hold. After a full release,
 *   further calls do nothing.
 */
export function hold(
  balance: Balance,
  amountNanos: bigint,
  key?: { heldNanos: bigint },
  person?: { heldNanos: bigint },
): (keptNanos?: bigint) => void {
  balance.heldNanos += amountNanos
  balance.running++
  if (key !== undefined) key.heldNanos += amountNanos
  if (person !== undefined) person.heldNanos += amountNanos
  let heldNanos = amountNanos
  let isHeld = true
  return (keptNanos = 0n) => {
    if (!isHeld || keptNanos > heldNanos) return
    const freedNanos = heldNanos - keptNanos
    heldNanos = keptNanos
    balance.heldNanos -= freedNanos
    if (key !== undefined) key.heldNanos -= freedNanos
    if (person !== undefined) person.heldNanos -= freedNanos
    if (keptNanos > 0n) return
    isHeld = false
    balance.running--
  }
}

/** A key, an account or a person as the store reports it. For an account or a person, `scope` equals `id`. */
type BoundKey = { id: string; scope: string; bounds: KeyBounds; spend: Spend | undefined }

export type BoundsBook = ReturnType<typeof createBoundsBook>

/**
 * Keeps the limits of all keys that have limits of their own. Also keeps the debits that count against their budgets
 * but are not in the store yet.
 */
export function createBoundsBook() {
  const byScope = new Map<string, LiveBounds>()
  const byKey = new Map<string, LiveBounds>()
  // The amount of the due debits of each key. It is kept by key and not by scope, because a key may get or lose limits
  // before its debit is in the ledger.
  const owed = new Map<string, bigint>()
  const leaving = new Set<string>()
  return { note, forget, of, set, owe, left }

  /** Notes the limits of a key. @returns undefined for a key without limits of its own */
  function note({ id, scope, bounds, spend }: BoundKey): LiveBounds | undefined {
    leaving.delete(id)
    const known = byScope.get(scope)
    if (!keyBounds.isBounded(bounds)) {
      // The object is kept for running requests that use it. If the key gets limits again, these requests see them too.
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
   * Forgets keys that no longer exist. A key stays while requests of its line (a key with its successors) run, or while
   * one of its debits is not in the store. A later call forgets the key. So call this now and then, even with an empty
   * list.
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

  /** Returns the limits of a key. A rotated key and its successors share one object of limits. */
  function of(keyId: string): LiveBounds | undefined {
    return byKey.get(keyId)
  }

  /** Sets the spending that the store reports. Debits that the store lacks are counted apart (`owe`). */
  function set(scope: string, spend: Spend): void {
    const live = byScope.get(scope)
    if (live) live.spend = spend
  }

  /** Adds a due debit that is not in the store yet. Once the store has it, call this with the amount negated. */
  function owe(keyId: string, amountNanos: bigint): void {
    const sum = (owed.get(keyId) ?? 0n) + amountNanos
    if (sum === 0n) owed.delete(keyId)
    else owed.set(keyId, sum)
  }

  /** Returns the unspent part of a budget now, in nano-credits, and how much of this part is not held by requests. */
  function left({ spend, heldNanos, keyIds }: LiveBounds, budget: Budget, nowMs: number) {
    let creditNanos = budget.nanos - spentAt(spend, nowMs)
    if (owed.size > 0) for (const id of keyIds) creditNanos -= owed.get(id) ?? 0n
    return { creditNanos, freeNanos: creditNanos - heldNanos }
  }
}

/** Accounts that have changed, as the store now has them. Each account comes with all its valid keys. */
export type AccountChanges = {
  /** Whether the store has keys of another gateway that are not revoked. */
  hasForeignKeys: boolean
  accounts: readonly Pick<AccountRow, 'id' | 'name' | 'state' | 'balanceNanos' | 'bounds' | 'spend' | 'lastGrant'>[]
  keys: readonly Pick<
    KeyRow,
    | 'id'
    | 'accountId'
    | 'digest'
    | 'prefix'
    | 'label'
    | 'expiresMs'
    | 'scope'
    | 'bounds'
    | 'spend'
    | 'personBounds'
    | 'personSpend'
  >[]
}

/**
 * Accounts and valid keys as the store last reported them. An account keeps its object until `clear`, because running
 * requests refer to it.
 */
export type LiveDirectory = Directory & {
  accounts: ReadonlyMap<string, Account>
  apply(changes: AccountChanges): void
  /** Forgets all accounts and keys. The whole store is then read again. */
  clear(): void
  /** Returns the last use of each key since the previous call, in Unix milliseconds. */
  takeUses(): [keyId: string, usedMs: number][]
}

type DirectoryOptions = {
  balances: Pick<Balances, 'set'>
  /** The limits of keys that have limits of their own. */
  bounds: Pick<BoundsBook, 'note' | 'forget'>
  /**
   * Reads the key with this digest from a shared store, or all changes since the last reading from a store in a file.
   * Passes the result to `apply` before the promise resolves.
   */
  readAgain(digest: string): Promise<void>
  /** The most accounts to keep in memory. If there are more, the least recently used accounts are forgotten. */
  accountsMax?: number | undefined
}

export function createDirectory({ balances, bounds: book, readAgain, accountsMax }: DirectoryOptions): LiveDirectory {
  // Accounts in memory, the least recently used first. The order is updated by `noteOrder`.
  const accounts = new Map<string, Account>()
  const keys = new Map<string, ApiKey>()
  const digestsOf = new Map<string, string[]>()
  let uses = new Map<ApiKey, number>()
  const findKnownKey = (digest: string) => keys.get(digest)
  let hasForeignKeys = false
  let hearChange: ((accountId: string) => void) | undefined
  return {
    accounts,
    get hasForeignKeys() {
      return hasForeignKeys
    },
    onChanged(hear) {
      hearChange = hear
    },
    findKnownKey,
    async findKey(digest) {
      if (!keys.has(digest)) await readAgain(digest)
      return findKnownKey(digest)
    },
    // No key has the empty digest. For any digest, a store in a file reads all changes. A shared store finds no key,
    // and reads nothing. Old figures in memory do no harm then, because a shared store decides about credit itself.
    readAgain: () => readAgain(''),
    findKnownAccount: (id) => accounts.get(id),
    listKnownKeys: () => keys.values(),
    listKnown: () => accounts.values(),
    touch(key) {
      // If memory is limited, accounts are forgotten in the order of their last use. So the key moves to the end of the
      // map.
      if (accountsMax !== undefined) uses.delete(key)
      uses.set(key, Date.now())
    },
    takeUses() {
      if (accountsMax !== undefined) noteOrder()
      const taken = Array.from(uses, ([{ id }, usedMs]): [string, number] => [id, usedMs])
      uses = new Map()
      return taken
    },
    apply,
    clear() {
      accounts.clear()
      keys.clear()
      digestsOf.clear()
    },
  }

  function apply(changes: AccountChanges): void {
    hasForeignKeys = changes.hasForeignKeys
    const before: string[] = []
    for (const { id, name, state, balanceNanos, bounds, spend, lastGrant } of changes.accounts) {
      const account = accounts.get(id)
      const { budget, requestsPerMinute } = bounds
      const own = book.note({ id, scope: id, bounds: { ...keyBounds.none, budget, requestsPerMinute }, spend })
      const grantMonth = bounds.grant && monthOfGrant(lastGrant)
      if (account) Object.assign(account, { name, state, bounds: own, grantMonth, plan: bounds.plan })
      else accounts.set(id, { id, name, state, bounds: own, grantMonth, plan: bounds.plan })
      balances.set(id, balanceNanos)
      hearChange?.(id)
      // Each account arrives with all its valid keys, so a key that is missing is no longer valid.
      for (const key of takeKeys(id)) before.push(...scopesOf(key))
      digestsOf.set(id, [])
    }
    for (const key of changes.keys) {
      const { id, accountId, digest, prefix, label, expiresMs } = key
      const account = accounts.get(accountId)!
      keys.set(digest, { id, prefix, label, account, expiresMs, bounds: book.note(key), personBounds: notePerson(key) })
      digestsOf.get(accountId)!.push(digest)
    }
    const left = new Set(changes.keys.flatMap(({ id, bounds }) => [id, bounds.person]))
    const gone = before.filter((id) => !left.has(id))
    book.forget(withoutUsed(gone, keys))
    if (accountsMax === undefined || accounts.size <= accountsMax) return
    noteOrder()
    for (const { id } of changes.accounts) moveBehind(id)
    forgetFirst(accountsMax)
  }

  function notePerson({ bounds, personBounds, personSpend }: AccountChanges['keys'][number]): LiveBounds | undefined {
    const { person } = bounds
    if (person === undefined) return undefined
    return book.note({ id: person, scope: person, bounds: { ...keyBounds.none, ...personBounds }, spend: personSpend })
  }

  function noteOrder(): void {
    for (const { account } of uses.keys()) moveBehind(account.id)
  }

  function moveBehind(id: string): void {
    const account = accounts.get(id)
    if (!account) return
    accounts.delete(id)
    accounts.set(id, account)
  }

  /** Forgets the least recently used accounts, a sixteenth of `max` at once. `noteOrder` must run before each call. */
  function forgetFirst(max: number): void {
    const gone: string[] = []
    for (const id of accounts.keys()) {
      if (accounts.size <= max - Math.floor(max / 16)) break
      accounts.delete(id)
      gone.push(id)
      for (const key of takeKeys(id)) gone.push(...scopesOf(key))
      digestsOf.delete(id)
    }
    book.forget(withoutUsed(gone, keys))
  }

  function takeKeys(accountId: string): ApiKey[] {
    const digests = digestsOf.get(accountId) ?? []
    const taken = digests.flatMap((digest) => keys.get(digest) ?? [])
    for (const digest of digests) keys.delete(digest)
    return taken
  }
}

/** Leaves out the ids of people who still have keys. These may be keys of another account than one that has changed. */
function withoutUsed(ids: readonly string[], keys: ReadonlyMap<string, ApiKey>): string[] {
  const unused = new Set(ids)
  const hasPerson = ids.some((id) => kindOfScope(id) === 'person')
  for (const { personBounds } of hasPerson ? keys.values() : []) if (personBounds) unused.delete(personBounds.scope)
  return [...unused]
}

/** Returns the ids under which the limits of a key, and of its person, are stored. */
function scopesOf({ id, personBounds }: ApiKey): string[] {
  return personBounds ? [id, personBounds.scope] : [id]
}
