import { z } from 'zod'
import { type AccountRow, accountSorts, versionOfAccount } from '../accounts/book-rows.ts'
import type { AccountWishes } from '../accounts/book-rules.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { AccountBounds } from '../accounts/key-bounds.ts'
import { bySpend, bySpendText, pageBySpend } from './by-spend.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { type Context, operation, page } from './operation.ts'
import { wrongField } from './problem.ts'

export const accountShape = field.named('Account', {
  id: z.string(),
  name: z.string(),
  state: z.enum(['active', 'suspended']),
  balance: field.amount.describe('the balance in credits, without what running requests will cost'),
  held: field.amount.describe(
    'credit set aside for requests that run on the servers that can be reached; always 0 at the command line, which asks no server',
  ),
  budget: field.budgetShape
    .nullable()
    .describe('the budget of all its keys together; null: only the balance limits it'),
  rpm: z.int().nullable().describe('the most requests of all its keys per minute; null: the configured default'),
  warn: z
    .array(field.amount)
    .nullable()
    .describe('balances below which `credit_low` is sent; null: the balance that the configuration sets'),
  grant: field.grantShape.nullable().describe('the credit that the account gets in each month'),
  plan: z.string().nullable().describe('the plan whose prices the account pays; null: the prices of the models'),
  external_id: z.string().nullable().describe('the id in a system of the operator'),
  metadata: field.metadataShape.nullable(),
})

export type AccountDetails = z.output<typeof accountShape>

type AccountView = Pick<Context, 'nowMs' | 'calendar'>

function tellAccount(row: AccountRow, view: AccountView, heldNanos = 0n): z.output<typeof accountShape> {
  const { id, name, state, balanceNanos, bounds, lastGrant } = row
  const { budget, requestsPerMinute, warnNanos, grant, plan } = bounds
  return {
    ...{ id, name, state, balance: formatCredits(balanceNanos), held: formatCredits(heldNanos) },
    budget: budget === undefined ? null : field.tellBudget(row.spend, budget, heldNanos, view),
    rpm: requestsPerMinute ?? null,
    warn: warnNanos?.map(formatCredits) ?? null,
    grant: grant ? { credits: formatCredits(grant.nanos), lapse: grant.lapses, last: lastGrant ?? null } : null,
    plan: plan ?? null,
    external_id: bounds.externalId ?? null,
    metadata: bounds.metadata ?? null,
  }
}

async function one(context: Context, row: AccountRow) {
  const holds = await context.running.readHolds()
  return { body: tellAccount(row, context, holds.get(row.id)), version: versionOfAccount(row) }
}

const bounds = {
  budget: field.budget
    .optional()
    .describe(
      'the most credits that all keys of the account may spend together, such as 500/month; `none`: only the balance limits them',
    ),
  rpm: field.rate.optional().describe('the most requests of all its keys per minute; `none`: the configured default'),
  warn: field.warn.optional(),
  plan: field.plan
    .optional()
    .describe('the plan of the configuration whose prices the account pays; `none`: the prices of the models'),
  external_id: field.externalId.optional(),
  metadata: field.metadata.optional(),
}

const boundOptions = {
  budget: '--budget <credits/period>',
  rpm: '--rpm <count>',
  warn: '--warn <credits>',
  plan: '--plan <name>',
  external_id: '--external-id <text>',
  metadata: '--metadata <words>',
} satisfies Record<keyof typeof bounds, string>

/**
 * The wanted values of an account, with every bound as a required member. So the compiler reports a bound that
 * `wishesOf` leaves out.
 */
type WholeAccountWishes = { [Name in keyof Required<AccountBounds>]: AccountWishes[Name] }

/** Converts the fields of a request to the values of an account, in the form that the books accept. */
function wishesOf(
  { budget, rpm, warn, plan, grant, lapse, external_id: externalId, metadata }: AccountFields,
  { running }: Context,
): WholeAccountWishes {
  if (typeof plan === 'string' && !running.declaredPlans().includes(plan))
    throw wrongField('plan', `There is no plan "${plan}": declare it in the configuration, under plans.`)
  if (lapse !== undefined && (grant === undefined || (lapse && grant === null)))
    throw wrongField('lapse', 'It says what becomes of a grant: name that too')
  const given = grant && { nanos: grant.nanos, lapses: lapse ?? grant.lapses ?? false }
  return { budget, requestsPerMinute: rpm, warnNanos: warn, grant: given, plan, externalId, metadata }
}

type AccountFields = z.output<z.ZodObject<typeof bounds>> & {
  grant?: z.output<typeof field.grant> | undefined
  lapse?: boolean | undefined
}

const name = field.text('must be a text').describe('the name of the account: 1 to 100 characters, unique')

