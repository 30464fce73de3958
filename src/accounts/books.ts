import { hasEnded } from './account.ts'
import type { Archive, ArchivedEntry } from './archive.ts'
import { BookError } from './book-error.ts'
import type { AccountPage, AccountRow, IssuedKey, KeyPage, KeyRow } from './book-rows.ts'
import {
  type AccountWishes,
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
import type { BoundWishes } from './bounds.ts'
import { type Budget, spanOf, type TimeSpan } from './budget.ts'
import { type Calendar, createCalendar, utc } from './calendar.ts'
import { type Correction, correctAhead } from './corrections.ts'
import type { DayShift } from './day-shifts.ts'
import type {
  AheadAccount,
  AheadEntry,
  AheadPage,
  Audited,
  EntryFilter,
  EntryPage,
  EntryPlace,
  FoundDebit,
  Grouping,
  ListedEntry,
  Total,
  VerifyOptions,
} from './entries.ts'
import { type ForeignCounts, type ForeignImport, importForeign } from './foreign-keys.ts'
import type { GrantBase } from './grants.ts'
import type { AccountBounds } from './key-bounds.ts'
import { digestKey, nameOfKey } from './keys.ts'
import { onBehalf } from './on-behalf.ts'
import {
  createOperator,
  type IssuedOperator,
  type IssuedSession,
  makeCommandToken,
  makeLinkToken,
  type OperatorRole,
  type OperatorRow,
  openLink,
  type PersonSession,
  revokeOperator,
  type SessionRow,
  signIn,
  signInPerson,
  signOut,
} from './operators.ts'
import { type PersonCounting, type PersonSums, Uncounted, type UncountedBudget } from './person-budgets.ts'
import {
  createPerson,
  erasePerson,
  type ImportCounts,
  importPersons,
  linkPersons,
  type PersonLine,
  type PersonWishes,
  signOutPerson,
  updatePerson,
} from './person-rules.ts'
import { findPerson, type PersonPage, type PersonRow } from './persons.ts'
import { postGrant } from './post-grant.ts'
import { findKeyById, findPrincipal, ownerOfSession, type Principal, type PrincipalStore } from './principals.ts'
import {
  type BegunGrant,
  beginGrant,
  decideGrant,
  digestUserCode,
  type GrantWishes,
  holdGrant,
  identifyOperator,
  judgeCode,
  pollGrant,
  type Redemption,
  redeemCode,
} from './sign-in/grant-rules.ts'
import { createOwnKey } from './sign-in/own-keys.ts'
import type {
  GrantRow,
  ListedSession,
  SessionLives,
  SessionName,
  SessionPage,
  SignedIn,
  SignInRow,
} from './sign-in/rows.ts'
import {
  endSession,
  keepAnswer,
  type ProviderWord,
  type Refresh,
  refreshSession,
  type SessionEnd,
  settleRefresh,
} from './sign-in/session-rules.ts'
import type { StatementHeader, StatementMonth, StatementSums } from './statement.ts'
import { type Act, type AuditFilter, type AuditRow, nobody, type Trail, verifyAudit } from './trail.ts'
import type {
  FoldProgress,
  RankedSpend,
  SpendRanking,
  UsageAnswer,
  UsageQuestion,
  UsageState,
} from './usage/question.ts'
import { rezone, type ZoneChange } from './usage/reporting.ts'
import type { NoticedNeed, StoredWarning, Watched } from './warnings.ts'

/** Queries that the books pass on to the store unchanged. */
const readingNames = [
  ...(['listAccounts', 'pageAccounts', 'pageKeys', 'findKeys', 'findEntry', 'findDebit', 'listEntries'] as const),
  'pagePersons' as const,
  ...([
    'sumEntries',
    'listModels',
    'readUsageState',
    'readFolding',
    'readUsage',
    'rankSpent',
    'readSpent',
    'nameLines',
    'namePersons',
    'findLines',
    'findRotated',
    'listLines',
    'listIdentities',
    'sumMonth',
    'makeHead',
    'findHead',
    'readHeader',
    'keepHeader',
  ] as const),
  ...([
    'verify',
    'audit',
    'listAhead',
    'pageAhead',
    'readNowMs',
    'listOperators',
    'pageSessions',
    'watch',
    'takeWarnings',
    'settleWarning',
    'noteNeeds',
    'listArchives',
    'findArchived',
    'sumSpend',
    'listAudit',
  ] as const),
]

type BookReadings = Pick<BookStore, (typeof readingNames)[number]>

/**
 * The books: accounts, keys, credits and entries, for the command line and other tools of an operator. An account is
 * identified by id or name, a key by id or by its first characters. A running server sees each change (faults F-C45),
 * and a new key works at once (ruling R16). The audit trail records each change in the same commit. All methods throw
 * BookError if a rule forbids the change.
 */
export interface Books extends BookReadings {
  /**
   * Returns these books for changes on behalf of an actor.
   * @param calendar the calendar of the store's time zone, which decides when budgets renew. The books of a server know
   *   it already and ignore this parameter
   */
  as(act: Act, calendar?: Calendar): Books
  /** Creates an account. Initial credit is booked with the reference `create:<id>` (ruling C8). */
  createAccount(name: string, creditNanos?: bigint, wishes?: BoundWishes<AccountBounds>): Promise<AccountRow>
  /** Changes an account. The change is refused if the act (see `as`) names an old version. */
  updateAccount(account: string, changes: AccountWishes): Promise<AccountRow>
  findAccount(account: string): Promise<AccountRow>
  /**
   * Books a top-up, or a correction if the amount is negative. Repeating a call with the same reference, account and
   * amount books nothing more (ruling C8).
   */
  credit(account: string, amountNanos: bigint, reference: string): Promise<'posted' | 'exists'>
  /**
   * Posts the grant of the current month if it is due, and takes back the unspent rest of the previous one.
   * @returns whether it was due
   */
  grant(accountId: string): Promise<boolean>
  /**
   * Closes a month that is over: all later entries are dated after it.
   * @param untilMs the first moment after the month
   * @returns false if the clock is in doubt and the newest entry is not after the month
   */
  closeMonth(untilMs: number): Promise<boolean>
  /** Creates a key. @param wishes the label and bounds of the key; successors of the key keep them */
  createKey(account: string, wishes?: KeyWishes): Promise<IssuedKey>
  /** Lists the keys of an account, or of all accounts by default. */
  listKeys(account?: string): Promise<KeyRow[]>
  /** Changes a key. The change is refused if the act (see `as`) names an old version. */
  updateKey(key: string, changes: KeyWishes): Promise<KeyRow>
  /** Revokes a key for good. Repeating the call does no harm. */
  revokeKey(key: string): Promise<KeyRow>
  /**
   * Creates a successor of a key, with its label, bounds and spending. The old key stays valid for `graceMs`, but never
   * longer than before (ruling R15). An expired key has no successor.
   */
  rotateKey(key: string, graceMs: number): Promise<IssuedKey>
  /**
   * Imports keys of another gateway with their accounts and people. Either all are imported or none. Repeating the call
   * does no harm.
   */
  importForeign(plan: ForeignImport): Promise<ForeignCounts>
  createPerson(wishes: PersonWishes): Promise<{ id: string }>
  /**
   * Changes a person. The act (see `as`) may name the version that the operator saw. If that version is old, the change
   * is refused.
   */
  updatePerson(person: string, wishes: PersonWishes): Promise<PersonRow>
  /** Finds a person by id or external id, or by an e-mail address or name that only one person has. */
  findPerson(person: string): Promise<PersonRow>
  importPersons(lines: readonly PersonLine[]): Promise<ImportCounts>
  /** Makes two people one person. The second person becomes a further identity of the first. */
  linkPersons(person: string, second: string): Promise<PersonRow>
  /** Erases a person for good (ruling Y21). Their keys stay and belong to nobody. */
  erasePerson(person: string): Promise<PersonRow>
  /** Ends all sessions of a person on all replicas. The person may sign in again. */
  signOutPerson(person: string): Promise<PersonRow>
  /** Reads entries page by page, the oldest first. */
  eachEntry(filter?: EntryFilter): AsyncIterable<ListedEntry>
  /**
   * Changes the time zone for the days of reports and budgets (ruling X12). Report figures by day are computed again.
   * For a file, the caller must hold its lock, see `OpenBooksOptions.isAlone`.
   */
  rezone(timeZone: string): Promise<ZoneChange>
  /**
   * Creates an operator, whose name must differ from those of all unrevoked operators. The token is shown only once.
   */
  createOperator(name: string, role: OperatorRole, expiresMs: number): Promise<IssuedOperator>
  /** Revokes an operator for good, with all sessions that were opened by the operator's token. */
  revokeOperator(operator: string): Promise<OperatorRow>
  /** Makes a token for the command line, valid for one minute. */
  makeCommandToken(): Promise<IssuedSession>
  /**
   * Finds the operator or key owner to whom a token, key or cookie belongs.
   * @param digest the digest of the token, key or cookie
   * @returns undefined if the digest is unknown or no longer valid
   */
  findPrincipal(digest: string, kind: 'bearer' | 'cookie'): Promise<Principal | undefined>
  signIn(whose: Principal): Promise<IssuedSession>
  signInPerson(whose: PersonSession): Promise<IssuedSession>
  /** Makes the token of a link that signs in one browser as an admin. It is valid for ten minutes. */
  makeLinkToken(): Promise<IssuedSession>
  /**
   * Signs in with the token of a sign-in link. The token works only once.
   * @returns undefined if no link has this token, or if the token is no longer valid
   */
  openLink(digest: string): Promise<IssuedSession | undefined>
  /** Finds the person with an identity, or creates a new person. */
  identifyOperator(who: Parameters<typeof identifyOperator>[0]): Promise<{ personId: string }>
  /** Applies a confirmation of the identity provider that came too late for the refresh of a session. */
  keepAnswer(sessionId: string, signedIn: SignedIn): Promise<void>
  /** Ends a browser session. If it is a person's session, its key ends too. @returns the session before it ended */
  signOut(digest: string): Promise<SessionRow | undefined>
  /** Begins the sign-in of a program. The program redeems `code` once a person has approved the sign-in. */
  beginGrant(wishes: GrantWishes): Promise<BegunGrant>
  /**
   * Finds the grant of a program's sign-in, in any state.
   * @param asked the user code as a person types it, or the id
   * @returns undefined if the grant is unknown or has expired
   */
  findGrant(asked: string | { id: string }): Promise<GrantRow | undefined>
  /** Stores the encrypted data of the person who is about to sign in, while the grant is pending. */
  holdGrant(id: string, sealed: string): Promise<void>
  /** Records what a person who has signed in decides about a grant. @returns the person of the session */
  decideGrant(id: string, decision: SignedIn | 'denied'): Promise<{ personId: string | undefined }>
  pollGrant(code: string, lives: SessionLives): Promise<Redemption>
  redeemCode(code: string, shown: { verifier: string; redirectUri: string }, lives: SessionLives): Promise<Redemption>
  refreshSession(...asked: Parameters<typeof refreshSession>): Promise<Refresh>
  settleRefresh(
    shown: Parameters<typeof settleRefresh>[0],
    word: ProviderWord,
    lives: Parameters<typeof settleRefresh>[2],
  ): Promise<Refresh>
  /** Creates a key for an agent that belongs to the person of a session. @throws BookError `no_session` */
  createOwnKey(sessionKeyId: string, name: string): Promise<IssuedKey | 'unconfirmed' | 'many'>
  /** Ends a session for good on all replicas. Repeating the call does no harm. */
  endSession(name: SessionName, why: SessionEnd): Promise<SignInRow | undefined>
  /** Confirms that the store's clock is right now (ruling Y15). The audit trail records the confirmation. */
  confirmClock(): Promise<{ time: string }>
  /**
   * Corrects the times of all entries that are dated ahead of the clock (amends ruling C15).
   * @param lastMs the corrected time of the latest of these entries, see `correctTimes`
   */
  correctAhead(lastMs: number): Promise<Correction>
  /** Adds a record to the audit trail for an act that changes nothing in the books. */
  noteAct(trail: Trail): Promise<void>
  /**
   * Recomputes every digest of the audit trail. Returns findings in words. An empty list means that the trail is
   * intact.
   */
  verifyAudit(): Promise<{ findings: string[]; head: string | undefined }>
}

/**
 * The owner of the spending to sum. `scope` is the id of an account, a person or a line (a key with its successors).
 */
type SpendScope = { accountId: string; scope: string }

/** The part of a store that the books use. It makes each change completely or not at all, and knows no book rules. */
export interface BookStore extends PrincipalStore {
  listAccounts(): Promise<AccountRow[]>
  pageAccounts(page: AccountPage): Promise<AccountRow[]>
  pageKeys(page: KeyPage): Promise<KeyRow[]>
  /** Finds the debit of a request. */
  findEntry(requestId: string): Promise<ListedEntry | undefined>
  /** Finds the debit of a request with its prices, and whether it was given back. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** Lists entries, the newest first by default. */
  listEntries(which: EntryPage): Promise<ListedEntry[]>
  /**
   * Sums entries. Returns one row for each group that has entries, sorted by the groupings. Without groupings, returns
   * one row.
   * @param shifts define the days of a zone; without them, days are those of UTC
   */
  sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): Promise<Total[]>
  /**
   * Lists the models of all entries. Entries that are not yet summed for reports are searched too, unless there are too
   * many.
   */
  listModels(): Promise<string[]>
  /** Returns the time zone of the days in reports, and the time from which figures for reports are kept. */
  readUsageState(): Promise<UsageState>
  /** Returns how many of the ledger's entries are folded into figures for reports. */
  readFolding(): Promise<FoldProgress>
  /**
   * Returns figures for reports, as exact as the ledger. Folded and unfolded entries are read in one snapshot. While
   * more than `unfoldedMax` entries are unfolded, only folded entries count.
   */
  readUsage(question: UsageQuestion): Promise<UsageAnswer>
  /**
   * Returns the name of each line (a key with its successors) by the id of its first key. The name of the newest key
   * counts.
   */
  nameLines(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /**
   * Finds people by the ids in entries. The id of an identity gives the person to whom the identity belongs. Erased
   * people are left out.
   */
  namePersons(ids: readonly string[]): Promise<ReadonlyMap<string, { id: string; name: string }>>
  /** Maps each given key that is a successor to the first key of its line. A line is a key with its successors. */
  findLines(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
  /**
   * Returns those of the given lines that have a valid key of this gateway (not imported, not revoked). A line (a key
   * with its successors) is given by the id of its first key.
   */
  findRotated(scopes: readonly string[]): Promise<ReadonlySet<string>>
  /** Lists the ids of all keys in the lines of these keys. A line is a key with its successors. */
  listLines(keys: readonly string[]): Promise<string[]>
  /** Lists the ids by which entries name a person. */
  listIdentities(personId: string): Promise<string[]>
  /** Sums the entries of an account in a month. Reads no other entries. */
  sumMonth(month: StatementMonth): Promise<StatementSums>
  /** Computes the head (the digest of all entries) that `audit` would have made at a past moment. */
  makeHead(momentMs: number): Promise<string>
  /** See `Books`. @param expectedMs the time that the store's clock should show; undefined without a server */
  closeMonth(untilMs: number, expectedMs?: number): Promise<boolean>
  /**
   * Returns the head (the digest of all entries) that all stored statements of a month contain. Undefined if there are
   * none, or if they were made for another time zone.
   */
  findHead(month: string, timeZone: string): Promise<string | undefined>
  /** Returns the header of a closed month's statement. */
  readHeader(accountId: string, month: string): Promise<StatementHeader | undefined>
  /** Stores a header for good. @returns the header that is now stored, which is the earlier header if there was one */
  keepHeader(accountId: string, month: string, header: StatementHeader): Promise<StatementHeader>
  /**
   * Ranks accounts or keys by spending, the highest first. Equal amounts are sorted by id. If too many entries are not
   * folded into figures yet, these entries do not count, as in `readUsage`.
   */
  rankSpent(ranking: SpendRanking): Promise<RankedSpend[]>
  /** Returns the total cost of a key in nano-credits, minus the amounts given back. */
  readSpent(accountId: string, keyId: string): Promise<bigint>
  /** Verifies the ledger. Returns findings in words. An empty list means that the books are right. */
  verify(options: VerifyOptions): Promise<string[]>
  /**
   * Verifies the ledger. If nothing is wrong, makes a head (a digest of all entries that were read), and stores the
   * time of the head (ruling C15).
   */
  audit(options: VerifyOptions): Promise<Audited>
  pagePersons(page: PersonPage): Promise<PersonRow[]>
  listOperators(): Promise<OperatorRow[]>
  /** Lists sessions of people, the newest first. */
  pageSessions(page: SessionPage): Promise<ListedSession[]>
  findOauthGrant(by: { id: string } | { digest: string } | { user_digest: string }): Promise<GrantRow | undefined>
  /** Sets the limits for warnings from now on (ruling X15). They apply to the entries that any server posts. */
  watch(what: Watched): Promise<void>
  /** Takes warnings that are due. No other server can take these warnings for `leaseMs`. */
  takeWarnings(leaseMs: number, limit: number): Promise<StoredWarning[]>
  /** Records the result of sending a warning. @param next undefined if the warning need not be sent again */
  settleWarning(id: string, next: { tries: string; afterMs: number } | undefined): Promise<void>
  /**
   * Records the needs that a server finds now: things that an operator should act on (src/store/sql/needs.ts).
   * @param isTelling whether new needs are sent to webhooks
   * @returns when each need began, in Unix milliseconds, by id
   */
  noteNeeds(needs: readonly NoticedNeed[], isTelling: boolean): Promise<ReadonlyMap<string, number>>
  /** Lists entries that are dated ahead of the clock and that no correction names. */
  listAhead(): Promise<AheadAccount[]>
  /** Lists a page of an account's entries that are dated ahead of the clock, whether or not a correction names them. */
  pageAhead(page: AheadPage): Promise<AheadEntry[]>
  /** Lists the archives (files of closed months), the oldest first (src/accounts/archive.ts). */
  listArchives(): Promise<Archive[]>
  /** Finds a request's debit in the index of archived entries, even if the archive was put back into the ledger. */
  findArchived(requestId: string): Promise<ArchivedEntry | undefined>
  /** Lists records of the audit trail, the newest first. @param beyond only records before this number */
  listAudit(which: AuditFilter & { limit: number; beyond?: number | undefined }): Promise<AuditRow[]>
  /**
   * Runs a change in one transaction: finds the facts, calls `decide`, and writes the result. No other write can come
   * in between. @throws the error of `decide`, with nothing written
   */
  change<T>(change: BookChange<T>): Promise<T>
  /** Returns the time of the store, see `Facts`. */
  readNowMs(): Promise<number>
  listKeys(accountId?: string): Promise<KeyRow[]>
  /**
   * Sums the spending of one key, account or person in a time span (see `SpendScope`). All entries that exist at the
   * time of the call are included.
   */
  sumSpend(of: SpendScope & TimeSpan): Promise<SpendBase>
  /** Sums what was spent in a time span, for each person id in the entries of an account. */
  sumPersons(of: { accountId: string } & TimeSpan): Promise<Pick<PersonSums, 'spent' | 'throughSeq'>>
  /**
   * Finds the last monthly grant of an account. If the grant lapses, sums how much of it was spent. Undefined if there
   * was no grant.
   */
  sumGrant(accountId: string): Promise<GrantBase | undefined>
}

/** Creates the books of a store. @param nowMs Unix milliseconds @param calendar of the zone that budgets follow */
export function createBooks(
  store: BookStore,
  nowMs: () => number,
  act: Act = nobody,
  calendar: Calendar = createCalendar(utc),
): Books {
  const change = async <T>(one: BookChange<T>): Promise<T> => store.change(onBehalf(act, one, nowMs()))
  const readings = Object.fromEntries(readingNames.map((name) => [name, store[name]])) as unknown as BookReadings
  return {
    ...readings,
    as: (other, zone = calendar) => createBooks(store, nowMs, other, zone),
    createAccount: (name, creditNanos = 0n, wishes = {}) =>
      change(createAccount(name, creditNanos, { nowMs: nowMs(), calendar }, wishes)),
    findAccount,
    updateAccount: async (account, changes) => {
      const { version } = act
      const row = changes.budget ? await store.findAccount(account) : undefined
      const base = row && (await sumBefore({ ...row, accountId: row.id, scope: row.id }, changes.budget))
      const changed = await change(updateAccount(account, changes, calendar, { version, base }))
      return changes.grant && (await grant(changed.id)) ? findAccount(changed.id) : changed
    },
    grant,
    closeMonth: (untilMs) => store.closeMonth(untilMs, act.expectedMs),
    credit: (account, amountNanos, reference) => change(credit(account, amountNanos, reference)),
    createKey: (account, wishes = {}) => change(createKey(account, wishes, { nowMs: nowMs(), calendar })),
    listKeys: async (account) => store.listKeys(account === undefined ? undefined : (await findAccount(account)).id),
    updateKey: async (key, changes) => {
      const { version } = act
      return change(updateKey(key, changes, calendar, { version, base: await sumOfKey(key, changes) }))
    },
    revokeKey: (key) => change(revokeKey(key, nowMs())),
    rotateKey: (key, graceMs) => change(rotateKey(key, graceMs)),
    importForeign: (plan) => change(importForeign(plan, calendar)),
    createPerson: (wishes) => change(createPerson(wishes, { nowMs: nowMs(), calendar })),
    updatePerson: (person, wishes) => counting((counted) => updatePerson(person, wishes, counted, act.version)),
    findPerson: async (person) => findPerson({ persons: await store.findPersons([person]) }, person),
    importPersons: (lines) => counting((counted) => importPersons(lines, nowMs(), counted)),
    linkPersons: (person, second) => counting((counted) => linkPersons(person, second, counted)),
    erasePerson: (person) => change(erasePerson(person, nowMs())),
    signOutPerson: (person) => change(signOutPerson(person, nowMs())),
    eachEntry: (filter) => eachEntry(store.listEntries, filter),
    rezone: (timeZone) => change(rezone(timeZone)),
    createOperator: (name, role, expiresMs) => change(createOperator(name, role, expiresMs, nowMs())),
    revokeOperator: (operator) => change(revokeOperator(operator, nowMs())),
    makeCommandToken: () => change(makeCommandToken(act.actor, nowMs())),
    findPrincipal: (digest, kind) => findPrincipal(store, nowMs(), digest, kind),
    signIn: (whose) => change(signIn(ownerOfSession(whose), nowMs())),
    signInPerson: (whose) => change(signInPerson(whose, nowMs())),
    makeLinkToken: () => change(makeLinkToken(act.actor, nowMs())),
    openLink: (digest) => change(openLink(digest, nowMs())),
    identifyOperator: (who) => counting((counted) => identifyOperator(who, counted)),
    keepAnswer: (sessionId, signedIn) => counting((counted) => keepAnswer(sessionId, signedIn, counted)),
    signOut: async (digest) => {
      const session = await store.findSession(digest)
      const key = session?.personId === undefined ? undefined : await findKeyById(store, session.keyId)
      if (key?.session !== undefined) await change(endSession({ keyId: key.id }, 'signed_out'))
      if (session) await change(signOut(digest))
      return session
    },
    ...signInBooks(store, change, counting, calendar),
    confirmClock: () => change(confirmClock()),
    correctAhead: (lastMs) => change(correctAhead(lastMs, calendar)),
    noteAct: (trail) => change({ about: {}, decide: () => ({ writes: [], result: undefined, trail, isAct: true }) }),
    verifyAudit: () => verifyAudit((page) => store.listAudit(page)),
  }

  async function grant(accountId: string): Promise<boolean> {
    for (;;) {
      const result = await change(postGrant(accountId, calendar, await store.sumGrant(accountId)))
      if (result !== 'again') return result === 'posted'
    }
  }

  /**
   * Makes a change that may need sums. If sums are missing, nothing is written. The sums are then read without a lock,
   * and the change is tried again.
   */
  async function counting<T>(make: (counted: PersonCounting) => BookChange<T | Uncounted>): Promise<T> {
    const sums = new Map<string, PersonSums>()
    const keyOf = ({ accountId, per }: UncountedBudget) => `${accountId} ${per}`
    for (;;) {
      const result = await change(make({ calendar, sumsOf: (budget) => sums.get(keyOf(budget)) }))
      if (!(result instanceof Uncounted)) return result
      for (const budget of result.budgets) {
        const span = spanOf(calendar, budget.per, await store.readNowMs())
        if (sums.has(keyOf(budget))) continue
        sums.set(keyOf(budget), { ...span, ...(await store.sumPersons({ accountId: budget.accountId, ...span })) })
      }
    }
  }

  async function sumOfKey(name: string, { budget }: KeyWishes) {
    if (!budget) return undefined
    const asked = nameOfKey(name)
    const keys = (await store.findKeys(asked)).filter(({ id, prefix }) => id === asked || prefix === asked)
    return keys.length === 1 ? sumBefore(keys[0]!, budget) : undefined
  }

  /**
   * Sums the spending for a budget, before anything is locked, because the sum may take long. A budget without a period
   * covers everything that its key or account has ever spent.
   */
  async function sumBefore(of: Parameters<typeof beginsAnew>[0] & SpendScope, budget: Budget | null | undefined) {
    if (!budget || !beginsAnew(of, budget)) return undefined
    const span = spanOf(calendar, budget.per, await store.readNowMs())
    return { ...span, ...(await store.sumSpend({ accountId: of.accountId, scope: of.scope, ...span })) }
  }

  async function findAccount(account: string): Promise<AccountRow> {
    const row = await store.findAccount(account)
    if (!row) throw new BookError('no_account', account)
    return row
  }
}

type PlainChange = <T>(one: BookChange<T>) => Promise<T>
type CountedChange = <T>(make: (counted: PersonCounting) => BookChange<T | Uncounted>) => Promise<T>

/** The books of people who sign in (src/accounts/sign-in). */
function signInBooks(store: BookStore, change: PlainChange, counting: CountedChange, calendar: Calendar) {
  return {
    beginGrant: (wishes) => change(beginGrant(wishes)),
    holdGrant: (id, sealed) => change(holdGrant(id, sealed)),
    findGrant: async (asked) => {
      const by = typeof asked === 'string' ? { user_digest: digestUserCode(asked) ?? '' } : asked
      const grant = await store.findOauthGrant(by)
      return grant && !hasEnded(grant.expiresMs, await store.readNowMs()) ? grant : undefined
    },
    decideGrant: (id, decision) => counting((counted) => decideGrant(id, decision, counted)),
    pollGrant: async (code, lives) => (await refuseCode(code, 'device')) ?? change(pollGrant(code, lives)),
    redeemCode: async (code, shown, lives) =>
      (await refuseCode(code, 'code')) ?? change(redeemCode(code, shown, lives)),
    refreshSession: (...asked) => change(refreshSession(...asked)),
    settleRefresh: (...asked) => counting((counted) => settleRefresh(...asked, counted)),
    createOwnKey: (sessionKeyId, name) => change(createOwnKey(sessionKeyId, name, calendar)),
    endSession: (name, why) => change(endSession(name, why)),
  } satisfies Partial<Books>

  /**
   * Anybody may send invented codes, and the code of a sign-in that they began themselves, without a pause. If such a
   * code changes nothing, it is answered without a change. So it delays no other change.
   */
  async function refuseCode(code: string, kind: GrantRow['kind']): Promise<Redemption | undefined> {
    const grant = await store.findOauthGrant({ digest: digestKey(code) })
    const error = judgeCode(grant, kind, grant ? await store.readNowMs() : 0)
    return error && { error }
  }
}

/** The number of entries on a page. Reading so many takes some milliseconds. */
const entriesAtOnce = 500

/** Reads entries page by page: see `Books.eachEntry`. */
export async function* eachEntry(
  listEntries: BookReadings['listEntries'],
  filter: EntryFilter = {},
): AsyncIterable<ListedEntry> {
  let beyond: EntryPlace | undefined
  for (;;) {
    const entries = await listEntries({ ...filter, first: 'oldest', limit: entriesAtOnce, beyond })
    yield* entries
    const end = entries.at(-1)
    if (!end || entries.length < entriesAtOnce) return
    beyond = { postedMs: end.postedMs, accountId: end.accountId, seq: end.seq }
  }
}
