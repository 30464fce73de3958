import { z } from 'zod'
import type { PersonWishes } from '../accounts/person-rules.ts'
import { type PersonRow, versionOfPerson } from '../accounts/persons.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { findAccountId } from './filter.ts'
import { type Context, operation, page } from './operation.ts'
import { readPersonLines } from './person-file.ts'

const personShape = field.named('Person', {
  id: z.string(),
  name: z.string().nullable(),
  external_id: z.string().nullable(),
  email: z.string().nullable(),
  account: z.string().nullable().describe('the id of the only account whose keys the person may use; null: any'),
  budget: field.budgetShape.nullable().describe('the budget of all keys of the person together; null: none'),
  rpm: z.int().nullable().describe('the most requests of the person in a minute, with all their keys; null: no limit'),
  linked_to: z.string().nullable().describe('the id of the main identity, if this is a second one of the same person'),
  created: field.when,
  erased: field.when.nullable(),
})

export type PersonDetails = z.output<typeof personShape>

type PersonView = Pick<Context, 'nowMs' | 'calendar'>

function tellPerson(row: PersonRow, view: PersonView, holds: ReadonlyMap<string, bigint>): PersonDetails {
  const { id, name, externalId, email, accountId, linkedId, createdMs, erasedMs, bounds } = row
  const held = row.heldNanos ?? holds.get(id) ?? 0n
  return {
    id,
    name: name ?? null,
    external_id: externalId ?? null,
    email: email ?? null,
    account: accountId ?? null,
    budget: bounds.budget === undefined ? null : field.tellBudget(row.spend, bounds.budget, held, view),
    rpm: bounds.requestsPerMinute ?? null,
    linked_to: linkedId ?? null,
    created: field.formatTime(createdMs)!,
    erased: field.formatTime(erasedMs),
  }
}

const one = (row: PersonRow, context: Context) => ({
  body: tellPerson(row, context, context.running.heldByPeople()),
  version: versionOfPerson(row),
})

const person = field
  .text('must name a person')
  .describe('the person: id, external id, or unique name or e-mail address')

const text = () => field.orNone('must be a text', (value) => value).optional()

const fields = {
  name: text().describe('the name of the person, 1 to 100 characters; `none` removes it'),
  external_id: text().describe('the id of the person in your directory, which must be unique; `none` removes it'),
  email: text().describe('the e-mail address of the person; `none` removes it'),
  account: text().describe('the only account whose keys the person may use, by name or id; `none`: any account'),
  budget: field.budget
    .optional()
    .describe(
      'the most credits that all keys of the person may spend together, such as 50/month; the person needs an account; `none`: no limit',
    ),
  rpm: field.rate.optional().describe('the most requests of the person per minute, with all keys; `none`: no limit'),
}

const options = {
  external_id: '--external-id <text>',
  email: '--email <address>',
  account: '--account <account>',
  budget: '--budget <credits/period>',
  rpm: '--rpm <count>',
}

/**
 * The same fields as in `PersonWishes`, but none may be left out. So the compiler reports a field that `wishesOf`
 * forgets.
 */
type WholePersonWishes = { [Name in keyof Required<PersonWishes>]: PersonWishes[Name] }

function wishesOf(asked: z.output<z.ZodObject<typeof fields>>): WholePersonWishes {
  const { name, external_id: externalId, email, account, budget, rpm: requestsPerMinute } = asked
  return { name, externalId, email, account, budget, requestsPerMinute }
}

