import { z } from 'zod'
import { formatCredits } from '../accounts/credit.ts'
import { dayShifts } from '../accounts/day-shifts.ts'
import { type EntryFilter, type Grouping, groupings, type Total } from '../accounts/entries.ts'
import type { Principal } from '../accounts/principals.ts'
import { formatCsvTable } from './csv.ts'
import { readPlace } from './cursor.ts'
import { debitShape, formatCsv, lineShape, toDebit, toLine } from './entry-lines.ts'
import * as field from './fields.ts'
import { readFilter } from './filter.ts'
import { awayOf, type Context, type Operation, operation, page } from './operation.ts'
import { ProblemError } from './problem.ts'
import { toTokens } from './rows.ts'
import { tokens } from './shapes.ts'

/** The fields that select ledger entries. */
export const filterFields = {
  account: field.text('must be a text').optional().describe('only data of this account, by name or id'),
  key: field.text('must be a text').optional().describe('only data of this key, by id, first characters or label'),
  model: field.text('must be a text').optional().describe('only data of this model, by its id in the catalog'),
  from: field.dayOrTime
    .optional()
    .describe(
      'only entries from this time on: a day of the reporting zone such as 2026-11-21, or 2026-11-21T08:30:00Z',
    ),
  to: field.dayOrTime.optional().describe('only entries posted before this time'),
}

/** The command-line options for `filterFields`. On the command line, the day that `--until` names is included. */
export const filterFlags = {
  options: {
    account: '--account <account>',
    key: '--key <key>',
    model: '--model <model>',
    from: '--since <time>',
    to: '--until <time>',
  },
  reads: { to: field.nextDay },
}

const named = z.string().nullable().optional()

const totalsInput = z.strictObject({
  ...filterFields,
  by: field
    .someOf(groupings, groupings.length, `Write any of ${groupings.join(', ')}, with commas between them.`)
    .optional()
    .describe(
      `the columns to group by, separated by commas: any of ${groupings.join(', ')}; default: one row for everything`,
    ),
})

type TotalsInput = z.output<typeof totalsInput>

/** The fields by which sums can be grouped. */
const groupShape = {
  day: z.string().optional().describe('a day of the reporting zone'),
  model: named,
  account: z.string().optional(),
  account_name: named,
  key_id: named,
  key_prefix: named,
  key_label: named,
  upstream: named,
}

/** The fields of each grouping. */
const fieldsOf = {
  day: ['day'],
  model: ['model'],
  account: ['account', 'account_name'],
  key: ['key_id', 'key_prefix', 'key_label'],
  upstream: ['upstream'],
} as const satisfies Record<Grouping, readonly (keyof typeof groupShape)[]>

/** One row of `ledger totals`. The values by which it is grouped come first, and then its sums. */
const totalShape = field.named('LedgerTotal', {
  ...groupShape,
  requests: z.number().describe('debits that were not refunded'),
  billed: field.amount,
  credited: field.amount,
  ...tokens,
})

export type TotalRow = z.output<typeof totalShape>

const marginShape = field.named('LedgerMargin', {
  ...groupShape,
  requests: z.number().describe('debits that were not refunded'),
  billed: field.amount,
  cost: field.amount.describe('what providers charge by their price lists, also for refunded debits'),
  margin: field.amount.nullable().describe('`billed` minus `cost`; null while `without_cost` is not 0'),
  without_cost: z.number().describe('debits without a cost, for lack of a price list of the provider'),
})

type MarginRow = z.output<typeof marginShape>

function toMargin(total: Total): MarginRow {
  const { requests, billedNanos, costNanos, withoutCost } = total
  return {
    ...toGroup(total),
    requests,
    billed: formatCredits(billedNanos),
    cost: formatCredits(costNanos),
    margin: withoutCost > 0 ? null : formatCredits(billedNanos - costNanos),
    without_cost: withoutCost,
  }
}

function toTotal(total: Total): TotalRow {
  return {
    ...toGroup(total),
    requests: total.requests,
    billed: formatCredits(total.billedNanos),
    credited: formatCredits(total.creditedNanos),
    ...toTokens(total),
  }
}

function toGroup(total: Total) {
  return {
    ...('dayMs' in total && { day: new Date(total.dayMs!).toISOString().slice(0, 10) }),
    ...('model' in total && { model: total.model ?? null }),
    ...('accountId' in total && { account: total.accountId!, account_name: total.accountName ?? null }),
    ...('keyId' in total && {
      key_id: total.keyId ?? null,
      key_prefix: total.keyPrefix ?? null,
      key_label: total.keyLabel ?? null,
    }),
    ...('upstream' in total && { upstream: total.upstream ?? null }),
  }
}

