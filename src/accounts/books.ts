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
  isLink,
  makeCommandToken,
  makeLinkToken,
  type OperatorRole,
  type OperatorRow,
  type OwnerRole,
  openLink,
  operatorRoles,
  type PersonSession,
  revokeOperator,
  roleOf,
  type SessionRow,
  seenLagMs,
  sessionIdleMs,
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
import {
  type BegunGrant,
  beginGrant,
  decideGrant,
  digestUserCode,
  type GrantWishes,
  holdGrant,
  identifyOperator,
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
import { type Act, type AuditFilter, type AuditRow, digestAudit, type Trail } from './trail.ts'
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

/** The operator or owner who has shown a token, a key or a cookie. */
export type Principal =
  | {
      kind: 'operator'
      actor: string
      name: string
      role: OperatorRole
      expiresMs: number
      operatorId: string | undefined
    }
  /** @property role of a person in a browser; undefined if a key, or a token of a session, was shown (Y22) */
  | { kind: 'owner'; key: KeyRow; account: AccountRow; role?: OwnerRole | undefined }

/** Questions that the books pass on to the store. */
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
    'listLine',
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
 * Accounts, keys, credits and entries, as the command line and other tools of an operator use them. They are the same on every
 * store. A running server follows (faults F-C45), and a key works from the moment it was made (ruling R16).
 * An account is named by id or name, a key by id or by its first characters. All throw BookError if a rule forbids it.
 * The audit trail has each change in the same commit.
 */
export interface Books extends BookReadings {
  /** The same books, for changes on somebody's behalf. */
  as(act: Act): Books
  /** Credit given at once is booked with the reference `create:<id>` (ruling C8). */
  createAccount(name: string, creditNanos?: bigint, wishes?: BoundWishes<AccountBounds>): Promise<AccountRow>
  /** If the act has a version, only that one. Its id, keys and entries stay what they are. */
  updateAccount(account: string, changes: AccountWishes): Promise<AccountRow>
  findAccount(account: string): Promise<AccountRow>
  /**
   * A top-up, or a correction when negative. The same reference with the same account and amount is the same top-up, however
   * often it is asked for (ruling C8).
   */
  credit(account: string, amountNanos: bigint, reference: string): Promise<'posted' | 'exists'>
  /** Posts the grant of the current month if it is due, with the lapse of the one before. @returns whether it was due */
  grant(accountId: string): Promise<boolean>
  /** @param wishes its label and bounds, which its successors keep. */
  createKey(account: string, wishes?: KeyWishes): Promise<IssuedKey>
  /** Of all accounts by default. */
  listKeys(account?: string): Promise<KeyRow[]>
  /** If the act has a version, only that one. */
  updateKey(key: string, changes: KeyWishes): Promise<KeyRow>
  /** For good, and again without harm. */
  revokeKey(key: string): Promise<KeyRow>
  /**
   * A new key for the account, with the label, the bounds and the spending of the old one. The old one is good for `graceMs`
   * more, never longer than it already was (ruling R15). A key that has ended has no successor.
   */
  rotateKey(key: string, graceMs: number): Promise<IssuedKey>
  /** Keys of another gateway, with their accounts and people; whole or not at all, and again without harm. */
  importForeign(plan: ForeignImport): Promise<ForeignCounts>
  createPerson(wishes: PersonWishes): Promise<{ id: string }>
  /** If the act has a version, only that one. */
  updatePerson(person: string, wishes: PersonWishes): Promise<PersonRow>
  /** By id, external id, or an e-mail address or name that only one person has. */
  findPerson(person: string): Promise<PersonRow>
  importPersons(lines: readonly PersonLine[]): Promise<ImportCounts>
  /** Makes the second person an identity of the first one. */
  linkPersons(person: string, second: string): Promise<PersonRow>
  /** For good (ruling Y21). Their keys stay, and are nobody's. */
  erasePerson(person: string): Promise<PersonRow>
  /** Ends all their sessions, on all replicas. They may sign in again. */
  signOutPerson(person: string): Promise<PersonRow>
  /** The oldest first, read page by page. */
  eachEntry(filter?: EntryFilter): AsyncIterable<ListedEntry>
  /**
   * Another zone for the days of reports and budgets (ruling X12); the days of reports are made anew. For a file, its lock must be
   * held, see `OpenBooksOptions.isAlone`.
   */
  rezone(timeZone: string): Promise<ZoneChange>
  /** An operator, whose token is shown this once. A name means one live operator. */
  createOperator(name: string, role: OperatorRole, expiresMs: number): Promise<IssuedOperator>
  /** For good, with all that was signed in by the token. */
  revokeOperator(operator: string): Promise<OperatorRow>
  /** A token of one minute, for the command line. */
  makeCommandToken(): Promise<IssuedSession>
  /** @param digest of a token, a key or a cookie. @returns undefined if it is not, or no longer, good for anything. */
  findPrincipal(digest: string, kind: 'bearer' | 'cookie'): Promise<Principal | undefined>
  signIn(whose: Principal): Promise<IssuedSession>
  signInPerson(whose: PersonSession): Promise<IssuedSession>
  /** A token that signs in one browser as an admin, within ten minutes. */
  makeLinkToken(): Promise<IssuedSession>
  /** Signs in by such a token, which is over then. @returns undefined if it is no link, or no longer */
  openLink(digest: string): Promise<IssuedSession | undefined>
  /** Finds the person of an identity, or makes a new one. */
  identifyOperator(who: Parameters<typeof identifyOperator>[0]): Promise<{ personId: string }>
  /** Keeps a late answer of the provider about a session that goes on. */
  keepAnswer(sessionId: string, sealed: string | undefined): Promise<void>
  /** Ends the session of a browser, with its key if it is a person's. @returns it as it was */
  signOut(digest: string): Promise<SessionRow | undefined>
  /** Begins the sign-in of a program: `code` is redeemed once a person has approved it. */
  beginGrant(wishes: GrantWishes): Promise<BegunGrant>
  /** @param asked the user code as a person types it, or the id. @returns undefined if it is unknown or has ended; its state may be any */
  findGrant(asked: string | { id: string }): Promise<GrantRow | undefined>
  /** Keeps who is about to be signed in, sealed, while the grant is pending. */
  holdGrant(id: string, sealed: string): Promise<void>
  /** Once, by the person who has signed in at the provider. @returns the person of the session */
  decideGrant(id: string, decision: SignedIn | 'denied'): Promise<{ personId: string | undefined }>
  pollGrant(code: string, lives: SessionLives): Promise<Redemption>
  redeemCode(code: string, shown: { verifier: string; redirectUri: string }, lives: SessionLives): Promise<Redemption>
  refreshSession(...asked: Parameters<typeof refreshSession>): Promise<Refresh>
  settleRefresh(
    shown: Parameters<typeof settleRefresh>[0],
    word: ProviderWord,
    lives: Parameters<typeof settleRefresh>[2],
  ): Promise<Refresh>
  /** Makes a key for an agent of the person of a session. @throws BookError `no_session` */
  createOwnKey(sessionKeyId: string, name: string): Promise<IssuedKey | 'unconfirmed' | 'many'>
  /** For good, on all replicas, and again without harm. */
  endSession(name: SessionName, why: SessionEnd): Promise<SignInRow | undefined>
  /** Confirms that the clock of the store is right now (ruling Y15). The audit trail keeps that. */
  confirmClock(): Promise<{ time: string }>
  /** Corrects the times of all entries that are ahead of the clock (amends ruling C15). @param lastMs when the last of them counts */
  correctAhead(lastMs: number): Promise<Correction>
  /** Records an act that changes nothing in the books, for the audit alone. */
  noteAct(trail: Trail): Promise<void>
  /** Computes every digest of the audit trail again. Findings in words. An empty list means that it is whole. */
  verifyAudit(): Promise<{ findings: string[]; head: string | undefined }>
}

/** The keys of one line of rotations; an account or a person as a whole where the scope is its id. */
type SpendScope = { accountId: string; scope: string }

/** A store as the books use it: it reads, and it makes changes whole or not at all. It knows no rule of theirs. */
export interface BookStore {
  listAccounts(): Promise<AccountRow[]>
  pageAccounts(page: AccountPage): Promise<AccountRow[]>
  pageKeys(page: KeyPage): Promise<KeyRow[]>
  /** By id, first characters or label: several keys may have one label. At most `keysNamedMax` + 1, those of the label last. */
  findKeys(name: string, accountId?: string): Promise<KeyRow[]>
  /** The debit of a request. */
  findEntry(requestId: string): Promise<ListedEntry | undefined>
  /** The same with its prices, and whether it was given back. */
  findDebit(requestId: string): Promise<FoundDebit | undefined>
  /** The newest first by default. */
  listEntries(which: EntryPage): Promise<ListedEntry[]>
  /**
   * One row for each group that has entries, in the order of the groupings. Without groupings, one row.
   * @param shifts the zone of the days; UTC's without them
   */
  sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): Promise<Total[]>
  /** The models that the ledger has entries of; of those that are folded, while reports leave out the others. */
  listModels(): Promise<string[]>
  /** The zone by whose days figures are kept, and since when. */
  readUsageState(): Promise<UsageState>
  /** How much of the ledger is folded into figures for reports. */
  readFolding(): Promise<FoldProgress>
  /**
   * Figures for reports, as exact as the ledger: what is folded and what is not yet, in one snapshot. While more than
   * `unfoldedMax` entries are not folded, only what is.
   */
  readUsage(question: UsageQuestion): Promise<UsageAnswer>
  /** The names of lines of rotations, by the ids of their first keys: that of the newest key of each. */
  nameLines(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** The people that are meant by ids in entries: identities are the person they belong to, and erased people are nobody. */
  namePersons(ids: readonly string[]): Promise<ReadonlyMap<string, { id: string; name: string }>>
  /** The lines of those keys that are not the first ones of theirs. */
  findLines(keys: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Those of the lines, by the ids of their first keys, that have a key of ours which is not revoked. */
  findRotated(scopes: readonly string[]): Promise<ReadonlySet<string>>
  /** The ids of the keys of a line of rotations. */
  listLine(scope: string): Promise<string[]>
  /** Sums the entries of an account in a month. Reads no others. */
  sumMonth(month: StatementMonth): Promise<StatementSums>
  /** A head of a moment that is over, as `audit` would have made it then. */
  makeHead(momentMs: number): Promise<string>
  /** The same from a statement that is kept, of a month by the days of a zone. */
  findHead(month: string, timeZone: string): Promise<string | undefined>
  /** The header of a closed month's statement. */
  readHeader(accountId: string, month: string): Promise<StatementHeader | undefined>
  /** Keeps a header for good. @returns the one that is kept */
  keepHeader(accountId: string, month: string, header: StatementHeader): Promise<StatementHeader>
  /** Those that spent most first, equal ones by id; as `readUsage` does while much is not folded. */
  rankSpent(ranking: SpendRanking): Promise<RankedSpend[]>
  /** The whole cost of a key, in nano-credits, less what was given back. */
  readSpent(accountId: string, keyId: string): Promise<bigint>
  /** Findings in words. An empty list means that the books are right. */
  verify(options: VerifyOptions): Promise<string[]>
  /** Verifies. Without a finding it also makes a head of the entries that it read, and stores the head's moment (ruling C15). */
  audit(options: VerifyOptions): Promise<Audited>
  findPersons(asked: readonly string[]): Promise<PersonRow[]>
  pagePersons(page: PersonPage): Promise<PersonRow[]>
  listOperators(): Promise<OperatorRow[]>
  /** Sessions of people, the newest first. */
  pageSessions(page: SessionPage): Promise<ListedSession[]>
  findOauthGrant(by: { id: string } | { digest: string } | { user_digest: string }): Promise<GrantRow | undefined>
  /** Sets what the store warns of from now on (ruling X15), for entries of every server. */
  watch(what: Watched): Promise<void>
  /** Warnings that are due. Nobody else is given them for so long. */
  takeWarnings(leaseMs: number, limit: number): Promise<StoredWarning[]>
  /** Notes what became of a warning: all have got it, or it is tried again. */
  settleWarning(id: string, next: { tries: string; afterMs: number } | undefined): Promise<void>
  /**
   * Remembers the lines of the list of needs that a server finds now (src/store/sql/needs.ts).
   * @param isTelling whether new ones are sent to webhooks @returns since when each is there, in Unix milliseconds
   */
  noteNeeds(needs: readonly NoticedNeed[], isTelling: boolean): Promise<ReadonlyMap<string, number>>
  /** Entries that are ahead of the clock and that no correction names. */
  listAhead(): Promise<AheadAccount[]>
  /** Some entries of such an account, also after its correction. */
  pageAhead(page: AheadPage): Promise<AheadEntry[]>
  /** Months that were detached, the oldest first (src/accounts/archive.ts). */
  listArchives(): Promise<Archive[]>
  /** The debit of a request that is or was away, as far as the index of archived entries has it. */
  findArchived(requestId: string): Promise<ArchivedEntry | undefined>
  /** Records of the audit trail, the newest first. @param beyond only records before this number */
  listAudit(which: AuditFilter & { limit: number; beyond?: number | undefined }): Promise<AuditRow[]>
  /**
   * In one transaction that nobody else's writes come between: finds what the change asks about, lets it decide, and
   * writes what it says. @throws what `decide` throws, with nothing written.
   */
  change<T>(change: BookChange<T>): Promise<T>
  /** Its time, see `Facts`. */
  readNowMs(): Promise<number>
  findAccount(idOrName: string): Promise<AccountRow | undefined>
  listKeys(accountId?: string): Promise<KeyRow[]>
  /** Sums what the keys of this scope have spent in the span, up to the last entry of their account by now. */
  sumSpend(of: SpendScope & TimeSpan): Promise<SpendBase>
  /** Sums what people have spent in an account in the span, by the ids that its entries name. */
  sumPersons(of: { accountId: string } & TimeSpan): Promise<Pick<PersonSums, 'spent' | 'throughSeq'>>
  /** Finds the last monthly grant of an account, and sums what was spent of it if it lapses. Undefined if there was none. */
  sumGrant(accountId: string): Promise<GrantBase | undefined>
  findOperator(by: { id: string } | { digest: string }): Promise<OperatorRow | undefined>
  findKeyByDigest(digest: string): Promise<KeyRow | undefined>
  findSession(digest: string): Promise<SessionRow | undefined>
  /** Notes that it was used. */
  touchSession(digest: string, seenMs: number): Promise<void>
}

/** The act of triwire itself, which changes some things without an operator. */
const nobody: Act = { actor: 'triwire' }

/** @param nowMs Unix milliseconds. @param calendar of the reporting zone: whose days budgets are of. */
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
    as: (other) => createBooks(store, nowMs, other, calendar),
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
    keepAnswer: (sessionId, sealed) => change(keepAnswer(sessionId, sealed)),
    signOut: async (digest) => {
      const session = await store.findSession(digest)
      const key = session?.personId === undefined ? undefined : await findKeyById(store, session.keyId)
      if (key?.session !== undefined) await change(endSession({ keyId: key.id }, 'signed_out'))
      if (session) await change(signOut(digest))
      return session
    },
    ...signInBooks(store, change, counting),
    confirmClock: () => change(confirmClock()),
    correctAhead: (lastMs) => change(correctAhead(lastMs, calendar)),
    noteAct: (trail) => change({ about: {}, decide: () => ({ writes: [], result: undefined, trail, isAct: true }) }),
    verifyAudit: () => verifyAudit(store),
  }

  async function grant(accountId: string): Promise<boolean> {
    for (;;) {
      const result = await change(postGrant(accountId, calendar, await store.sumGrant(accountId)))
      if (result !== 'again') return result === 'posted'
    }
  }

  /** Sums up what the change needs before anything is locked, and then makes it. */
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

  /** Before anything is locked: of a budget for ever it is all that the key or the account has ever spent. */
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
function signInBooks(store: BookStore, change: PlainChange, counting: CountedChange) {
  return {
    beginGrant: (wishes) => change(beginGrant(wishes)),
    holdGrant: (id, sealed) => change(holdGrant(id, sealed)),
    findGrant: async (asked) => {
      const by = typeof asked === 'string' ? { user_digest: digestUserCode(asked) ?? '' } : asked
      const grant = await store.findOauthGrant(by)
      return grant && !hasEnded(grant.expiresMs, await store.readNowMs()) ? grant : undefined
    },
    decideGrant: (id, decision) => counting((counted) => decideGrant(id, decision, counted)),
    // Codes that there are not, which anybody may send, wait for no change and hold up none.
    pollGrant: async (code, lives) =>
      (await hasCode(code)) ? change(pollGrant(code, lives)) : { error: 'expired_token' },
    redeemCode: async (code, shown, lives) =>
      (await hasCode(code)) ? change(redeemCode(code, shown, lives)) : { error: 'invalid_grant' },
    refreshSession: (...asked) => change(refreshSession(...asked)),
    settleRefresh: (...asked) => counting((counted) => settleRefresh(...asked, counted)),
    createOwnKey: (sessionKeyId, name) => change(createOwnKey(sessionKeyId, name)),
    endSession: (name, why) => change(endSession(name, why)),
  } satisfies Partial<Books>

  async function hasCode(code: string): Promise<boolean> {
    return (await store.findOauthGrant({ digest: digestKey(code) })) !== undefined
  }
}

/** Entries of a page: to read so many takes some milliseconds. */
const entriesAtOnce = 500

/** See `Books.eachEntry`. */
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
    if (session.kind !== (kind === 'cookie' ? 'cookie' : 'command') || isLink(session)) return undefined
    const isOver = hasEnded(session.expiresMs, nowMs) || (kind === 'cookie' && nowMs >= session.seenMs + sessionIdleMs)
    if (isOver) return undefined
    if (nowMs - session.seenMs >= seenLagMs) await store.touchSession(digest, nowMs)
    const { actor, operatorId, personId, keyId, expiresMs } = session
    if (actor !== undefined) return { kind: 'operator', actor, name: actor, role: 'admin', expiresMs, operatorId }
    if (operatorId !== undefined) return asOperator(await store.findOperator({ id: operatorId }), nowMs)
    if (personId !== undefined) return asPerson(store, { ...session, personId }, nowMs)
    return asOwner(store, await findKeyById(store, keyId), nowMs)
  }
  if (kind === 'cookie') return undefined
  const operator = asOperator(await store.findOperator({ digest }), nowMs)
  return operator ?? asOwner(store, await store.findKeyByDigest(digest), nowMs)
}

