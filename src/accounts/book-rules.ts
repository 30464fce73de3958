/*
 * The rules of the books, without a store: what a change must know, and what follows from it. A store finds the facts and
 * makes the writes in one transaction; it decides nothing. So every store has the same rules, whether it answers at once
 * or from another machine.
 */
import { randomText } from '../ids/base62.ts'
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

/** The facts that a change asks about. */
export type ChangeScope = {
  /** An account by its id, else by its name. */
  account?: string
  /** An account by its name alone. */
  accountName?: string
  /** Keys by id or by their first characters. */
  key?: string
  /** The credit that was booked with this reference, of any account. */
  reference?: string
  /** Operators by id or name, those that are revoked too. */
  operator?: string
  /** References of an account's grants, and its spending since the last one. No debit of it is posted until the change is over. */
  grants?: { accountId: string; base: GrantBase | undefined }
  /** Whose days reports and budgets are by; nobody changes it meanwhile. */
  reporting?: true
  /** The change writes an entry, which the clock of the store dates: `clock`. */
  isDated?: true
  /** People by id, external id, e-mail address or name, with their second identities; or all. */
  persons?: 'all' | readonly string[]
  /** Accounts by ids or names. */
  accounts?: readonly string[]
  /** Entries that are posted ahead of the clock, budgets of their accounts, and those whose windows begin ahead. No post is under way meanwhile. */
  ahead?: true
  /** A session by its digest. */
  session?: string
  /** Digests of keys that may be there already. */
  digests?: readonly string[]
  /** References of credits that may be booked already. */
  references?: readonly string[]
  /** An earlier creation for the same actor and key of idempotency. */
  once?: { actor: string; key: string }
  /** A sign-in that was begun; with `account` unless the change names another one. */
  oauthGrant?: { id: string } | { digest: string }
  /** A session with its key, its account and its person. */
  signIn?: SessionName
  /** The person of an identity, and the person whose second identity it is. */
  identity?: { issuer: string; subject: string }
}

/** The facts that the store found. A fact is empty if the change did not ask for it, or if there is none. */
export type Facts = {
  account: AccountRow | undefined
  accountNamed: AccountRow | undefined
  keys: readonly KeyRow[]
  /** Whether the key is one of another gateway that was rotated. */
  isForeignRotated?: boolean
  credit: { accountId: string; amountNanos: bigint } | undefined
  operators: readonly BookRow<'operators'>[]
  /** Those of the digests, and of the references, that are taken. */
  digests?: ReadonlySet<string> | undefined
  references?: ReadonlySet<string> | undefined
  persons: readonly PersonRow[]
  /** Accounts with keys of the persons that were found. */
  personKeys: readonly PersonKeys[]
  accounts: readonly AccountRow[]
  ahead?: readonly AheadAccount[]
  aheadBudgets?: readonly { accountId: string; scope: string; per: Budget['per'] }[]
  /** Grants of the accounts that have one among `ahead`, by their references. */
  aheadGrants?: readonly { accountId: string; references: readonly string[] }[]
  made: Made | undefined
  session?: BookRow<'sessions'> | undefined
  grants: { taken: ReadonlySet<string>; spentNanos: bigint } | undefined
  /** `servers`: those that use the store now, by their names; of a file they are kept out by its lock. */
  reporting: { timeZone: string; isRecorded: boolean; servers: readonly string[] } | undefined
  /** The time of the store, by which debits fall into windows: the caller's may be another. */
  nowMs: number
  clock: ClockFacts | undefined
  oauthGrant?: GrantRow | undefined
  signIn?: SignInFacts | undefined
}

/** The result of a creation that may be asked for again. */
export type Made = Omit<BookRow<'made'>, 'actor' | 'once'>