/** Whether a caller sees costs (ruling Y22): finance, admins, and the command line, which reads the store itself. */
function seesCosts(who: Principal | undefined): boolean {
  return who === undefined || (who.kind === 'operator' && who.role !== 'viewer')
}

async function sumTotals(context: Context, { by = [], ...input }: TotalsInput): Promise<Total[]> {
  const { books, calendar, nowMs } = context
  const filter = await readFilter(context, input)
  const untilMs = Math.min(filter.untilMs ?? nowMs, nowMs)
  const shifts = by.includes('day') ? dayShifts(calendar, { sinceMs: filter.sinceMs, untilMs }) : undefined
  return books.sumEntries(filter, by, shifts)
}

/** A row of sums; its members are the columns. */
type SumCells = Readonly<Record<string, string | number | null | undefined>>

type SumWords<Shape extends z.ZodObject> = Pick<Operation, 'id' | 'role' | 'text'> & {
  output: Shape
  tell(total: Total): z.output<Shape> & SumCells
  /** The CSV columns whose values are decimal numbers written as texts. */
  amounts: readonly string[]
}

/**
 * Makes an operation that sums entries. All such operations have the same groupings and filters. The operation
 * `ledger.totals` has the route `GET /ledger/totals`.
 */
function sumOperation<Shape extends z.ZodObject>({ tell, amounts, ...words }: SumWords<Shape>): Operation {
  const command = words.id.replace('.', ' ')
  const rowsOf = async (context: Context, input: TotalsInput) => (await sumTotals(context, input)).map(tell)
  return operation({
    ...words,
    http: `GET /${words.id.replace('.', '/')}`,
    kind: 'list',
    input: totalsInput,
    problems: ['conflict'],
    atOnce: 2,
    cli: [
      {
        command,
        options: { ...filterFlags.options, by: '--by <columns>' },
        reads: filterFlags.reads,
        rows: 'all',
      },
    ],
    async *csv(context, input) {
      const named: readonly string[] = (input.by ?? []).flatMap((name) => fieldsOf[name])
      const columns = Object.keys(words.output.shape).filter((name) => named.includes(name) || !(name in groupShape))
      yield* formatCsvTable<SumCells>(columns, amounts, await rowsOf(context, input))
    },
    run: async (context, input) => ({ items: await rowsOf(context, input) }),
  })
}

export const ledgerOperations = [
  operation({
    id: 'ledger.list',
    http: 'GET /ledger',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({ ...filterFields, ...field.paging }),
    output: lineShape,
    problems: ['cursor_invalid', 'conflict'],
    text: 'list the newest entries of the ledger',
    cli: [{ command: 'ledger list', ...filterFlags, rows: 50 }],
    async *csv(context, input) {
      yield* formatCsv(context.books.eachEntry(await readFilter(context, input)), seesCosts(context.who))
    },
    async run(context, { limit, ...input }) {
      const { books, beyond } = context
      const filter: EntryFilter = await readFilter(context, input)
      const [postedMs, accountId, seq] = readPlace(beyond, ['number', 'string', 'number']) ?? []
      const place = seq === undefined ? undefined : { postedMs: postedMs!, accountId: accountId!, seq }
      const rows = await books.listEntries({ ...filter, limit: limit + 1, beyond: place })
      const listed = page(
        rows,
        limit,
        (row) => toLine(row, seesCosts(context.who)),
        (row) => [row.postedMs, row.accountId, row.seq],
      )
      return listed.next ? listed : { ...listed, away: await awayOf(books, filter) }
    },
  }),
  sumOperation({
    id: 'ledger.totals',
    role: 'reader',
    output: totalShape,
    text: 'sum entries: the credits that were billed, the credits that were added, and the tokens',
    tell: toTotal,
    amounts: ['billed', 'credited'],
  }),
  sumOperation({
    id: 'ledger.margin',
    role: 'finance',
    output: marginShape,
    text: 'sum what was billed and what providers charge for it, and show the margin',
    tell: toMargin,
    amounts: ['billed', 'cost', 'margin'],
  }),
  operation({
    id: 'ledger.show',
    http: 'GET /ledger/{request}',
    role: 'viewer',
    input: z.strictObject({ request: field.text('must be a request id').describe('the x-request-id of the answer') }),
    output: debitShape,
    problems: ['not_found', 'conflict'],
    text: 'show the debit of one request',
    cli: [{ command: 'ledger show', arguments: ['request'] }],
    async run({ books, who }, { request }) {
      const entry = await books.findEntry(request)
      if (!entry)
        throw new ProblemError(
          'not_found',
          `There is no debit of request ${request}: refused and failed requests have none`,
        )
      return { body: toDebit(entry, seesCosts(who)) }
    },
  }),
]
