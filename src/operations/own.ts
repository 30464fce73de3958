import { z } from 'zod'
import { BookError } from '../accounts/book-error.ts'
import { keysNamedMax } from '../accounts/book-rows.ts'
import type { Books } from '../accounts/books.ts'
import { mayUse } from '../accounts/key-bounds.ts'
import { mayHoldKey } from '../accounts/keys.ts'
import type { PersonRow } from '../accounts/persons.ts'
import type { Principal } from '../accounts/principals.ts'
import { isShownWhole } from '../accounts/shown-text.ts'
import { ownKeysMax } from '../accounts/sign-in/own-keys.ts'
import { type ListedSession, ownKeyMark, ownNameMax } from '../accounts/sign-in/rows.ts'
import type { UsageGrouping } from '../accounts/usage/question.ts'
import { clientWireNames } from '../catalog/wire-names.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { readSpan } from './filter.ts'
import { type RequestRow, requestRow } from './live-shapes.ts'
import { type Context, type Operation, operation, page } from './operation.ts'
import { adviceOf } from './own-advice.ts'
import { ProblemError } from './problem.ts'
import { listLast, requestId, words } from './requests.ts'
import { explanation, modelRow, usage } from './shapes.ts'
import { showUsage, usageInput } from './usage.ts'
import { measures, usageShape } from './usage-shape.ts'
import { json } from './workbench.ts'

/*
 * Operations for the owner of a key. They show the owner's requests, tokens and credits, and why requests were refused
 * (ruling Y22). Every answer names its fields one by one, so fields added for operators stay hidden from owners. No
 * answer has prices, bands, tiers, plans, wires of models, upstreams, or data of other people.
 */

const requestFields = requestRow.pick({
  ...{ request_id: true, at: true, key: true, model: true, alias: true, outcome: true, status: true, code: true },
  ...{ credits: true, input_tokens: true, cache_read_tokens: true, cache_write_tokens: true, output_tokens: true },
  ...{ reasoning_tokens: true, first_byte_ms: true, total_ms: true },
})

const personShown = z.object({ id: z.string(), name: z.string().nullable() })

/** A request as its owner sees it. */
export const ownRow = requestFields.extend({
  person: personShown.nullable().describe('the person who made the request; shown to a lead'),
})

/** A person as a lead of their account sees them. */
export const ledPerson = personShown.extend({ email: z.string().nullable() })

/** A session of the owner on a machine. */
export const ownSession = field.named('OwnSession', {
  id: z.string(),
  agent: z.string().nullable().describe('the name of the program, as the program sent it'),
  address: z.string().nullable().describe('the address from which the person signed in'),
  created: field.when,
  last_used: field.when.nullable(),
  expires: field.when,
  is_this: z.boolean().describe('whether this request was made with this session'),
})

const advice = z.string().nullable()

export const ownExplanation = explanation.pick({ request_id: true, model: true, alias: true }).extend({
  ...explanation.shape.settlement.pick({
    ...({ state: true, outcome: true, status: true, code: true, reason: true, message: true, param: true } as const),
  }).shape,
  usage: usage.nullable(),
  credits: explanation.shape.settlement.shape.amount.describe('the credits that were billed'),
  why: advice.describe('why the request was refused or failed, in a sentence; null: it was answered'),
  cure: advice.describe('what the owner can do about it'),
})

export const ownModel = modelRow.pick({ id: true, also: true, max_output_tokens: true, context_window: true })

/** The requests that a caller may see: all requests of an account, or only those of some keys of the account. */
type OwnScope = { accountId: string; keyIds?: string[] }

/** Finds the scope of a caller. @param person set if a lead wants to see only the requests of this person */
type FindScope = (context: Pick<Context, 'books' | 'who'>, person?: string) => Promise<OwnScope>

/** Finds the keys of the presented key's line (a key with its successors), and the newest keys of its person. */
export const findOwn: FindScope = async ({ books, who }) => {
  const { key, account } = ownerOf(who)
  const ofLine = await books.listLines([key.id])
  const { person } = key.bounds
  return { accountId: account.id, keyIds: [...new Set([...ofLine, ...(await keysOf(books, account.id, person))])] }
}

