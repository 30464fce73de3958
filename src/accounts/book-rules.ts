/*
 * The rules of the books, independent of the store. A rule states which facts a change needs, and which writes follow
 * from them. A store finds the facts and makes the writes in one transaction; it decides nothing. All stores therefore
 * follow the same rules, whether in this process or on another machine.
 */
import { randomText } from '../ids.ts'
import { hasEnded } from './account.ts'
import { BookError } from './book-error.ts'
import {
  type AccountRow,
  type IssuedKey,
  type KeyRow,
  newAccount,
  noPerson,
  versionOfAccount,
  versionOfKey,
} from './book-rows.ts'
import type { BoundWishes } from './bounds.ts'
import { type Budget, type Spend, spanOf, type TimeSpan } from './budget.ts'
import { type Calendar, formatTime } from './calendar.ts'
import { type ClockFacts, confirmOperation } from './clock.ts'
import { formatCredits, nanosMax } from './credit.ts'
import { type AheadAccount, isCorrectionReference, readReturnReference } from './entries.ts'
import { type GrantBase, isOfGrant } from './grants.ts'
import { type AccountBounds, accountBounds, type KeyBounds, keyBounds, type PersonBounds } from './key-bounds.ts'
import { createKey as makeKey, mayHoldKey, nameOfKey } from './keys.ts'
import { type PersonKeys, type PersonRow, personOfKey } from './persons.ts'
import type { BookRow } from './registers.ts'
import { hasNothingUnseen, isShownWhole } from './shown-text.ts'
import { type GrantRow, ownKeyMark, type SessionName, type SignInFacts, type SignInRow } from './sign-in/rows.ts'
import type { ActDetails, NewAuditRow, Trail } from './trail.ts'

/** Names the facts (accounts, keys and so on) that a change needs. They are read before the change is decided. */
export type ChangeScope = {
  /** An account by its id, or if no account has that id, by its name. */
  account?: string
  /** An account by its name. An id does not match here. */
  accountName?: string
  /** Keys by their ids or first characters. */
  key?: string
  /** The reference of a credit. The credit is searched for in all accounts. */
  reference?: string
  /** Operators by id or name, including revoked ones. */
  operator?: string
  /**
   * The references of an account's grants, and its spending since the last grant. Debits of the account wait until the
   * change has ended.
   */
  grants?: { accountId: string; base: GrantBase | undefined }
  /** Asks for the reporting zone, whose days reports and budgets use. The zone stays the same until the change ends. */
  reporting?: true
  /** Set if the change writes an entry. Such a change needs the fact `clock`, about the clock that dates entries. */
  isDated?: true
  /** All people, or those with these ids, external ids, e-mail addresses or names. Linked identities are included. */
  persons?: 'all' | readonly string[]
  /** Accounts by their ids or names. */
  accounts?: readonly string[]
  /**
   * Entries that are dated ahead of the clock, and the budgets of their accounts. Also budgets whose current windows
   * begin ahead of the clock. No debit is posted until the change ends.
   */
  ahead?: true
  /** The digest of the session that the change needs. */
  session?: string
  /** Digests of keys. The store finds which of these keys exist already. */
  digests?: readonly string[]
  /** References of credits. The store finds which of them are already booked. */
  references?: readonly string[]
  /** An earlier creation by the same actor with the same idempotency key. */
  once?: { actor: string; key: string }
  /** The grant of a program's sign-in. If the change names no account, the facts contain the grant's account. */
  oauthGrant?: { id: string } | { digest: string }
  /** A session with its key, account and person. */
  signIn?: SessionName
  /** An identity at a provider. The store finds its person, or the person to whom the identity is linked. */
  identity?: { issuer: string; subject: string }
}

