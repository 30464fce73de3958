import { hasEnded } from './account.ts'
import { BookError } from './book-error.ts'
import type { AccountPage, AccountRow, IssuedKey, KeyPage, KeyRow } from './book-rows.ts'
import {
  type BookChange,
  beginsAnew,
  confirmClock,
  createAccount,
  createKey,
  credit,
  type KeyWishes,
  revokeKey,
  rotateKey,
  type SpendBase,
  updateAccount,
  updateKey,
} from './book-rules.ts'
import { spanOf, type TimeSpan } from './budget.ts'
import { type Calendar, createCalendar, utc } from './calendar.ts'
import type { DayShift } from './day-shifts.ts'
import type {
  Audited,
  EntryFilter,
  EntryPage,
  FoundDebit,
  Grouping,
  ListedEntry,
  Total,
  VerifyOptions,
} from './entries.ts'
import { nameOfKey } from './keys.ts'
import { onBehalf } from './on-behalf.ts'
import {
  createOperator,
  type IssuedOperator,
  type IssuedSession,
  makeCommandToken,
  revokeOperator,
  signIn,
  signOut,
} from './operator-rules.ts'
import { type OperatorRole, type OperatorRow, type SessionRow, seenLagMs, sessionIdleMs } from './operators.ts'
import { rezone, type ZoneChange } from './rezone.ts'
import { type Act, type AuditFilter, type AuditRow, digestAudit, type Trail } from './trail.ts'
import type { UsageAnswer, UsageQuestion, UsageState } from './usage/question.ts'
import type { StoredWarning, Watched } from './warnings.ts'

/** Who has shown a token, a key or a cookie. */
export type Principal =
  | {
      kind: 'operator'
      actor: string
      name: string
      role: OperatorRole
      expiresMs: number
      operatorId: string | undefined
    }
  | { kind: 'owner'; key: KeyRow; account: AccountRow }

/**
 * What may be done with accounts, keys, credits and entries, by the command line and by whatever else an operator uses. The
 * same on every store; a running server follows (faults F-C45), a key works from the moment it was made (ruling R16).
 * An account is named by id or name, a key by id or by its first characters. All throw BookError where a rule forbids it.
 * What is changed is told to the audit trail in the same commit.
 */
