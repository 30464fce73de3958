import { z } from 'zod'
import { hasEnded } from '../accounts/account.ts'
import { BookError } from '../accounts/book-error.ts'
import { type IssuedKey, type KeyRow, keySorts, keyStates, versionOfKey } from '../accounts/book-rows.ts'
import type { KeyWishes } from '../accounts/book-rules.ts'
import type { Books } from '../accounts/books.ts'
import { nameOfKey } from '../accounts/keys.ts'
import { undeclaredMistake } from '../accounts/labels.ts'
import { bySpend, bySpendText, pageBySpend } from './by-spend.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { findAccountId, findPersonId } from './filter.ts'
import { type Context, operation, page } from './operation.ts'
import { wrongField } from './problem.ts'

/** The bounds of a key that its owner sees too (ruling Y22), and those of its person. */
export const seenFields = {
  budget: field.budgetShape.nullable().describe('the budget of the key; null: only its account limits it'),
  rpm: z.int().nullable().describe('the most requests of the key per minute; null: the limit of its account'),
  models: z.array(z.string()).nullable().describe('the models that the key may use; null: all models'),
  person: z.string().nullable().describe('the id of the person who uses the key'),
  person_name: z.string().nullable(),
  person_budget: field.budgetShape.nullable().describe("the person's budget for all their keys; null: none"),
  person_rpm: z.int().nullable().describe('the most requests of the person per minute, with all keys; null: no limit'),
  labels: field.labelsShape.nullable().describe("labels of the key's requests, by dimension; null: none"),
  may_choose: z.array(z.string()).nullable().describe('dimensions in which its client may choose a label; null: none'),
}

export const keyShape = field.named('Key', {
  id: z.string(),
  prefix: z.string().describe('the first characters of the key'),
  label: z.string().nullable(),
  account: z.string(),
  account_name: z.string().nullable(),
  ...seenFields,
  external_id: z.string().nullable().describe('the id in a system of the operator; a rotation keeps it'),
  metadata: field.metadataShape.nullable(),
  session: z.string().nullable().describe("the id of the session, if this is the key of a person's session"),
  origin: z.string().nullable().describe('the gateway that made the key, such as `litellm`; null: triwire'),
  line: z
    .string()
    .describe(
      'the id of the first key of its rotation, under which reports have the figures of all keys of the rotation',
    ),
  created: field.when,
  expires: field.when.nullable(),
  revoked: field.when.nullable(),
  last_used: field.when.nullable(),
})

const foreignShape = keyShape
  .pick({ id: true, prefix: true, label: true, account: true, account_name: true, person: true, person_name: true })
  .extend(keyShape.pick({ origin: true, created: true, expires: true, revoked: true, last_used: true }).shape)
  .extend({ rotated: z.boolean().describe('whether a key of triwire has replaced it by rotation') })
  .meta({ title: 'ForeignKey' })

export type ForeignKeyDetails = z.output<typeof foreignShape>

export type KeyDetails = z.output<typeof keyShape>

const issuedShape = field.named('IssuedKey', {
  key: z
    .string()
    .optional()
    .describe('the key itself, which is shown only in this answer; the answer to a repeated request leaves it out'),
  id: z.string(),
  prefix: z.string(),
})

export function tellKey(row: KeyRow, context: KeyView): z.output<typeof keyShape> {
  const { id, prefix, label, accountId, accountName, personName, bounds, createdMs, expiresMs, revokedMs, lastUsedMs } =
    row
  const ofPerson = row.personBounds.budget
  const heldByPerson = row.personHeldNanos ?? context.running.heldOf(row.digest, 'personBounds')
  const held = row.heldNanos ?? context.running.heldOf(row.digest)
  return {
    id,
    prefix,
    label: label ?? null,
    account: accountId,
    account_name: accountName ?? null,
    budget: bounds.budget === undefined ? null : field.tellBudget(row.spend, bounds.budget, held, context),
    rpm: bounds.requestsPerMinute ?? null,
    models: bounds.models === undefined ? null : [...bounds.models],
    person: bounds.person ?? null,
    person_name: personName ?? null,
    person_budget: ofPerson === undefined ? null : field.tellBudget(row.personSpend, ofPerson, heldByPerson, context),
    person_rpm: row.personBounds.requestsPerMinute ?? null,
    labels: bounds.labels === undefined ? null : Object.fromEntries(bounds.labels.map((label) => label.split('='))),
    may_choose: bounds.mayChoose === undefined ? null : [...bounds.mayChoose],
    external_id: bounds.externalId ?? null,
    metadata: bounds.metadata ?? null,
    session: row.session ?? null,
    origin: row.origin ?? null,
    line: row.scope,
    created: field.formatTime(createdMs)!,
    expires: field.formatTime(expiresMs),
    revoked: field.formatTime(revokedMs),
    last_used: field.formatTime(lastUsedMs),
  }
}

