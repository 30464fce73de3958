import { z } from 'zod'
import { BookError } from '../accounts/book-error.ts'
import type { AccountRow } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import { createCalendar, quarterMs } from '../accounts/calendar.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { SumName, UsageGrouping, UsageQuestion } from '../accounts/usage/question.ts'
import { dimensions } from '../accounts/usage/rollup.ts'
import { formatCsvTable, jsonLines } from './csv.ts'
import * as field from './fields.ts'
import { findPersonId } from './filter.ts'
import { type Context, operation } from './operation.ts'
import { namesOf, rangeFields, rangeFlags, readOnly, readRange, wordFields, wordFlags } from './usage-range.ts'

/** The most accounts in one read of figures, and the number of accounts in one read of ledger entries. */
const [accountsMax, accountsOfEntries] = [500, 5_000]

/**
 * The number of accounts in the first read, and the number of rows that a later read should return. Larger reads only
 * need more memory.
 */
const [accountsAtFirst, rowsAtOnce] = [10, 200]

/** Columns that can have very many values. Their figures are read for only a few accounts at a time. */
const ofOneAccount: readonly UsageGrouping[] = ['account', 'key']

const sums = [
  ...(['cost', 'requests', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'output_tokens'] as const),
] satisfies SumName[]

const words = [...dimensions, 'tier', 'band', 'person'] as const

/** The prefix in the name of a column that shows a label, such as `label:project`. */
const labelColumn = 'label:'

const columnsCure = `must be any of ${words.join(', ')}, label:NAME`
const labelCure = 'must be a dimension and a value, such as project=apollo'
const isColumn = new RegExp(`^(?:${words.join('|')}|${labelColumn}[^\\s,=]{1,64})$`)

const cell = z.string().nullable().optional()

/** A row: the requested columns in their order, then the figures. */
export const usageRowShape = field.named('UsageTableRow', {
  ...(Object.fromEntries(words.map((name) => [name, cell])) as Record<(typeof words)[number], typeof cell>),
  credits: field.amount,
  requests: z.number(),
  tokens: z.number().describe('the sum of input tokens, cached ones included, and output tokens'),
})

type TableRow = Record<string, string | number | null>

const input = z.strictObject({
  by: field
    .text(columnsCure)
    .transform((text) => [...new Set(field.split(text))])
    .refine((names) => names.length > 0 && names.every((name) => isColumn.test(name)), { error: columnsCure })
    .prefault('account')
    .describe(
      `the columns to group by, separated by commas: any of ${words.join(', ')}, or a dimension of labels, such as \`label:project\``,
    ),
  ...rangeFields,
  ...wordFields,
  person: field.text('must name a person').optional().describe('only this person, by id, external id or name'),
  label: field
    .text(labelCure)
    .refine((label) => /^[^\s,=]+=[^\s,=]+$/.test(label), { error: labelCure })
    .optional()
    .describe('only requests with this label, such as `project=apollo`'),
})

type TableInput = z.output<typeof input>

export const usageTable = operation({
  id: 'usage.table',
  http: 'GET /usage/table',
  role: 'reader',
  input,
  output: usageRowShape,
  problems: ['conflict'],
  media: [jsonLines, 'text/csv'],
  text: 'list what was used and what it cost: all rows, and the total at the end',
  atOnce: 2,
  cli: [
    {
      command: 'usage table',
      options: {
        ...{ by: '--by <columns>', ...rangeFlags, ...wordFlags },
        ...{ person: '--person <person>', label: '--label <label>' },
      },
      reads: { to: field.nextDay },
    },
  ],
  async *csv(context, input) {
    const rows = await openTable(context, input)
    yield* formatCsvTable([...input.by, 'credits', 'requests', 'tokens'], ['credits'], rows)
  },
  run: async (context, input) => ({ rows: await openTable(context, input) }),
})