export interface Books {
  /** The same books, for what is changed on somebody's behalf. */
  as(act: Act): Books
  /** Credit given at once is booked with the reference `create:<id>` (ruling C8). */
  createAccount(name: string, creditNanos?: bigint): Promise<AccountRow>
  listAccounts(): Promise<AccountRow[]>
  pageAccounts(page: AccountPage): Promise<AccountRow[]>
  /** Where the act has a version, only that one. */
  updateAccount(
    account: string,
    changes: { name?: string | undefined; state?: AccountRow['state'] | undefined },
  ): Promise<AccountRow>
  findAccount(account: string): Promise<AccountRow>
  setAccountState(account: string, state: AccountRow['state']): Promise<AccountRow>
  /** Its id, keys and entries stay what they are. */
  renameAccount(account: string, name: string): Promise<AccountRow>
  /**
   * A top-up, or a correction when negative. The same reference with the same account and amount is the same top-up, however
   * often it is asked for (ruling C8).
   */
  credit(account: string, amountNanos: bigint, reference: string): Promise<'posted' | 'exists'>
  /** @param wishes its label and bounds, which its successors keep. */
  createKey(account: string, wishes?: KeyWishes): Promise<IssuedKey>
  /** Of all accounts where none is named. */
  listKeys(account?: string): Promise<KeyRow[]>
  pageKeys(page: KeyPage): Promise<KeyRow[]>
  /** Where the act has a version, only that one. */
  updateKey(key: string, changes: KeyWishes): Promise<KeyRow>
  /** By id, first characters or label: several keys may have one label. */
  findKeys(name: string): Promise<KeyRow[]>
  /** For good, and again without harm. */
  revokeKey(key: string): Promise<KeyRow>
  /**
   * A new key for the account, with the label, the bounds and the spending of the old one, which is good for `graceMs` more,
   * never longer than it already was (ruling R15). One that has ended has no successor.
   */
  rotateKey(key: string, graceMs: number): Promise<IssuedKey>
  /** The debit of a request. */
  findEntry(requestId: string): Promise<ListedEntry | undefined>
  /** The same with its prices, and whether it was given back. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** The newest first, unless told otherwise. */
  listEntries(which: EntryPage): Promise<ListedEntry[]>
  /** The oldest first, read as they are asked for. */
  eachEntry(filter?: EntryFilter): AsyncIterable<ListedEntry>
  /**
   * One row for each group that has entries, in the order of the groupings; one in all where there are none.
   * @param shifts whose days are meant; UTC's without them
   */
  sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): Promise<Total[]>
  /** The models that the ledger has entries of. */
  listModels(): Promise<string[]>
  /** Whose days figures are kept by, and since when. */
  readUsageState(): Promise<UsageState>
  /**
   * Another zone for the days of reports and budgets (ruling X12); the days of reports are made anew. Of a file by who holds its
   * lock, see `OpenBooksOptions.isAlone`.
   */
  rezone(timeZone: string): Promise<ZoneChange>
  /** Figures for reports, as exact as the ledger: what is folded and what is not yet, in one snapshot. */
  readUsage(question: UsageQuestion): Promise<UsageAnswer>
  /** What a key has cost in all, in nano-credits, less what was given back. */
  readSpent(accountId: string, keyId: string): Promise<bigint>
  /** Findings in words; none when the books are right. */
  verify(options: VerifyOptions): Promise<string[]>
  /** The same, and where nothing was found a head of what was read (ruling C15). It writes the head's moment down. */
  audit(options: VerifyOptions): Promise<Audited>
  /** An operator, whose token is shown this once. A name means one live operator. */
  createOperator(name: string, role: OperatorRole, expiresMs: number): Promise<IssuedOperator>
  listOperators(): Promise<OperatorRow[]>
  /** For good, with all that was signed in by the token. */
  revokeOperator(operator: string): Promise<OperatorRow>
  /** A token of one minute, for the command line. */
  makeCommandToken(): Promise<IssuedSession>
  /** @param digest of a token, a key or a cookie. @returns undefined for what is not, or no more, good for anything. */
  findPrincipal(digest: string, kind: 'bearer' | 'cookie'): Promise<Principal | undefined>
  signIn(whose: Principal): Promise<IssuedSession>
  signOut(digest: string): Promise<void>
  /** What is warned of from now on (ruling X15), whoever books it. */
  watch(what: Watched): Promise<void>
  /** Warnings that are due, which nobody else is given for so long. */
  takeWarnings(leaseMs: number, limit: number): Promise<StoredWarning[]>
  /** What became of one: told to all, or to be tried again. */
  settleWarning(id: string, next: { tries: string; afterMs: number } | undefined): Promise<void>
  /** What the clock of the store shows now is right (ruling Y15), which is kept in the audit trail. */
  confirmClock(): Promise<{ time: string }>
  /** What is done beside the books, for the audit alone. */
  noteAct(trail: Trail): Promise<void>
  /** Records of the audit trail, the newest first. @param beyond the number of the last one of the page before */
  listAudit(which: AuditFilter & { limit: number; beyond?: number | undefined }): Promise<AuditRow[]>
  /** Does every digest of the audit trail again. Findings in words; none when it is whole. */
  verifyAudit(): Promise<{ findings: string[]; head: string | undefined }>
}

/** SQLite returns a value, PostgreSQL a promise of one. */
type Eventual<T> = T | Promise<T>

/** What a store does for the books: it reads, and it makes changes whole or not at all. It knows no rule of theirs. */
export interface BookStore {
  /**
   * In one transaction that nobody else's writes come between: finds what the change asks about, lets it decide, and
   * writes what it says. @throws what `decide` throws, with nothing written.
   */
  change<T>(change: BookChange<T>): Eventual<T>
  /** Its time, see `Facts`. */
  readNowMs(): Eventual<number>
  findAccount(idOrName: string): Eventual<AccountRow | undefined>
  listAccounts(): Eventual<AccountRow[]>
  pageAccounts(page: AccountPage): Eventual<AccountRow[]>
  pageKeys(page: KeyPage): Eventual<KeyRow[]>
  listKeys(accountId?: string): Eventual<KeyRow[]>
  findKeys(name: string): Eventual<KeyRow[]>
  /** What the keys of this scope have spent in the span, up to the last entry of their account by now. */
  sumSpend(of: { accountId: string; scope: string } & TimeSpan): Eventual<SpendBase>
  watch(what: Watched): Eventual<void>
  takeWarnings(leaseMs: number, limit: number): Eventual<StoredWarning[]>
  settleWarning(id: string, next: { tries: string; afterMs: number } | undefined): Eventual<void>
  findEntry(requestId: string): Eventual<ListedEntry | undefined>
  findDebit(requestId: string): Eventual<FoundDebit | undefined>
  listEntries(which: EntryPage): Eventual<ListedEntry[]>
  eachEntry(filter?: EntryFilter): Iterable<ListedEntry> | AsyncIterable<ListedEntry>
  sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): Eventual<Total[]>
  listModels(): Eventual<string[]>
  readUsageState(): Eventual<UsageState>
  readUsage(question: UsageQuestion): Eventual<UsageAnswer>
  readSpent(accountId: string, keyId: string): Eventual<bigint>
  verify(options: VerifyOptions): Eventual<string[]>
  audit(options: VerifyOptions): Eventual<Audited>
  listOperators(): Eventual<OperatorRow[]>
  findOperator(by: { id: string } | { digest: string }): Eventual<OperatorRow | undefined>
  findKeyByDigest(digest: string): Eventual<KeyRow | undefined>
  findSession(digest: string): Eventual<SessionRow | undefined>
  /** Notes that it was used. */
  touchSession(digest: string, seenMs: number): Eventual<void>
  /** The newest first. @param beyond only those before this number */
  listAudit(which: AuditFilter & { limit: number; beyond?: number | undefined }): Eventual<AuditRow[]>
}

