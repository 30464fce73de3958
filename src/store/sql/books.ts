import {
  type AccountRow,
  type KeyPage,
  type KeyRow,
  keysNamedMax,
  readAccountRow,
  readKeyRow,
} from '../../accounts/book-rows.ts'
import type { BookWrite, ChangeScope, Facts } from '../../accounts/book-rules.ts'
import type { BookStore } from '../../accounts/books.ts'
import type { Budget } from '../../accounts/budget.ts'
import type { AheadAccount, AheadEntry, AheadPage } from '../../accounts/entries.ts'
import { accountBounds } from '../../accounts/key-bounds.ts'
import type { OperatorRow } from '../../accounts/operators.ts'
import type { PersonKeys, PersonPage, PersonRow } from '../../accounts/persons.ts'
import { columnsOf, registers } from '../../accounts/registers.ts'
import type { SessionPage } from '../../accounts/sign-in/rows.ts'
import { placeAudit } from '../../accounts/trail.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { findArchived, readArchives } from './archives.ts'
import { selectBudgeted } from './budgeted.ts'
import { type Dialect, insert, isOneOf, type Put, update } from './dialect.ts'
import { findGrants, listReferences, sumGrant } from './grants.ts'
import { pageKeys } from './key-pages.ts'
import { lowerMoment, readClock, readNowMs } from './moments.ts'
import { noteNeeds } from './needs.ts'
import {
  lowerAscii,
  selectAccountPage,
  selectAudit,
  selectIdentity,
  selectKey,
  selectPersonPage,
  selectPersons,
  selectRegister,
  whereAll,
  writeStatements,
} from './registers.ts'
import { findGrant, findSignIn, pageSessions } from './sign-ins.ts'
import { keysWithSpends, lockAccount, setSpend, sumPersons, sumSpend } from './spends.ts'
import { createStatements } from './statements.ts'
import { all, ask, askOne, execute, first, type Query, query, rowsOf, runAll, type StoreStep } from './step.ts'
import { foldAnew, readUsageState, rezone } from './usage-keep.ts'
import { createWarnings, rearm } from './warnings.ts'
import { slices } from './words.ts'

/** The queries of the books (see `BookStore`). Queries of entries, and of figures for reports, are in other files. */
export function createQuestions(dialect: Dialect) {
  return {
    readNowMs: () => readNowMs(dialect),
    findAccount: (idOrName: string) => first(selectAccounts(dialect, idOrName)),
    listAccounts: () => all(query(dialect, readAccountRow, () => `${dialect.accounts()} ORDER BY a.created_ms, a.id`)),
    pageAccounts: (page: Parameters<typeof selectAccountPage>[1]) => all(selectAccountPage(dialect, page)),
    pageKeys: (page: KeyPage) => pageKeys(dialect, page),
    listKeys: (accountId?: string) =>
      all(selectKeys(dialect, accountId === undefined ? {} : { account_id: accountId })),
    findKeys: (name: string, accountId?: string) =>
      all(selectKeys(dialect, { id: name, prefix: name, label: name }, { accountId, most: keysNamedMax + 1 })),
    sumGrant: (accountId: string) => sumGrant(dialect, accountId),
    sumSpend: (of: Parameters<typeof sumSpend>[1]) => sumSpend(dialect, of),
    sumPersons: (of: Parameters<typeof sumPersons>[1]) => sumPersons(dialect, of),
    findPersons: (asked: readonly string[]) => all(selectPersons(dialect, asked)),
    pagePersons: (page: PersonPage) => all(selectPersonPage(dialect, page)),
    listOperators: () => all(selectRegister(dialect, 'operators', {}, { order: 'ORDER BY created_ms, id' })),
    findOperator: (by: { id: string } | { digest: string }) => first(selectRegister(dialect, 'operators', by)),
    findKeyByDigest: (digest: string) => first(selectKey(dialect, 'digest', digest)),
    findSession: (digest: string) => first(selectSession(dialect, digest)),
    touchSession: (digest: string, seenMs: number) =>
      runAll([update(dialect, 'sessions', { seen_ms: seenMs }, { digest })]),
    findOauthGrant: (by: { id: string } | { digest: string } | { user_digest: string }) =>
      first(selectRegister(dialect, 'oauth_grants', by)),
    pageSessions: (page: SessionPage) => pageSessions(dialect, page),
    listAhead: () => listAhead(dialect),
    pageAhead: (which: AheadPage) => pageAhead(dialect, which),
    listArchives: () => readArchives(dialect),
    findArchived: (requestId: string) => findArchived(dialect, requestId),
    listAudit: (which: Parameters<typeof selectAudit>[1]) => all(selectAudit(dialect, which)),
    ...createWarnings(dialect),
    noteNeeds: (...[needs, isTelling]: Parameters<BookStore['noteNeeds']>) => noteNeeds(dialect, needs, isTelling),
    ...createStatements(dialect),
  }
}

