import { z } from 'zod'
import { keysNamedMax } from '../accounts/book-rows.ts'
import type { Principal } from '../accounts/books.ts'
import { mayUse } from '../accounts/key-bounds.ts'
import { clientWireNames } from '../catalog/wire-names.ts'
import * as field from './fields.ts'
import { readSpan } from './filter.ts'
import { requestRow } from './live-shapes.ts'
import { type Context, operation } from './operation.ts'
import { adviceOf } from './own-advice.ts'
import { ProblemError } from './problem.ts'
import { listLast, requestId, words } from './requests.ts'
import { explanation, modelRow, usage } from './shapes.ts'
import { showUsage, usageInput } from './usage.ts'
import { measures, usageShape } from './usage-shape.ts'
import { json } from './workbench.ts'

/*
 * The owner of a key sees their own requests, tokens and credits, and the reasons of their refusals (ruling Y22). Every answer
 * is made of named fields, so that a new field of an operator's answer does not reach an owner. None has prices, bands, tiers,
 * plans, wires of models, upstreams, or anything of other people.
 */

/** A request as its owner sees it. */
export const ownRow = requestRow.pick({
  ...{ request_id: true, at: true, key: true, model: true, alias: true, outcome: true, status: true, code: true },
  ...{ credits: true, input_tokens: true, cache_read_tokens: true, cache_write_tokens: true, output_tokens: true },
  ...{ reasoning_tokens: true, first_byte_ms: true, total_ms: true },
})

const advice = z.string().nullable()

export const ownExplanation = explanation.pick({ request_id: true, model: true, alias: true }).extend({
  ...explanation.shape.settlement.pick({
    ...({ state: true, outcome: true, status: true, code: true, reason: true, message: true, param: true } as const),
  }).shape,
  usage: usage.nullable(),
  credits: explanation.shape.settlement.shape.amount.describe('what was billed'),
  why: advice.describe('why it was refused or failed, in a sentence; null: it was answered'),
  cure: advice.describe('what to do about it'),
})

export const ownModel = modelRow.pick({ id: true, also: true, max_output_tokens: true, context_window: true })

const ownGroupings = ['model', 'key', 'outcome'] as const

/** The keys whose requests the owner of one may see: those of its person in the account, else those it was rotated from and to. */
async function keysOf({
  books,
  who,
}: Pick<Context, 'books' | 'who'>): Promise<{ accountId: string; keyIds: string[] }> {
  const { key, account } = ownerOf(who)
  const { person } = key.bounds
  const ofLine = await books.listLine(key.scope)
  if (person === undefined) return { accountId: account.id, keyIds: ofLine }
  // The newest ones, if sessions have become so many.
  const page = { accountId: account.id, personId: person, sort: '-created', limit: keysNamedMax } as const
  const ofPerson = (await books.pageKeys(page)).map(({ id }) => id)
  return { accountId: account.id, keyIds: [...new Set([...ofLine, ...ofPerson])] }
}

/** @throws ProblemError for an operator, whom the table does not serve */
function ownerOf(who: Principal | undefined): Extract<Principal, { kind: 'owner' }> {
  if (who?.kind !== 'owner') throw new ProblemError('forbidden', 'This is for the owners of keys.')
  return who
}

/** Selects the named fields of a row. */
function select<Name extends string, Row extends Record<Name, unknown>>(
  shape: { shape: Record<Name, unknown> },
  row: Row,
): Pick<Row, Name> {
  const names = Object.keys(shape.shape) as Name[]
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Pick<Row, Name>
}

export const ownOperations = [
  operation({
    id: 'own.requests',
    http: 'GET /me/requests',
    role: 'own',
    kind: 'list',
    input: z.strictObject({
      model: words('models'),
      outcome: field.outcome,
      from: field.dayOrTime.optional().describe('over then or later: a day of the reporting zone, or a time'),
      to: field.dayOrTime.optional().describe('over before then'),
      ...field.paging,
    }),
    output: ownRow,
    problems: ['cursor_invalid', 'store_unavailable'],
    text: "list the owner's last requests, those that were refused too",
    asks: 'server',
    async run(context, { limit, model, outcome, from, to }) {
      const own = await keysOf({ ...context, books: await context.openBooks() })
      const filter = { ...own, models: model, outcomes: outcome, ...readSpan(context.calendar, { from, to }) }
      const { items, next } = await listLast(context, filter, limit)
      return { items: items.map((row) => select(ownRow, row)), next }
    },
  }),
  operation({
    id: 'own.explain',
    http: 'GET /me/requests/{request}/explain',
    role: 'own',
    input: z.strictObject({ request: requestId }),
    output: ownExplanation,
    problems: ['not_found', 'store_unavailable'],
    text: "tell why one of the owner's requests was answered as it was: usage, credits, the reason of a refusal and its cure",
    asks: 'server',
    async run(context, { request }) {
      const { accountId, keyIds } = await keysOf({ ...context, books: await context.openBooks() })
      const found = await context.running.explain(request)
      if (found === 'silent') throw new ProblemError('store_unavailable', 'The ledger cannot be read now: try again.')
      // The request of another owner is as unknown as one that never was.
      if (found === 'unknown' || found.account?.id !== accountId || !keyIds.includes(found.key?.id ?? ''))
        throw new ProblemError('not_found', 'You have no such request, or it is no longer kept.')
      const { amount, ...settlement } = found.settlement
      const all = { ...found, ...settlement, credits: amount, ...adviceOf(settlement) }
      return { body: select(ownExplanation, all) }
    },
  }),
  operation({
    id: 'own.models',
    http: 'GET /me/models',
    role: 'own',
    kind: 'list',
    output: ownModel,
    text: 'list the models that the key can name, without prices',
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
    id: 'own.usage',
    http: 'GET /me/usage',
    role: 'own',
    input: usageInput
      .pick({ from: true, to: true, last: true, month: true, bucket: true, top: true, tz: true })
      .extend({
        by: field
          .someOf(ownGroupings, 1, `must be one of ${ownGroupings.join(', ')}`)
          .optional()
          .describe(`the grouping of the figures: one of ${ownGroupings.join(', ')}`),
        measures: field
          .someOf(measures, measures.length, `must be any of ${measures.join(', ')}`)
          .prefault('credits,requests,errors')
          .describe(`any of ${measures.join(', ')}`),
      }),
    output: usageShape.omit({ folding: true }),
    problems: ['range_too_large'],
    text: 'show what the owner used and what it cost, as a time series',
    atOnce: 4,
    async run(context, input) {
      const { accountId, keyIds } = await keysOf(context)
      // Of a key that has no request yet there are no figures, and not those of everybody.
      const { folding: _, ...told } = await showUsage(context, input, { account: [accountId], key: keyIds })
      return { body: told }
    },
  }),
  operation({
    id: 'own.playground',
    http: 'POST /me/playground',
    role: 'own',
    isLarge: true,
    input: z.strictObject({
      wire: z.enum(clientWireNames).describe('which wire is spoken'),
      body: json('what a client of the wire would send'),
    }),
    output: z.unknown(),
    media: ['application/json', 'text/event-stream'],
    text: "send a request as a client with the owner's key would, at their cost and within its limits",
    async run({ who }, { wire, body }) {
      const { account, key } = ownerOf(who)
      const { id, name, state } = account
      return { play: { account: { id, name, state }, keyDigest: key.digest, wire, body } }
    },
  }),
]