/** What of us changes something by itself. */
const nobody: Act = { actor: 'triwire' }

/** @param nowMs Unix milliseconds. @param calendar of the reporting zone: whose days budgets are of. */
export function createBooks(
  store: BookStore,
  nowMs: () => number,
  act: Act = nobody,
  calendar: Calendar = createCalendar(utc),
): Books {
  const change = async <T>(one: BookChange<T>): Promise<T> => store.change(onBehalf(act, one, nowMs()))
  return {
    as: (other) => createBooks(store, nowMs, other, calendar),
    createAccount: (name, creditNanos = 0n) => change(createAccount(name, creditNanos, nowMs())),
    listAccounts: async () => store.listAccounts(),
    pageAccounts: async (page) => store.pageAccounts(page),
    findAccount,
    updateAccount: (account, changes) => change(updateAccount(account, changes, act.version)),
    setAccountState: (account, state) => change(updateAccount(account, { state })),
    renameAccount: (account, name) => change(updateAccount(account, { name })),
    credit: (account, amountNanos, reference) => change(credit(account, amountNanos, reference)),
    createKey: (account, wishes = {}) => change(createKey(account, wishes, { nowMs: nowMs(), calendar })),
    listKeys: async (account) => store.listKeys(account === undefined ? undefined : (await findAccount(account)).id),
    pageKeys: async (page) => store.pageKeys(page),
    updateKey: async (key, changes) => {
      const { version } = act
      return change(updateKey(key, changes, calendar, { version, base: await sumBefore(key, changes) }))
    },
    findKeys: async (name) => store.findKeys(name),
    revokeKey: (key) => change(revokeKey(key, nowMs())),
    rotateKey: (key, graceMs) => change(rotateKey(key, graceMs)),
    findEntry: async (requestId) => store.findEntry(requestId),
    findDebit: async (requestId) => store.findDebit(requestId),
    listEntries: async (which) => store.listEntries(which),
    eachEntry: async function* (filter) {
      yield* store.eachEntry(filter)
    },
    sumEntries: async (filter, by, shifts) => store.sumEntries(filter, by, shifts),
    listModels: async () => store.listModels(),
    readUsageState: async () => store.readUsageState(),
    rezone: (timeZone) => change(rezone(timeZone)),
    readUsage: async (question) => store.readUsage(question),
    readSpent: async (accountId, keyId) => store.readSpent(accountId, keyId),
    verify: async (options) => store.verify(options),
    audit: async (options) => store.audit(options),
    createOperator: (name, role, expiresMs) => change(createOperator(name, role, expiresMs, nowMs())),
    listOperators: async () => store.listOperators(),
    revokeOperator: (operator) => change(revokeOperator(operator, nowMs())),
    makeCommandToken: () => change(makeCommandToken(act.actor, nowMs())),
    findPrincipal: (digest, kind) => findPrincipal(store, nowMs(), digest, kind),
    signIn: (whose) => change(signIn(ownerOfSession(whose), nowMs())),
    signOut: (digest) => change(signOut(digest)),
    watch: async (what) => store.watch(what),
    takeWarnings: async (leaseMs, limit) => store.takeWarnings(leaseMs, limit),
    settleWarning: async (id, next) => store.settleWarning(id, next),
    confirmClock: () => change(confirmClock()),
    noteAct: (trail) => change({ about: {}, decide: () => ({ writes: [], result: undefined, trail, isAct: true }) }),
    listAudit: async (which) => store.listAudit(which),
    verifyAudit: () => verifyAudit(store),
  }

  /** Before anything is locked: of a budget for ever it is all that the key has ever spent. */
  async function sumBefore(name: string, { budget }: KeyWishes) {
    if (!budget) return undefined
    const asked = nameOfKey(name)
    const keys = (await store.findKeys(asked)).filter(({ id, prefix }) => id === asked || prefix === asked)
    if (keys.length !== 1 || !beginsAnew(keys[0]!, budget)) return undefined
    const span = spanOf(calendar, budget.per, await store.readNowMs())
    const { accountId, scope } = keys[0]!
    return { ...span, ...(await store.sumSpend({ accountId, scope, ...span })) }
  }

  async function findAccount(account: string): Promise<AccountRow> {
    const row = await store.findAccount(account)
    if (!row) throw new BookError('no_account', account)
    return row
  }
}

