import { z } from 'zod'
import { formatCredits } from '../accounts/credit.ts'
import { webhookEvents } from '../accounts/warnings.ts'
import * as field from './fields.ts'
import { operation } from './operation.ts'

const telling = z.object({ at: field.when, result: z.string().describe('`ok`, or what it failed of') })

const webhookRow = z.object({
  url: z.string().describe('without query and fragment: they may be secret'),
  events: z.array(z.enum(webhookEvents)),
  below: field.amount.nullable().describe('credits below which `credit_low` is told'),
  last: telling.nullable().describe('what this process told it last'),
  pending: z.number().describe('what this process has told it in vain, and tells it again'),
  told: z.number().describe('what it has taken of this process since that began'),
  failed: z.number().describe('how often this process has told it in vain since it began'),
  last_failure: telling.nullable(),
})

export type WebhookRow = z.output<typeof webhookRow>

export const webhookOperations = [
  operation({
    id: 'webhook.list',
    method: 'GET',
    path: '/webhooks',
    role: 'viewer',
    kind: 'list',
    input: z.strictObject({}),
    output: webhookRow,
    problems: [],
    text: 'list the webhooks of the configuration, and what became of the last one',
    cli: [{ command: 'webhooks', rows: 'all' }],
    asks: 'server',
    async run({ running }) {
      const states = await running.listWebhooks()
      return {
        items: states.map(({ below_nanos, last, last_failure, ...state }) => ({
          ...state,
          below: below_nanos === undefined ? null : formatCredits(below_nanos),
          last: last ?? null,
          last_failure: last_failure ?? null,
        })),
      }
    },
  }),
]
