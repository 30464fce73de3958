import { type Calendar, quarterMs } from '../calendar.ts'

/*
 * Rollups: the sums of the ledger by what reports ask for, so that no report reads the ledger (ruling C9). They are folded
 * from the entries, account by account up to a watermark, which is the number of the account's last entry in them and moves in
 * the commit that adds the rows.
 */

/** What figures are told apart by. An empty text is what is not known, as in entries of the first release. */
export const dimensions = ['account', 'key', 'model', 'wires', 'upstream', 'outcome'] as const

type Dimension = (typeof dimensions)[number]

/** What is summed, by columns; `cost` in nano-credits, less what was given back. */
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

/** By table the columns that tell its rows apart, in the order of its key. Times are numbers of quarter hours since 1970. */
export const usageTables = {
  /** Quarter hours. */
  usage_q: ['quarter', ...dimensions],
  /** Days of the reporting zone, by the quarter that each begins with; those of a key stand together. */
  usage_d: ['account', 'key', 'day', 'model', 'wires', 'upstream', 'outcome'],
  /** The same of all accounts. */
  usage_t: ['day', 'model', 'wires', 'upstream', 'outcome'],
  /** Of each key from its beginning on; never pruned. */
  usage_k: ['account', 'key'],
} as const

export type UsageTable = keyof typeof usageTables

export const tableNames = Object.keys(usageTables) as UsageTable[]

/** A row of one of the tables, or of any grouping of entries: its place by words, and sums in the order of `sumColumns`. */
export type SumRow = { place: Readonly<Record<string, string | number>>; sums: bigint[] }

/**
 * Entries that differ in no word and lie in one quarter hour, put together by the store, since to read one costs more than all that
 * is done with it: `quarter`, the columns of their words, and sums by their columns.
 */
export type SummedEntries = Readonly<Record<string, unknown>>

/**
 * What entries add to the rows, each row once in the order of its key.
 * @param keptFrom of quarters before it there are no rows any more, but those of `usage_k`
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
    const day = calendar.periodOf(quarter * quarterMs, 'day').startMs / quarterMs
    const all = { ...wordsOf(entry), quarter, day }
    const added = sumColumns.map((column) => BigInt(entry[column] as bigint | string))
    for (const name of tableNames) if (name === 'usage_k' || quarter >= keptFrom) add(rows[name], name, all, added)
  }
  const sorted = tableNames.map((name) => [name, sortRows(name, [...rows[name].values()])])
  return Object.fromEntries(sorted) as Record<UsageTable, SumRow[]>
}

/** In the order of a table's key, which two who add to it at once have in common. */
function sortRows(name: UsageTable, rows: SumRow[]): SumRow[] {
  const columns = usageTables[name]
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
  }
}

/** Such as `messages-to-chat`; empty where one of them is not known. */
export function pairOf(client: string, model: string): string {
  return client && model ? `${client}-to-${model}` : ''
}