/** The parts of the context that `tellKey` needs. */
type KeyView = Pick<Context, 'nowMs' | 'calendar' | 'running'>

const one = (row: KeyRow, context: KeyView) => ({ body: tellKey(row, context), version: versionOfKey(row) })

const issued = ({ key, id, prefix }: IssuedKey) => ({
  body: { ...(key !== undefined && { key }), id, prefix },
  isNew: key !== undefined,
})

const label = field.orNone('must be a text', (text) => text).optional()

const bounds = {
  budget: field.budget.optional(),
  rpm: field.rate.optional(),
  models: field.models.optional(),
  person: field.person.optional(),
  labels: field.labels.optional(),
  may_choose: field.mayChoose.optional(),
  external_id: field.externalId.optional(),
  metadata: field.metadata.optional(),
  expires: field.end.optional(),
}

const boundOptions = {
  budget: '--budget <credits/period>',
  rpm: '--rpm <count>',
  models: '--models <ids>',
  person: '--person <person>',
  labels: '--labels <labels>',
  may_choose: '--may-choose <dimensions>',
  external_id: '--external-id <text>',
  metadata: '--metadata <words>',
  expires: '--expires <time>',
} satisfies Record<keyof typeof bounds, string>

/** Like `KeyWishes`, but every bound is required. So the compiler reports a bound that `wishesOf` leaves out. */
type WholeWishes = { [Name in keyof Required<KeyWishes>]: KeyWishes[Name] }

/** Converts the fields of a request to a key's label and bounds, in the form that the books take. */
function wishesOf(asked: KeyFields, context: Context): WholeWishes {
  const {
    label,
    budget,
    rpm,
    models,
    person,
    labels,
    may_choose: mayChoose,
    expires,
    external_id: externalId,
    metadata,
  } = asked
  const { nowMs, calendar } = context
  const expiresMs = expires ? field.endsAt(expires, nowMs, calendar) : expires
  if (typeof expiresMs === 'number' && hasEnded(expiresMs, nowMs))
    throw wrongField('expires', 'That moment is over: to end a key now, revoke it')
  for (const name of ['labels', 'may_choose'] as const) {
    const mistake = asked[name] ? undeclaredMistake(context.running.declaredLabels(), asked[name]) : undefined
    if (mistake) throw wrongField(name, mistake)
  }
  return { label, budget, requestsPerMinute: rpm, models, person, labels, mayChoose, expiresMs, externalId, metadata }
}

type KeyFields = { label?: string | null | undefined } & z.output<z.ZodObject<typeof bounds>>