/** The facts that the store found. A fact is empty if the change did not ask for it, or if nothing was found. */
export type Facts = {
  account: AccountRow | undefined
  accountNamed: AccountRow | undefined
  keys: readonly KeyRow[]
  /** Whether the key was rotated. Its line then has a later key. */
  isRotated?: boolean
  credit: { accountId: string; amountNanos: bigint } | undefined
  operators: readonly BookRow<'operators'>[]
  /** The digests and references that the change asked about and that already exist in the store. */
  digests?: ReadonlySet<string> | undefined
  references?: ReadonlySet<string> | undefined
  persons: readonly PersonRow[]
  /** The accounts in which the found people have keys. */
  personKeys: readonly PersonKeys[]
  accounts: readonly AccountRow[]
  ahead?: readonly AheadAccount[]
  aheadBudgets?: readonly { accountId: string; scope: string; per: Budget['per'] }[]
  /** For each account in `ahead` whose entries include a monthly grant: the references of all grants of the account. */
  aheadGrants?: readonly { accountId: string; references: readonly string[] }[]
  made: Made | undefined
  session?: BookRow<'sessions'> | undefined
  grants: { taken: ReadonlySet<string>; spentNanos: bigint } | undefined
  /**
   * The zone of reports, and the servers that use the store now. For SQLite, `servers` is empty, because the file's
   * lock keeps other servers out.
   */
  reporting: { timeZone: string; isRecorded: boolean; servers: readonly string[] } | undefined
  /** The store's present time. It decides in which window a debit counts, because the caller's clock may differ. */
  nowMs: number
  clock: ClockFacts | undefined
  oauthGrant?: GrantRow | undefined
  signIn?: SignInFacts | undefined
}

/** The result of a creation, kept because the same creation may be requested again. */
export type Made = Omit<BookRow<'made'>, 'actor' | 'once'>

/** One write of a change. If the write concerns an account, servers are notified that the account has changed. */
export type BookWrite =
  | { kind: 'insert_account'; account: AccountRow }
  | { kind: 'set_account'; accountId: string; fields: Partial<BookRow<'accounts'>>; bounds?: AccountBounds }
  /** A credit. With `effectiveMs` it is a correction: see `corrections.ts`. */
  | {
      kind: 'post_credit'
      accountId: string
      amountNanos: bigint
      reference: string
      createdMs?: number
      effectiveMs?: number
    }
  /**
   * Moves a range of entries to the times at which they count. The last entry of the range, `toSeq`, is the correction
   * itself.
   */
  | { kind: 'shift_entries'; accountId: string; fromSeq: number; toSeq: number; nowMs: number; shiftMs: number }
  /**
   * Computes the figures for reports again. If the time of the last head (a digest of all entries) is ahead of the
   * clock, sets it back.
   */
  | { kind: 'count_anew'; nowMs: number }
  | { kind: 'insert_key'; accountId: string; key: KeyRow }
  | { kind: 'set_key'; accountId: string; keyId: string; fields: Partial<KeyRow> }
  | { kind: 'set_bounds'; accountId: string; scope: string; bounds: KeyBounds }
  | ({ kind: 'set_spend'; accountId: string; scope: string } & TimeSpan & SpendBase)
  | { kind: 'clear_spend'; accountId: string; scope: string }
  | { kind: 'insert_person'; person: PersonRow }
  | { kind: 'set_person'; personId: string; fields: Partial<PersonRow> }
  /** Makes servers read the keys of the person's account again. */
  | { kind: 'set_person_bounds'; accountId: string; personId: string; bounds: PersonBounds }
  /**
   * Locks accounts, so that no debit is posted to them until the change ends. Without the lock, two changes could
   * deadlock.
   */
  | { kind: 'lock_accounts'; ids: readonly string[] }
  /** Links a person, and all identities linked to them, to another person. */
  | { kind: 'link_person'; personId: string; to: string }
  | { kind: 'erase_person'; personId: string; erasedMs: number }
  | { kind: 'sign_out_person'; personId: string; endedMs: number }
  /** All keys of a person in an account are assigned to another person, or to nobody. */
  | { kind: 'give_keys'; accountId: string; from: string; to: string | null }
  | { kind: 'insert_operator'; operator: BookRow<'operators'> }
  | { kind: 'revoke_operator'; operatorId: string; revokedMs: number }
  | { kind: 'insert_session'; session: BookRow<'sessions'> }
  | { kind: 'delete_session'; digest: string }
  | { kind: 'insert_grant'; grant: GrantRow }
  | { kind: 'set_grant'; grantId: string; fields: Partial<GrantRow> }
  | { kind: 'insert_sign_in'; signIn: SignInRow }
  | { kind: 'set_sign_in'; signInId: string; fields: Partial<SignInRow> }
  | { kind: 'set_zone'; timeZone: string }
  | { kind: 'insert_made'; actor: string; key: string; made: Made }
  | { kind: 'post_audit'; row: NewAuditRow; nowMs: number }

