import { personPrefix } from '../../accounts/book-rows.ts'
import type { SpendBase } from '../../accounts/book-rules.ts'
import { type Budget, type Spend, spanOf, type TimeSpan } from '../../accounts/budget.ts'
import { createCalendar } from '../../accounts/calendar.ts'
import { clampNanos } from '../../accounts/credit.ts'
import { personBounds } from '../../accounts/key-bounds.ts'
import type { SpendRow } from '../../accounts/verify/spends.ts'
import { kindOfScope } from '../../accounts/warnings.ts'
import { isAwaySql, isHere, listAway, readAwaySums } from './archives.ts'
import { isSpending } from './budgeted.ts'
import { type Dialect, insert, type Put } from './dialect.ts'
import { countedMs } from './entries.ts'
import { readMoved } from './moments.ts'
import { ask, askOne, inTransaction, rowsOf, type StoreStep } from './step.ts'
import { readUsageState } from './usage-keep.ts'
import { rearm } from './warnings.ts'

/* The spend of keys, accounts and people with budgets (rulings R15, Y20), in statements that work on both databases. */

/**
 * Returns SQL for a table of keys with further columns. These are the names of account and person, the holds on the
 * budgets, and the spend of the key's line and of the person. A line is all keys that replaced each other.
 *
 * PostgreSQL computes these columns even for rows that an outer condition or LIMIT leaves out, because `heldByReplicas`
 * reads the clock.
 * @param keys the table, or a SELECT of the wanted keys in parentheses
 */
export function keysWithSpends({ schema, isShared }: Dialect, keys = `${schema}.keys`): string {
  const held = isShared ? heldByReplicas('coalesce(k.scope, k.id)') : 'NULL'
  const heldByPerson = isShared ? `CASE WHEN k.person IS NOT NULL THEN ${heldByReplicas('p.id')} END` : 'NULL'
  return `(SELECT k.*, s.from_ms, s.until_ms, s.spent, ${held} AS held,
      (SELECT a.name FROM ${schema}.accounts a WHERE a.id = k.account_id) AS account_name,
      p.name AS person_name, ${personColumns},
      t.from_ms AS ${personPrefix}from_ms, t.until_ms AS ${personPrefix}until_ms, t.spent AS ${personPrefix}spent,
      ${heldByPerson} AS ${personPrefix}held
    FROM ${keys} k LEFT JOIN ${schema}.spends s ON s.scope = coalesce(k.scope, k.id)
      LEFT JOIN ${schema}.persons p ON p.id = k.person LEFT JOIN ${schema}.spends t ON t.scope = p.id) keys`
}

/**
 * How long the key of a sign-in that has ended is still read with its account, in ms, because clocks may differ. Without
 * a limit, the keys of all past sign-ins would be read at each change of their account.
 */
const endedKeptMs = 86_400_000

/** SQL: whether a key `k` is read with its account. @param nowMs SQL: the time of the store, in Unix milliseconds */
export function isKeyRead(k: string, nowMs: string): string {
  const isOpen = `${k}.session IS NULL OR ${k}.expires_ms IS NULL OR ${k}.expires_ms > ${nowMs} - ${endedKeptMs}`
  return `${k}.revoked_ms IS NULL AND (${isOpen})`
}

/** The columns of a person `p` with the person's limits. Their names differ from those of a key's limits. */
export const personColumns = Object.keys(personBounds.columns)
  .map((name) => `p.${name} AS ${personPrefix}${name}`)
  .join(', ')

/** How long a replica counts as alive after its last heartbeat, in ms. After that, credit that it holds is free. */
export const leaseMs = 10_000

/**
 * SQL: whether a server was seen in the last `ms`. A time up to `ms` in the future also counts. A time further ahead
 * was written before the clock was set back, so it does not count (SCA-13).
 * @param seen an expression in Unix milliseconds
 * @param nowMs an expression of the database's time, in Unix milliseconds
 */
export function wasSeen(seen: string, ms: number | string, nowMs = 'triwire.now_ms()'): string {
  return `(${seen} > ${nowMs} - ${ms} AND ${seen} <= ${nowMs} + ${ms})`
}

/** SQL for PostgreSQL: the sum of the credit that all living replicas hold for a scope, computed as in `admit`. */
export function heldByReplicas(scope: string): string {
  return `(SELECT sum(h.held)::bigint FROM triwire.shares h JOIN triwire.present r ON r.replica = h.replica
    WHERE h.scope = ${scope} AND ${wasSeen('r.seen_ms', leaseMs)})`
}