/** Selects an account by id or name. An account with this id comes before an account with this name. */
function selectAccounts(dialect: Dialect, idOrName: string): Query<AccountRow> {
  return query(dialect, readAccountRow, (put) => {
    const asked = put(idOrName)
    return `${dialect.accounts()} WHERE a.id = ${asked} OR a.name = ${asked} ORDER BY a.id = ${asked} DESC`
  })
}

/**
 * Selects all keys, or the keys that match any of the values in `by`.
 * @param most the most keys to return. Keys that match only by their label come last
 */
function selectKeys(
  dialect: Dialect,
  by: { account_id?: string; id?: string; prefix?: string; label?: string },
  { accountId, most }: { accountId?: string | undefined; most?: number } = {},
): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const is = ([column, value]: [string, string]) =>
      isIndexedLower[column]
        ? `(lower(${column}) = ${put(lowerAscii(value))} AND ${column} = ${put(value)})`
        : `${column} = ${put(value)}`
    const parts = Object.entries(by).map(is)
    const any = parts.length > 0 ? [`(${parts.join(' OR ')})`] : []
    const where = whereAll(accountId === undefined ? any : [...any, `account_id = ${put(accountId)}`])
    const isLast = by.label === undefined ? '' : `(id <> ${put(by.label)} AND prefix <> ${put(by.label)}),`
    const limit = most === undefined ? '' : `ORDER BY ${isLast} created_ms, id LIMIT ${most}`
    const found = `(SELECT * FROM ${dialect.schema}.keys ${where} ${limit})`
    return `SELECT * FROM ${keysWithSpends(dialect, found)} ORDER BY created_ms, id`
  })
}

/** Columns that are indexed only in lower case. */
const isIndexedLower: Readonly<Record<string, boolean>> = { prefix: true, label: true }

/** Reads the facts that decide a change of the books (accounts, keys and credit), in the transaction of the change. */
export function* findFacts(dialect: Dialect, about: ChangeScope): StoreStep<Facts> {
  const { accountName, key, reference, operator, persons: asked, once, identity } = about
  // This locks the account, so it comes before the account's balance is read.
  const grants = about.grants && (yield* findGrants(dialect, about.grants))
  const oauthGrant = about.oauthGrant && (yield* findGrant(dialect, about.oauthGrant))
  const signIn = about.signIn && (yield* findSignIn(dialect, about.signIn))
  const account = about.account ?? oauthGrant?.accountId ?? signIn?.signIn.accountId
  const whose = asked ?? (signIn && [signIn.signIn.personId])
  const persons = identity
    ? yield* all(selectIdentity(dialect, identity))
    : whose === undefined
      ? []
      : yield* all(selectPersons(dialect, whose))
  const accounts: AccountRow[] = []
  for (const name of about.accounts ?? []) accounts.push(...(yield* all(selectAccounts(dialect, name))))
  const keys = key === undefined ? [] : yield* all(selectKeys(dialect, { id: key, prefix: key }))
  const named = (put: Put) => `${dialect.accounts()} WHERE a.name = ${put(accountName!)}`
  return {
    account: account === undefined ? undefined : yield* first(selectAccounts(dialect, account)),
    accountNamed: accountName === undefined ? undefined : yield* first(query(dialect, readAccountRow, named)),
    keys,
    isRotated: keys[0] !== undefined && (yield* hasSuccessor(dialect, keys[0])),
    credit: reference === undefined ? undefined : yield* findCredit(dialect, reference),
    digests: about.digests && (yield* findTaken(dialect, 'keys', 'digest', about.digests)),
    references: about.references && (yield* findTaken(dialect, 'credits', 'reference', about.references)),
    operators: operator === undefined ? [] : yield* all(namedOperators(dialect, operator)),
    ...{
      persons,
      personKeys: asked === undefined && !identity ? [] : yield* findPersonKeys(dialect, persons),
      accounts,
    },
    made: once && (yield* first(selectRegister(dialect, 'made', { actor: once.actor, once: once.key }))),
    session: about.session === undefined ? undefined : yield* first(selectSession(dialect, about.session)),
    grants,
    reporting: about.reporting && (yield* findReporting(dialect)),
    clock: about.isDated && (yield* readClock(dialect)),
    ...{ oauthGrant, signIn },
    nowMs: yield* readNowMs(dialect),
    ...(about.ahead && (yield* findAhead(dialect))),
  }
}