/** One thing to be written. Servers learn that the account has changed, where it is about one. */
export type BookWrite =
  | { kind: 'insert_account'; account: AccountRow }
  | { kind: 'set_account'; accountId: string; fields: Partial<BookRow<'accounts'>>; bounds?: AccountBounds }
  /** With a time for a correction: see `corrections.ts`. */
  | {
      kind: 'post_credit'
      accountId: string
      amountNanos: bigint
      reference: string
      createdMs?: number
      effectiveMs?: number
    }
  /** Entries of an account, up to and with the correction that names them, count at their effective times. */
  | { kind: 'shift_entries'; accountId: string; fromSeq: number; toSeq: number; nowMs: number; shiftMs: number }
  /** Figures for reports are folded anew, and the last head is not ahead. */
  | { kind: 'count_anew'; nowMs: number }
  | { kind: 'insert_key'; accountId: string; key: KeyRow }
  | { kind: 'set_key'; accountId: string; keyId: string; fields: Partial<KeyRow> }
  | { kind: 'set_bounds'; accountId: string; scope: string; bounds: KeyBounds }
  | ({ kind: 'set_spend'; accountId: string; scope: string } & TimeSpan & SpendBase)
  | { kind: 'clear_spend'; accountId: string; scope: string }
  | { kind: 'insert_person'; person: PersonRow }
  | { kind: 'set_person'; personId: string; fields: Partial<PersonRow> }
  /** Servers read the keys of the person's account again. */
  | { kind: 'set_person_bounds'; accountId: string; personId: string; bounds: PersonBounds }
  /** Nobody posts to these accounts until the change is over. Without it, two changes could wait for each other. */
  | { kind: 'lock_accounts'; ids: readonly string[] }
  /** With all that were linked to it. */
  | { kind: 'link_person'; personId: string; to: string }
  | { kind: 'erase_person'; personId: string; erasedMs: number }
  | { kind: 'sign_out_person'; personId: string; endedMs: number }
  /** All keys of a person in an account are another person's, or nobody's. */
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
 * The spending of a window before it is written down: `spentNanos` of the entries up to and with `throughSeq`. The store adds
 * later entries. If `throughSeq` is undefined, the key is new: the ledger has no entry of it, and nothing is added.
 */
export type SpendBase = { spentNanos: bigint; throughSeq: number | undefined }

export type NewCredit = Extract<BookWrite, { kind: 'post_credit' }>

/**
 * Writes in their order. Credits of one account that stand together are one step, posted as a whole. Warnings compare the balance
 * before all of it with the one after it.
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

/** The account that servers must read again. */
export function accountOf(write: BookWrite): string | undefined {
  if (write.kind === 'insert_account') return write.account.id
  return 'accountId' in write ? write.accountId : undefined
}

type Decision<T> = {
  writes: readonly BookWrite[]
  result: T
  /** The record of the audit, if something is written. */
  trail?: Trail
  /** The audit records the act though nothing is written: it was done elsewhere. */
  isAct?: boolean
}

export type BookChange<T> = {
  about: ChangeScope
  /** Pure. @throws BookError, and then nothing is written. */
  decide(facts: Facts): Decision<T>
}

/** How an account is to be. A field that is left out stays as it is, or empty. Null takes a bound away. */
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

/** The spending of a budget that begins with a new key, account or person: nothing. */
export function beginSpend(accountId: string, scope: string, { per }: Budget, calendar: Calendar, { nowMs }: Facts) {
  const span = spanOf(calendar, per, nowMs)
  return [{ kind: 'set_spend' as const, accountId, scope, ...span, spentNanos: 0n, throughSeq: undefined }]
}

/** The version that the caller has seen, if any, and what is known of the window that another budget begins with. */
type Seen = { version?: string | undefined; base?: (TimeSpan & SpendBase) | undefined }

/** @param calendar of the reporting zone: a budget begins with its days */
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

/** The parts that the change replaces, for the audit; undefined if it replaces nothing. */
export function whatDiffers(
  before: ActDetails,
  after: ActDetails,
): { before: ActDetails; after: ActDetails } | undefined {
  const changed = Object.keys(before).filter((name) => before[name] !== after[name])
  if (changed.length === 0) return undefined
  const pick = (shown: ActDetails) => Object.fromEntries(changed.map((name) => [name, shown[name]!]))
  return { before: pick(before), after: pick(after) }
}

/** A row that may have a budget, of a key, an account or a person. */
type Spender = { bounds: { budget: Budget | undefined }; spend: Spend | undefined }

/** Begins or ends the counting of a budget that was changed. Sets the spending of `after`. */
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
      // An earlier triwire took such references as any other.
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

/** The operator confirms that the clock of the store is right (ruling Y15). The audit trail keeps it. @returns that time */
export function confirmClock(): BookChange<{ time: string }> {
  return {
    about: {},
    decide({ nowMs }) {
      const result = { time: formatTime(nowMs)! }
      return { writes: [], result, isAct: true, trail: { operation: confirmOperation, object: 'clock', after: result } }
    },
  }
}

/** The time of a change, and the calendar that divides it into days. @property nowMs Unix milliseconds */
export type Moment = { nowMs: number; calendar: Calendar }