export const personOperations = [
  operation({
    id: 'person.create',
    http: 'POST /persons',
    role: 'admin',
    kind: 'creates',
    madeAt: '/persons',
    input: z.strictObject(fields),
    output: personShape,
    problems: ['not_found', 'conflict'],
    text: 'add a person who uses keys',
    cli: [{ command: 'person create', arguments: ['name?'], options }],
    async run(context, asked) {
      const { id } = await context.books.createPerson(wishesOf(asked))
      return { ...one(await context.books.findPerson(id), context), isNew: true }
    },
  }),
  operation({
    id: 'person.list',
    http: 'GET /persons',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({
      account: field.account.optional(),
      q: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .describe('only people with this text in their name, external id or address, or at the start of their id'),
      ...field.paging,
    }),
    output: personShape,
    problems: ['cursor_invalid'],
    text: 'list people, the oldest first, without erased ones',
    cli: [{ command: 'person list', options: { account: '--account <account>', q: '--search <text>' }, rows: 'all' }],
    async run(context, { account, q, limit }) {
      const { books, beyond, running } = context
      const accountId = account === undefined ? undefined : await findAccountId(books, account)
      const place = readPlace(beyond, ['number', 'string'])
      const rows = await books.pagePersons({ accountId, q, beyond: place, limit: limit + 1 })
      const holds = running.heldByPeople()
      return page(
        rows,
        limit,
        (row) => tellPerson(row, context, holds),
        (row) => [row.createdMs, row.id],
      )
    },
  }),
  operation({
    id: 'person.import',
    http: 'POST /persons/import',
    role: 'admin',
    isLarge: true,
    input: z.strictObject({
      csv: field
        .text('must be a text')
        .transform(readPersonLines)
        .describe(
          'a CSV file: a header line with any of name, external_id, email, account, budget, rpm, and then a line for each person',
        ),
    }),
    output: z.object({ created: z.number(), changed: z.number(), unchanged: z.number() }),
    problems: ['not_found', 'conflict'],
    text: 'import a list of people (CSV), which can be repeated when the list changes; if one line is wrong, nothing is imported',
    cli: [{ command: 'person import', arguments: ['csv'], files: ['csv'] }],
    run: async ({ books }, { csv }) => ({ body: await books.importPersons(csv) }),
  }),
  operation({
    id: 'person.show',
    http: 'GET /persons/{person}',
    role: 'viewer',
    input: z.strictObject({ person }),
    output: personShape,
    problems: ['not_found'],
    text: 'show a person',
    cli: [{ command: 'person show', arguments: ['person'] }],
    run: async (context, { person }) => one(await context.books.findPerson(person), context),
  }),
  operation({
    id: 'person.update',
    http: 'PATCH /persons/{person}',
    role: 'admin',
    kind: 'edits',
    input: z.strictObject({ person, ...fields }),
    output: personShape,
    problems: ['not_found', 'conflict'],
    text: 'change the name, external id, e-mail address or account of a person, or the limits that apply to all their keys together',
    cli: [{ command: 'person set', arguments: ['person'], options: { name: '--name <text>', ...options } }],
    run: async (context, { person, ...asked }) =>
      one(await context.books.updatePerson(person, wishesOf(asked)), context),
  }),
  operation({
    id: 'person.link',
    http: 'POST /persons/{person}/link',
    role: 'admin',
    input: z.strictObject({
      person,
      other: person.describe('the second identity of the person: id, external id, or unique name or e-mail address'),
    }),
    output: personShape,
    problems: ['not_found', 'conflict'],
    text: 'join two rows of the same person: keys and reports of the second row then belong to the first',
    cli: [{ command: 'person link', arguments: ['person', 'other'] }],
    run: async (context, { person, other }) => one(await context.books.linkPersons(person, other), context),
  }),
  operation({
    id: 'person.sign_out',
    http: 'POST /persons/{person}/sign-out',
    role: 'admin',
    input: z.strictObject({ person }),
    output: personShape,
    problems: ['not_found'],
    text: 'sign a person out everywhere: end their sessions, their browser sign-ins and the keys that they made for agents; they may sign in again',
    cli: [{ command: 'person sign-out', arguments: ['person'] }],
    run: async (context, { person }) => one(await context.books.signOutPerson(person), context),
  }),
  operation({
    id: 'person.erase',
    http: 'POST /persons/{person}/erase',
    role: 'admin',
    input: z.strictObject({ person }),
    output: personShape,
    problems: ['not_found'],
    text: "erase the name, external id and address of a person for good; their keys stay valid, and entries of the ledger keep the person's id",
    cli: [{ command: 'person erase', arguments: ['person'] }],
    run: async (context, { person }) => one(await context.books.erasePerson(person), context),
  }),
]