export const keyOperations = [
  operation({
    id: 'key.create',
    http: 'POST /accounts/{account}/keys',
    role: 'admin',
    kind: 'creates',
    madeAt: '/keys',
    input: z.strictObject({
      account: field.account,
      label: label.describe('a name for people, which a rotation keeps; `none`: no name'),
      ...bounds,
    }),
    output: issuedShape,
    problems: ['not_found', 'conflict'],
    text: 'make a key, with or without limits; the key is shown only this once',
    cli: [{ command: 'key create', arguments: ['account'], options: { label: '--label <text>', ...boundOptions } }],
    run: async (context, { account, ...asked }) =>
      issued(await context.books.createKey(account, wishesOf(asked, context))),
  }),
  operation({
    id: 'key.list',
    http: 'GET /keys',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({
      account: field.account.optional(),
      person: field.ofPerson.optional(),
      q: z
        .string()
        .min(1)
        .max(100)
        .transform(nameOfKey)
        .optional()
        .describe('only keys whose label, first characters or id begin with this text'),
      state: z
        .enum(keyStates)
        .optional()
        .describe('only keys in this state; `suspended`: neither revoked nor expired, but the account is suspended'),
      external_id: field.ofExternalId,
      sessions: field.flag.optional().describe("also list the keys of people's sessions"),
      sort: z
        .enum([...keySorts, bySpend])
        .default('created')
        .describe(
          `the order; \`-created\`: the newest first; ${bySpendText}; a key counts with all keys of its rotation`,
        ),
      ...field.paging,
    }),
    output: keyShape,
    problems: ['cursor_invalid'],
    text: 'list keys, each with its first characters',
    cli: [
      {
        command: 'key list',
        arguments: ['account?'],
        options: {
          person: '--person <person>',
          q: '--search <text>',
          state: '--state <state>',
          external_id: '--external-id <text>',
          sessions: '--sessions',
          sort: '--sort <order>',
        },
        rows: 'all',
      },
    ],
    async run(context, { account, person, q, state, external_id: externalId, sessions, sort, limit }) {
      const { books, beyond, nowMs } = context
      const accountId = account === undefined ? undefined : await findAccountId(books, account)
      const personId = person === undefined ? undefined : await findPersonId(books, person)
      const filter = { accountId, personId, externalId, q, state, nowMs, isWithoutSessions: !sessions }
      const tell = (row: KeyRow) => tellKey(row, context)
      if (sort === bySpend) {
        const find = (ids: readonly string[]) => books.pageKeys({ ...filter, ids, limit: ids.length })
        const { rows, placeOf } = await pageBySpend(context, {
          by: 'key',
          accountId,
          isWithoutSessions: !sessions,
          limit,
          find,
        })
        return page(rows, limit, tell, placeOf)
      }
      const place = readPlace(beyond, ['number', 'string'])
      const rows = await books.pageKeys({ ...filter, sort, beyond: place, limit: limit + 1 })
      return page(rows, limit, tell, (row) => [row.createdMs, row.id])
    },
  }),
  operation({
    id: 'key.foreign',
    http: 'GET /foreign-keys',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject(field.paging),
    output: foreignShape,
    problems: ['cursor_invalid'],
    text: 'list the keys that were imported from another gateway: when they expire, when they were last used, and which are rotated',
    cli: [{ command: 'key foreign', rows: 'all' }],
    async run(context, { limit }) {
      const { books, beyond } = context
      const place = readPlace(beyond, ['number', 'string'])
      const rows = await books.pageKeys({ isForeign: true, beyond: place, limit: limit + 1 })
      const rotated = await books.findRotated(rows.map(({ scope }) => scope))
      const tell = (row: KeyRow) => foreignShape.parse({ ...tellKey(row, context), rotated: rotated.has(row.scope) })
      return page(rows, limit, tell, (row) => [row.createdMs, row.id])
    },
  }),
  operation({
    id: 'key.show',
    http: 'GET /keys/{key}',
    role: 'viewer',
    input: z.strictObject({ key: field.key }),
    output: keyShape,
    problems: ['not_found'],
    text: 'show a key, named by its id or first characters',
    cli: [{ command: 'key show', arguments: ['key'] }],
    run: async (context, { key }) => one(await findKey(context.books, key), context),
  }),
  operation({
    id: 'key.update',
    http: 'PATCH /keys/{key}',
    role: 'admin',
    kind: 'edits',
    input: z.strictObject({
      key: field.key,
      label: label.describe('a name for people; `none` removes it'),
      ...bounds,
    }),
    output: keyShape,
    problems: ['not_found', 'conflict'],
    text: 'change the label, the expiry or the limits of a key; new limits also apply to the earlier and later keys of the same rotation',
    cli: [{ command: 'key set', arguments: ['key'], options: { label: '--label <text>', ...boundOptions } }],
    async run(context, { key, ...asked }) {
      const { books } = context
      const { id } = await books.updateKey(key, wishesOf(asked, context))
      return one(await findKey(books, id), context)
    },
  }),
  operation({
    id: 'key.revoke',
    http: 'POST /keys/{key}/revoke',
    role: 'admin',
    input: z.strictObject({ key: field.key }),
    output: keyShape,
    problems: ['not_found'],
    text: 'end a key for good, named by its id or first characters',
    cli: [{ command: 'key revoke', arguments: ['key'] }],
    run: async (context, { key }) => one(await context.books.revokeKey(key), context),
  }),
  operation({
    id: 'key.delete',
    http: 'DELETE /keys/{key}',
    role: 'admin',
    input: z.strictObject({ key: field.key }),
    output: keyShape,
    problems: ['not_found'],
    text: 'end a key for good, as key.revoke does; it stays in lists, reports and the audit trail',
    run: async (context, { key }) => one(await context.books.revokeKey(key), context),
  }),
  operation({
    id: 'key.rotate',
    http: 'POST /keys/{key}/rotate',
    role: 'admin',
    kind: 'creates',
    madeAt: '/keys',
    input: z.strictObject({
      key: field.key,
      grace: field.duration.prefault('24h').describe('how long the old key stays valid, such as 90s, 30m, 24h or 7d'),
    }),
    output: issuedShape,
    problems: ['not_found', 'conflict'],
    text: 'make a new key with the label, limits and spending of an old one; the old key ends after a grace period',
    cli: [{ command: 'key rotate', arguments: ['key'], options: { grace: '--grace <time>' } }],
    run: async ({ books }, { key, grace }) => issued(await books.rotateKey(key, grace)),
  }),
]

/** Finds a key by its id or first characters, never by its label. */
async function findKey(books: Books, key: string): Promise<KeyRow> {
  const name = nameOfKey(key)
  const found = (await books.findKeys(name)).filter(({ id, prefix }) => id === name || prefix === name)
  if (found.length > 1) throw new BookError('key_ambiguous', key)
  if (!found[0]) throw new BookError('no_key', key)
  return found[0]
}