/**
 * The amount spent in a budget's window. `spentNanos` includes the entries up to `throughSeq`, and the store adds later
 * entries. If `throughSeq` is undefined, the key is new and has no entries.
 */
export type SpendBase = { spentNanos: bigint; throughSeq: number | undefined }

export type NewCredit = Extract<BookWrite, { kind: 'post_credit' }>

/**
 * Groups writes, in order. Consecutive credits of one account form one step and are posted together. So a warning
 * compares the balance before all of these credits with the balance after them.
 */
export function stepsOf(writes: readonly BookWrite[]): (NewCredit[] | Exclude<BookWrite, NewCredit>)[] {
  const steps: ReturnType<typeof stepsOf> = []
  for (const write of writes) {
    const last = steps.at(-1)
    if (write.kind !== 'post_credit') steps.push(write)
    else if (Array.isArray(last) && last[0]!.accountId === write.accountId) last.push(write)
    else steps.push([write])
  }
  return steps
}

/** Returns the id of the account that servers must read again after a write. */
export function accountOf(write: BookWrite): string | undefined {
  if (write.kind === 'insert_account') return write.account.id
  return 'accountId' in write ? write.accountId : undefined
}

type Decision<T> = {
  writes: readonly BookWrite[]
  result: T
  /** The record for the audit trail, if something is written. */
  trail?: Trail
  /** Records of the parts of the change. They come before `trail`. */
  parts?: readonly Trail[]
  /** Whether `trail` is recorded even without writes, because the change takes effect outside of the books. */
  isAct?: boolean
}

export type BookChange<T> = {
  about: ChangeScope
  /**
   * Decides what to write, from the facts alone and without side effects. @throws BookError; then nothing is written
   */
  decide(facts: Facts): Decision<T>
}

/**
 * The wanted fields of an account. A field that is left out keeps its value, or is empty for a new account. Null
 * removes a limit.
 */
export type AccountWishes = BoundWishes<AccountBounds> & {
  name?: string | undefined
  state?: AccountRow['state'] | undefined
}

export function createAccount(
  name: string,
  creditNanos: bigint,
  { nowMs, calendar }: Moment,
  wishes: BoundWishes<AccountBounds> = {},
): BookChange<AccountRow> {
  return {
    about: { accountName: name, ...(creditNanos !== 0n && { isDated: true }) },
    decide(facts) {
      checkName(name)
      if (facts.accountNamed) throw new BookError('name_taken', name)
      const id = `acct_${randomText(16)}`
      const bounds = accountBounds.after(accountBounds.none, wishes)
      const account = { ...newAccount(id, name, nowMs), bounds }
      const writes: BookWrite[] = [{ kind: 'insert_account', account }]
      if (bounds.budget) writes.push(...beginSpend(id, id, bounds.budget, calendar, facts))
      if (creditNanos !== 0n) writes.push(postCredit(account, creditNanos, `create:${id}`))
      const given = { ...(creditNanos !== 0n && { credit: formatCredits(creditNanos) }) }
      const after = { name, ...given, ...whatIsSet(accountBounds.tell(bounds)) }
      const trail = { operation: 'account.create', object: id, after }
      return { writes, result: { ...account, balanceNanos: creditNanos }, trail }
    },
  }
}

/** Returns the write that starts a budget with nothing spent, for a new key, account or person. */
export function beginSpend(accountId: string, scope: string, { per }: Budget, calendar: Calendar, { nowMs }: Facts) {
  const span = spanOf(calendar, per, nowMs)
  return [{ kind: 'set_spend' as const, accountId, scope, ...span, spentNanos: 0n, throughSeq: undefined }]
}

/**
 * Facts that the caller has read before the change. `version` is the version of the row. `base` is the spending in the
 * window in which a new budget begins.
 */
type Seen = { version?: string | undefined; base?: (TimeSpan & SpendBase) | undefined }