export const accountOperations = [
  operation({
    id: 'account.create',
    http: 'POST /accounts',
    role: 'admin',
    isOfAll: true,
    kind: 'creates',
    madeAt: '/accounts',
    input: z.strictObject({
      name,
      credit: field.credits
        .refine((nanos) => nanos >= 0n, { error: 'An account cannot start below zero.' })
        .optional()
        .describe('the credit that the account starts with, such as 12.5; default: none'),
      ...bounds,
    }),
    output: accountShape,
    problems: ['conflict'],
    text: 'make an account',
    cli: [
      { command: 'account create', arguments: ['name'], options: { credit: '--credit <credits>', ...boundOptions } },
    ],
    async run(context, { name, credit, ...asked }) {
      const account = await context.books.createAccount(name, credit, wishesOf(asked, context))
      return { ...(await one(context, account)), isNew: true }
    },
  }),
  operation({
    id: 'account.list',
    http: 'GET /accounts',
    role: 'reader',
    isOfAll: true,
    kind: 'list',
    input: z.strictObject({
      q: z
        .string()
        .min(1)
        .max(100)
        .optional()
        .describe('only accounts whose name contains this text, or whose id begins with it'),
      state: z.enum(['active', 'suspended']).optional().describe('only accounts in this state'),
      external_id: field.ofExternalId,
      sort: z
        .enum([...accountSorts, bySpend])
        .default('created')
        .describe(`the order; \`-created\`: the newest first; ${bySpendText}`),
      ...field.paging,
    }),
    output: accountShape,
    problems: ['cursor_invalid'],
    text: 'list all accounts',
    cli: [
      {
        command: 'account list',
        options: {
          q: '--search <text>',
          state: '--state <state>',
          external_id: '--external-id <text>',
          sort: '--sort <order>',
        },
        rows: 'all',
      },
    ],
    async run(context, { q, state, external_id: externalId, sort, limit }) {
      const { books, beyond, running } = context
      const holds = await running.readHolds()
      const tell = (row: AccountRow) => tellAccount(row, context, holds.get(row.id))
      if (sort === bySpend) {
        const find = (ids: readonly string[]) =>
          books.pageAccounts({ q, state, externalId, ids, sort: 'created', limit: ids.length })
        const { rows, placeOf } = await pageBySpend(context, { by: 'account', limit, find })
        return page(rows, limit, tell, placeOf)
      }
      const place = readPlace(beyond, [sort === 'name' ? 'string' : 'number', 'string'])
      const rows = await books.pageAccounts({ q, state, externalId, sort, beyond: place, limit: limit + 1 })
      return page(rows, limit, tell, (row) => [sort === 'name' ? row.name : row.createdMs, row.id])
    },
  }),
  operation({
    id: 'account.show',
    http: 'GET /accounts/{account}',
    role: 'reader',
    isOfAll: true,
    input: z.strictObject({ account: field.account }),
    output: accountShape,
    problems: ['not_found'],
    text: 'show an account, by name or id',
    cli: [{ command: 'account show', arguments: ['account'] }],
    run: async (context, { account }) => one(context, await context.books.findAccount(account)),
  }),
  operation({
    id: 'account.update',
    http: 'PATCH /accounts/{account}',
    role: 'admin',
    isOfAll: true,
    kind: 'edits',
    input: z.strictObject({
      account: field.account,
      name: name.optional(),
      state: z
        .enum(['active', 'suspended'])
        .optional()
        .describe('`suspended`: new requests of the account are refused, and running ones are finished'),
      ...bounds,
      grant: field.grant.optional(),
      lapse: z.boolean().optional().describe('the unspent part of a grant expires when the next grant is given'),
    }),
    output: accountShape,
    problems: ['not_found', 'conflict'],
    text: 'rename an account, suspend it, or end its suspension; set limits for all its keys together, or a monthly grant',
    cli: [
      {
        command: 'account set',
        arguments: ['account'],
        options: boundOptions,
        text: 'set limits for all keys of an account together, on all replicas',
      },
      {
        command: 'account grant',
        arguments: ['account', 'grant'],
        options: { lapse: '--lapse' },
        text: 'give an account credit in each month, beginning with the current month',
      },
      {
        command: 'account suspend',
        arguments: ['account'],
        fixed: { state: 'suspended' },
        text: 'refuse new requests of an account; running requests continue',
      },
      {
        command: 'account activate',
        arguments: ['account'],
        fixed: { state: 'active' },
        text: 'end the suspension of an account',
      },
      {
        command: 'account rename',
        arguments: ['account', 'name'],
        text: 'give an account another name; its id, keys and entries stay the same',
      },
    ],
    async run(context, { account, name, state, ...asked }) {
      return one(context, await context.books.updateAccount(account, { name, state, ...wishesOf(asked, context) }))
    },
  }),
  operation({
    id: 'account.delete',
    http: 'DELETE /accounts/{account}',
    role: 'admin',
    isOfAll: true,
    input: z.strictObject({ account: field.account }),
    output: accountShape,
    problems: ['not_found'],
    text: 'suspend an account (`account.update` with `suspended` does the same): its requests are refused, and its keys, entries and reports are kept',
    run: async (context, { account }) =>
      one(context, await context.books.updateAccount(account, { state: 'suspended' })),
  }),
  operation({
    id: 'account.credit',
    http: 'POST /accounts/{account}/credits',
    role: 'admin',
    isOfAll: true,
    kind: 'creates',
    input: z.strictObject({
      account: field.account,
      credits: field.credits
        .refine((nanos) => nanos !== 0n, 'must not be 0')
        .describe('the credits to add, such as 12.5, or to take away, such as -3'),
      reference: field
        .text('must be a text')
        .describe('the number of the payment: a second credit with the same reference is not added'),
    }),
    output: accountShape,
    problems: ['not_found', 'reference_conflict', 'conflict'],
    text: 'add credit, or correct it by a negative amount',
    cli: [
      {
        command: 'account credit',
        arguments: ['account', 'credits'],
        options: { reference: '--reference <text>' },
      },
    ],
    async run(context, { account, credits, reference }) {
      const { books } = context
      const booked = await books.credit(account, credits, reference)
      return { ...(await one(context, await books.findAccount(account))), isNew: booked === 'posted' }
    },
  }),
]
