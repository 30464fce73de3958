import { bucketAt, type FoundRow, type RowReading } from '../../accounts/usage/plan.ts'
import type { SumName, UsageGrouping } from '../../accounts/usage/question.ts'
import { soundOutcomes } from '../../accounts/usage/question.ts'
import { paidDimensions, sumColumns } from '../../accounts/usage/rollup.ts'
import { trafficTableOf } from '../../accounts/usage/traffic.ts'
import { type Dialect, isOneOf, type SqlValue, type Statement, statement } from './dialect.ts'
import { countedMs, countsWithin, readParts, sumInParts } from './entries.ts'
import { wordKey } from './words.ts'

/**
 * The number that the store gave each word (a name, such as a model's). The keys are made by `wordKey`. The empty word
 * has the number 0.
 */
type WordIds = ReadonlyMap<string, number>

/**
 * Returns the words in a query for figures, such as names of models. Rows of figures have the numbers of these words.
 */
export function wordsOfReading({ by, only, within = [] }: RowReading): [kind: string, word: string][] {
  const named = Object.entries(only).flatMap(([kind, words]) => words.map((word) => [kind, word] as [string, string]))
  const ofGroups = within.flatMap((words) => words.map((word, at) => [by[at]!, word] as [string, string]))
  return [...named, ...ofGroups, ...soundOutcomes.map((word) => ['outcome', word] as [string, string])]
}

/** How a store's SQL assigns rows to several buckets (the periods of a report). */
type Bucketing = {
  /** The table, named `u`, joined with the tables that `bucket` needs. */
  from: string
  /** An expression for the number of the bucket. If undefined, the caller finds the bucket by the time in the row. */
  bucket: string | undefined
  values: readonly SqlValue[]
  /**
   * Whether joining the table of buckets already limits the time of the rows. A condition on the time is then left out,
   * because it would only make the database use another index.
   */
  isRanged: boolean
  /**
   * Whether the SQL forces the database to read and group daily figures of keys in the table's order (account, key).
   * SQLite needs this, because its planner does not know the numbers of rows. In PostgreSQL, such SQL would make the
   * planner expect few rows and sort them.
   */
  isInOrder: boolean
}

/**
 * Returns SQL that joins the encoded counts of all rows, with `countsBreak` between them.
 * @param column the column with the counts
 */
type JoinedCounts = (column: string) => string

/** How a database reads figures for reports. */
export type UsageDialect = {
  /** The entries `e` that the figures do not include yet. */
  tail: { from: string; where: string }
  /**
   * A SELECT of one row. `folded` is the number of entries in the figures, and `entries` is the number of all entries.
   */
  progress: string
  bucketing(reading: RowReading): Bucketing
  joined: JoinedCounts
}

/**
 * Selects the entries of some quarter hours that the figures for reports do not include yet. The index by time is not
 * used, because for a year it would return all entries of the year.
 */
export function selectTail(
  dialect: Dialect,
  { from, where }: UsageDialect['tail'],
  quarters: { from: number; to: number },
): Statement {
  return statement(dialect, (put) =>
    selectSummed(
      dialect.schema,
      from,
      `${where} AND ${countedMs(dialect.schema)} >= CAST(${put(quarters.from)} AS bigint) * 900000
       AND ${countedMs(dialect.schema)} < CAST(${put(quarters.to)} AS bigint) * 900000`,
    ),
  )
}

/**
 * Selects rows of a table, summed by bucket (span of time) and group. `d0`, `d1` and so on are the ids of the group's
 * words. If a row has `time` instead of `bucket`, the caller computes the bucket from it.
 * @param bucketing used if there are several buckets
 */