/** The spend of a scope in a time span. The scope is the id of an account, a person or a line of rotated keys. */
type SpendOf = { accountId: string; scope: string } & TimeSpan

/** Entries of an account whose numbers are above `after`, up to and including `through`. */
type SpendSlice = SpendOf & { after: number; through: number }

/**
 * Sums the debits of a slice, less the reversals. Only entries of the slice's scope and time span count. `first` is the
 * earliest posting time in the whole slice.
 */
function sumSlice({ schema }: Dialect, { accountId, scope, after, through, fromMs, untilMs }: SpendSlice) {
  const conditions = {
    account: () => isSpending,
    key: () => '(k.id IS NOT NULL)',
    person: (put: Put) => isOfPerson(schema, put(scope)),
  }
  const counts = conditions[kindOfScope(scope)]
  return (put: Put) => `SELECT min(e.posted_ms) AS first, CAST(sum(
        CASE WHEN ${countedMs(schema)} < ${put(fromMs)} OR ${countedMs(schema)} >= ${put(untilMs)} OR NOT ${counts(put)} THEN 0
          WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END) AS bigint) AS spent
      FROM ${schema}.entries e
      LEFT JOIN ${schema}.keys k ON k.id = e.key_id AND coalesce(k.scope, k.id) = ${put(scope)}
      WHERE e.account_id = ${put(accountId)} AND e.seq > ${put(after)} AND e.seq <= ${put(through)} AND ${isHere(schema)}`
}

/** SQL: the ids by which entries name the person. These are the person's own id and those of their further identities. */
export function idsOfPerson(schema: string, person: string): string {
  return `SELECT p.id FROM ${schema}.persons p WHERE ${person} IN (p.id, p.linked_id)`
}

/** SQL: whether an entry names any identity of the person. */
function isOfPerson(schema: string, person: string, e = 'e'): string {
  return `(${e}.person IS NOT NULL AND ${e}.person IN (${idsOfPerson(schema, person)}))`
}

/** Returns the number of the account's last entry; 0 if the account has none. */
export function* readLastSeq(dialect: Dialect, accountId: string): StoreStep<number> {
  const select = (put: Put) => `SELECT seq FROM ${dialect.ends} e WHERE e.account_id = ${put(accountId)}`
  return Number((yield* askOne(dialect, select))?.['seq'] ?? 0)
}

/** The most entries in one statement, which takes far less than a second. */
export const sliceMax = 20_000

/**
 * Sums the spend of a time span, slice by slice from the account's last entry backwards. It stops at the start of the
 * time span.
 * @param afterSeq only entries above this number count
 */
export function* sumSpend(dialect: Dialect, of: SpendOf, afterSeq = 0): StoreStep<SpendBase & { throughSeq: number }> {
  return yield* whileSame(dialect, (away) => sumSlices(dialect, of, afterSeq, away))
}

/**
 * Computes a sum, and repeats it if a month was detached or attached meanwhile.
 * @param sum receives the detached months as a string
 */
function* whileSame<T>(dialect: Dialect, sum: (away: string) => StoreStep<T>): StoreStep<T> {
  for (;;) {
    const away = yield* listAway(dialect)
    const result = yield* sum(away)
    if ((yield* listAway(dialect)) === away) return result
  }
}

function* sumSlices(
  dialect: Dialect,
  of: SpendOf,
  afterSeq: number,
  away: string,
): StoreStep<SpendBase & { throughSeq: number }> {
  const isAll = away !== '' && afterSeq === 0 && of.fromMs === 0
  const throughSeq = yield* readLastSeq(dialect, of.accountId)
  let spentNanos = isAll ? yield* sumAway(dialect, of) : 0n
  for (let through = throughSeq; through > afterSeq; through -= sliceMax) {
    const slice = { ...of, after: Math.max(afterSeq, through - sliceMax), through }
    const row = yield* askOne(dialect, sumSlice(dialect, slice))
    const { spent, first } = row as { spent: bigint | null; first: bigint | null }
    spentNanos += spent ?? 0n
    // Entries are in the order of their times (ruling C15). So no earlier slice has an entry of the time span.
    if (first === null ? !isAll : Number(first) < of.fromMs) break
  }
  return { spentNanos, throughSeq }
}

