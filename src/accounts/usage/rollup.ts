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

/**
 * The changes that entries make to the rows, each row once in the order of its key.
 * @param keptFrom rows of quarters before it are deleted, except those of `sums_k`
 */
export function rollUp(
  entries: Iterable<SummedEntries>,
  calendar: Pick<Calendar, 'periodOf'>,
  keptFrom: number,
): Record<UsageTable, SumRow[]> {
  const rows = Object.fromEntries(tableNames.map((name) => [name, new Map<string, SumRow>()])) as Record<
    UsageTable,
    Map<string, SumRow>
  >
  for (const entry of entries) {
    const quarter = Number(entry['quarter'])
    const place = { ...wordsOf(entry), ...hourAndDayOf(quarter, calendar) }
    const added = sumColumns.map((column) => BigInt(entry[column] as bigint | string))
    for (const name of tableNames) if (name === 'sums_k' || quarter >= keptFrom) add(rows[name], name, place, added)
  }
  const sorted = tableNames.map((name) => [name, sortByPlace([...rows[name].values()], usageTables[name])])
  return Object.fromEntries(sorted) as Record<UsageTable, SumRow[]>
}

/** The quarters that the hour and the day of a quarter begin with. */
export function hourAndDayOf(quarter: number, calendar: Pick<Calendar, 'periodOf'>): { hour: number; day: number } {
  const startOf = (period: 'hour' | 'day') => calendar.periodOf(quarter * quarterMs, period).startMs / quarterMs
  return { hour: startOf('hour'), day: startOf('day') }
}

/** Sorts rows of a table by its key: servers that add to it at once have that order in common. */
export function sortByPlace<T extends Pick<SumRow, 'place'>>(rows: T[], columns: readonly string[]): T[] {
  return rows.sort((a, b) => {
    for (const column of columns) {
      const [left, right] = [a.place[column]!, b.place[column]!]
      if (left !== right) return left < right ? -1 : 1
    }
    return 0
  })
}

function add(rows: Map<string, SumRow>, name: UsageTable, all: Record<string, string | number>, added: bigint[]): void {
  const columns = usageTables[name]
  let key = ''
  for (const column of columns) key += `${all[column]}\n`
  const row = rows.get(key)
  if (row) for (const [at, sum] of added.entries()) row.sums[at]! += sum
  else rows.set(key, { place: Object.fromEntries(columns.map((column) => [column, all[column]!])), sums: [...added] })
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
