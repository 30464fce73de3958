import { formatCalls, parseCalls } from './calls.ts'
import { type DetailColumn, detailColumns, type EntryColumn, entryKinds, formOf } from './chain.ts'
import { type Entry, readReturnReference } from './entries.ts'
import type { Debit, EntryDetails, Origin } from './ledger.ts'
import type { registers } from './registers.ts'

/** An entry to verify, with the data that it is compared with. */
export type VerifiedEntry = {
  entry: Entry
  row: Record<string, unknown>
  /** The name of the account; undefined if the account does not exist. */
  accountName: string | undefined
  /** The account and prefix of the entry's key. Undefined if the entry has no key, or if the key does not exist. */
  keyAccountId: string | undefined
  keyPrefix: string | undefined
  /** The time at which the entry counts; undefined if it is the posting time. */
  shiftedMs: number | undefined
}

export type VerifiedBill = NonNullable<Entry['bill']>

/** All columns of an entry except its id and digest. */
export const fieldColumns = Object.keys(entryKinds) as EntryColumn[]

type ColumnValue = null | number | bigint | string

/** All columns except the id. Each store assigns its own ids. */
export const entryColumns = [...fieldColumns, 'digest'] as const

/** The number of columns that an entry of any form can use. The columns after them are only for form 3 (chain.ts). */
const plainCount = fieldColumns.length - detailColumns.length

type Prepare = (sql: string) => { run(...values: ColumnValue[]): { changes: number | bigint } }

/**
 * Makes a function that inserts rows in SQLite. A row without columns of form 3 is inserted by a shorter statement,
 * which costs less.
 */
