import { z } from 'zod'
import type { AccountRow } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import { createCalendar, quarterMs } from '../accounts/calendar.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { SumName, UsageGrouping, UsageQuestion } from '../accounts/usage/question.ts'
import { dimensions } from '../accounts/usage/rollup.ts'
import { formatCsvTable, jsonLines } from './csv.ts'
import * as field from './fields.ts'
import { type Context, operation } from './operation.ts'
import { namesOf, rangeFields, rangeFlags, readOnly, readRange, wordFields, wordFlags } from './usage-range.ts'

/** The accounts whose figures are read at once; more if the ledger itself is read for them. */
const [accountsAtOnce, accountsOfEntries] = [500, 5_000]

/** Groups of one account, whose figures are read account by account. */
const ofOneAccount: readonly UsageGrouping[] = ['account', 'key']

const sums = [
  ...(['cost', 'requests', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'output_tokens'] as const),
] satisfies SumName[]

const cell = z.string().nullable().optional()

/** A row: the columns that were asked for, in their order, then the figures. */
const rowShape = z.object({
  ...(Object.fromEntries(dimensions.map((name) => [name, cell])) as Record<(typeof dimensions)[number], typeof cell>),
  credits: field.amount,
  requests: z.number(),
  tokens: z.number().describe('input, cached input and output'),
})

type TableRow = Record<string, string | number | null>

const input = z.strictObject({
  by: field
    .someOf(dimensions, dimensions.length, `must be any of ${dimensions.join(', ')}`)
    .prefault('account')
    .describe(`the columns: any of ${dimensions.join(', ')}`),
  ...rangeFields,
  ...wordFields,
})

type TableInput = z.output<typeof input>

export const usageTable = operation({
  id: 'usage.table',
  http: 'GET /usage/table',
  role: 'reader',
  input,
  output: rowShape,
  media: [jsonLines, 'text/csv'],
  text: 'list what was used and what it cost: every row, and the total last',
  atOnce: 2,
  cli: [
    {
      command: 'usage table',
      options: { by: '--by <columns>', ...rangeFlags, ...wordFlags },
      reads: { to: field.nextDay },
    },
  ],
  async *csv(context, input) {
    const rows = await openTable(context, input)
    yield* formatCsvTable([...input.by, 'credits', 'requests', 'tokens'], ['credits'], rows)
  },
  run: async (context, input) => ({ rows: await openTable(context, input) }),
})

/** Opens the rows of a table of the current month, or of the range that is named. @throws ProblemError */
async function openTable({ books, nowMs }: Context, input: TableInput): Promise<AsyncIterable<TableRow>> {
  const zone = await books.readUsageState()
  const calendar = createCalendar(zone)
  const range = readRange(input, calendar, nowMs, (toMs) => calendar.periodOf(toMs - 1, 'month').startMs)
  // The end of a day that has not ended has no entries.
  const isOfTimes = [input.from, input.to, input.last].some((said) => said !== undefined && 'ms' in said)
  const unit = isOfTimes ? 'hour' : 'day'
  const boundsMs = [calendar.periodOf(range.fromMs, unit).startMs, calendar.periodOf(range.toMs - 1, unit).endMs]
  const question: UsageQuestion = {
    bounds: boundsMs.map((ms) => ms / quarterMs),
    daysOf: boundsMs.every((ms) => calendar.periodOf(ms, 'day').startMs === ms) ? zone : undefined,
    isWhole: true,
    ...{ by: input.by, sums, times: [], sort: 'cost', top: Number.POSITIVE_INFINITY },
    only: await readOnly(books, calendar, input),
  }
  return eachRow(books, question)
}

/** Rows in the order of their accounts' names, then of their words. Each is a sum, so that the total is that of the rows. */
async function* eachRow(books: Books, question: UsageQuestion): AsyncIterable<TableRow> {
  const { by } = question
  const total = sums.map(() => 0n)
  // Entries without a key may be of any account.
  const unnamed = new Map<string, { of: readonly string[]; sums: bigint[] }>()
  for await (const only of eachSlice(books, question)) {
    const { groups } = await books.readUsage({ ...question, only })
    const named: RowSums[] = []
    for (const { of, sums } of groups) {
      const row = { of, sums: sums.map(([sum]) => sum!) }
      addSums(total, row.sums)
      const isOfAny = by.every((name, at) => !ofOneAccount.includes(name) || of[at] === '')
      const found = isOfAny ? unnamed.get(of.join('\n')) : undefined
      if (found) addSums(found.sums, row.sums)
      else if (isOfAny) unnamed.set(of.join('\n'), row)
      else named.push(row)
    }
    yield* tellRows(books, by, named)
  }
  yield* tellRows(books, by, [...unnamed.values()])
  yield tellRow(
    by,
    by.map((_, at) => (at === 0 ? 'total' : null)),
    total,
  )
}

function addSums(to: bigint[], sums: readonly bigint[]): void {
  for (const [at, sum] of sums.entries()) to[at]! += sum
}

type RowSums = { of: readonly string[]; sums: readonly bigint[] }

async function* tellRows(
  books: Books,
  by: readonly UsageGrouping[],
  rows: readonly RowSums[],
): AsyncIterable<TableRow> {
  const names = await namesOf(
    books,
    by,
    rows.map(({ of }) => of),
  )
  const accountAt = by.indexOf('account')
  const placed = rows.map(({ of, sums }) => {
    const words = by.map((name, at) => (ofOneAccount.includes(name) && names.get(of[at]!)) || of[at]!)
    return { words, sums, place: [words[accountAt], ...words, ...of].join('\n') }
  })
  placed.sort((a, b) => (a.place < b.place ? -1 : 1))
  for (const { words, sums } of placed) yield tellRow(by, words, sums)
}

function tellRow(
  by: readonly UsageGrouping[],
  words: readonly (string | null)[],
  [cost, requests, ...tokens]: readonly bigint[],
): TableRow {
  return {
    ...Object.fromEntries(by.map((name, at) => [name, words[at] || null])),
    credits: formatCredits(cost!),
    requests: Number(requests),
    tokens: Number(tokens.reduce((sum, count) => sum + count, 0n)),
  }
}

/** The filters of one reading after the other, so that memory does not grow with the number of accounts. */
async function* eachSlice(books: Books, { by, only }: UsageQuestion): AsyncIterable<UsageQuestion['only']> {
  if (!by.some((name) => ofOneAccount.includes(name))) return yield only
  const { folded, entries } = await books.readFolding()
  const limit = folded < entries ? accountsOfEntries : accountsAtOnce
  let last: AccountRow | undefined
  do {
    const beyond = last && [last.name, last.id]
    const accounts = await books.pageAccounts({ ids: only.account, sort: 'name', limit, beyond })
    const isAll = beyond === undefined && accounts.length < limit
    last = accounts.length === limit ? accounts.at(-1) : undefined
    if (accounts.length > 0) yield isAll ? only : { ...only, account: accounts.map(({ id }) => id) }
  } while (last)
}
