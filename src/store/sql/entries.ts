import { nanosPerCredit } from '../../accounts/credit.ts'
import type { DayShift } from '../../accounts/day-shifts.ts'
import type { EntryFilter, EntryPlace, Grouping, ListedEntry, Total } from '../../accounts/entries.ts'
import { readCounters, readEntry, type VerifiedEntry } from '../../accounts/entry-row.ts'
import type { Dialect, SqlValue, Statement } from './dialect.ts'
import { rowsOf, type StoreStep } from './step.ts'

const dayMs = 86_400_000

/**
 * The entries whose `column` is above `after`, up to and including `through`. They are read in the order of `column`.
 */
type Slice = { column: 'posted_ms' | 'seq'; after?: bigint | undefined; through?: bigint | undefined }

/**
 * SQL: the time at which an entry `e` counts. That is its posting time, unless a correction changed it (ruling C15).
 * EXISTS is evaluated only once, so in a store without corrections the query for an entry's correction never runs.
 */
export function countedMs(schema: string): string {
  const shifted = `(SELECT s.effective_ms FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq)`
  return `CASE WHEN EXISTS (SELECT 1 FROM ${schema}.shifted) THEN coalesce(${shifted}, e.posted_ms) ELSE e.posted_ms END`
}

/**
 * Conditions for entries `e` whose time (`countedMs`) is at or after `from` and before `until`. The posting time is
 * limited too, because it has an index. An entry counts when it was posted, or earlier if a correction names it. So
 * only the end of the posting times (`last`) can be later than `until`.
 * @param from, until SQL expressions
 */
export function countsWithin(schema: string, from: string | undefined, until: string | undefined): string[] {
  const counted = countedMs(schema)
  const last = `(SELECT coalesce(max(CASE WHEN s.posted_ms >= ${until} THEN s.posted_ms + 1 ELSE ${until} END), ${until})
    FROM ${schema}.shifted s WHERE s.effective_ms < ${until}${from === undefined ? '' : ` AND s.effective_ms >= ${from}`})`
  return [
    ...(from === undefined ? [] : [`e.posted_ms >= ${from}`, `${counted} >= ${from}`]),
    ...(until === undefined ? [] : [`e.posted_ms < ${last}`, `${counted} < ${until}`]),
  ]
}

type Direction = 'oldest' | 'newest'

/** Selects entries `e` with the names of their accounts and keys; `readListed` reads the rows. */
export function selectNamed(dialect: Dialect): string {
  return `SELECT e.*, a.name AS account_name, k.prefix AS key_prefix, k.label AS key_label
    FROM ${dialect.schema}.entries e ${joinNames(dialect)}`
}

/** Joins the account and the key of each entry, as `a` and `k`. */
export function joinNames({ schema }: Dialect): string {
  return `LEFT JOIN ${schema}.accounts a ON a.id = e.account_id LEFT JOIN ${schema}.keys k ON k.id = e.key_id`
}

/** The columns that `readReading` reads to verify an entry. `joinNames` joins the tables of these columns. */
export function readingColumns({ schema }: Dialect): string {
  const shifted = `(SELECT s.effective_ms FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq)`
  return `e.*, a.name AS account_name, k.account_id AS key_account_id, k.prefix AS key_prefix, ${shifted} AS shifted_ms`
}

export function selectEntries(
  dialect: Dialect,
  filter: EntryFilter,
  first: Direction,
  { limit, slice, beyond }: { limit?: number; slice?: Slice; beyond?: EntryPlace | undefined } = {},
): Statement {
  const { where, values } = conditions(dialect, filter, slice, beyond && { ...beyond, first })
  // The entries of one account have the same order by time and by number, and there is an index by number.
  const columns = filter.accountId === undefined ? ['e.posted_ms', 'e.account_id', 'e.seq'] : ['e.seq']
  const order = columns.map((column) => (first === 'newest' ? `${column} DESC` : column)).join(', ')
  const text = `${selectNamed(dialect)} ${where} ORDER BY ${order}`
  if (limit === undefined) return { text, values }
  return { text: `${text} LIMIT ${dialect.parameter(values.length + 1)}`, values: [...values, limit] }
}

/** Selects a row of sums for each group with entries, sorted by the groupings. Without groupings there is one row. */
export function selectSums(
  dialect: Dialect,
  filter: EntryFilter,
  by: readonly Grouping[],
  { slice, shifts }: { slice?: Slice | undefined; shifts?: readonly DayShift[] | undefined } = {},
): Statement {
  const { where, values } = conditions(dialect, filter, slice)
  const grouped = by.map((grouping) => groupColumns(dialect, shifts)[grouping])
  const clause = (word: string, suffix = '') =>
    by.length ? [`${word} BY ${by.map((_, index) => `${index + 1}${suffix}`).join(', ')}`] : []
  const columns = [...grouped.map(({ column }) => column), sums].join(', ')
  const parts = [`WITH sums AS (SELECT ${columns} FROM ${dialect.schema}.entries e ${where}`, ...clause('GROUP')]
  parts.push(') SELECT * FROM sums', ...grouped.flatMap(({ join }) => join ?? []), ...clause('ORDER', ' NULLS FIRST'))
  return { text: parts.join(' '), values }
}

