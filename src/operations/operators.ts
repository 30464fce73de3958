import { z } from 'zod'
import { formatCredits } from '../accounts/credit.ts'
import { mayUse } from '../accounts/key-bounds.ts'
import { type OperatorRow, operatorRoles, ownerRoles, roleOf } from '../accounts/operators.ts'
import type { Principal } from '../accounts/principals.ts'
import type { AuditRow } from '../accounts/trail.ts'
import { readPlace } from './cursor.ts'
import * as field from './fields.ts'
import { readSpan } from './filter.ts'
import { keyShape, seenFields, tellKey } from './keys.ts'
import { operation, page } from './operation.ts'
import { ProblemError } from './problem.ts'

/* Operations on operators and the audit, and an operation that describes the caller. */

const role = z.enum(operatorRoles).meta({ title: 'OperatorRole' })

export const operatorShape = field.named('Operator', {
  id: z.string(),
  name: z.string(),
  role,
  prefix: z.string().describe("the token's first characters"),
  created: field.when,
  expires: field.when,
  revoked: field.when.nullable(),
})

const issuedShape = field.named('IssuedOperator', {
  name: z.string(),
  role,
  token: z
    .string()
    .optional()
    .describe('the token itself, which is shown only in this answer; the answer to a repeated request leaves it out'),
  expires: field.when,
})

function tellOperator(operator: OperatorRow) {
  const { id, name, prefix, createdMs, expiresMs, revokedMs } = operator
  const times = { created: field.formatTime(createdMs)!, expires: field.formatTime(expiresMs)! }
  return { id, name, role: roleOf(operator), prefix, ...times, revoked: field.formatTime(revokedMs) }
}

const auditShape = field.named('AuditRecord', {
  seq: z.number(),
  at: field.when,
  actor: z.string().describe('`operator:<name>`, `cli:<user>@<host>`, or `triwire` itself'),
  from: z.string().nullable().describe('the address of the caller; null for the command line'),
  operation: z.string(),
  object: z.string().describe('the id of the object that was changed'),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  digest: z.string().describe('a digest over this record and the digest of the previous one'),
})

function tellAudit({ seq, atMs, actor, address, operation, object, before, after, digest }: AuditRow) {
  const read = (text: string | null) => (text === null ? null : (JSON.parse(text) as Record<string, unknown>))
  const what = { operation, object, before: read(before), after: read(after), digest }
  return { seq, at: field.formatTime(atMs)!, actor, from: address, ...what }
}

const word = field.text('must be a text').optional()

export const operatorOperations = [
  operation({
    id: 'operator.create',
    http: 'POST /operators',
    role: 'admin',
    kind: 'creates',
    input: z.strictObject({
      name: field.text('must be a text').describe('the name of the operator: 1 to 64 letters, digits and . _ @ -'),
      role: z
        .enum(operatorRoles)
        .describe(
          '`viewer` reads everything, `admin` also makes changes, `finance` reads only sums, prices and statements',
        ),
      expires: field.duration
        .refine((ms) => ms > 0, { error: 'is over at once: name a longer time' })
        .prefault('90d')
        .describe('how long the token is valid, such as 12h or 90d'),
    }),
    output: issuedShape,
    problems: ['conflict'],
    text: 'make a token for a person who operates the gateway; the token is shown only this once',
    cli: [
      {
        command: 'operator create',
        arguments: ['name'],
        options: { role: '--role <role>', expires: '--expires <time>' },
      },
    ],
    async run({ books, nowMs }, { name, role, expires }) {
      const { operator, token } = await books.createOperator(name, role, nowMs + expires)
      const told = { name: operator.name, role: roleOf(operator), ...(token !== undefined && { token }) }
      return { body: { ...told, expires: field.formatTime(operator.expiresMs)! }, isNew: token !== undefined }
    },
  }),
  operation({
    id: 'operator.list',
    http: 'GET /operators',
    role: 'viewer',
    kind: 'list',
    output: operatorShape,
    text: 'list the operators of the gateway',
    cli: [{ command: 'operator list', rows: 'all' }],
    run: async ({ books }) => ({ items: (await books.listOperators()).map(tellOperator) }),
  }),
  operation({
    id: 'operator.revoke',
    http: 'POST /operators/{operator}/revoke',
    role: 'admin',
    input: z.strictObject({ operator: field.text('must be a text').describe('the name or id of the operator') }),
    output: operatorShape,
    problems: ['not_found'],
    text: 'end the token of an operator for good, and all browser sessions that were signed in with it',
    cli: [{ command: 'operator revoke', arguments: ['operator'] }],
    run: async ({ books }, { operator }) => ({ body: tellOperator(await books.revokeOperator(operator)) }),
  }),
  operation({
    id: 'audit.list',
    http: 'GET /audit',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({
      actor: word.describe('only changes by this actor, such as operator:ann'),
      operation: word.describe('only changes by this operation, such as key.create'),
      object: word.describe('only changes of this object, by its id'),
      from: field.dayOrTime
        .optional()
        .describe('only changes from this time on: a day of the reporting zone, or a time'),
      to: field.dayOrTime.optional().describe('only changes before this time'),
      ...field.paging,
    }),
    output: auditShape,
    problems: ['cursor_invalid'],
    text: 'list changes, the newest first: what was changed, by whom, and from which address',
    cli: [
      {
        command: 'audit',
        options: {
          actor: '--actor <actor>',
          operation: '--operation <operation>',
          object: '--object <id>',
          from: '--since <time>',
          to: '--until <time>',
        },
        reads: { to: field.nextDay },
        rows: 50,
      },
    ],
    async run({ books, beyond, calendar }, { limit, from, to, cursor: _, ...filter }) {
      const [place] = readPlace(beyond, ['number']) ?? []
      const span = readSpan(calendar, { from, to })
      const rows = await books.listAudit({ ...filter, ...span, limit: limit + 1, beyond: place })
      return page(rows, limit, tellAudit, (row) => [row.seq])
    },
  }),
]

