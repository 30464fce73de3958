import { formatCsvTable } from './csv.ts'
import { type RequestRow, requestRow } from './live-shapes.ts'
import type { RequestPlace } from './rows.ts'

/** A page of requests, the latest first. The next page begins after `end`, which is undefined on the last page. */
export type RequestPage = { rows: RequestRow[]; end: RequestPlace | undefined }

/**
 * Reads the page of requests after the place `beyond`.
 * @param limit the most rows. If a search takes too long, the page has fewer rows and an `end`
 */
export type ReadRequests = (limit: number, beyond: RequestPlace | undefined) => Promise<RequestPage>

/** The values by which requests can be sorted. */
const values = {
  at: ({ at }: RequestRow) => Date.parse(at),
  credits: ({ credits }: RequestRow) => credits && Number(credits),
  first_byte_ms: ({ first_byte_ms }: RequestRow) => first_byte_ms,
  total_ms: ({ total_ms }: RequestRow) => total_ms,
  input_tokens: (row: RequestRow) =>
    row.input_tokens === null ? null : row.input_tokens + (row.cache_read_tokens ?? 0) + (row.cache_write_tokens ?? 0),
  output_tokens: ({ output_tokens }: RequestRow) => output_tokens,
}

const names = Object.keys(values) as (keyof typeof values)[]

/** The orders of a list of requests. With a minus sign the largest value comes first. */
export const requestSorts = names.flatMap((name) => [`-${name}` as const, name])

type RequestOrder = (typeof requestSorts)[number]

/**
 * The largest number of requests that a sorted list covers. Neither memory nor ledger has an index of `values`, so all
 * these requests are read.
 */
export const sortedMax = 5_000
/** The most requests in one read, and the most reads. Rare matches in a long ledger could need many more reads. */
const [rowsAtOnce, readsMax] = [500, 20]

/** Reads the newest matching requests, at most `sortedMax`, and sorts them. Rows without the sorted value come last. */
export async function sortLast(read: ReadRequests, sort: RequestOrder): Promise<RequestRow[]> {
  const rows: RequestRow[] = []
  let beyond: RequestPlace | undefined
  for (let reads = 0; reads < readsMax && rows.length < sortedMax; reads++) {
    const page = await read(rowsAtOnce, beyond)
    rows.push(...page.rows)
    beyond = page.end
    if (!beyond) break
  }
  const sign = sort.startsWith('-') ? -1 : 1
  const value = values[sort.replace('-', '') as keyof typeof values]
  const last = Number.POSITIVE_INFINITY
  const keyed = rows.slice(0, sortedMax).map((row) => ({ row, key: sign * Number(value(row) ?? sign * last) }))
  return keyed.sort((a, b) => (a.key === b.key ? 0 : a.key - b.key)).map(({ row }) => row)
}

const parts = { account: ['account', 'account_name'], key: ['key_id', 'key_prefix', 'key_label'] } as const

/** The columns of the export: the fields of a row in their order, with a column for each field of account and key. */
const columns = requestRow
  .keyof()
  .options.flatMap((name): readonly (keyof ReturnType<typeof flatten>)[] =>
    name === 'account' || name === 'key' ? parts[name] : [name],
  )

function flatten({ account, key, ...row }: RequestRow) {
  return {
    ...row,
    account: account?.id ?? null,
    account_name: account?.name ?? null,
    key_id: key?.id ?? null,
    key_prefix: key?.prefix ?? null,
    key_label: key?.label ?? null,
  }
}

/**
 * Formats all matching requests as CSV. If the order is not by time, it formats only the requests that `sortLast`
 * returns.
 */
export async function* exportRequests(read: ReadRequests, sort: RequestOrder): AsyncIterable<string> {
  // The first page is read before anything is written, so that an invalid query can still be reported.
  const first =
    sort === '-at' ? await read(rowsAtOnce, undefined) : { rows: await sortLast(read, sort), end: undefined }
  yield* formatCsvTable(columns, ['credits'], eachRow(read, first))
}

async function* eachRow(read: ReadRequests, first: RequestPage): AsyncIterable<ReturnType<typeof flatten>> {
  for (let page = first; ; page = await read(rowsAtOnce, page.end)) {
    yield* page.rows.map(flatten)
    if (!page.end) return
  }
}