/** Changes an account. @param calendar of the reporting zone, because budgets follow its days */
export function updateAccount(
  idOrName: string,
  { name, state, ...wishes }: AccountWishes,
  calendar: Calendar,
  { version, base }: Seen = {},
): BookChange<AccountRow> {
  return {
    about: { account: idOrName, ...(name !== undefined && { accountName: name }) },
    decide(facts) {
      if (name !== undefined) checkName(name)
      const account = theAccount(facts, idOrName)
      const { accountNamed } = facts
      if (name !== undefined && accountNamed && accountNamed.id !== account.id) throw new BookError('name_taken', name)
      refuseStale(versionOfAccount(account), version, account.id)
      const accountId = account.id
      const bounds = accountBounds.after(account.bounds, wishes)
      const result = { ...account, name: name ?? account.name, state: state ?? account.state, bounds }
      const tell = (row: AccountRow) => ({ name: row.name, state: row.state, ...accountBounds.tell(row.bounds) })
      const difference = whatDiffers(tell(account), tell(result))
      if (!difference) return { writes: [], result: account }
      const writes: BookWrite[] = [
        { kind: 'set_account', accountId, fields: { name: result.name, state: result.state }, bounds },
        ...moveSpend({ accountId, scope: accountId }, result, account, { calendar, nowMs: facts.nowMs, base }),
      ]
      return { writes, result, trail: { operation: 'account.update', object: accountId, ...difference } }
    },
  }
}

/**
 * Returns the fields that a change replaces, with their values before and after it, for the audit trail. Undefined if
 * the change replaces nothing.
 */
export function whatDiffers(
  before: ActDetails,
  after: ActDetails,
): { before: ActDetails; after: ActDetails } | undefined {
  const changed = Object.keys(before).filter((name) => before[name] !== after[name])
  if (changed.length === 0) return undefined
  const pick = (shown: ActDetails) => Object.fromEntries(changed.map((name) => [name, shown[name]!]))
  return { before: pick(before), after: pick(after) }
}

/** A row that can have a budget: a key, an account or a person. */
type Spender = { bounds: { budget: Budget | undefined }; spend: Spend | undefined }

/** Makes the writes by which the store begins or stops to sum the spend of a changed budget. Sets `after.spend` too. */
export function moveSpend(
  of: { accountId: string; scope: string },
  after: Spender,
  before: Spender,
  { calendar, nowMs, base }: Moment & Pick<Seen, 'base'>,
): BookWrite[] {
  const { budget } = after.bounds
  if (!budget) {
    after.spend = undefined
    return before.bounds.budget ? [{ kind: 'clear_spend', ...of }] : []
  }
  if (!beginsAnew(before, budget)) return []
  const span = spanOf(calendar, budget.per, nowMs)
  const isKnown = base?.fromMs === span.fromMs && base.untilMs === span.untilMs
  const { spentNanos, throughSeq } = isKnown ? base : { spentNanos: 0n, throughSeq: 0 }
  after.spend = { ...span, spentNanos }
  return [{ kind: 'set_spend', ...of, ...span, spentNanos, throughSeq }]
}

export function credit(idOrName: string, amountNanos: bigint, reference: string): BookChange<'posted' | 'exists'> {
  return {
    about: { account: idOrName, reference, isDated: true },
    decide(facts) {
      checkReference(reference)
      const account = theAccount(facts, idOrName)
      const { credit } = facts
      const after = { amount: formatCredits(amountNanos), reference }
      const trail = { operation: 'account.credit', object: account.id, after }
      // Only the reference of a new credit is checked. An earlier release may have booked this credit with a reference
      // that is now reserved for grants or corrections.
      if (!credit && (isOfGrant(reference) || isCorrectionReference(reference)))
        throw new BookError('reference_reserved', reference)
      if (!credit && !hasNothingUnseen(reference)) throw new BookError('reference_invalid', reference.slice(0, 40))
      if (!credit) return { writes: [postCredit(account, amountNanos, reference)], result: 'posted', trail }
      const isSame = credit.accountId === account.id && credit.amountNanos === amountNanos
      if (!isSame) throw new BookError('reference_conflict', reference)
      return { writes: [], result: 'exists' }
    },
  }
}

/**
 * Confirms for an operator that the store's clock is right (ruling Y15), and records this in the audit trail. @returns
 * the confirmed time
 */