/**
 * A key as its owner sees it (ruling Y22). Apart from the bounds, the fields are named one by one. A field that is
 * added later for operators therefore stays hidden from owners.
 */
const ownKeyShape = keyShape
  .pick({ id: true, prefix: true, label: true, account: true, account_name: true })
  .extend(seenFields)
  .extend(
    keyShape.pick({ session: true, origin: true, created: true, expires: true, revoked: true, last_used: true }).shape,
  )

const meShape = field.named('Me', {
  kind: z.enum(['operator', 'owner']),
  name: z.string().describe('the name of the operator or of the account'),
  role: z
    .enum([...operatorRoles, ...ownerRoles])
    .nullable()
    .describe('the role of the caller: null for the owner of a key, `lead` or `member` for a person who has signed in'),
  expires: field.when.nullable().describe('when the token or key expires'),
  account: z
    .object({ id: z.string(), name: z.string(), state: z.enum(['active', 'suspended']), balance: field.amount })
    .nullable(),
  key: ownKeyShape
    .extend({ spent: field.amount.describe('all credits that were billed with the key') })
    .nullable()
    .describe('the key of the caller, with its limits'),
  models: z.array(z.string()).nullable().describe('the ids of the models that the key may use'),
  pages: z.array(z.string()).nullable().describe('the pages that the console has for the owner of a key'),
  time_zone: z.string().describe('the time zone in which days of budgets and figures begin'),
  credit_name: z.string().describe('the name of a credit, such as EUR'),
})

/** Returns the console's pages for an owner. Only the key of a person has sessions. */
function pagesOf({ key, role }: Extract<Principal, { kind: 'owner' }>): string[] {
  const ofPerson = key.bounds.person === undefined ? [] : ['sessions']
  return [
    ...['overview', 'requests', 'models', 'playground', 'setup'],
    ...ofPerson,
    ...(role === 'lead' ? ['people'] : []),
  ]
}

export const meOperations = [
  operation({
    id: 'me',
    http: 'GET /me',
    role: 'owner',
    output: meShape,
    text: 'show who the caller is: an operator, or the owner of a key with the balance, the spending and the models of the key',
    async run({ books, running, who, nowMs, calendar }) {
      if (!who) throw new ProblemError('unauthenticated', 'Show a token or a key.')
      const store = { time_zone: calendar.timeZone, credit_name: (await running.readCreditWords()).name }
      if (who.kind === 'operator') {
        const { name, role, expiresMs } = who
        const none = { account: null, key: null, models: null, pages: null, ...store }
        return { body: { kind: 'operator' as const, name, role, expires: field.formatTime(expiresMs), ...none } }
      }
      const { id, name, state, balanceNanos } = who.account
      const { key } = who
      const spent = formatCredits(await books.readSpent(id, key.id))
      return {
        body: {
          kind: 'owner' as const,
          name,
          role: who.role ?? null,
          expires: field.formatTime(key.expiresMs),
          account: { id, name, state, balance: formatCredits(balanceNanos) },
          key: { ...ownKeyShape.parse(tellKey(key, { nowMs, calendar, running })), spent },
          // Owners of keys do not see prices, wires or upstreams (ruling X14).
          models: running
            .listModels()
            .flatMap((model) => [model.id, ...model.also])
            .filter((model) => mayUse(key.bounds.models, model)),
          pages: pagesOf(who),
          ...store,
        },
      }
    },
  }),
]