/**
 * Finds entries that a wrong clock dated in the future and that are not corrected yet. Also returns the budgets and
 * grants of their accounts, and all budgets whose current period begins in the future. `nowMs` is the time for which
 * all of this was found.
 */
function* findAhead(dialect: Dialect): StoreStep<Pick<Facts, 'ahead' | 'aheadBudgets' | 'aheadGrants' | 'nowMs'>> {
  const nowMs = yield* readNowMs(dialect)
  const ahead = yield* listAhead(dialect, nowMs)
  const ids = new Set(ahead.map(({ accountId }) => accountId))
  const rows = yield* ask(
    dialect,
    (put) => `SELECT DISTINCT b.account_id, b.scope, b.budget_per, s.from_ms > ${put(nowMs)} AS begins
      FROM (${selectBudgeted(dialect.schema)}) b LEFT JOIN ${dialect.schema}.spends s ON s.scope = b.scope`,
  )
  const budgets = rows.filter(({ account_id, begins }) => Boolean(Number(begins)) || ids.has(account_id as string))
  const aheadBudgets = budgets.map(({ account_id, scope, budget_per }) => ({
    ...{ accountId: account_id as string, scope: scope as string },
    per: (budget_per ?? undefined) as Budget['per'],
  }))
  const aheadGrants: { accountId: string; references: string[] }[] = []
  for (const { accountId } of ahead.filter(({ hasGrant }) => hasGrant))
    aheadGrants.push({ accountId, references: yield* listReferences(dialect, 'grant', accountId) })
  return { ahead, aheadBudgets, aheadGrants, nowMs }
}

/**
 * Lists accounts with entries that are dated after the store's time and are not corrected yet. The time is a value of
 * the statement. If it were the result of a function, PostgreSQL could not use the index of times, and would read the
 * whole ledger.
 * @param atMs the store's time, if the caller has read it
 */
function* listAhead(dialect: Dialect, atMs?: number): StoreStep<AheadAccount[]> {
  const { schema } = dialect
  const nowMs = atMs ?? (yield* readNowMs(dialect))
  const rows = yield* ask(dialect, (put) => {
    const now = `CAST(${put(nowMs)} AS bigint)`
    return `SELECT t.*, a.name,
        coalesce((SELECT CASE WHEN p.kind = 'credit' AND p.effective IS NOT NULL THEN p.created_ms ELSE p.posted_ms END
          FROM ${schema}.entries p WHERE p.account_id = t.account_id AND p.seq = t.from_seq - 1), a.created_ms, 0) AS after_ms
      FROM (SELECT e.account_id, min(e.seq) AS from_seq, max(e.seq) AS to_seq,
          min(CASE WHEN e.created_ms > ${now} THEN e.created_ms END) AS moved_first,
          max(CASE WHEN e.created_ms > ${now} THEN e.created_ms END) AS moved_last,
          max(CASE WHEN e.created_ms <= ${now} THEN e.created_ms END) AS kept,
          max(CASE WHEN substr(e.reference, 1, length(e.account_id) + 7) = 'grant:' || e.account_id || '/' THEN 1 ELSE 0 END) AS has_grant
        FROM ${schema}.entries e
        WHERE e.posted_ms > ${now} AND NOT EXISTS (
          SELECT 1 FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq)
        GROUP BY e.account_id) t
      LEFT JOIN ${schema}.accounts a ON a.id = t.account_id ORDER BY t.account_id`
  })
  const ms = (value: unknown) => (value === null ? undefined : Number(value))
  return rows.map(({ account_id, name, from_seq, to_seq, moved_first, moved_last, kept, after_ms, has_grant }) => ({
    ...{ accountId: account_id as string, accountName: (name as string | null) ?? undefined },
    ...{ fromSeq: Number(from_seq), toSeq: Number(to_seq), keptMs: ms(kept), afterMs: Number(after_ms) },
    moved: moved_last === null ? undefined : { firstMs: Number(moved_first), lastMs: Number(moved_last) },
    hasGrant: Number(has_grant) === 1,
  }))
}