export function confirmClock(): BookChange<{ time: string }> {
  return {
    about: {},
    decide({ nowMs }) {
      const result = { time: formatTime(nowMs)! }
      return { writes: [], result, isAct: true, trail: { operation: confirmOperation, object: 'clock', after: result } }
    },
  }
}

/** The time of a change, and the calendar of the reporting zone. @property nowMs Unix milliseconds */
export type Moment = { nowMs: number; calendar: Calendar }

/**
 * The wanted fields of a key. A field that is left out keeps its value, or is empty for a new key. Null removes the
 * value.
 */
export type KeyWishes = BoundWishes<KeyBounds> & {
  label?: string | null | undefined
  expiresMs?: number | null | undefined
}

export function createKey(idOrName: string, wishes: KeyWishes, { nowMs, calendar }: Moment): BookChange<IssuedKey> {
  return {
    about: { account: idOrName, ...aboutPerson(wishes) },
    decide(facts) {
      const { id: accountId } = theAccount(facts, idOrName)
      const label = wishes.label ?? undefined
      if (label !== undefined) checkLabel(label, accountId)
      const bounds = keyBounds.after(keyBounds.none, withPerson(wishes, facts, accountId))
      const ownExpiresMs = wishes.expiresMs ?? undefined
      const { write, issued } = issueKey({ accountId, label, ownExpiresMs, bounds }, nowMs)
      const { budget } = bounds
      const writes = [write, ...(budget ? beginSpend(accountId, issued.id, budget, calendar, facts) : [])]
      const shown = { account: accountId, prefix: issued.prefix, label: label ?? null }
      const after = { ...shown, ...whatIsSet({ ...keyBounds.tell(bounds), expires: formatTime(ownExpiresMs) }) }
      return { writes, result: issued, trail: { operation: 'key.create', object: issued.id, after } }
    },
  }
}

export function revokeKey(idOrPrefix: string, nowMs: number): BookChange<KeyRow> {
  return {
    about: { key: nameOfKey(idOrPrefix) },
    decide(facts) {
      const key = theKey(facts, idOrPrefix)
      if (key.revokedMs !== undefined) return { writes: [], result: key }
      const { accountId, id: keyId } = key
      const writes: BookWrite[] = [{ kind: 'set_key', accountId, keyId, fields: { revokedMs: nowMs } }]
      const ended = { endedMs: nowMs, endedWhy: 'revoked', sealed: undefined }
      if (key.session !== undefined) writes.push({ kind: 'set_sign_in', signInId: key.session, fields: ended })
      const trail = { operation: 'key.revoke', object: key.id, after: { prefix: key.prefix, revoked: true } }
      return { writes, result: { ...key, revokedMs: nowMs }, trail }
    },
  }
}

/**
 * Changes a key. New bounds apply to the whole line of keys: the key, its predecessors and its successors by rotation.
 * A new label or expiry applies only to this key.
 * @param calendar of the reporting zone, because budgets follow its days
 */
export function updateKey(
  idOrPrefix: string,
  wishes: KeyWishes,
  calendar: Calendar,
  { version, base }: Seen = {},
): BookChange<KeyRow> {
  return {
    about: { key: nameOfKey(idOrPrefix), ...aboutPerson(wishes) },
    decide(facts) {
      const key = theKey(facts, idOrPrefix)
      const { id: keyId, accountId, scope } = key
      if (typeof wishes.label === 'string') checkLabel(wishes.label, accountId)
      refuseStale(versionOfKey(key), version, keyId)
      const result: KeyRow = { ...key, bounds: keyBounds.after(key.bounds, withPerson(wishes, facts, accountId)) }
      // The person of a session's key cannot change. The person's limits apply to the session through this key, and the
      // session ends when this person signs out.
      if (key.session !== undefined && result.bounds.person !== key.bounds.person)
        throw new BookError('key_of_session', keyId)
      if (wishes.label !== undefined) result.label = wishes.label ?? undefined
      if (wishes.expiresMs !== undefined) Object.assign(result, endsOf(facts, key, wishes.expiresMs ?? undefined))
      const difference = whatDiffers(tellKey(key), tellKey(result))
      if (!difference) return { writes: [], result: key }
      const changed = Object.keys(difference.after)
      const writes: BookWrite[] = []
      const { label, expiresMs, ownExpiresMs } = result
      if (changed.includes('label') || changed.includes('expires'))
        writes.push({ kind: 'set_key', accountId, keyId, fields: { label, expiresMs, ownExpiresMs } })
      if (changed.some((name) => name in keyBounds.tell(keyBounds.none)))
        writes.push({ kind: 'set_bounds', accountId, scope, bounds: result.bounds })
      writes.push(...moveSpend({ accountId, scope }, result, key, { calendar, nowMs: facts.nowMs, base }))
      return { writes, result, trail: { operation: 'key.update', object: keyId, ...difference } }
    },
  }
}