export function selectRows(
  { schema }: Dialect,
  reading: RowReading,
  ids: WordIds,
  bucketing: Bucketing,
  joined: JoinedCounts,
): Statement {
  const { table, grain, bounds, by, sums, times } = reading
  const time = timeColumn(reading)
  const isOne = bounds.length === 2
  const place = isOne ? '0 AS bucket' : bucketing.bucket ? `${bucketing.bucket} AS bucket` : `u.${time} AS time`
  const groups = by.map((name, at) => `${columnOf(table, name)} AS d${at}`)
  const sound = soundOutcomes.flatMap((word) => ids.get(wordKey('outcome', word)) ?? [])
  const failed =
    sound.length === 0 ? 'u.requests' : `CASE WHEN u.outcome IN (${sound.join(', ')}) THEN 0 ELSE u.requests END`
  const made: Partial<Record<SumName, string>> = { errors: failed, ...(table === 'usage' && { moved: '0' }) }
  const amounts = sums.map((name, at) =>
    name === 'cost' ? sumInParts(`s${at}`, 'u.cost') : `sum(${made[name] ?? `u.${name}`}) AS s${at}`,
  )
  const counts = times.map((name) => `${joined(`u.${name}`)} AS ${name}`)
  const columns = [place, ...groups, ...amounts, ...counts].join(', ')
  // The plus sign keeps SQLite from using the index of days, which is only fast for few days.
  const at = grain === 'd' && bucketing.isInOrder ? '+u.day' : `u.${time}`
  const isRanged = !isOne && bucketing.isRanged
  const range = isRanged ? '1 = 1' : `${at} >= ${bounds[0]} AND ${at} < ${bounds.at(-1)}`
  const where = [range, ...conditions(schema, reading, ids)]
  const from = isOne ? `${schema}.${tableOf(reading)} u` : bucketing.from
  const isTimed = !isOne && bucketing.bucket === undefined
  const grouped = groupsOf(reading, isOne ? [] : isTimed ? [`u.${time}`] : ['1'], bucketing)
  return {
    text: `SELECT ${columns} FROM ${from} WHERE ${where.join(' AND ')} ${grouped.length > 0 ? `GROUP BY ${grouped.join(', ')}` : ''}`,
    values: isOne ? [] : bucketing.values,
  }
}

/**
 * Returns the columns to group by. If `isInOrder` is set, daily figures of keys are grouped by account, key and day.
 * The table has this order, so the database need not sort, and a year takes a third of the time. Figures without a key
 * have a row for each account, and the caller adds up these rows.
 */
function groupsOf({ table, grain, by }: RowReading, times: readonly string[], { isInOrder }: Bucketing): string[] {
  const columns = by.map((name) => columnOf(table, name)).filter((column) => column !== '0')
  if (!isInOrder || grain !== 'd' || !by.includes('key')) return [...times, ...columns]
  const others = columns.filter((column) => column !== 'u.account' && column !== 'u.key')
  return ['u.account', 'u.key', ...times, ...others]
}

export function tableOf({ table, grain }: Pick<RowReading, 'table' | 'grain'>): string {
  return table === 'usage' ? `sums_${grain}` : trafficTableOf[grain]
}

export function timeColumn({ table, grain }: Pick<RowReading, 'table' | 'grain'>): string {
  return grain !== 'h' ? 'day' : table === 'usage' ? 'hour' : 'quarter'
}

/** Returns a grouping's column, or `0` if the table lacks it. For example, paid requests have no error code. */
function columnOf(table: RowReading['table'], name: UsageGrouping): string {
  return isLacking(table, name) ? '0' : `u.${name}`
}

function isLacking(table: RowReading['table'], name: string): boolean {
  return table === 'usage' ? name === 'code' : (paidDimensions as readonly string[]).includes(name)
}

function conditions(schema: string, reading: RowReading, ids: WordIds): string[] {
  const { table, grain, by, only, within } = reading
  const idOf = (kind: string, word: string) => (word === '' ? 0 : ids.get(wordKey(kind, word)))
  const parts: string[] = []
  const narrow = (name: string, found: readonly number[]) => {
    parts.push(isIn(`u.${name}`, found))
    if (name === 'key' && grain === 'd') parts.push(...ofTheirAccounts(schema, found))
  }
  for (const [name, words] of Object.entries(only))
    if (!isLacking(table, name))
      narrow(
        name,
        words.flatMap((word) => idOf(name, word) ?? []),
      )
  if (!within) return parts
  const groups = within.flatMap((words) => {
    const numbers = words.map((word, at) => idOf(by[at]!, word))
    return numbers.includes(undefined) ? [] : [numbers as number[]]
  })
  for (const [at, name] of by.entries())
    if (!isLacking(table, name)) narrow(name, [...new Set(groups.map((numbers) => numbers[at]!))])
  const each = groups.map((numbers) => numbers.map((id, at) => `${columnOf(table, by[at]!)} = ${id}`).join(' AND '))
  if (by.length > 1 && each.length > 0) parts.push(`(${each.map((one) => `(${one})`).join(' OR ')})`)
  return parts
}

/**
 * Limits daily rows to the accounts of these keys, because daily rows are stored by account. The number 0 means "no
 * key". Any account can have rows without a key, so there is no limit then.
 */