/** Reads a page of an account's entries in the order of their numbers. A corrected entry has its corrected time too. */
function* pageAhead(dialect: Dialect, { accountId, afterSeq, toSeq, limit }: AheadPage): StoreStep<AheadEntry[]> {
  const { schema } = dialect
  const rows = yield* ask(
    dialect,
    (put) => `SELECT e.seq, e.created_ms, e.posted_ms, coalesce(e.request_id, e.reference) AS what, s.effective_ms
      FROM ${schema}.entries e LEFT JOIN ${schema}.shifted s ON s.account_id = e.account_id AND s.seq = e.seq
      WHERE e.account_id = ${put(accountId)} AND e.seq > ${put(afterSeq)} AND e.seq <= ${put(toSeq)} ORDER BY e.seq LIMIT ${put(limit)}`,
  )
  return rows.map(({ seq, created_ms, posted_ms, what, effective_ms }) => ({
    ...{ seq: Number(seq), createdMs: Number(created_ms), postedMs: Number(posted_ms), name: what as string },
    effectiveMs: effective_ms === null ? undefined : Number(effective_ms),
  }))
}

function* shiftEntries(
  dialect: Dialect,
  { accountId, fromSeq, toSeq, nowMs, shiftMs }: Extract<BookWrite, { kind: 'shift_entries' }>,
): StoreStep<void> {
  const { schema } = dialect
  yield* execute(
    dialect,
    (put) => `INSERT INTO ${schema}.shifted (account_id, seq, posted_ms, effective_ms)
      SELECT account_id, seq, posted_ms,
        CASE WHEN created_ms > ${put(nowMs)} THEN created_ms - ${put(shiftMs)} ELSE created_ms END
      FROM ${schema}.entries WHERE account_id = ${put(accountId)} AND seq >= ${put(fromSeq)} AND seq <= ${put(toSeq)}`,
  )
}

function selectSession(dialect: Dialect, digest: string) {
  return selectRegister(dialect, 'sessions', { digest })
}

function namedOperators(dialect: Dialect, name: string): Query<OperatorRow> {
  return selectRegister(dialect, 'operators', { id: name, name }, { word: 'OR', order: 'ORDER BY created_ms, id' })
}

function* findPersonKeys(dialect: Dialect, persons: readonly PersonRow[]): StoreStep<PersonKeys[]> {
  // More than a hundred ids would be too many values for one statement.
  const ids = persons.length > 100 ? undefined : persons.map(({ id }) => id)
  const rows = yield* ask(dialect, (put) => {
    const whose = ids ? isOneOf(put, 'person', ids) : 'person IS NOT NULL'
    const isOver = `revoked_ms IS NOT NULL OR (session IS NOT NULL AND expires_ms <= ${dialect.now(put)})`
    return `SELECT person, account_id, min(CASE WHEN ${isOver} THEN 1 ELSE 0 END) AS is_over
      FROM ${dialect.schema}.keys WHERE ${whose} GROUP BY person, account_id`
  })
  return rows.map(({ person, account_id, is_over }) => ({
    ...{ personId: person as string, accountId: account_id as string, isOver: Number(is_over) === 1 },
  }))
}

/** Whether a key was rotated: its line (the keys with the same `scope`) has a later key. */
function* hasSuccessor(dialect: Dialect, { id, scope, createdMs }: KeyRow): StoreStep<boolean> {
  // If a clock was set back, the first key of a line may have a later time than its successors.
  const later = (put: Put) => (id === scope ? '' : `AND id <> scope AND created_ms > ${put(createdMs)}`)
  const next = (put: Put) =>
    `SELECT id FROM ${dialect.schema}.keys WHERE scope = ${put(scope)} AND id <> ${put(id)} ${later(put)} LIMIT 1`
  return (yield* ask(dialect, next)).length > 0
}

