import { z } from 'zod'
import type { Books } from '../accounts/books.ts'
import { createCalendar, monthOf, quarterMs, spanOfMonth } from '../accounts/calendar.ts'
import { formatCredits } from '../accounts/credit.ts'
import {
  closingMs,
  type StatementGroup,
  type StatementHeader,
  type StatementLine,
  type StatementSums,
  sumLines,
  tokenNames,
} from '../accounts/statement.ts'
import type { Prices } from '../catalog/model.ts'
import * as field from './fields.ts'
import { type Context, operation } from './operation.ts'
import { findOwn } from './own.ts'
import { wrongField } from './problem.ts'
import { formatStatementCsv, formatStatementHtml } from './statement-forms.ts'
import { type counts, type lineShape, type priceShape, statementShape, type ToldStatement } from './statement-shape.ts'

const text = z.string().nullable()

const forms = ['json', 'csv', 'html'] as const

const input = z.strictObject({
  account: field.account,
  month: field.month.describe('a calendar month of the reporting zone, such as 2026-10'),
  form: z.enum(forms, { error: `must be one of ${forms.join(', ')}` }).default('json'),
})

const ownShape = field.named('OwnStatement', {
  month: z.string(),
  time_zone: z.string(),
  credits: field.amount,
  requests: z.number(),
  tokens: z.number(),
  days: z.array(
    z.object({ day: z.string(), model: text, credits: field.amount, requests: z.number(), tokens: z.number() }),
  ),
})

const media = { csv: 'text/csv; charset=utf-8', html: 'text/html; charset=utf-8' } as const

/** Operations that return statements. All operators may use them, because even viewers see the entries (ruling Y22). */
export const statementOperations = [
  operation({
    id: 'statement.show',
    http: 'GET /accounts/{account}/statements/{month}',
    role: 'reader',
    input,
    output: statementShape,
    problems: ['not_found', 'conflict'],
    text: 'show the monthly statement of an account: balances, credits, use, and the entries that prove them',
    atOnce: 2,
    texts: ['text/csv', 'text/html'],
    cli: [
      {
        command: 'statement',
        arguments: ['account', 'month'],
        forms: { html: 'write a web page for printing', csv: 'print comma-separated values' },
      },
    ],
    async run(context, { account, month, form }) {
      const told = await readStatement(context, account, month)
      if (form === 'json') return { body: told }
      const format = form === 'csv' ? formatStatementCsv : formatStatementHtml
      return { text: format(told), type: media[form], name: `statement-${told.month}.${form}` }
    },
  }),
  operation({
    id: 'statement.own',
    http: 'GET /me/statement',
    role: 'owner',
    input: z.strictObject({ month: field.month.optional().describe('a calendar month; default: the current one') }),
    output: ownShape,
    problems: ['conflict'],
    text: 'show what the owner used in a month with all their keys and sessions, by day and model',
    atOnce: 2,
    run: async (context, { month }) => ({ body: await readOwn(context, month) }),
  }),
]

const ownSums = [
  ...(['cost', 'requests', 'input_tokens', 'cache_read_tokens', 'cache_write_tokens', 'output_tokens'] as const),
]

/** Reads the statement for the owner of a key. It has credits and tokens, and no prices or tiers (ruling Y22). */
async function readOwn(context: Context, asked: string | undefined): Promise<z.output<typeof ownShape>> {
  const { books, who, nowMs } = context
  const zone = await books.readUsageState()
  const calendar = createCalendar(zone)
  const month = asked ?? monthOf(calendar, nowMs)
  const { startMs, endMs } = spanOfMonth(calendar, month)
  const bounds = [startMs]
  while (bounds.at(-1)! < endMs) bounds.push(calendar.periodOf(bounds.at(-1)!, 'day').endMs)
  const { groups } = await books.readUsage({
    bounds: bounds.map((ms) => ms / quarterMs),
    ...{ daysOf: zone, isWhole: true, by: ['model'], sums: ownSums, times: [], sort: 'cost' },
    top: Number.POSITIVE_INFINITY,
    // An operator has no requests, so an empty list of keys is selected.
    only: { key: who?.kind === 'owner' ? ((await findOwn(context)).keyIds ?? []) : [] },
  })
  const tell = ([cost, requests, ...tokens]: readonly bigint[]) => ({
    credits: formatCredits(cost!),
    requests: Number(requests),
    tokens: Number(tokens.reduce((sum, count) => sum + count, 0n)),
  })
  const total = ownSums.map((_, at) => groups.flatMap(({ sums }) => sums[at]!).reduce((sum, one) => sum + one, 0n))
  const days = bounds.slice(0, -1).flatMap((ms, day) =>
    groups
      .map(({ of, sums }) => ({ of, sums: sums.map((each) => each[day]!) }))
      .filter(({ sums }) => sums.some((sum) => sum !== 0n))
      .map(({ of, sums }) => ({ day: calendar.dateOf(ms), model: of[0] || null, ...tell(sums) })),
  )
  return { month, time_zone: zone.timeZone, ...tell(total), days }
}

