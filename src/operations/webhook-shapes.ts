import { z } from 'zod'
import { type WebhookEvent, webhookEvents } from '../accounts/warnings.ts'
import { amount, named, when } from './fields.ts'
import { severities } from './needs.ts'

/* Shapes of the messages of webhooks, for the OpenAPI document. `src/webhooks/messages.ts` makes the messages. */

const account = z.object({ id: z.string(), name: z.string() })

const spending = {
  budget: z.string().describe('such as 5/day, or 50 in total'),
  spent: amount,
  renews_at: when.nullable().describe('null: never'),
}

const keyBudget = z.object({
  account: z.object({ id: z.string().nullable(), name: z.string().nullable() }),
  key: z.object({ id: z.string(), prefix: z.string().nullable(), label: z.string().nullable() }),
  ...spending,
})
const accountBudget = z.object({ account, ...spending })
const personBudget = z.object({ person: z.object({ id: z.string(), name: z.string().nullable() }), ...spending })

const data = {
  credit_low: z.object({ account, balance: amount, below: amount }),
  key_budget_80: keyBudget,
  key_budget_spent: keyBudget,
  account_budget_80: accountBudget,
  account_budget_spent: accountBudget,
  person_budget_80: personBudget,
  person_budget_spent: personBudget,
  needs_changed: z.object({
    need: z.string(),
    severity: z.enum(severities),
    text: z.string().describe('one sentence'),
    link: z.string(),
    command: z.string(),
  }),
  upstream_down: z.object({
    model: z.string(),
    upstreams: z.array(
      z.object({
        upstream: z.string(),
        account: z.string().nullable(),
        state: z.string(),
        cause: z.string().nullable(),
      }),
    ),
  }),
  ledger_unwritable: z.object({
    queued: z.number(),
    spooled: z.number(),
    oldest_ms: z.number(),
    all: z.boolean().describe('whether the ledger accepts no debits of any account'),
    accounts: z.number().describe('the number of accounts whose debits have waited for too long'),
  }),
  clock_wrong: z.object({ problem: z.enum(['moved', 'rest', 'ahead']), text: z.string() }),
} satisfies Record<WebhookEvent, z.ZodType>

/** The shape of the message for each event. */
export const webhookShapes = Object.fromEntries(
  webhookEvents.map((event) => [
    event,
    named(`${event.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())}Message`, {
      type: z.literal(event),
      timestamp: when.describe('when it happened'),
      data: data[event],
    }),
  ]),
) as unknown as Record<WebhookEvent, z.ZodType>