function ofTheirAccounts(schema: string, keys: readonly number[]): string[] {
  if (keys.length === 0 || keys.includes(0)) return []
  return [
    `u.account IN (SELECT s.account FROM ${schema}.sums_k s WHERE ${isIn('s.key', keys)}
      UNION SELECT a.id FROM ${schema}.usage_words w JOIN ${schema}.keys k ON k.id = w.word
        JOIN ${schema}.usage_words a ON a.kind = 'account' AND a.word = k.account_id WHERE ${isIn('w.id', keys)})`,
  ]
}

function isIn(column: string, ids: readonly number[]): string {
  return ids.length === 0 ? '1 = 0' : `${column} IN (${ids.join(', ')})`
}

/** Entries that have the same values in these columns are added up, if they are in the same quarter of an hour. */
const tailWords = [
  ...(['account_id', 'key_id', 'model', 'client_wire', 'model_wire', 'upstream', 'outcome'] as const),
  ...paidDimensions,
]

const counted = `CASE WHEN e.kind = 'debit' THEN 1 ELSE -1 END`

const amount = `CASE WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END`

const quarterOf = (schema: string) => `${countedMs(schema)} / 900000`

/** The SQL of each sum of entries. A credit that reverses a debit subtracts the request and its cost. */
const summed: Record<Exclude<SumName, 'errors'>, string> = {
  ...(Object.fromEntries(
    sumColumns.map((column) => [column, `coalesce(sum(CASE WHEN e.kind = 'debit' THEN e.${column} END), 0)`]),
  ) as Record<(typeof sumColumns)[number], string>),
  requests: `sum(${counted})`,
  // The ledger has no count of requests that were moved to another upstream.
  moved: 'sum(0)',
  cost: `sum(${amount})`,
}

/** Reads the rows of `selectRows` or `selectOfEntries`. @param wordOf returns the text for the value of a grouping */
export function findRows(
  { bounds, by, sums, times }: RowReading,
  rows: readonly Readonly<Record<string, unknown>>[],
  wordOf: (value: unknown) => string,
): FoundRow[] {
  const found: FoundRow[] = []
  for (const row of rows) {
    const bucket = 'time' in row ? bucketAt(bounds, Number(row['time'])) : Number(row['bucket'])
    // If no row matches, the database still returns one row, whose sums are null.
    if (bucket === undefined || row['s0'] === null) continue
    found.push({
      bucket,
      of: by.map((_, at) => wordOf(row[`d${at}`])),
      sums: sums.map((name, at) =>
        name === 'cost' ? readParts(row, `s${at}`) : BigInt(row[`s${at}`] as bigint | number | string),
      ),
      times: times.map((name) => row[name] as Uint8Array | null),
    })
  }
  return found
}

/** SQL: whether an entry `e` is a debit, or a credit that reverses a debit. Top-ups are neither. */
const isBilled = `(e.kind = 'debit' OR e.usage_source IS NOT NULL)`

/**
 * Selects sums of entries.
 * @param from the table of the entries, named `e`
 * @param where a condition on the entries
 * @param by further columns to group by, besides those of `tailWords`
 */
export function selectSummed(
  schema: string,
  from: string,
  where: string,
  by: readonly string[] = [`${quarterOf(schema)} AS quarter`],
): string {
  const words = [...by, ...tailWords.map((column) => `e.${column}`)]
  const sums = sumColumns.map((column) => `${summed[column]} AS ${column}`)
  return `SELECT ${[...words, ...sums].join(', ')} FROM ${from}
    WHERE ${isBilled} AND ${where} GROUP BY ${words.map((_, at) => at + 1).join(', ')}`
}

const word = (column: string) => `coalesce(e.${column}, '')`

/** SQL: for each grouping of reports, the value that an entry has. */
const entryWords: Record<UsageGrouping, string> = {
  account: 'e.account_id',
  key: word('key_id'),
  model: word('model'),
  wires: `coalesce(nullif(e.client_wire, '') || '-to-' || nullif(e.model_wire, ''), '')`,
  upstream: word('upstream'),
  outcome: word('outcome'),
  tier: word('tier'),
  band: word('band'),
  person: word('person'),
  labels: word('labels'),
  code: `''`,
}