function conditions(
  { schema, parameter }: Dialect,
  { accountId, keyIds, model, sinceMs, untilMs }: EntryFilter,
  slice?: Slice | undefined,
  beyond?: (EntryPlace & { first: Direction }) | undefined,
): { where: string; values: readonly SqlValue[] } {
  const parts: string[] = []
  const values: SqlValue[] = []
  const put = (value: SqlValue) => parameter(values.push(value))
  if (accountId !== undefined) parts.push(`e.account_id = ${put(accountId)}`)
  if (keyIds?.length === 0) parts.push('1 = 0')
  else if (keyIds) {
    const list = keyIds.map(put).join(', ')
    parts.push(`e.key_id IN (${list})`)
    // This condition names the accounts of the keys. The database can then use an index that is sorted by account.
    if (accountId === undefined) {
      parts.push(`e.account_id IN (SELECT account_id FROM ${schema}.keys WHERE id IN (${list}))`)
    }
  }
  if (model !== undefined) parts.push(`e.model = ${put(model)}`)
  const bound = (ms: number | undefined) => (ms === undefined ? undefined : `CAST(${put(ms)} AS bigint)`)
  parts.push(...countsWithin(schema, bound(sinceMs), bound(untilMs)))
  if (slice) parts.push(...inSlice(slice, put))
  if (beyond) {
    const [sign, { postedMs, accountId: id, seq }] = [beyond.first === 'newest' ? '<' : '>', beyond]
    if (accountId !== undefined) parts.push(`e.seq ${sign} ${put(seq)}`)
    else {
      // The first condition is redundant, but makes the database use the index.
      parts.push(`e.posted_ms ${sign}= ${put(postedMs)}`)
      parts.push(`(e.posted_ms, e.account_id, e.seq) ${sign} (${put(postedMs)}, ${put(id)}, ${put(seq)})`)
    }
  }
  return { where: parts.length ? `WHERE ${parts.join(' AND ')}` : '', values }
}

/** Returns the SQL conditions that select the entries `e` of a slice. */
export function inSlice({ column, after, through }: Slice, put: (value: SqlValue) => string): string[] {
  return [
    ...(after === undefined ? [] : [`e.${column} > ${put(after)}`]),
    ...(through === undefined ? [] : [`e.${column} <= ${put(through)}`]),
  ]
}

/**
 * Runs `work` on slices of the entries that may match a filter, until it returns false.
 *
 * In PostgreSQL, busy accounts leave a dead row with every debit. A long statement keeps these rows from being
 * removed, and each debit would be slower than the one before. So more than a few entries are read in slices.
 * @param size the number of entries in a slice, but entries with equal times stay together. Infinity: only one slice
 */
export function* eachSlice(
  dialect: Dialect,
  { accountId, sinceMs, untilMs }: EntryFilter,
  size: number,
  { first, beyond }: { first: Direction; beyond?: EntryPlace | undefined },
  work: (slice: Slice) => StoreStep<boolean>,
): StoreStep<void> {
  const column = accountId === undefined ? 'posted_ms' : 'seq'
  // An account's entries are indexed by number, not by time. So slices ignore the filter's times; `work` checks them.
  const filter = accountId === undefined ? { sinceMs, untilMs } : { accountId }
  const [isOldest, order] = [first === 'oldest', `e.${column}${first === 'oldest' ? '' : ' DESC'}`]
  let rest: Slice = { column, ...(beyond && startAfter(column, first, beyond)) }
  while (size < Infinity) {
    const { where, values } = conditions(dialect, filter, rest)
    const text = `SELECT e.${column} AS place FROM ${dialect.schema}.entries e ${where} ORDER BY ${order} LIMIT 1 OFFSET ${size - 1}`
    const [end] = yield* rowsOf({ text, values })
    if (!end) break
    const place = end['place'] as bigint
    if (!(yield* work(isOldest ? { ...rest, through: place } : { ...rest, after: place - 1n }))) return
    rest = isOldest ? { ...rest, after: place } : { ...rest, through: place - 1n }
  }
  yield* work(rest)
}

/**
 * Returns the slice with all entries after `place`, the last entry of the previous page. Without an account, slices are
 * cut by time. Such a slice can begin with entries that the previous page had; the caller skips them.
 */
function startAfter(column: Slice['column'], first: Direction, { postedMs, seq }: EntryPlace): Partial<Slice> {
  if (column === 'seq') return first === 'newest' ? { through: BigInt(seq - 1) } : { after: BigInt(seq) }
  return first === 'newest' ? { through: BigInt(postedMs) } : { after: BigInt(postedMs - 1) }
}