/** How a key is to be. A field that is left out stays as it is, or empty. Null takes it away. */
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
 * Bounds are those of all keys of its line; label and end are its own.
 * @param calendar of the reporting zone: a budget begins with its days
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
      // The bounds of the person, and signing them out, reach a session by its key.
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

/** The wishes with the id of the person who was named. */
function withPerson(wishes: KeyWishes, facts: Facts, accountId: string): KeyWishes {
  const { person } = wishes
  return typeof person === 'string' ? { ...wishes, person: personOfKey(facts, person, accountId) } : wishes
}

/** Whether a budget has another window than the one that was counted so far: then it is counted from the ledger. */
export function beginsAnew({ bounds, spend }: Spender, budget: Budget): boolean {
  return bounds.budget === undefined || bounds.budget.per !== budget.per || spend === undefined
}

function tellKey({ label, expiresMs, bounds }: KeyRow): Record<string, ActDetails[string]> {
  return { label: label ?? null, expires: formatTime(expiresMs), ...keyBounds.tell(bounds) }
}

export function whatIsSet(shown: ActDetails): ActDetails {
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== null))
}

/** The grace begins by the time of the store: the caller's clock may be wrong by more than it lasts. */
export function rotateKey(idOrPrefix: string, graceMs: number): BookChange<IssuedKey> {
  return {
    about: { key: nameOfKey(idOrPrefix) },
    decide(facts) {
      const { nowMs } = facts
      const old = theKey(facts, idOrPrefix)
      if (old.revokedMs !== undefined) throw new BookError('key_revoked', old.id)
      if (hasEnded(old.expiresMs, nowMs)) throw new BookError('key_expired', old.id)
      if (old.session !== undefined) throw new BookError('key_of_session', old.id)
      const expiresMs = Math.min(old.expiresMs ?? Number.POSITIVE_INFINITY, nowMs + graceMs)
      // The old one's grace is not the new one's end.
      const { write, issued } = issueKey(old, nowMs)
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
 * Another end of a key. A key that was rotated ends with its grace, or sooner: its owner has a successor. One that its person made
 * for an agent stays at a sooner end.
 * @throws BookError if it was revoked, or is to live longer than that
 */
function endsOf(
  { isForeignRotated }: Facts,
  key: KeyRow,
  wishedMs: number | undefined,
): Pick<KeyRow, 'expiresMs' | 'ownExpiresMs'> {
  const { id, label, revokedMs, expiresMs, ownExpiresMs } = key
  if (revokedMs !== undefined) throw new BookError('key_revoked', id)
  // Until its rotation the end of a foreign key is no grace: an operator may move it, and its successor's own end stays.
  if (key.origin !== undefined && !isForeignRotated) return { expiresMs: wishedMs, ownExpiresMs }
  if (key.origin === undefined && (expiresMs === undefined || expiresMs === ownExpiresMs)) {
    // Otherwise the next good answer of the identity provider would move it (src/accounts/sign-in/own-keys.ts).
    const isShortened = label?.startsWith(ownKeyMark) && expiresMs !== undefined && (wishedMs ?? expiresMs) < expiresMs
    return { expiresMs: wishedMs, ownExpiresMs: isShortened ? expiresMs : wishedMs }
  }
  if (wishedMs === undefined || wishedMs > (expiresMs ?? 0)) throw new BookError('key_rotated', id)
  return { expiresMs: wishedMs, ownExpiresMs }
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

/** One that looks like the id of an account would be found as that, and not by its name. Names are logged, so none is a key. */
export function checkName(name: string): void {
  if (!isShownWhole(name) || mayHoldKey(name) || /^acct_[0-9A-Za-z]{16}$/.test(name))
    throw new BookError('name_invalid', name)
}

/** An index of PostgreSQL has no room for longer ones. */
const referenceCharsMax = 500

/** No database but SQLite has texts with NUL in them. */
function checkReference(reference: string): void {
  if (!reference.trim()) throw new BookError('reference_missing', reference)
  if (reference.length > referenceCharsMax || reference.includes('\0'))
    throw new BookError('reference_invalid', reference.slice(0, 40))
  if (readReturnReference(reference) !== undefined) throw new BookError('reference_reserved', reference)
}

/** A refusal names the account and not the label, which may be a key. */
export function checkLabel(label: string, accountId: string): void {
  if (!isShownWhole(label)) throw new BookError('label_invalid', accountId)
  if (mayHoldKey(label)) throw new BookError('label_secret', accountId)
}

/** @param like the key that it follows, or what is wished of the first of a line. */
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