/** Selects rows as `selectRows` does, but from the entries. Grouping values are texts, and times are quarter hours. */
export function selectOfEntries(dialect: Dialect, { bounds, by, only, within, sums }: RowReading): Statement {
  return statement(dialect, (put) => {
    const is = (name: string, words: readonly string[]) => isOneOf(put, entryWords[name as UsageGrouping], words)
    const failed = () => `sum(CASE WHEN ${is('outcome', soundOutcomes)} THEN 0 ELSE ${counted} END)`
    const amounts = sums.map((name, at) =>
      name === 'cost' ? sumInParts(`s${at}`, amount) : `${name === 'errors' ? failed() : summed[name]} AS s${at}`,
    )
    const isOne = bounds.length === 2
    const places = [
      ...(isOne ? [] : [`${quarterOf(dialect.schema)} AS time`]),
      ...by.map((name, at) => `${entryWords[name]} AS d${at}`),
    ]
    const at = (quarter: number) => `CAST(${put(quarter)} AS bigint) * 900000`
    const where = [isBilled, ...countsWithin(dialect.schema, at(bounds[0]!), at(bounds.at(-1)!))]
    for (const [name, words] of Object.entries(only)) where.push(is(name, words))
    const groups = within?.map((words) => words.map((text, at) => is(by[at]!, [text])).join(' AND '))
    if (groups) where.push(`(${['1 = 0', ...groups].join(' OR ')})`)
    return `SELECT ${[...places, ...(isOne ? ['0 AS bucket'] : []), ...amounts].join(', ')}
      FROM ${dialect.schema}.entries e WHERE ${where.join(' AND ')}
      ${places.length > 0 ? `GROUP BY ${places.map((_, at) => at + 1).join(', ')}` : ''}`
  })
}

type MostSpent = {
  by: 'account' | 'key'
  /** The number of the account whose keys are ranked. If undefined, all accounts or all keys are ranked. */
  account: number | undefined
  /** Whether to leave out the keys of people's sessions. */
  isWithoutSessions: boolean
  /** The time range, in quarter hours since 1970. `from` and `to` are each the first quarter hour of a day. */
  from: number
  to: number
  /**
   * The numbers of the accounts or keys whose figures do not contain all entries yet. They come first, even if others
   * have spent more.
   */
  unfolded: readonly number[]
  limit: number
}

/**
 * Selects the row numbers and the spend of the accounts or keys that spent most. Those in `unfolded` come first, then
 * the highest spend. As in `groupsOf`, the columns to group by have the order of the table, so nothing is sorted. In
 * SQLite the order is that of sums of floats, because a sum may exceed 64 bits.
 */
export function selectMost({ schema, isShared }: Dialect, most: MostSpent): Statement {
  const { by, account, isWithoutSessions, from, to, unfolded, limit } = most
  const day = isShared ? 'u.day' : '+u.day'
  const where = [`${day} >= ${from} AND ${day} < ${to}`, `u.${by} <> 0`]
  if (account !== undefined) where.push(`u.account = ${account}`)
  const first = unfolded.length > 0 ? `${isIn(`u.${by}`, unfolded)} DESC, ` : ''
  const ofSession = `SELECT 1 FROM ${schema}.usage_words w JOIN ${schema}.keys k ON k.id = w.word
    WHERE w.id = u.key AND k.session IS NOT NULL`
  return {
    text: `SELECT u.${by} AS id, ${sumInParts('spent', 'u.cost')} FROM ${schema}.sums_d u WHERE ${where.join(' AND ')}
      GROUP BY ${by === 'key' ? 'u.account, u.key' : 'u.account'} ${isWithoutSessions ? `HAVING NOT EXISTS (${ofSession})` : ''}
      ORDER BY ${first}${isShared ? 'sum' : 'total'}(u.cost) DESC LIMIT ${limit}`,
    values: [],
  }
}

/** Selects the total cost of a key in one statement: the stored sum, and the entries that are not yet in that sum. */
export function selectSpent({ schema, parameter }: Dialect, accountId: string, keyId: string): Statement {
  const [account, key] = [parameter(1), parameter(2)]
  const idOf = (kind: string, word: string) =>
    `(SELECT w.id FROM ${schema}.usage_words w WHERE w.kind = '${kind}' AND w.word = ${word})`
  return {
    text: `SELECT coalesce((SELECT k.cost FROM ${schema}.sums_k k WHERE k.account = ${idOf('account', account)}
        AND k.key = ${idOf('key', key)}), 0)
      + coalesce((SELECT ${summed.cost} FROM ${schema}.entries e
        WHERE e.account_id = ${account} AND e.key_id = ${key} AND ${isBilled} AND e.seq > coalesce((
          SELECT m.seq FROM ${schema}.sums_marks m WHERE m.account_id = ${account}), 0)), 0) AS spent`,
    values: [accountId, keyId],
  }
}