async function readStatement({ books, running }: Context, asked: string, month: string): Promise<ToldStatement> {
  const account = await books.findAccount(asked)
  const { kept, timeZone, fromMs, toMs } = await findSpan(books, account.id, month)
  // The store's clock dates entries, so it also decides when a month is over.
  const nowMs = await books.readNowMs()
  if (fromMs > nowMs) throw wrongField('month', `${month} has not begun: name a month that has`)
  const isClosed = kept !== undefined || (nowMs >= toMs + closingMs && (await books.closeMonth(toMs)))
  const sums = await books.sumMonth({ accountId: account.id, fromMs, toMs })
  const makeHeader = async (): Promise<StatementHeader> => ({
    ...{ fromMs, toMs },
    buyer: account.name,
    words: await running.readCreditWords(),
    timeZone,
    head:
      (isClosed ? await books.findHead(month, timeZone) : undefined) ??
      (await books.makeHead(Math.min(toMs - 1, nowMs - closingMs))),
    ...(await namesOfGroups(books, sums.groups)),
  })
  const made = kept ?? (isClosed ? await books.keepHeader(account.id, month, await makeHeader()) : await makeHeader())
  return tellStatement(account.id, month, isClosed, sums, await withNames(books, made, sums.groups))
}

/**
 * Finds the stored header of a month's statement, and the span of the statement. The statements of an account follow
 * each other without a gap, even if the reporting zone was changed between two of them.
 */
async function findSpan(books: Books, accountId: string, month: string) {
  const zone = await books.readUsageState()
  const readSpan = async (one: string) => {
    const kept = await books.readHeader(accountId, one)
    const calendar = createCalendar({ ...zone, timeZone: kept?.timeZone ?? zone.timeZone })
    const { startMs, endMs } = spanOfMonth(calendar, one)
    return { kept, calendar, fromMs: kept?.fromMs ?? startMs, toMs: kept?.toMs ?? endMs }
  }
  const { kept, calendar, ...span } = await readSpan(month)
  const { timeZone } = calendar
  if (kept) return { kept, timeZone, ...span }
  const before = await readSpan(monthOf(calendar, span.fromMs - 1))
  const after = await readSpan(monthOf(calendar, span.toMs))
  return { kept, timeZone, fromMs: before.toMs, toMs: after.fromMs }
}

async function namesOfGroups(
  books: Books,
  groups: readonly StatementGroup[],
): Promise<Pick<StatementHeader, 'keys' | 'persons'>> {
  const ids = (name: 'keyId' | 'person') => [...new Set(groups.map((group) => group[name]).filter(Boolean))].sort()
  const lines = await books.findLines(ids('keyId'))
  const lineOf = (id: string) => lines.get(id) ?? id
  const names = await books.nameLines([...new Set(ids('keyId').map(lineOf))])
  return {
    keys: ids('keyId').map((id) => [id, { id: lineOf(id), name: names.get(lineOf(id)) ?? id }]),
    persons: [...(await books.namePersons(ids('person')))].sort(([a], [b]) => (a < b ? -1 : 1)),
  }
}

/**
 * Adds the names that a stored header lacks, because a correction of times has since moved entries into the month
 * (C15).
 */
