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
  account: z.string().nullable().describe('the id of the one account that keys of the person may be of; null: any'),
  budget: field.budgetShape.nullable().describe('of all their keys together; null: none'),
  rpm: z.int().nullable().describe('requests per minute of all their keys; null: any number'),
  linked_to: z.string().nullable().describe('the person that this second identity belongs to'),
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
  .describe('id, external id, or a name or e-mail address that only one person has')

const text = () => field.orNone('must be a text', (value) => value).optional()

const fields = {
  name: text().describe('1 to 100 characters; `none` takes it away'),
  external_id: text().describe('the id in a directory of yours, which only one person has; `none` takes it away'),
  email: text().describe('an address; `none` takes it away'),
  account: text().describe('the one account that keys of the person may be of, by name or id; `none`: any'),
  budget: field.budget
    .optional()
    .describe('what all their keys may spend together, in their account: such as 50/month; `none`: no limit'),
  rpm: field.rate.optional().describe('requests of all their keys in a minute; `none`: any number'),
}

const options = {
  external_id: '--external-id <text>',
  email: '--email <address>',
  account: '--account <account>',
  budget: '--budget <credits/period>',
  rpm: '--rpm <count>',
}

/** Names every field of a person, so that a field that is omitted below is a type error. */
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
        .describe('only those with this in their name, external id or e-mail address, or at the start of their id'),
      ...field.paging,
    }),
    output: personShape,
    problems: ['cursor_invalid'],
    text: 'list people, the oldest first; without those who were erased',
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
        .describe('a head with any of name, external_id, email, account, budget, rpm, and a line for each person'),
    }),
    output: z.object({ created: z.number(), changed: z.number(), unchanged: z.number() }),
    problems: ['not_found', 'conflict'],
    text: 'bring in a list of people (CSV), as often as it changes: all of it, or nothing if a line is wrong',
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
    text: 'give a person another name, external id, address or account, or bounds over all their keys',
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
      other: person.describe('who is the same person: id, external id, or a unique name'),
    }),
    output: personShape,
    problems: ['not_found', 'conflict'],
    text: 'make another person a second identity of this one, with the keys and in reports',
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
    text: 'sign a person out everywhere: sessions, the keys that they made for agents, and browsers; they may sign in again',
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
    text: 'take away all that is known of a person, for good; their keys stay, and entries keep the id',
    cli: [{ command: 'person erase', arguments: ['person'] }],
    run: async (context, { person }) => one(await context.books.erasePerson(person), context),
  }),
]