function aboutPerson({ person }: KeyWishes): ChangeScope {
  return typeof person === 'string' ? { persons: [person] } : {}
}

function withPerson(wishes: KeyWishes, facts: Facts, accountId: string): KeyWishes {
  const { person } = wishes
  return typeof person === 'string' ? { ...wishes, person: personOfKey(facts, person, accountId) } : wishes
}

/** Whether a budget's spending must be summed from the ledger, because no sum is recorded for the budget's window. */
export function beginsAnew({ bounds, spend }: Spender, budget: Budget): boolean {
  return bounds.budget === undefined || bounds.budget.per !== budget.per || spend === undefined
}

function tellKey({ label, expiresMs, bounds }: KeyRow): Record<string, ActDetails[string]> {
  return { label: label ?? null, expires: formatTime(expiresMs), ...keyBounds.tell(bounds) }
}

export function whatIsSet(shown: ActDetails): ActDetails {
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== null))
}

/**
 * Makes the successor of a key. The old key's grace period begins at the store's present time, because the caller's
 * clock may be wrong by more than the whole period.
 */
export function rotateKey(idOrPrefix: string, graceMs: number): BookChange<IssuedKey> {
  return {
    about: { key: nameOfKey(idOrPrefix) },
    decide(facts) {
      const { nowMs } = facts
      const old = theKey(facts, idOrPrefix)
      if (old.revokedMs !== undefined) throw new BookError('key_revoked', old.id)
      if (hasEnded(old.expiresMs, nowMs)) throw new BookError('key_expired', old.id)
      if (old.session !== undefined) throw new BookError('key_of_session', old.id)
      // A rotated key is recognised by an expiry that differs from `ownExpiresMs`, so it expires at least 1 ms earlier.
      const lastMs = old.expiresMs ?? Number.POSITIVE_INFINITY
      const expiresMs = Math.min(old.expiresMs === old.ownExpiresMs ? lastMs - 1 : lastMs, nowMs + graceMs)
      // The new key gets the expiry that was set for the old key, not the end of the old key's grace period. If the life
      // of a person's own key was shortened, only `expiresMs` has that expiry (see `endsOf`).
      const { write, issued } = issueKey(old, nowMs)
      if (isOwn(old) && !facts.isRotated) write.key.expiresMs = old.expiresMs
      return {
        writes: [{ kind: 'set_key', accountId: old.accountId, keyId: old.id, fields: { expiresMs } }, write],
        result: issued,
        trail: {
          operation: 'key.rotate',
          object: old.id,
          before: { prefix: old.prefix, expires: formatTime(old.expiresMs) },
          after: { expires: formatTime(expiresMs), successor: issued.id, prefix: issued.prefix },
        },
      }
    },
  }
}

function refuseStale(version: string, seen: string | undefined, subject: string): void {
  if (seen !== undefined && seen !== version) throw new BookError('stale', subject)
}

/**
 * Computes the new expiry of a key. A rotated key cannot outlive its grace period, because its owner has the successor.
 * An operator can shorten the life of a key that a person made for an agent. When the identity provider next confirms
 * the person, the life of such a key is not lengthened again.
 * @throws BookError if the key was revoked, or would outlive its grace period
 */