/** Returns SQL for the time at which an entry counts, shifted to the reporting zone. The day is computed from it. */
function shiftedTime(schema: string, shifts: readonly DayShift[]): string {
  const counted = countedMs(schema)
  if (shifts.every(({ shiftMs }) => shiftMs === 0)) return counted
  const [first, ...others] = shifts
  const cases = others.map(({ fromMs, shiftMs }) => `WHEN ${counted} >= ${Number(fromMs)} THEN ${Number(shiftMs)}`)
  const usual = `${Number(first!.shiftMs)}`
  return `(${counted} + ${cases.length === 0 ? usual : `CASE ${cases.toReversed().join(' ')} ELSE ${usual} END`})`
}

function groupColumns(
  { schema }: Dialect,
  shifts: readonly DayShift[] = [],
): Record<Grouping, { column: string; join?: string }> {
  return {
    day: { column: `${shiftedTime(schema, shifts)} / ${dayMs} AS day` },
    model: { column: 'e.model AS model' },
    upstream: { column: 'e.upstream AS upstream' },
    account: {
      column: 'e.account_id AS account_id',
      join: `LEFT JOIN (SELECT id, name AS account_name FROM ${schema}.accounts) a ON a.id = sums.account_id`,
    },
    key: {
      column: 'e.key_id AS key_id',
      join: `LEFT JOIN (SELECT id, prefix AS key_prefix, label AS key_label FROM ${schema}.keys) k ON k.id = sums.key_id`,
    },
  }
}

/**
 * The sums of a group. A credit that reverses a debit subtracts the request and the amount, but no tokens, because they
 * were used.
 */
const sums = `
  sum(CASE WHEN e.kind = 'debit' THEN 1 WHEN e.usage_source IS NOT NULL THEN -1 ELSE 0 END) AS requests,
  ${sumInParts('billed', "CASE WHEN e.kind = 'debit' THEN e.amount WHEN e.usage_source IS NOT NULL THEN -e.amount ELSE 0 END")},
  ${sumInParts('credited', "CASE WHEN e.kind = 'credit' AND e.usage_source IS NULL THEN e.amount ELSE 0 END")},
  ${sumInParts('charged', 'coalesce(e.cost, 0)')},
  sum(CASE WHEN e.kind = 'debit' AND e.cost IS NULL THEN 1 ELSE 0 END) AS without_cost,
  sum(e.input_tokens) AS input_tokens, sum(e.cache_read_tokens) AS cache_read_tokens,
  sum(e.cache_write_tokens) AS cache_write_tokens, sum(e.cache_write_1h_tokens) AS cache_write_1h_tokens,
  sum(e.output_tokens) AS output_tokens, sum(e.reasoning_tokens) AS reasoning_tokens`

export function readListed(row: Record<string, unknown>): ListedEntry {
  return {
    ...readEntry(row),
    accountName: textOf(row.account_name),
    keyPrefix: textOf(row.key_prefix),
    keyLabel: textOf(row.key_label),
  }
}

/** The sum of all accounts may exceed SQLite's 64 bits. So whole credits and their fractions are summed separately. */
export function sumInParts(name: string, amount: string): string {
  return `sum((${amount}) / ${nanosPerCredit}) AS ${name}, sum((${amount}) % ${nanosPerCredit}) AS ${name}_rest`
}

/** Reads a sum that `sumInParts` has selected. */
export function readParts(row: Record<string, unknown>, name: string): bigint {
  const [whole, rest] = [row[name], row[`${name}_rest`]] as (bigint | string | null)[]
  return BigInt(whole ?? 0n) * nanosPerCredit + BigInt(rest ?? 0n)
}

/** Reads a row of `selectSums`. The database returns some large sums as strings. */
export function readTotal(row: Record<string, unknown>, by: readonly Grouping[]): Total {
  return {
    ...(by.includes('day') && { dayMs: Number(row.day) * dayMs }),
    ...(by.includes('model') && { model: textOf(row.model) }),
    ...(by.includes('upstream') && { upstream: textOf(row.upstream) }),
    ...(by.includes('account') && { accountId: row.account_id as string, accountName: textOf(row.account_name) }),
    ...(by.includes('key') && {
      keyId: textOf(row.key_id),
      keyPrefix: textOf(row.key_prefix),
      keyLabel: textOf(row.key_label),
    }),
    requests: Number(row.requests),
    billedNanos: readParts(row, 'billed'),
    creditedNanos: readParts(row, 'credited'),
    costNanos: readParts(row, 'charged'),
    withoutCost: Number(row.without_cost ?? 0),
    ...readCounters(row),
  }
}

/** Reads an entry from a row that was selected with `readingColumns`. */
export function readReading(row: Record<string, unknown>): VerifiedEntry {
  return {
    entry: readEntry(row),
    row,
    accountName: textOf(row.account_name),
    keyAccountId: textOf(row.key_account_id),
    keyPrefix: textOf(row.key_prefix),
    shiftedMs: row.shifted_ms === null ? undefined : Number(row.shifted_ms),
  }
}

function textOf(value: unknown): string | undefined {
  return (value as string | null) ?? undefined
}