/** Reads the rows of the table for the requested range, or for the current month. @throws ProblemError */
async function openTable({ books, nowMs }: Context, input: TableInput): Promise<AsyncIterable<TableRow>> {
  const zone = await books.readUsageState()
  const calendar = createCalendar(zone)
  const range = readRange(input, calendar, nowMs, (toMs) => calendar.periodOf(toMs - 1, 'month').startMs)
  // Bounds are rounded to whole days, or to hours if a time is given. So the end may be in the future, where there are
  // no entries yet.
  const isOfTimes = [input.from, input.to, input.last].some((said) => said !== undefined && 'ms' in said)
  const unit = isOfTimes ? 'hour' : 'day'
  const boundsMs = [calendar.periodOf(range.fromMs, unit).startMs, calendar.periodOf(range.toMs - 1, unit).endMs]
  const by = input.by.map((name) => (name.startsWith(labelColumn) ? 'labels' : (name as UsageGrouping)))
  // Stored figures have the person's identity, and all labels of a request as one value. So the figures are grouped by
  // these values, and groups that do not fit the filter are left out later.
  if (input.person !== undefined) by.push('person')
  if (input.label !== undefined) by.push('labels')
  const question: UsageQuestion = {
    bounds: boundsMs.map((ms) => ms / quarterMs),
    daysOf: boundsMs.every((ms) => calendar.periodOf(ms, 'day').startMs === ms) ? zone : undefined,
    isWhole: true,
    ...{ by: [...new Set(by)], sums, times: [], sort: 'cost', top: Number.POSITIVE_INFINITY },
    only: await readOnly(books, calendar, input),
  }
  const person = input.person === undefined ? undefined : await findUser(books, question, input.person)
  return eachRow(books, question, input.by, { person, label: input.label })
}

/**
 * Finds the id of a person. If several people have the name, the only one of them who used anything is meant. A table
 * shows such a person without id.
 * @throws ProblemError
 */
async function findUser(books: Books, question: UsageQuestion, asked: string): Promise<string> {
  try {
    return await findPersonId(books, asked)
  } catch (error) {
    if (!(error instanceof Error && error.cause instanceof BookError && error.cause.code === 'person_ambiguous'))
      throw error
    const { groups } = await books.readUsage({ ...question, by: ['person'] })
    const people = await books.namePersons(groups.map(({ of }) => of[0]!))
    const [id, ...others] = new Set([...people.values()].flatMap((one) => (one.name === asked ? one.id : [])))
    if (id === undefined || others.length > 0) throw error
    return id
  }
}

/** Limits a table to the usage of one person (an id) and to the usage with one label. */
type GroupFilter = { person: string | undefined; label: string | undefined }

/**
 * Yields rows sorted by account name, then by the other columns. The total is last. Entries with equal columns become
 * one row.
 */
async function* eachRow(
  books: Books,
  question: UsageQuestion,
  columns: readonly string[],
  { person, label }: GroupFilter,
): AsyncIterable<TableRow> {
  const labelsAt = question.by.indexOf('labels')
  const total = sums.map(() => 0n)
  // A row that names neither an account nor a key can combine entries of several accounts. Such rows come last.
  const unnamed = new Map<string, RowSums>()
  const slice = { accounts: accountsAtFirst }
  for await (const only of eachSlice(books, question, slice)) {
    const { groups } = await books.readUsage({ ...question, only })
    const fitting = Math.floor((slice.accounts * rowsAtOnce) / Math.max(1, groups.length))
    slice.accounts = Math.max(1, Math.min(accountsMax, 2 * slice.accounts, fitting))
    const wordsOf = await readWords(
      books,
      question.by,
      groups.map(({ of }) => of),
    )
    const named = new Map<string, RowSums>()
    for (const { of, sums } of groups) {
      const { isOfOne, personId, ...said } = wordsOf(of, columns)
      if (person !== undefined && personId !== person) continue
      if (label !== undefined && !of[labelsAt]!.split(',').includes(label)) continue
      const { place } = said
      const rows = isOfOne ? named : unnamed
      const row = rows.get(place) ?? { ...said, sums: sums.map(() => 0n) }
      rows.set(place, row)
      for (const to of [row.sums, total]) for (const [at, [sum]] of sums.entries()) to[at]! += sum!
    }
    yield* tellRows(named, columns)
  }
  yield* tellRows(unnamed, columns)
  yield tellRow(
    columns,
    columns.map((_, at) => (at === 0 ? 'total' : null)),
    total,
  )
}