function ownerOfSession(whose: Principal): { operatorId: string; expiresMs: number } | { keyId: string } {
  if (whose.kind === 'owner') return { keyId: whose.key.id }
  // The command line's own token is nobody's to sign in with.
  if (whose.operatorId === undefined) throw new BookError('no_operator', whose.name)
  return { operatorId: whose.operatorId, expiresMs: whose.expiresMs }
}

/** A token of an operator, one of the command line, or a key; or a cookie, which stands for the first or the last. */
async function findPrincipal(
  store: BookStore,
  nowMs: number,
  digest: string,
  kind: 'bearer' | 'cookie',
): Promise<Principal | undefined> {
  const session = await store.findSession(digest)
  if (session) {
    if (session.kind !== (kind === 'cookie' ? 'cookie' : 'command')) return undefined
    const isOver = hasEnded(session.expiresMs, nowMs) || (kind === 'cookie' && nowMs >= session.seenMs + sessionIdleMs)
    if (isOver) return undefined
    if (nowMs - session.seenMs >= seenLagMs) await store.touchSession(digest, nowMs)
    const { actor, operatorId, keyId, expiresMs } = session
    if (actor !== undefined) return { kind: 'operator', actor, name: actor, role: 'admin', expiresMs, operatorId }
    if (operatorId !== undefined) return asOperator(await store.findOperator({ id: operatorId }), nowMs)
    // Another key may be called what this one's id is.
    const keys = keyId === undefined ? [] : await store.findKeys(keyId)
    return asOwner(
      store,
      keys.find(({ id }) => id === keyId),
      nowMs,
    )
  }
  if (kind === 'cookie') return undefined
  const operator = asOperator(await store.findOperator({ digest }), nowMs)
  return operator ?? asOwner(store, await store.findKeyByDigest(digest), nowMs)
}

function asOperator(row: OperatorRow | undefined, nowMs: number): Principal | undefined {
  if (!row || row.revokedMs !== undefined || hasEnded(row.expiresMs, nowMs)) return undefined
  const { id, name, role, expiresMs } = row
  return { kind: 'operator', actor: `operator:${name}`, name, role, expiresMs, operatorId: id }
}

async function asOwner(store: BookStore, key: KeyRow | undefined, nowMs: number): Promise<Principal | undefined> {
  if (!key || key.revokedMs !== undefined || hasEnded(key.expiresMs, nowMs)) return undefined
  const account = await store.findAccount(key.accountId)
  return account && { kind: 'owner', key, account }
}

async function verifyAudit(store: BookStore): Promise<{ findings: string[]; head: string | undefined }> {
  const findings: string[] = []
  let later: AuditRow | undefined
  let head: string | undefined
  for (;;) {
    const rows = await store.listAudit({ limit: 500, beyond: later?.seq })
    for (const row of rows) {
      head ??= `${row.seq}/${row.digest}`
      if (later) compare(later, row)
      later = row
    }
    if (rows.length < 500) break
  }
  if (later) compare(later, undefined)
  return { findings, head: findings.length === 0 ? head : undefined }

  function compare(row: AuditRow, before: AuditRow | undefined): void {
    if ((before?.seq ?? 0) !== row.seq - 1) findings.push(`audit record ${row.seq}: the record before it is missing`)
    else if (digestAudit(row, before?.digest ?? null) !== row.digest)
      findings.push(`audit record ${row.seq}: its digest does not fit, so it or the one before it was changed`)
  }
}