function endsOf(facts: Facts, key: KeyRow, wishedMs: number | undefined): Pick<KeyRow, 'expiresMs' | 'ownExpiresMs'> {
  const { id, revokedMs, expiresMs, ownExpiresMs } = key
  if (revokedMs !== undefined) throw new BookError('key_revoked', id)
  // A key of another gateway that was not rotated has no grace period, so it can get any expiry. The expiry of its
  // successor (`ownExpiresMs`) stays the same.
  if (key.origin !== undefined && !facts.isRotated) return { expiresMs: wishedMs, ownExpiresMs }
  // In older stores, both ends of a rotated key may be equal. Then only a key of its line shows the rotation. That counts
  // only for the first key, because a later key of the line may be the successor of another key.
  const isRotated = (facts.isRotated && id === key.scope) || (expiresMs !== undefined && expiresMs !== ownExpiresMs)
  if (!isRotated) {
    // If an operator shortens the life of a key that a person made, `ownExpiresMs` keeps the old end. Then the
    // provider's next confirmation of the person does not move the shortened end (src/accounts/sign-in/own-keys.ts).
    const isShortened = isOwn(key) && expiresMs !== undefined && (wishedMs ?? expiresMs) < expiresMs
    return { expiresMs: wishedMs, ownExpiresMs: isShortened ? expiresMs : wishedMs }
  }
  if (wishedMs === undefined || wishedMs > (expiresMs ?? 0)) throw new BookError('key_rotated', id)
  return { expiresMs: wishedMs, ownExpiresMs }
}

/** Whether a person made the key for an agent. */
function isOwn({ label }: KeyRow): boolean {
  return label?.startsWith(ownKeyMark) === true
}

function theAccount({ account }: Facts, asked: string): AccountRow {
  if (!account) throw new BookError('no_account', asked)
  return account
}

function theKey({ keys }: Facts, asked: string): KeyRow {
  if (keys.length > 1) throw new BookError('key_ambiguous', asked)
  if (!keys[0]) throw new BookError('no_key', asked)
  return keys[0]
}

export function postCredit(account: AccountRow, amountNanos: bigint, reference: string): BookWrite {
  const sum = account.balanceNanos + amountNanos
  if (sum > nanosMax || sum < -nanosMax - 1n) throw new BookError('overflow', account.id)
  return { kind: 'post_credit', accountId: account.id, amountNanos, reference }
}

/**
 * Refuses a name that looks like an account id, because it would be looked up as an id. A name must not be a key,
 * because names are logged.
 */
export function checkName(name: string): void {
  if (!isShownWhole(name) || mayHoldKey(name) || /^acct_[0-9A-Za-z]{16}$/.test(name))
    throw new BookError('name_invalid', name)
}

/** The longest reference, in characters. PostgreSQL cannot index longer ones. */
const referenceCharsMax = 500

/**
 * Refuses an invalid reference. NUL characters are refused because only SQLite can store them, and all stores should
 * accept the same texts.
 */
function checkReference(reference: string): void {
  if (!reference.trim()) throw new BookError('reference_missing', reference)
  if (reference.length > referenceCharsMax || reference.includes('\0'))
    throw new BookError('reference_invalid', reference.slice(0, 40))
  if (readReturnReference(reference) !== undefined) throw new BookError('reference_reserved', reference)
}

/** Refuses an invalid label. The error names the account and not the label, because the label may contain a key. */
export function checkLabel(label: string, accountId: string): void {
  if (!isShownWhole(label)) throw new BookError('label_invalid', accountId)
  if (mayHoldKey(label)) throw new BookError('label_secret', accountId)
}

/** Makes a new key. @param like the key that is rotated; otherwise the wanted fields of the new key */
export function issueKey(
  like: Pick<KeyRow, 'accountId' | 'label' | 'ownExpiresMs' | 'bounds'> & { scope?: string },
  nowMs: number,
): { write: Extract<BookWrite, { kind: 'insert_key' }>; issued: IssuedKey } {
  const { key, id, prefix, digest } = makeKey()
  const { accountId, label, ownExpiresMs, bounds, scope = id } = like
  const times = { createdMs: nowMs, expiresMs: ownExpiresMs, ownExpiresMs, revokedMs: undefined, lastUsedMs: undefined }
  const shown = { prefix, label, accountName: undefined, personName: undefined, spend: undefined, heldNanos: undefined }
  const ours = { session: undefined, origin: undefined }
  const row: KeyRow = { id, accountId, digest, ...shown, ...noPerson, ...times, scope, bounds, ...ours }
  return { write: { kind: 'insert_key', accountId, key: row }, issued: { key, id, prefix } }
}
