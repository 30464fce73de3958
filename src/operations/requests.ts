import { z } from 'zod'
import { StoreSilent } from '../accounts/account.ts'
import { BookError } from '../accounts/book-error.ts'
import type { Books } from '../accounts/books.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { EntryPlace, ListedEntry } from '../accounts/entries.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { readFilter, readSpan } from './filter.ts'
import { filterFields, filterFlags } from './ledger.ts'
import { type RequestRow, requestRow } from './live-shapes.ts'
import { awayOf, type Context, operation } from './operation.ts'
import { ProblemError } from './problem.ts'
import {
  exportRequests,
  type ReadRequests,
  type RequestPage,
  requestSorts,
  sortedMax,
  sortLast,
} from './request-list.ts'
import { atOf, compareRows, fits, isBeyond, lateMs, type RequestFilter, type RequestPlace, toTokens } from './rows.ts'
import { type Explanation, explanation } from './shapes.ts'

export const words = (what: string, isOne: (word: string) => boolean = () => true, error = '') =>
  field.someWords
    .refine((list) => list.every(isOne), { error })
    .optional()
    .describe(`only requests with one of these ${what}, separated by commas`)

const isStatus = (word: string) => /^[1-5]\d\d$/.test(word)

const input = z.strictObject({
  account: filterFields.account,
  key: filterFields.key,
  model: words('models'),
  upstream: words('upstreams'),
  outcome: field.outcome,
  status: words(
    'HTTP statuses (older requests, from the ledger, have none)',
    isStatus,
    'must be statuses such as 200 or 429,500',
  ),
  from: field.dayOrTime
    .optional()
    .describe('only requests that ended from this time on: a day of the reporting zone, or a time'),
  to: field.dayOrTime.optional().describe('only requests that ended before this time'),
  sort: z
    .enum(requestSorts)
    .default('-at')
    .describe(
      `the order; \`-at\`: the latest first; any other order sorts only the last ${sortedMax} matching requests, on a single page`,
    ),
  ...field.paging,
})

export const requestId = field
  .text('must be a request id')
  .regex(/^[\w-]{1,100}$/, { error: 'is no request id: it stands in x-request-id of the answer, such as req_…' })
  .describe('the x-request-id of the answer')

export const requestOperations = [
  operation({
    id: 'request.list',
    http: 'GET /requests',
    role: 'viewer',
    kind: 'list',
    input,
    output: requestRow,
    problems: ['cursor_invalid', 'store_unavailable'],
    text: 'list the last requests, including failed ones; older requests come from the ledger, which has only billed requests',
    cli: [
      {
        command: 'requests',
        options: {
          ...filterFlags.options,
          upstream: '--upstream <names>',
          outcome: '--outcome <outcomes>',
          status: '--status <statuses>',
          sort: '--sort <order>',
        },
        reads: filterFlags.reads,
        rows: 50,
      },
    ],
    asks: 'server',
    isOfAll: true,
    async *csv(context, { sort, limit: _, cursor: __, ...asked }) {
      yield* exportRequests(await readerOf(context, asked), sort)
    },
    async run(context, { sort, limit, cursor: _, ...asked }) {
      const filter = await toFilter(context, asked)
      if (sort === '-at') return listLast(context, filter, limit)
      const items = (await sortLast((...page) => lastRequests(context, filter, ...page), sort)).slice(0, limit)
      return { items, unbilledSince: await unbilledSinceOf(context, filter) }
    },
  }),
  operation({
    id: 'request.explain',
    http: 'GET /requests/{request}/explain',
    role: 'viewer',
    input: z.strictObject({
      request: requestId,
    }),
    output: explanation,
    problems: ['not_found', 'conflict', 'store_unavailable'],
    text: 'explain the answer to a request: attempts, fields that were lost in translation, usage, price and settlement',
    cli: [{ command: 'explain', arguments: ['request'] }],
    asks: 'server',
    isOfAll: true,
    async run({ running, openBooks }, { request }) {
      const found = await running.explain(request)
      if (found === 'unknown') {
        const archived = await (await openBooks()).findArchived(request)
        if (archived) throw new BookError('month_away', archived.month)
        const unreached = running.listUnreached()
        const rest = unreached.length > 0 ? ` These servers could not be asked: ${unreached.join(', ')}.` : ''
        throw new ProblemError('not_found', `Neither memory nor ledger has such a request.${rest}`)
      }
      if (found === 'silent') throw new ProblemError('store_unavailable', 'The ledger cannot be read now: try again.')
      return { body: { ...found, ...(await namesOf(found, openBooks)) } }
    },
  }),
]

