import { type KeyPage, type KeyRow, type KeyState, readKeyRow } from '../../accounts/book-rows.ts'
import { type Dialect, isOneOf, type Put } from './dialect.ts'
import { isLike, startsWith, whereAll } from './registers.ts'
import { keysWithSpends } from './spends.ts'
import { all, askOne, query, type StoreStep } from './step.ts'

/**
 * If at most this many keys match a filter, they are found and sorted. If more match, keys are checked one by one in
 * the order of the page until it is full. With two million keys, of which 3,000 match, both ways take about 10 ms.
 */
const foundMax = 3_000

/**
 * The first query for a page checks only this many keys, in the order of the page. If most keys match, they fill the
 * page.
 */
const glanceMax = 1_000

/**
 * Like `glanceMax`, for a page of the keys of suspended accounts. Only PostgreSQL uses it, where 10,000 checks take as
 * long as counting `foundMax` keys. SQLite counts ten times as fast, so it counts at once.
 */
const glanceOfSuspendedMax = 10_000

/**
 * A condition on keys `k`, in two forms.
 * @property parts SQL to put after FROM. A key matches if any part finds it. Each part reads an index that also has the
 *   sort columns of a page. The list is empty if no index can find the keys
 * @property test SQL to put after WHERE. It checks keys that were found in another way
 */
type KeyFilter = { parts: readonly Condition[]; test: Condition }

type Condition = (put: Put) => string

/** Reads a page of keys. In a large store, this is slow only if many keys match each filter, but few match all. */
export function* pageKeys(dialect: Dialect, page: KeyPage): StoreStep<KeyRow[]> {
  const filters = filtersOf(dialect, page)
  const select = (few?: Few) => all(query(dialect, readKeyRow, (put) => selectPage(dialect, page, filters, few, put)))
  if (page.ids !== undefined) return yield* select(filters[0])
  if (filters.length === 0 || (filters.length === 1 && (page.accountId !== undefined || page.state === 'revoked')))
    return yield* select()
  const glanced = page.state === 'suspended' && !dialect.isShared ? [] : yield* select('glance')
  return glanced.length === page.limit ? glanced : yield* select(yield* findFew(dialect, page, filters))
}

/** The keys to check: matches of a filter, the first keys of the page (`glance`), or all keys (undefined). */
type Few = KeyFilter | 'glance' | undefined

function filtersOf(
  { schema }: Dialect,
  { accountId, personId, ids, q, state, isForeign, externalId, nowMs = 0 }: KeyPage,
): KeyFilter[] {
  const isValid = (put: Put) => `k.revoked_ms IS NULL AND (k.expires_ms IS NULL OR k.expires_ms > ${put(nowMs)})`
  const isActive = `(SELECT a.state FROM ${schema}.accounts a WHERE a.id = k.account_id) = 'active'`
  const isSuspended = `k.account_id IN (SELECT a.id FROM ${schema}.accounts a WHERE a.state = 'suspended')`
  const found = (one: Condition): KeyFilter => ({ parts: [(put) => `${schema}.keys k WHERE ${one(put)}`], test: one })
  // The join lets the database stop when the page is full. With `account_id IN (SELECT …)` it would first read all
  // suspended accounts.
  const ofSuspended = `${schema}.accounts a CROSS JOIN ${schema}.keys k WHERE k.account_id = a.id AND a.state = 'suspended'`
  const ofState: Record<KeyState, KeyFilter[]> = {
    revoked: [found(() => 'k.revoked_ms IS NOT NULL')],
    expired: [found((put) => `k.revoked_ms IS NULL AND k.expires_ms <= ${put(nowMs)}`)],
    suspended: [
      { parts: [() => ofSuspended], test: () => isSuspended },
      { parts: [], test: isValid },
    ],
    active: [{ parts: [], test: (put) => `${isValid(put)} AND ${isActive}` }],
  }
  return [
    ...(ids === undefined ? [] : [found((put) => isOneOf(put, 'k.id', ids))]),
    ...(accountId === undefined ? [] : [found((put) => `k.account_id = ${put(accountId)}`)]),
    ...(personId === undefined ? [] : [found((put) => `k.person = ${put(personId)}`)]),
    ...(externalId === undefined ? [] : [found((put) => `k.external_id = ${put(externalId)}`)]),
    ...(isForeign ? [found(() => 'k.origin IS NOT NULL')] : []),
    ...(q === undefined ? [] : [beginning(schema, q)]),
    ...(state === undefined ? [] : ofState[state]),
  ]
}

const searched = ['k.id', 'k.prefix', 'k.label'] as const