/** Finds the account that a lead may see. If a person is given, also finds that person's keys in the account. */
const findLed: FindScope = async ({ books, who }, person) => {
  const { id: accountId } = ownerOf(who).account
  return { accountId, ...(person !== undefined && { keyIds: await keysOf(books, accountId, person) }) }
}

/** Returns the newest keys of a person, at most `keysNamedMax`, because each session adds a key. */
async function keysOf(books: Books, accountId: string, personId: string | undefined): Promise<string[]> {
  if (personId === undefined) return []
  const keys = await books.pageKeys({ accountId, personId, sort: '-created', limit: keysNamedMax })
  return keys.map(({ id }) => id)
}

/** Returns the owner. @throws ProblemError if the caller is an operator */
function ownerOf(who: Principal | undefined): Extract<Principal, { kind: 'owner' }> {
  if (who?.kind !== 'owner') throw new ProblemError('forbidden', 'This is for the owners of keys.')
  return who
}

function select<Name extends string, Row extends Record<Name, unknown>>(
  shape: { shape: Record<Name, unknown> },
  row: Row,
): Pick<Row, Name> {
  const names = Object.keys(shape.shape) as Name[]
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Pick<Row, Name>
}

/** The operations below exist twice: owners read their own data, and leads read the data of the whole account. */
type Audience = {
  group: 'own' | 'people'
  http: '/me' | '/me/people'
  role: 'own' | 'lead'
  whose: string
  find: FindScope
  /** The field that selects a person. Owners of keys do not have this field, only leads of an account. */
  person: { person?: typeof personId }
  groupings: readonly UsageGrouping[]
}

const personId = field.text('must be the id of a person').optional().describe('only data of this person, by id')

const owners: Audience = {
  ...{ group: 'own', http: '/me', role: 'own', whose: 'the owner', find: findOwn, person: {} },
  groupings: ['model', 'key', 'outcome'],
}
const leads: Audience = {
  ...{ group: 'people', http: '/me/people', role: 'lead', whose: 'all people of the account', find: findLed },
  person: { person: personId },
  groupings: ['person', 'model', 'key', 'outcome'],
}

function readingsOf({ group, http, role, whose, find, person, groupings }: Audience): Operation[] {
  return [
    operation({
      id: `${group}.requests`,
      http: `GET ${http}/requests`,
      role,
      kind: 'list',
      input: z.strictObject({
        ...person,
        model: words('models'),
        outcome: field.outcome,
        from: field.dayOrTime
          .optional()
          .describe('only requests that ended since: a day of the reporting zone, or a time'),
        to: field.dayOrTime.optional().describe('only requests that ended before this time'),
        ...field.paging,
      }),
      output: ownRow,
      problems: ['cursor_invalid', 'store_unavailable'],
      text: `list the last requests of ${whose}, refused ones included`,
      asks: 'server',
      async run(context, { limit, person, model, outcome, from, to }) {
        const books = await context.openBooks()
        const scope = await find({ ...context, books }, person as string | undefined)
        const filter = { ...scope, models: model, outcomes: outcome, ...readSpan(context.calendar, { from, to }) }
        const { items, ...rest } = await listLast(context, filter, limit)
        const named = role === 'lead' ? await namePeople(books, items) : undefined
        return {
          items: items.map((row) => ({ ...select(requestFields, row), person: named?.(row) ?? null })),
          ...rest,
        }
      },
    }),
    operation({
      id: `${group}.explain`,
      http: `GET ${http}/requests/{request}/explain`,
      role,
      input: z.strictObject({ request: requestId }),
      output: ownExplanation,
      problems: ['not_found', ...(role === 'lead' ? (['conflict'] as const) : []), 'store_unavailable'],
      text: `explain the answer to a request of ${role === 'lead' ? 'any person of the account' : whose}: usage, credits, the reason for a refusal, and what to do about it`,
      asks: 'server',
      async run(context, { request }) {
        const { accountId, keyIds } = await find({ ...context, books: await context.openBooks() })
        const found = await context.running.explain(request)
        if (found === 'silent') throw new ProblemError('store_unavailable', 'The ledger cannot be read now: try again.')
        const archived =
          found === 'unknown' && keyIds === undefined
            ? await (await context.openBooks()).findArchived(request)
            : undefined
        if (archived?.accountId === accountId) throw new BookError('month_away', archived.month)
        // A request of another owner gets the same error as a request that does not exist.
        const isTheirs =
          found !== 'unknown' &&
          found.account?.id === accountId &&
          (keyIds === undefined || keyIds.includes(found.key?.id ?? ''))
        if (!isTheirs)
          throw new ProblemError('not_found', 'There is no such request of yours, or it is no longer kept.')
        const { amount, ...settlement } = found.settlement
        const all = { ...found, ...settlement, credits: amount, ...adviceOf(settlement) }
        return { body: select(ownExplanation, all) }
      },
    }),
    operation({
      id: `${group}.usage`,
      http: `GET ${http}/usage`,
      role,
      input: usageInput
        .pick({ from: true, to: true, last: true, month: true, bucket: true, top: true, tz: true })
        .extend({
          ...person,
          by: field
            .someOf(groupings, 1, `must be one of ${groupings.join(', ')}`)
            .optional()
            .describe(`how to group the figures: one of ${groupings.join(', ')}`),
          measures: field
            .someOf(measures, measures.length, `must be any of ${measures.join(', ')}`)
            .prefault('credits,requests,errors')
            .describe(`the figures to show, separated by commas: any of ${measures.join(', ')}`),
        }),
      output: usageShape.omit({ folding: true }),
      problems: ['range_too_large', 'conflict'],
      text: `show what ${whose} used and what it cost, as a time series`,
      atOnce: 4,
      async run(context, { person, ...input }) {
        const { accountId, keyIds } = await find(context, person as string | undefined)
        const only = { account: [accountId], ...(keyIds && { key: keyIds }) }
        const { folding: _, ...told } = await showUsage(context, input, only)
        return { body: told }
      },
    }),
  ]
}