/** Sums the spend of an account, a key or a person in detached months, whose entries are in archive files. */
function* sumAway(dialect: Dialect, { accountId, scope }: SpendOf): StoreStep<bigint> {
  const { schema } = dialect
  const counts = {
    account: () => '1 = 1',
    key: (put: Put) => `s.key_id IN (SELECT k.id FROM ${schema}.keys k WHERE coalesce(k.scope, k.id) = ${put(scope)})`,
    person: (put: Put) => isOfPerson(schema, put(scope), 's'),
  }[kindOfScope(scope)]
  const row = yield* askOne(
    dialect,
    (put) => `SELECT CAST(sum(s.cost) AS bigint) AS spent FROM ${schema}.sealed_sums s
      JOIN ${schema}.archives x ON x.month = s.month AND ${isAwaySql} WHERE s.account_id = ${put(accountId)} AND ${counts(put)}`,
  )
  return (row?.['spent'] as bigint | null) ?? 0n
}

/** Sums the spend of each person of an account in a time span. */
export function* sumPersons(dialect: Dialect, of: { accountId: string } & TimeSpan): StoreStep<PersonSpending> {
  return yield* whileSame(dialect, (away) => sumPersonSlices(dialect, of, away !== '' && of.fromMs === 0))
}

type PersonSpending = { spent: Map<string, bigint>; throughSeq: number }

function* sumPersonSlices(
  dialect: Dialect,
  { accountId, fromMs, untilMs }: { accountId: string } & TimeSpan,
  isAll: boolean,
): StoreStep<PersonSpending> {
  const { schema } = dialect
  const throughSeq = yield* readLastSeq(dialect, accountId)
  const spent = new Map<string, bigint>()
  for (const { person, cost } of isAll ? yield* readAwaySums(dialect, accountId) : [])
    if (person !== '') spent.set(person as string, (spent.get(person as string) ?? 0n) + (cost as bigint))
  for (let through = throughSeq; through > 0; through -= sliceMax) {
    const slice = (put: Put) => `SELECT e.person, min(e.posted_ms) AS first, CAST(sum(
        CASE WHEN ${countedMs(schema)} < ${put(fromMs)} OR ${countedMs(schema)} >= ${put(untilMs)} THEN 0
          WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END) AS bigint) AS spent
      FROM ${schema}.entries e WHERE e.account_id = ${put(accountId)} AND e.seq > ${put(through - sliceMax)} AND e.seq <= ${put(through)}
        AND ${isHere(schema)} GROUP BY e.person`
    const rows = yield* ask(dialect, slice)
    for (const { person, spent: nanos } of rows)
      if (person !== null) spent.set(person as string, (spent.get(person as string) ?? 0n) + (nanos as bigint))
    if ((rows.length === 0 && !isAll) || rows.some(({ first }) => Number(first) < fromMs)) break
  }
  return { spent, throughSeq }
}

/**
 * Sets the spend of a budget in its current period, and adds the entries posted since the spend was computed. The
 * account is locked, so that no debit is posted at the same time.
 */
export function* setSpend(
  dialect: Dialect,
  { accountId, scope, fromMs, untilMs, spentNanos, throughSeq }: SpendOf & SpendBase,
): StoreStep<void> {
  yield* lockAccount(dialect, accountId)
  const of = { accountId, scope, fromMs, untilMs }
  const nothing = { spentNanos: 0n, throughSeq: 0 }
  const tail = throughSeq === undefined ? nothing : yield* sumSpend(dialect, of, throughSeq)
  const spent = clampNanos(spentNanos + tail.spentNanos)
  const seq = scope === accountId ? tail.throughSeq : null
  const row = { scope, from_ms: fromMs, until_ms: untilMs, spent, warned: 0, seq }
  const { text, values } = insert(dialect, 'spends', row)
  const sets = ['from_ms', 'until_ms', 'spent', 'warned', 'seq'].map((column) => `${column} = excluded.${column}`)
  yield* rowsOf({ text: `${text} ON CONFLICT (scope) DO UPDATE SET ${sets.join(', ')}`, values })
  // `rearm` reads all keys, which would make an import of many keys slow. If nothing is spent, no warning level is
  // reached, so it is skipped.
  if (spent > 0n) yield* rearm(dialect, scope)
}

/**
 * Adds debits of an older version of triwire to the spend of accounts with budgets. That version adds its debits only
 * to the spend of keys. Called when a store is opened. Accounts that another session has locked are skipped.
 */
