import { type Calendar, quarterMs } from '../calendar.ts'

/*
 * Rollups: the sums of the ledger by the dimensions of reports, so that no report reads the ledger (ruling C9). Entries
 * are
 * folded account by account up to a watermark. This is the number of the account's last folded entry. The commit that
 * adds the
 * rows moves it.
 */

/** The dimensions of figures. An empty text means unknown, as in entries of the first release. */
export const dimensions = ['account', 'key', 'model', 'wires', 'upstream', 'outcome'] as const

/** The dimensions of entries of form 3, which requests that cost nothing lack. */
export const paidDimensions = ['tier', 'band', 'person', 'labels'] as const

const all = [...dimensions, ...paidDimensions] as const

type Dimension = (typeof all)[number]

/** The summed columns; `cost` in nano-credits, less the amounts given back. */
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
 * By table the columns that tell its rows apart, in the order of its key. Hours and days are those of the reporting zone. Each
 * is named by the quarter hour that it begins with, counted since 1970: in some zones hours begin at half past.
 */
export const usageTables = {
  sums_h: ['hour', ...all],
  /** Those of a key stand together. */
  sums_d: ['account', 'key', 'day', 'model', 'wires', 'upstream', 'outcome', ...paidDimensions],
  /** Days of all accounts. */
  sums_t: ['day', 'model', 'wires', 'upstream', 'outcome', 'tier', 'band'],
  /** Of each key from its beginning on; never pruned. */
  sums_k: ['account', 'key'],
} as const

export type UsageTable = keyof typeof usageTables

export const tableNames = Object.keys(usageTables) as UsageTable[]

/** A row of one of the tables, or of any grouping of entries: its place by words, and sums in the order of `sumColumns`. */
export type SumRow = { place: Readonly<Record<string, string | number>>; sums: bigint[] }

/**
 * Entries of one quarter hour with equal words, summed by the store, since reading one costs more than all its further
 * work.
 * A row has `quarter`, the columns of their words, and sums by their columns.
 */
export type SummedEntries = Readonly<Record<string, unknown>>

/** All columns that tell rows apart. */
export const placeColumns = ['hour', 'day', ...all] as const

/**
 * Entries as a row, placed by all columns.
 * @param keptFrom rows of quarters before it are deleted, except those of `sums_k`: of such entries the words are account and key
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

/** The row of some entries with its words as numbers. @property place by `placeColumns` */
type NumberedRow = { place: readonly number[]; sums: readonly bigint[]; isKept: boolean }

/**
 * The changes that entries make to a table, each row once: its columns, then its sums. Rows come in the order of the table's key:
 * servers that add to it at once have that order in common.
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
  return joined.map(({ place, sums }) => [...place, ...sums])
}

/** Orders rows of one table by its key. */
export function comparePlaces(a: readonly number[], b: readonly number[]): number {
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return a[at]! - b[at]!
  return 0
}

/** The quarters that the hour and the day of a quarter begin with. */
export function hourAndDayOf(quarter: number, calendar: Pick<Calendar, 'periodOf'>): { hour: number; day: number } {
  const startOf = (period: 'hour' | 'day') => calendar.periodOf(quarter * quarterMs, period).startMs / quarterMs
  return { hour: startOf('hour'), day: startOf('day') }
}

/** @param row with the columns of an entry */
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

/** Such as `messages-to-chat`; empty where one of them is not known. */
export function pairOf(client: string, model: string): string {
  return client && model ? `${client}-to-${model}` : ''
}