/** Finds the values that already occur in this column of the table. */
function* findTaken(
  dialect: Dialect,
  table: 'keys' | 'credits',
  column: string,
  values: readonly string[],
): StoreStep<ReadonlySet<string>> {
  const from = table === 'keys' ? `${dialect.schema}.keys` : dialect.credits
  const taken = new Set<string>()
  for (const list of slices(values))
    for (const row of yield* ask(dialect, (put) => `SELECT ${column} FROM ${from} WHERE ${isOneOf(put, column, list)}`))
      taken.add(row[column] as string)
  return taken
}

function* findCredit(dialect: Dialect, reference: string): StoreStep<Facts['credit']> {
  const select = (put: Put) => `SELECT account_id, amount FROM ${dialect.credits} WHERE reference = ${put(reference)}`
  const row = yield* askOne(dialect, select)
  return row && { accountId: row['account_id'] as string, amountNanos: row['amount'] as bigint }
}

/** Reads the time zone of reports for a change, and locks its row. A server that starts meanwhile waits. */
function* findReporting(dialect: Dialect): StoreStep<Facts['reporting']> {
  const state = yield* readUsageState(dialect, 'UPDATE')
  const { livingReplicas } = dialect
  const servers = livingReplicas === undefined ? [] : yield* ask(dialect, () => livingReplicas)
  const names = servers.map(({ id, name }) => `${name} (${id})`)
  return { timeZone: state.timeZone, isRecorded: isRecorded(state), servers: names }
}

function rowOfAccount(account: AccountRow) {
  return { ...columnsOf(registers.accounts, account), ...accountBounds.values(account.bounds) }
}

/**
 * Executes a write that a change has decided, in the transaction of the change. Credits are posted elsewhere, by the
 * code of each engine.
 */
export function* make(dialect: Dialect, write: Exclude<BookWrite, { kind: 'post_credit' }>): StoreStep<void> {
  switch (write.kind) {
    case 'insert_account':
      yield* rowsOf(insert(dialect, 'accounts', { ...rowOfAccount(write.account), revision: 0 }))
      if (dialect.isShared) yield* rowsOf(insert(dialect, 'balances', { account_id: write.account.id }))
      return
    case 'set_zone':
      return yield* rezone(dialect, { timeZone: write.timeZone })
    case 'shift_entries':
      return yield* shiftEntries(dialect, write)
    case 'count_anew':
      yield* lowerMoment(dialect, write.nowMs)
      return yield* foldAnew(dialect, yield* readUsageState(dialect, 'UPDATE'))
    case 'lock_accounts':
      for (const id of [...new Set(write.ids)].sort()) yield* lockAccount(dialect, id)
      return
    case 'set_person_bounds':
      yield* runAll(writeStatements(dialect, write))
      return yield* rearm(dialect, write.personId)
    case 'set_spend':
      return yield* setSpend(dialect, write)
    case 'clear_spend':
      yield* lockAccount(dialect, write.accountId)
      return yield* execute(dialect, (put) => `DELETE FROM ${dialect.schema}.spends WHERE scope = ${put(write.scope)}`)
    case 'set_account':
      // The lock keeps debits of the account from being posted with the old limits.
      if (write.bounds) yield* lockAccount(dialect, write.accountId)
      yield* runAll(writeStatements(dialect, write))
      return write.bounds && (yield* rearm(dialect, write.accountId))
    case 'set_bounds':
      // The lock keeps debits of the account from being posted with the old limits of its keys.
      yield* lockAccount(dialect, write.accountId)
      yield* runAll(writeStatements(dialect, write))
      return yield* rearm(dialect, write.scope)
    case 'post_audit': {
      const last = yield* first(selectAudit(dialect, { limit: 1 }))
      const placed = placeAudit(write.row, write.nowMs, last)
      return yield* runAll([insert(dialect, 'audit', columnsOf(registers.audit, placed))])
    }
    default:
      return yield* runAll(writeStatements(dialect, write))
  }
}