function beginning(schema: string, q: string): KeyFilter {
  return {
    parts: searched.map((column) => (put) => `${schema}.keys k WHERE ${startsWith(put, column, q)}`),
    test: (put) => searched.map((column) => isLike(put, column, q)).join(' OR '),
  }
}

/** Finds a filter that few keys match. @returns undefined if reading in the order of an index is faster */
function* findFew(dialect: Dialect, page: KeyPage, filters: readonly KeyFilter[]): StoreStep<KeyFilter | undefined> {
  for (const filter of filters.filter(({ parts }) => parts.length > 0)) {
    let found = 0
    for (const part of filter.parts) if (found <= foundMax) found += yield* count(dialect, part, foundMax + 1 - found)
    // A filter by account is not returned, because an index already gives the account's keys in the order of the page.
    if (found <= foundMax) return page.accountId !== undefined && filter === filters[0] ? undefined : filter
  }
  return undefined
}

function* count(dialect: Dialect, part: Condition, most: number): StoreStep<number> {
  const few = (put: Put) => `SELECT 1 FROM ${part(put)} LIMIT ${put(most)}`
  return Number((yield* askOne(dialect, (put) => `SELECT count(*) AS n FROM (${few(put)}) few`))?.['n'] ?? 0)
}

/**
 * Selects a page of keys.
 * @param few with a filter, the few keys that match it are found first, then sorted. With `glance`, only the first keys
 *   in the page's order are checked. Without a value, keys are read in the order of an index
 */
function selectPage(
  dialect: Dialect,
  { accountId, state, sort = 'created', beyond, limit, isWithoutSessions }: KeyPage,
  filters: readonly KeyFilter[],
  few: Few,
  put: Put,
): string {
  const { schema, isShared } = dialect
  const [word, sign] = sort === '-created' ? [' DESC', '<'] : ['', '>']
  const inItsOrder = `ORDER BY created_ms${word}, id${word}`
  const order = `${inItsOrder} LIMIT ${put(limit)}`
  const place = beyond ? [`(k.created_ms, k.id) ${sign} (${beyond.map(put).join(', ')})`] : []
  // A database uses no index for a condition with IS TRUE. So only the other conditions choose the index.
  const rest = filters.filter((one) => one !== few).map(({ test }) => `(${test(put)}) IS TRUE`)
  const lasting = isWithoutSessions ? ['k.session IS NULL'] : []
  const select = (from: string, where: readonly string[]) => `SELECT * FROM ${from} k ${whereAll(where)}`
  const inOrder = () => [
    ...(accountId === undefined ? [] : [`k.account_id = ${put(accountId)}`]),
    ...(state === undefined ? [] : [`k.revoked_ms IS ${state === 'revoked' ? 'NOT NULL' : 'NULL'}`]),
    ...lasting,
    ...place,
  ]
  let keys: string
  if (typeof few === 'object') {
    const parts = few.parts.map((part) => `SELECT k.created_ms, k.id FROM ${part(put)}`)
    // Without MATERIALIZED, SQLite applies the page's order to each SELECT of the UNION, and chooses a wrong index.
    const found = `WITH found AS MATERIALIZED (${parts.join(' UNION ')})`
    if (!isShared) {
      // SQLite reads the sorted keys one by one until the page is full. A subquery with a LIMIT keeps its order.
      const sorted = `${found} SELECT * FROM found k ${whereAll(place)} ${inItsOrder} LIMIT -1`
      const inTurn = `SELECT k.* FROM (${sorted}) f CROSS JOIN ${schema}.keys k ON k.id = f.id ${whereAll([...rest, ...lasting])}`
      return `SELECT * FROM ${keysWithSpends(dialect, `(${inTurn} LIMIT ${put(limit)})`)} ${order}`
    }
    // If there are no other conditions, the query for ids gets the limit of the page. Then only the keys of the page
    // are read.
    const ids = `${found} SELECT k.id FROM found k ${rest.length + lasting.length > 0 ? '' : `${whereAll(place)} ${order}`}`
    keys = select(`${schema}.keys`, [`k.id = ANY (ARRAY(${ids}))`, ...rest, ...lasting, ...place])
  } else if (few === 'glance') {
    const glance = `${select(`${schema}.keys`, inOrder())} ${order.replace(/LIMIT .*/, `LIMIT ${state === 'suspended' ? glanceOfSuspendedMax : glanceMax}`)}`
    keys = select(`(${glance})`, rest)
  } else keys = select(`${schema}.keys`, [...inOrder(), ...rest])
  return `SELECT * FROM ${keysWithSpends(dialect, `(${keys} ${order})`)} ${order}`
}