function asOperator(row: OperatorRow | undefined, nowMs: number): Principal | undefined {
  if (!row || row.revokedMs !== undefined || hasEnded(row.expiresMs, nowMs)) return undefined
  const { id, name, expiresMs } = row
  return { kind: 'operator', actor: `operator:${name}`, name, role: roleOf(row), expiresMs, operatorId: id }
}

/** A person who has signed in at the provider, for as long as nobody has erased them. */
async function asPerson(
  store: BookStore,
  { personId, keyId, role, expiresMs }: SessionRow & { personId: string },
  nowMs: number,
): Promise<Principal | undefined> {
  const person = (await store.findPersons([personId])).find(({ id }) => id === personId)
  if (!person || person.erasedMs !== undefined) return undefined
  if (keyId !== undefined) {
    const owner = await asOwner(store, await findKeyById(store, keyId), nowMs)
    return owner && { ...owner, role: role === 'lead' ? 'lead' : 'member' }
  }
  const operatorRole = operatorRoles.find((one) => one === role)
  if (!operatorRole) return undefined
  const name = person.name ?? person.email ?? personId
  return { kind: 'operator', actor: `person:${personId}`, name, role: operatorRole, expiresMs, operatorId: undefined }
}

/** Another key may be called what this one's id is. */
async function findKeyById(store: BookStore, keyId: string | undefined): Promise<KeyRow | undefined> {
  const keys = keyId === undefined ? [] : await store.findKeys(keyId)
  return keys.find(({ id }) => id === keyId)
}

async function asOwner(
  store: BookStore,
  key: KeyRow | undefined,
  nowMs: number,
): Promise<Extract<Principal, { kind: 'owner' }> | undefined> {
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