/**
 * Finds the names of a request's key and person. Returns no names if the store does not answer. The explanation itself
 * may come from memory, so a silent store must not prevent it.
 */
async function namesOf({ key, person }: Explanation, openBooks: Context['openBooks']) {
  try {
    const books = await openBooks()
    const found = key?.id ? (await books.findKeys(key.id)).find(({ id }) => id === key.id) : undefined
    const persons = person ? await books.namePersons([person]) : undefined
    return { key_name: found?.label ?? null, person_name: persons?.get(person!)?.name ?? null }
  } catch (error) {
    if (error instanceof StoreSilent) return {}
    throw error
  }
}

/** Returns a page of the newest requests that match a filter. The page begins where the previous page ended. */
export async function listLast(context: Context, filter: RequestFilter, limit: number) {
  const [atMs, id] = readPlace(context.beyond, ['number', 'string']) ?? []
  const beyond = id === undefined ? undefined : { atMs: atMs!, id }
  const { rows, end } = await lastRequests(context, filter, limit, beyond)
  if (end) return { items: rows, next: [end.atMs, end.id] }
  const away = await awayOf(await context.openBooks(), filter)
  return { items: rows, away, unbilledSince: await unbilledSinceOf(context, filter) }
}

/**
 * Returns the time since which requests without a bill are in memory. They are nowhere else, so the list lacks earlier
 * ones. Undefined if the filter begins at that time or later.
 */
async function unbilledSinceOf({ running }: Context, { sinceMs = 0 }: RequestFilter) {
  const ms = await running.readUnbilledSinceMs()
  return sinceMs < ms ? field.formatTime(ms)! : undefined
}

type RequestQuery = Omit<z.output<typeof input>, 'sort' | 'limit' | 'cursor'>

async function readerOf(context: Context, asked: RequestQuery): Promise<ReadRequests> {
  const filter = await toFilter(context, asked)
  return (limit, beyond) => lastRequests(context, filter, limit, beyond)
}

/** Converts a query to a filter. To replace names by ids, it reads the books (accounts and keys). */
async function toFilter({ openBooks, calendar }: Context, asked: RequestQuery): Promise<RequestFilter> {
  const { account, key } = asked
  const isNamed = account !== undefined || key !== undefined
  const named = isNamed ? await readFilter({ books: await openBooks(), calendar }, { account, key }) : {}
  return {
    accountId: named.accountId,
    keyIds: named.keyIds,
    models: asked.model,
    upstreams: asked.upstream,
    outcomes: asked.outcome,
    statuses: asked.status,
    ...readSpan(calendar, asked),
  }
}

/** The number of entries in one read of the ledger, and the most reads for a page if few entries match. */
const [entriesAtOnce, readingsMax] = [250, 20]

/**
 * Returns a page of requests from memory and ledger, the newest first, beginning after `beyond`. A request that is in
 * both comes from memory.
 * @returns fewer rows than `limit` if a search of the ledger takes too long; the next page then continues at `end`
 */
async function lastRequests(
  context: Context,
  filter: RequestFilter,
  limit: number,
  beyond: RequestPlace | undefined,
): Promise<RequestPage> {
  const recent = await context.running.listRequests(filter, limit + 1, beyond)
  const last = recent[limit - 1]
  // Memory has all requests since `rememberedSinceMs`. Of older requests it has only some, such as requests without an
  // account. So a page that reaches back beyond that time must also read the ledger.
  const isWhole = last !== undefined && Date.parse(last.at) > context.running.rememberedSinceMs()
  if (context.running.isAlone && isWhole && recent.length > limit)
    return { rows: recent.slice(0, limit), end: placeOf(last) }
  // Requests of other servers are in the ledger only.
  const { rows: posted, edge } = await readLedger(context, filter, limit + 1, beyond).catch((error: unknown) => {
    if (error instanceof StoreSilent && recent.length > 0) return { rows: [], edge: undefined }
    throw error
  })
  const known = await context.running.findRequests(posted.map(({ request_id }) => request_id))
  const merged = [...recent, ...posted.filter(({ request_id }) => !known.has(request_id))].sort(compareRows)
  // `edge` is where the search of the ledger stopped. Rows after this place may be missing, so none of them is shown.
  const seen = edge === undefined ? merged : merged.filter((row) => !isBeyond(row, edge))
  const rows = seen.slice(0, limit)
  if (seen.length > limit) return { rows, end: placeOf(rows.at(-1)!) }
  return { rows, end: edge }
}