export function* countMissed(dialect: Dialect): StoreStep<void> {
  const { schema, ends } = dialect
  if (yield* readMoved(dialect)) return
  const last = `SELECT e.posted_ms FROM ${schema}.entries e
    WHERE e.account_id = a.id AND e.seq > coalesce(s.seq, 0) AND ${isSpending} ORDER BY e.seq DESC LIMIT 1`
  const missed = `SELECT s.*, a.budget_per, (${last}) AS missed_ms FROM ${schema}.spends s
    JOIN ${schema}.accounts a ON a.id = s.scope JOIN ${ends} t ON t.account_id = a.id
    WHERE a.budget IS NOT NULL AND t.seq > coalesce(s.seq, 0)`
  const rows = (yield* ask(dialect, () => missed)).filter((row) => row['missed_ms'] !== null)
  if (rows.length === 0) return
  const calendar = createCalendar(yield* readUsageState(dialect))
  for (const { scope } of rows) yield* inTransaction(countAnew(scope as string))

  function* countAnew(accountId: string): StoreStep<void> {
    const lock = (put: Put) => `SELECT scope FROM triwire.balances b JOIN triwire.spends s ON s.scope = b.account_id
      WHERE b.account_id = ${put(accountId)} FOR NO KEY UPDATE SKIP LOCKED`
    if (dialect.isShared && !(yield* askOne(dialect, lock))) return
    const row = yield* askOne(dialect, (put) => `${missed} AND s.scope = ${put(accountId)}`)
    if (!row || row['missed_ms'] === null) return
    const spend = readSpend(row)
    const missedMs = Number(row['missed_ms'])
    if (missedMs >= spend.untilMs) {
      const { fromMs, untilMs } = spanOf(calendar, (row['budget_per'] ?? undefined) as Budget['per'], missedMs)
      Object.assign(spend, { fromMs: Math.max(fromMs, spend.untilMs), untilMs, spentNanos: 0n })
    }
    const throughSeq = Number(row['seq'] ?? 0)
    yield* setSpend(dialect, { accountId, ...spend, ...(throughSeq === 0 && { spentNanos: 0n }), throughSeq })
  }
}

/** Keeps other sessions from posting debits of an account until the transaction ends. SQLite has only one writer. */
export function* lockAccount(dialect: Dialect, accountId: string): StoreStep<void> {
  if (!dialect.isShared) return
  const lock = (put: Put) => `SELECT FROM triwire.balances WHERE account_id = ${put(accountId)} FOR NO KEY UPDATE`
  yield* ask(dialect, lock)
}

/**
 * SQL: selects the recorded spend of each budget, with the budget's account. Rotated keys share a budget, which gives
 * one row for each of these keys. A person's budget gives one row for each identity of the person.
 */
export function selectSpends(schema: string): string {
  return `SELECT s.scope, s.from_ms, s.until_ms, s.spent, k.id AS key_id, coalesce(k.account_id, a.id, p.account_id) AS account_id, o.id AS person_id
    FROM ${schema}.spends s LEFT JOIN ${schema}.keys k ON coalesce(k.scope, k.id) = s.scope
    LEFT JOIN ${schema}.accounts a ON a.id = s.scope LEFT JOIN ${schema}.persons p ON p.id = s.scope
    LEFT JOIN ${schema}.persons o ON o.id = p.id OR o.linked_id = p.id ORDER BY s.scope`
}

/** Reads the rows of `selectSpends`. */
export function readSpendRows(rows: readonly Record<string, unknown>[]): SpendRow[] {
  const spends = new Map<unknown, SpendRow & { keyIds: string[]; personIds: string[] }>()
  for (const row of rows) {
    const nothing = { accountId: undefined, keyIds: [], personIds: [] }
    const spend = spends.get(row['scope']) ?? { ...readSpend(row), ...nothing }
    spends.set(row['scope'], spend)
    spend.accountId = (row['account_id'] as string | null) ?? undefined
    if (row['key_id'] !== null) spend.keyIds.push(row['key_id'] as string)
    if (row['person_id'] !== null) spend.personIds.push(row['person_id'] as string)
  }
  return [...spends.values()]
}

export function readSpend(row: Record<string, unknown>): Spend & { scope: string } {
  return {
    scope: row['scope'] as string,
    fromMs: Number(row['from_ms']),
    untilMs: Number(row['until_ms']),
    spentNanos: row['spent'] as bigint,
  }
}