export function createInsert(prepare: Prepare) {
  const create = (count: number) => {
    const columns = [...fieldColumns.slice(0, count), 'digest']
    return prepare(`INSERT INTO entries (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
  }
  const [plain, detailed] = [create(plainCount), create(fieldColumns.length)]
  /** Inserts a row. @param values in the order of `fieldColumns` @returns whether the row is new */
  return (values: readonly ColumnValue[], digest: string): boolean => {
    const { changes } = digest.startsWith('3')
      ? detailed.run(...values, digest)
      : plain.run(...values.slice(0, plainCount), digest)
    return Boolean(changes)
  }
}

/**
 * A row in which every column is null. Every row begins as a copy of it, which keeps the columns in the order of
 * `fieldColumns`.
 */
const blankRow = Object.fromEntries(fieldColumns.map((column) => [column, null])) as Record<EntryColumn, ColumnValue>

/** Returns the values of a database row in the order of `fieldColumns`. */
export function valuesOf(row: Readonly<Record<string, unknown>>): ColumnValue[] {
  return fieldColumns.map((column) => (row[column] ?? null) as ColumnValue)
}

/** A row in which number, balance and time are still null. They are assigned when the row is posted. */
export type UnplacedRow = typeof blankRow

/** Makes the row of a credit. @param effectiveMs makes the credit a correction, see corrections.ts */
export function creditRow(
  amountNanos: bigint,
  reference: string,
  createdMs: number,
  effectiveMs?: number,
): UnplacedRow {
  const row = { ...blankRow, kind: 'credit', amount: amountNanos, reference, priced_calls: 0, created_ms: createdMs }
  return effectiveMs === undefined ? row : { ...row, effective: effectiveMs }
}

/** For each column that exists only in form 3 (chain.ts): the field of `EntryDetails`. */
const detailFields = {
  list: 'list',
  band: 'band',
  tier: 'tier',
  geo: 'geo',
  person: 'person',
  labels: 'labels',
  cost_version: 'costVersion',
  cost: 'costNanos',
  cost_reported: 'costReported',
  alias: 'alias',
  fell_back_from: 'fellBackFrom',
  fell_back_cause: 'fellBackCause',
  moved: 'moved',
  effective: 'effectiveMs',
} as const satisfies Record<DetailColumn, keyof EntryDetails>

/** Converts the details of an entry to column values. */
function detailRow(details: EntryDetails): Partial<UnplacedRow> {
  return Object.fromEntries(detailColumns.map((column) => [column, details[detailFields[column]] ?? null]))
}

/** Reads the details of an entry from its columns. Returns undefined if the row has none. */
function readDetails(row: Record<string, unknown>): EntryDetails | undefined {
  if (formOf(row) !== '3') return undefined
  const details = detailColumns.flatMap((column) => {
    const value = row[column] ?? undefined
    return value === undefined ? [] : [[detailFields[column], column === 'effective' ? Number(value) : value]]
  })
  return Object.fromEntries(details)
}

/**
 * Columns that a return (an entry that gives a debit back) copies from its debit. So in sums by these columns, the two
 * entries cancel out.
 */
const returnedColumns = [
  'outcome',
  'list',
  'band',
  'tier',
  'geo',
  'person',
  'labels',
  'alias',
  'fell_back_from',
] as const

const originColumns = ['key_id', 'client_wire', 'model', 'model_wire', 'upstream', 'upstream_account'] as const

/**
 * Makes the row that gives a debit back. It copies the origin and the `returnedColumns` of the debit. In sums by key,
 * model or outcome, the two entries therefore cancel out.
 */
export function returnRow(debit: Record<string, unknown>, reference: string, createdMs: number): UnplacedRow {
  const row = { ...creditRow(debit.amount as bigint, reference, createdMs), usage_source: 'waived' }
  for (const column of [...originColumns, ...returnedColumns]) row[column] = (debit[column] ?? null) as ColumnValue
  return row
}

export function debitRow(debit: Debit): UnplacedRow {
  const { usage } = debit
  return {
    ...blankRow,
    kind: 'debit',
    amount: debit.amountNanos,
    request_id: debit.requestId,
    key_id: debit.keyId ?? null,
    client_wire: debit.clientWire ?? null,
    model: debit.model,
    model_wire: debit.modelWire ?? null,
    upstream: debit.upstream ?? null,
    upstream_account: debit.upstreamAccount ?? null,
    input_tokens: usage.inputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    cache_write_1h_tokens: usage.cacheWrite1hTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    priced_calls: debit.pricedCalls,
    calls: formatCalls(debit.calls) ?? null,
    usage_source: debit.usageSource,
    price_version: debit.priceVersion,
    outcome: debit.outcome,
    created_ms: debit.createdMs,
    ...(debit.details && detailRow(debit.details)),
  }
}

/** Columns whose values depend on the entry's place in the chain. */
const placeColumns: readonly string[] = ['seq', 'balance_after', 'posted_ms']

/** All columns except `placeColumns`. Their values come from the debit or credit itself. */
export const givenColumns = fieldColumns.filter((column) => !placeColumns.includes(column))

const givenKinds = fieldColumns.map((column) => (placeColumns.includes(column) ? undefined : entryKinds[column]))

/** Whether each value has the type of its column. Otherwise the database converts values, and digests do not match. */
export function isWellTyped(row: UnplacedRow): boolean {
  const values = Object.values(row)
  for (let at = 0; at < values.length; at++) {
    const [kind, value] = [givenKinds[at], values[at]]
    if (kind === undefined) continue
    const isAbsent = value === null && (kind === 'text' || at >= plainCount)
    const isOfKind =
      kind === 'text' ? typeof value === 'string' : typeof value === 'bigint' || Number.isSafeInteger(value)
    if (!isAbsent && !isOfKind) return false
  }
  return true
}

export function readEntry(row: Record<string, unknown>): Entry {
  return {
    accountId: row.account_id as string,
    seq: Number(row.seq),
    kind: row.kind as Entry['kind'],
    amountNanos: row.amount as bigint,
    balanceAfterNanos: row.balance_after as bigint,
    createdMs: Number(row.created_ms),
    postedMs: Number(row.posted_ms),
    digest: row.digest as string,
    reference: (row.reference as string | null) ?? undefined,
    bill: row.kind === 'debit' ? readBill(row) : undefined,
    returned: readReturn(row),
    details: readDetails(row),
  }
}

function readReturn(row: Record<string, unknown>): Entry['returned'] {
  const isReturn = row.kind === 'credit' && row.usage_source === 'waived'
  const requestId = isReturn ? readReturnReference(String(row.reference)) : undefined
  return requestId === undefined ? undefined : { requestId, ...readOrigin(row) }
}

/** Reads the token counts of an entry, or of a sum of entries. */
export function readCounters(row: Record<string, unknown>) {
  return {
    inputTokens: Number(row.input_tokens),
    cacheReadTokens: Number(row.cache_read_tokens),
    cacheWriteTokens: Number(row.cache_write_tokens),
    cacheWrite1hTokens: Number(row.cache_write_1h_tokens),
    outputTokens: Number(row.output_tokens),
    reasoningTokens: Number(row.reasoning_tokens),
  }
}

function readBill(row: Record<string, unknown>): Entry['bill'] {
  const usageSource = row.usage_source as Debit['usageSource']
  return {
    requestId: row.request_id as string,
    ...readOrigin(row),
    usage: { ...readCounters(row), estimated: usageSource === 'estimated' },
    usageSource,
    pricedCalls: Number(row.priced_calls),
    calls: parseCalls(row.calls as string | null),
    priceVersion: row.price_version as string,
    outcome: row.outcome as Debit['outcome'],
  }
}

export function readPrices(row: Record<string, unknown>): Debit['prices'] {
  return {
    inputNanos: row.input as bigint,
    cacheReadNanos: row.cache_read as bigint,
    cacheWriteNanos: row.cache_write as bigint,
    cacheWrite1hNanos: row.cache_write_1h as bigint,
    outputNanos: row.output as bigint,
    ...(row.terms ? parseTerms(row.terms as string) : undefined),
  }
}

/** Converts prices to the columns of a price version. */
export function priceRow(version: string, prices: Debit['prices']) {
  return {
    version,
    input: prices.inputNanos,
    cache_read: prices.cacheReadNanos,
    cache_write: prices.cacheWriteNanos,
    cache_write_1h: prices.cacheWrite1hNanos,
    output: prices.outputNanos,
    terms: formatTerms(prices),
  } satisfies Record<keyof (typeof registers)['prices'], unknown>
}

/**
 * Formats the prices of steps and of calls as one text (ruling C11), because they have no columns of their own. Amounts
 * become texts of decimal digits, because JSON numbers cannot hold them exactly.
 */
function formatTerms({ steps, calls }: Debit['prices']): string | null {
  if (steps === undefined && calls === undefined) return null
  return JSON.stringify({ steps, calls }, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
}

/** Parses a text that `formatTerms` has made. */
export function parseTerms(text: string): Pick<Debit['prices'], 'steps' | 'calls'> {
  return JSON.parse(text, (_, value) => (typeof value === 'string' ? BigInt(value) : value))
}

function readOrigin(row: Record<string, unknown>): Origin {
  const text = (column: string) => (row[column] as string | null) ?? undefined
  return {
    keyId: text('key_id'),
    clientWire: text('client_wire') as Origin['clientWire'],
    model: row.model as string,
    modelWire: text('model_wire') as Origin['modelWire'],
    upstream: text('upstream'),
    upstreamAccount: text('upstream_account'),
  }
}