/**
 * Finds the latest matching requests in the ledger. `edge` is where the search stopped; undefined if nothing is left.
 */
async function readLedger(
  context: Context,
  filter: RequestFilter,
  limit: number,
  beyond: RequestPlace | undefined,
): Promise<{ rows: RequestRow[]; edge: RequestPlace | undefined }> {
  const rows: RequestRow[] = []
  // Entries of the ledger have no status, so none can match.
  if (filter.statuses !== undefined) return { rows, edge: undefined }
  const books = await context.openBooks()
  const { accountId, keyIds, models, sinceMs } = filter
  const endMs = Math.min(filter.untilMs ?? Number.POSITIVE_INFINITY, (beyond?.atMs ?? Number.POSITIVE_INFINITY) + 1)
  const which = {
    accountId,
    keyIds,
    model: models?.length === 1 ? models[0] : undefined,
    // The ledger is sorted by the time of posting, which differs from `at` by at most `lateMs`.
    sinceMs: sinceMs === undefined ? undefined : sinceMs - lateMs,
    untilMs: Number.isFinite(endMs) ? endMs + lateMs : undefined,
  }
  let place: EntryPlace | undefined
  let start = beyond?.atMs
  for (let reading = 0; reading < readingsMax || !isFurther(place!, start); reading++) {
    const entries: Awaited<ReturnType<Books['listEntries']>> = await books.listEntries({
      ...which,
      limit: entriesAtOnce,
      beyond: place,
    })
    for (const entry of entries) {
      const { bill } = entry
      const row = bill && rowOfDebit({ ...entry, bill })
      if (row && fits(row, filter) && (!beyond || isBeyond(row, beyond))) rows.push(row)
    }
    const last = entries.at(-1)
    start ??= entries[0] && edgeOf(entries[0])
    if (!last || entries.length < entriesAtOnce) return { rows, edge: undefined }
    place = { postedMs: last.postedMs, accountId: last.accountId, seq: last.seq }
    if (rows.length >= limit && Date.parse(rows.sort(compareRows)[limit - 1]!.at) > edgeOf(place)) break
  }
  // The next page can have only requests that ended at `edgeOf(place)` or earlier, because no id is smaller than ''.
  return { rows, edge: { atMs: edgeOf(place!) + 1, id: '' } }
}

/** Whether a page from `startMs` to `place` makes any progress. Without progress, paging would never end. */
function isFurther(place: EntryPlace, startMs: number | undefined): boolean {
  return startMs === undefined || edgeOf(place) + 1 < startMs
}

/**
 * Returns the latest `at` of the requests that are not read yet. They were posted at this place or earlier, and `at` is
 * at most `lateMs` later than the posting.
 */
function edgeOf({ postedMs }: EntryPlace): number {
  return postedMs + lateMs
}

function placeOf({ at, request_id: id }: RequestRow): RequestPlace {
  return { atMs: Date.parse(at), id }
}

/** Makes the row of a request that is only in the ledger. */
function rowOfDebit(entry: ListedEntry & { bill: NonNullable<ListedEntry['bill']> }): RequestRow {
  const { bill, keyPrefix, keyLabel } = entry
  const { cache_write_1h_tokens: _, ...tokens } = toTokens(bill.usage)
  const key = { id: bill.keyId ?? null, prefix: keyPrefix ?? null, label: keyLabel ?? null }
  return {
    request_id: bill.requestId,
    at: field.formatTime(atOf(entry))!,
    account: { id: entry.accountId, name: entry.accountName ?? null },
    key: bill.keyId === undefined ? null : key,
    person: entry.details?.person ?? null,
    labels: entry.details?.labels ?? null,
    model: bill.model,
    alias: entry.details?.alias ?? null,
    client_wire: bill.clientWire ?? null,
    model_wire: bill.modelWire ?? null,
    upstream: bill.upstream ?? null,
    upstream_account: bill.upstreamAccount ?? null,
    outcome: bill.outcome,
    ...{ status: null, code: null, cause: null },
    credits: formatCredits(entry.amountNanos),
    ...tokens,
    ...{ first_byte_ms: null, total_ms: null, attempts: null },
    source: 'ledger',
  }
}