/** The words and the sums of a row. @property place the sort key, which differs even between rows with equal words */
type RowSums = { words: readonly string[]; ids: readonly string[]; place: string; sums: bigint[] }

function* tellRows(rows: ReadonlyMap<string, RowSums>, columns: readonly string[]): Iterable<TableRow> {
  const sorted = [...rows.values()].sort((a, b) => (a.place < b.place ? -1 : 1))
  const isAlike = (at: number, other: number) => sorted[at]!.words.join('\n') === sorted[other]?.words.join('\n')
  for (const [at, { words, ids, sums }] of sorted.entries()) {
    const isShared = isAlike(at, at - 1) || isAlike(at, at + 1)
    // People who have the same name are shown with their ids.
    const withId = (word: string, n: number) => (columns[n] === 'person' && ids[n] ? `${word} (${ids[n]})` : word)
    yield tellRow(columns, isShared ? words.map(withId) : words, sums)
  }
}

/** Returns a function that makes the columns of a row from a group's values. In these columns, names replace ids. */
async function readWords(books: Books, by: readonly UsageGrouping[], groups: readonly (readonly string[])[]) {
  const names = await namesOf(books, by, groups)
  const persons = by.includes('person')
    ? await books.namePersons(groups.map((of) => of[by.indexOf('person')]!))
    : undefined
  return (of: readonly string[], columns: readonly string[]) => {
    const wordOf = (name: UsageGrouping) => of[by.indexOf(name)] ?? ''
    const person = persons?.get(wordOf('person'))
    const ids = columns.map((column) =>
      column.startsWith(labelColumn)
        ? labelIn(wordOf('labels'), column.slice(labelColumn.length))
        : column === 'person'
          ? (person?.id ?? '')
          : wordOf(column as UsageGrouping),
    )
    const words = ids.map((id, at) => (columns[at] === 'person' ? person?.name : names.get(id)) ?? id)
    const isOfOne = ids.some((id, at) => id !== '' && ofOneAccount.includes(columns[at] as UsageGrouping))
    return {
      words,
      ids,
      isOfOne,
      personId: person?.id,
      place: [names.get(wordOf('account')), ...words, ...ids].join('\n'),
    }
  }
}

/**
 * Returns the value of a dimension in an entry's labels, such as `project=apollo,team=core`. Returns an empty text if
 * the labels lack the dimension.
 */
function labelIn(labels: string, dimension: string): string {
  const found = labels.split(',').find((one) => one.startsWith(`${dimension}=`))
  return found?.slice(dimension.length + 1) ?? ''
}

function tellRow(
  columns: readonly string[],
  words: readonly (string | null)[],
  [cost, requests, ...tokens]: readonly bigint[],
): TableRow {
  return {
    ...Object.fromEntries(columns.map((name, at) => [name, words[at] || null])),
    credits: formatCredits(cost!),
    requests: Number(requests),
    tokens: Number(tokens.reduce((sum, count) => sum + count, 0n)),
  }
}

/**
 * Yields the filter of each read. With many accounts there are several reads, so that memory use is bounded.
 * @param slice the number of accounts of the next read
 */
async function* eachSlice(
  books: Books,
  { by, only }: UsageQuestion,
  slice: { readonly accounts: number },
): AsyncIterable<UsageQuestion['only']> {
  if (!by.some((name) => ofOneAccount.includes(name))) return yield only
  const { folded, entries } = await books.readFolding()
  let last: AccountRow | undefined
  do {
    const limit = folded < entries ? accountsOfEntries : slice.accounts
    const beyond = last && [last.name, last.id]
    const accounts = await books.pageAccounts({ ids: only.account, sort: 'name', limit, beyond })
    const isAll = beyond === undefined && accounts.length < limit
    last = accounts.length === limit ? accounts.at(-1) : undefined
    if (accounts.length > 0) yield isAll ? only : { ...only, account: accounts.map(({ id }) => id) }
  } while (last)
}