async function withNames(
  books: Books,
  header: StatementHeader,
  groups: readonly StatementGroup[],
): Promise<StatementHeader> {
  const { keys, persons } = header
  const known = new Set([...keys, ...persons].map(([id]) => id))
  const without = (id: string) => (known.has(id) ? '' : id)
  if (groups.every(({ keyId, person }) => without(keyId) === '' && without(person) === '')) return header
  const others = groups.map((one) => ({ ...one, keyId: without(one.keyId), person: without(one.person) }))
  const more = await namesOfGroups(books, others)
  return { ...header, keys: [...keys, ...more.keys], persons: [...persons, ...more.persons] }
}

function tellStatement(
  account: string,
  month: string,
  closed: boolean,
  { groups, credits, entries, digest, openingNanos, closingNanos }: StatementSums,
  { buyer, words, timeZone, head, ...names }: StatementHeader,
): ToldStatement {
  const [keys, persons] = [new Map(names.keys), nameApart(names.persons)]
  const [used, returned] = [groups.filter((one) => !one.isReturn), groups.filter((one) => one.isReturn)]
  const sum = (all: readonly { amountNanos: bigint }[]) => all.reduce((nanos, one) => nanos + one.amountNanos, 0n)
  const by = (wordsOf: Parameters<typeof sumLines>[1]) => sumLines(groups, wordsOf)
  return {
    ...{ account, buyer, seller: words.seller, symbol: words.symbol, currency: words.name },
    ...{ month, time_zone: timeZone, closed },
    opening: formatCredits(openingNanos),
    credits: formatCredits(sum(credits)),
    use: formatCredits(sum(used)),
    returns: formatCredits(-sum(returned)),
    closing: formatCredits(closingNanos),
    credit_lines: credits.map(({ postedMs, reference, amountNanos }) => ({
      ...{ posted: field.formatTime(postedMs)!, reference, amount: formatCredits(amountNanos) },
    })),
    use_lines: sumLines(used, (group) => [
      [group.model, group.tier, group.band],
      JSON.stringify(tellPrice(group.prices)),
    ]).map((line) => {
      const [model, tier, band] = line.of.map((word) => word || null) as [string | null, string | null, string | null]
      return { model, tier, band, price: tellPrice(line.prices), ...tellLine(line) }
    }),
    keys: by(({ keyId }) => [[keys.get(keyId)?.name ?? keyId], keys.get(keyId)?.id]).map((line) => ({
      ...{ key: line.of[0] || null, ...tellLine(line) },
    })),
    people: by(({ person }) => [[persons.get(person)?.name ?? ''], persons.get(person)?.id]).map((line) => ({
      ...{ person: line.of[0] || null, ...tellLine(line) },
    })),
    labels: by(({ labels }) => [[labels]]).map((line) => ({ labels: line.of[0] || null, ...tellLine(line) })),
    from: entries?.from ?? null,
    to: entries?.to ?? null,
    ...{ digest, head, command: `triwire statement ${account} ${month} --json` },
  }
}

/** Adds the id to a name that several people of a statement have, as reports do. */
function nameApart(persons: StatementHeader['persons']): ReadonlyMap<string, { id: string; name: string }> {
  const people = new Map(persons.map(([, person]) => [person.id, person.name]))
  const namesakes = Map.groupBy(people, ([, name]) => name)
  return new Map(
    persons.map(([one, { id, name }]) => [
      one,
      { id, name: namesakes.get(name)!.length > 1 ? `${name} (${id})` : name },
    ]),
  )
}

function tellLine({ requests, tokens, amountNanos }: StatementLine): z.output<typeof lineShape> {
  const named = Object.fromEntries(tokenNames.map((name, at) => [`${name}_tokens`, Number(tokens[at])]))
  return {
    requests: Number(requests),
    ...(named as Record<keyof typeof counts, number>),
    amount: formatCredits(amountNanos),
  }
}

/** Describes a price in credits per million tokens. */
function tellPrice(prices: Prices | undefined): z.output<typeof priceShape> | null {
  if (!prices) return null
  return {
    input: formatCredits(prices.inputNanos),
    cache_read: formatCredits(prices.cacheReadNanos),
    cache_write: formatCredits(prices.cacheWriteNanos),
    cache_write_1h: formatCredits(prices.cacheWrite1hNanos),
    output: formatCredits(prices.outputNanos),
    has_steps: (prices.steps?.length ?? 0) > 0,
  }
}