/**
 * Returns a function that finds the person of a row. Ledger entries before form 3 name no person. For such a row it is
 * the person who has the key now.
 */
async function namePeople(books: Books, rows: readonly Pick<RequestRow, 'key' | 'person'>[]) {
  const ids = [...new Set(rows.flatMap(({ key, person }) => (person === null ? (key?.id ?? []) : [])))]
  const keys = ids.length > 0 ? await books.pageKeys({ ids, limit: ids.length }) : []
  const holders = new Map(keys.map(({ id, bounds }) => [id, bounds.person]))
  const idOf = ({ key, person }: (typeof rows)[number]) => person ?? holders.get(key?.id ?? '')
  const people = await books.namePersons([...new Set(rows.flatMap((row) => idOf(row) ?? []))])
  return (row: (typeof rows)[number]) => people.get(idOf(row) ?? '')
}

export const ownOperations = [
  ...readingsOf(owners),
  operation({
    id: 'own.models',
    http: 'GET /me/models',
    role: 'own',
    kind: 'list',
    output: ownModel,
    text: 'list the models that the key may use, without prices',
    asks: 'configuration',
    async run({ running, who }) {
      const { models } = ownerOf(who).key.bounds
      const rows = running.listModels().map((row) => ({
        ...select(ownModel, row),
        also: row.also.filter((name) => mayUse(models, name)),
      }))
      return { items: rows.filter(({ id, also }) => mayUse(models, id) || also.length > 0) }
    },
  }),
  operation({
    id: 'own.playground',
    http: 'POST /me/playground',
    role: 'own',
    isLarge: true,
    input: z.strictObject({
      wire: z.enum(clientWireNames).describe('the wire of the request'),
      body: json('the body of the request, in the form of the wire'),
    }),
    output: z.unknown(),
    media: ['application/json', 'text/event-stream'],
    text: "send a request as a client with the owner's key would, at the owner's cost and within the limits of the key",
    async run({ who }, { wire, body }) {
      const { account, key } = ownerOf(who)
      const { id, name, state } = account
      return { play: { account: { id, name, state }, keyDigest: key.digest, wire, body } }
    },
  }),
  operation({
    id: 'own.sessions',
    http: 'GET /me/sessions',
    role: 'own',
    kind: 'list',
    output: ownSession,
    text: 'list the sessions of the owner',
    async run({ books, who, running, nowMs }) {
      const { key, account } = ownerOf(who)
      const { person } = key.bounds
      if (person === undefined) return { items: [] }
      const isLive = { nowMs, idleMs: running.sessionIdleMs() }
      const rows = await books.pageSessions({
        personId: person,
        accountId: account.id,
        isLive,
        limit: sessionsShownMax,
      })
      return { items: rows.map((row) => tellSession(row, key.session)) }
    },
  }),
  operation({
    id: 'own.session.end',
    http: 'POST /me/sessions/{session}/end',
    role: 'own',
    input: z.strictObject({ session: field.text('must be a text').max(100).describe('the id of the session') }),
    output: z.object({ id: z.string(), ended: field.when }),
    problems: ['not_found'],
    text: "end one of the owner's sessions, which makes its tokens invalid",
    async run({ books, who, nowMs }, { session }) {
      const { person } = ownerOf(who).key.bounds
      const [found] = person === undefined ? [] : await books.pageSessions({ id: session, personId: person, limit: 1 })
      if (!found) throw new ProblemError('not_found', 'You have no such session.')
      const ended = await books.endSession({ id: session }, 'ended')
      return { body: { id: session, ended: field.formatTime(ended?.endedMs ?? nowMs)! } }
    },
  }),
  operation({
    id: 'own.key.create',
    http: 'POST /me/keys',
    role: 'own',
    kind: 'creates',
    input: z.strictObject({
      name: field
        .text('must be a text')
        .max(ownNameMax)
        .refine((name) => isShownWhole(ownKeyMark + name), {
          error: `must have 1 to ${ownNameMax} characters, all of which can be seen, and no blank at the end`,
        })
        .refine((name) => !mayHoldKey(name), { error: 'is not secret: it must not hold a key' })
        .describe('a name for the key, such as the agent and its machine'),
    }),
    output: z.object({
      key: z.string().optional().describe('the key itself, which is shown only in this answer'),
      id: z.string(),
      name: z.string(),
    }),
    problems: ['conflict'],
    text: "make a key for an agent that cannot run a command to get tokens; the key ends when the person's access ends",
    async run({ books, who }, { name }) {
      const { key: shown } = ownerOf(who)
      if (shown.session === undefined)
        throw new ProblemError('forbidden', 'This is for people who have signed in: run triwire login.')
      const made = await books.createOwnKey(shown.id, name)
      if (made === 'many')
        throw new ProblemError('conflict', `You have ${ownKeysMax} such keys: let an operator revoke some.`)
      if (made === 'unconfirmed')
        throw new ProblemError(
          'forbidden',
          'Your identity provider has not confirmed you for seven days: sign in again.',
        )
      const { key, id } = made
      return { body: { ...(key !== undefined && { key }), id, name }, isNew: key !== undefined }
    },
  }),
  ...readingsOf(leads),
  operation({
    id: 'people.list',
    http: 'GET /me/people',
    role: 'lead',
    kind: 'list',
    input: z.strictObject(field.paging),
    output: ledPerson,
    problems: ['cursor_invalid'],
    text: 'list the people of the account, for its lead',
    async run({ books, who, beyond }, { limit }) {
      const accountId = ownerOf(who).account.id
      const place = readPlace(beyond, ['number', 'string'])
      const rows = await books.pagePersons({ usingAccountId: accountId, limit: limit + 1, beyond: place })
      const tell = ({ id, name, email }: PersonRow) => ({ id, name: name ?? null, email: email ?? null })
      return page(rows, limit, tell, ({ createdMs, id }) => [createdMs, id])
    },
  }),
]

const sessionsShownMax = 100

function tellSession(
  { id, agent, address, createdMs, lastUsedMs, expiresMs }: ListedSession,
  shown: string | undefined,
) {
  return {
    id,
    agent: agent ?? null,
    address: address ?? null,
    created: field.formatTime(createdMs)!,
    last_used: field.formatTime(lastUsedMs),
    expires: field.formatTime(expiresMs)!,
    is_this: id === shown,
  }
}
