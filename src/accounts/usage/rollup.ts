import { type Calendar, quarterMs } from '../calendar.ts'
import { clampNanos } from '../credit.ts'

/*
 * Rollups: sums of the ledger by the dimensions of reports. With them, no report reads the whole ledger (ruling C9).
 * Entries are folded into rows, account by account. An account's mark is the number of its last folded entry. The
 * commit that adds the rows also moves the mark.
 */

/** The dimensions by which report figures are grouped. Empty text means unknown, as in entries of the first release. */
export const dimensions = ['account', 'key', 'model', 'wires', 'upstream', 'outcome'] as const

/** The dimensions that only entries of form 3 have (../chain.ts). Requests that cost nothing do not have them. */
export const paidDimensions = ['tier', 'band', 'person', 'labels'] as const

const all = [...dimensions, ...paidDimensions] as const

type Dimension = (typeof all)[number]

/** The summed columns. `cost` is in nano-credits, minus the amounts given back. */
export const sumColumns = [
  'requests',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost',
] as const

export type SumColumn = (typeof sumColumns)[number]

/**
 * For each table, the columns that identify a row, in the order of the table's key. Hours and days are those of the
 * reporting zone. They are numbered by their first quarter hour since 1970, because some zones differ from UTC by half
 * an hour.
 */
export const usageTables = {
  sums_h: ['hour', ...all],
  /** Sums by day. The rows of a key are adjacent. */
  sums_d: ['account', 'key', 'day', 'model', 'wires', 'upstream', 'outcome', ...paidDimensions],
  /** Sums by day over all accounts. */
  sums_t: ['day', 'model', 'wires', 'upstream', 'outcome', 'tier', 'band'],
  /** Sums of each key since its creation; never deleted. */
  sums_k: ['account', 'key'],
} as const

export type UsageTable = keyof typeof usageTables

export const tableNames = Object.keys(usageTables) as UsageTable[]

/** Sums of a table's row or of grouped entries, in the order of `sumColumns`. `place` identifies the row or group. */
export type SumRow = { place: Readonly<Record<string, string | number>>; sums: bigint[] }

/**
 * Entries of one quarter hour with the same values in all dimensions, summed by the store. Reading every entry would
 * cost more. A row has `quarter`, the columns of the dimensions, and the summed columns.
 */
export type SummedEntries = Readonly<Record<string, unknown>>

/** The columns that identify a row in any of the `usageTables`. */
export const placeColumns = ['hour', 'day', ...all] as const

/**
 * Converts summed entries of one quarter hour to a row, which has the columns for every table.
 * @param keptFrom the first quarter hour whose rows are kept. Earlier rows are kept only in `sums_k`, so earlier
 *   entries need only their account and key.
 */
export function sumRowOf(
  entry: SummedEntries,
  calendar: Pick<Calendar, 'periodOf'>,
  keptFrom: number,
): SumRow & { isKept: boolean } {
  const quarter = Number(entry['quarter'])
  const isKept = quarter >= keptFrom
  const { account_id, key_id } = entry
  return {
    place: { ...wordsOf(isKept ? entry : { account_id, key_id }), ...hourAndDayOf(quarter, calendar) },
    sums: sumColumns.map((column) => BigInt(entry[column] as bigint | string)),
    isKept,
  }
}

/** A `SumRow` whose words are replaced by numbers. @property place the numbers, in the order of `placeColumns` */
type NumberedRow = { place: readonly number[]; sums: readonly bigint[]; isKept: boolean }

/**
 * Computes the changes that entries make to a table. Each changed row appears once, as its columns and then its sums. A
 * sum is limited to 64 bits (`clampNanos`). Rows come in the order of the table's key, so servers that update the table
 * at once lock rows in the same order.
 */
export function rollUp(entries: readonly NumberedRow[], name: UsageTable): (number | bigint)[][] {
  const columns = usageTables[name].map((column) => placeColumns.indexOf(column))
  const kept = name === 'sums_k' ? entries : entries.filter(({ isKept }) => isKept)
  const rows = kept.map(({ place, sums }) => ({ place: columns.map((at) => place[at]!), sums: [...sums] }))
  rows.sort((a, b) => comparePlaces(a.place, b.place))
  const joined: typeof rows = []
  for (const row of rows) {
    const last = joined.at(-1)
    if (!last || comparePlaces(last.place, row.place) !== 0) joined.push(row)
    else for (const [at, sum] of row.sums.entries()) last.sums[at]! += sum
  }
  return joined.map(({ place, sums }) => [...place, ...sums.map(clampNanos)])
}

/** Compares rows of one table by the table's key. */
export function comparePlaces(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return a[at]! - b[at]!
  return 0
}

/** Returns the hour and the day of a quarter hour. Each is given as the number of its first quarter hour. */
export function hourAndDayOf(quarter: number, calendar: Pick<Calendar, 'periodOf'>): { hour: number; day: number } {
  const startOf = (period: 'hour' | 'day') => calendar.periodOf(quarter * quarterMs, period).startMs / quarterMs
  return { hour: startOf('hour'), day: startOf('day') }
}

/** Returns the value of each dimension of a report, such as account, key and model. @param row columns of an entry */
export function wordsOf(row: SummedEntries): Record<Dimension, string> {
  const text = (column: string) => (row[column] as string | null) ?? ''
  return {
    account: text('account_id'),
    key: text('key_id'),
    model: text('model'),
    wires: pairOf(text('client_wire'), text('model_wire')),
    upstream: text('upstream'),
    outcome: text('outcome'),
    tier: text('tier'),
    band: text('band'),
    person: text('person'),
    labels: text('labels'),
  }
}

/** Formats a pair of wires, such as `messages-to-chat`. Empty if one of them is unknown. */
export function pairOf(client: string, model: string): string {
  return client && model ? `${client}-to-${model}` : ''
}
