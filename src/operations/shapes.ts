import { z } from 'zod'
import type { WebhookEvent } from '../accounts/warnings.ts'
import { modelWireNames } from '../catalog/wire-names.ts'
import { reasonsText } from '../limit-reasons.ts'
import { amount, named } from './fields.ts'

/* Answers about the running gateway. They have only names, counts, times and fixed words, no prompts (ruling U5). */

/** The state of an upstream account for one model. */
export const upstreamState = named('Upstream', {
  model: z.string(),
  upstream: z.string(),
  account: z.string().nullable(),
  priority: z.number(),
  state: z
    .enum(['ready', 'trial', 'cooling', 'disabled', 'no_key', 'off'])
    .describe('`disabled`: an operator has disabled it; `off`: the configuration has switched it off'),
  cause: z.string().nullable().describe('why it is not used at present, as the log names the cause'),
  heard: z.boolean().describe('whether another server of the store has reported this'),
  wait_ms: z.number().nullable().describe('the time until it is tried again; null if it is in use'),
  failing: z
    .boolean()
    .describe('whether at least half of its last 20 answers for the model failed (of at least 5), in any state'),
  failures: z.number().describe('failures since its last success'),
  retries_left: z.number().describe('retries that the upstream may still get in this minute'),
})

export type UpstreamState = z.output<typeof upstreamState>

/** A webhook of the configuration, with the results of the messages that this process sent to it. */
export type WebhookState = {
  url: string
  events: WebhookEvent[]
  below_nanos: bigint | undefined
  last: WebhookSendRow | undefined
  pending: number
  /** Counts of accepted and failed messages since the process started. */
  told: number
  failed: number
  last_failure: WebhookSendRow | undefined
}

type WebhookSendRow = { at: string; result: string }

const rates = {
  input: amount,
  cache_read: amount,
  cache_write: amount,
  cache_write_1h: amount,
  output: amount,
}
const prices = z
  .object({
    ...rates,
    steps: z.array(z.object({ above: z.number(), ...rates })).optional(),
    calls: z.record(z.string(), amount).optional(),
  })
  .describe('credits per million tokens; for `calls`, credits per call')

const wire = z.enum(modelWireNames)

export const modelRow = named('Model', {
  id: z.string(),
  also: z.array(z.string()).describe('other names of the model'),
  chain: z
    .array(z.string())
    .nullable()
    .describe('for a chain: the models that may answer, in order; the other fields describe the first of them'),
  wire,
  upstream: z.string(),
  upstream_model: z.string(),
  upstreams: z.array(
    z.object({ name: z.string(), priority: z.number(), weight: z.number(), upstream_model: z.string() }),
  ),
  max_output_tokens: z.number(),
  context_window: z.number().nullable(),
  prices,
  price_version: z.string(),
  failing: z
    .boolean()
    .nullable()
    .describe('whether at least half of its last 20 answers failed (of at least 5); null if no server was asked'),
})

export type ModelRow = z.output<typeof modelRow>

const attempt = z.object({
  model: z.string().nullable().describe('the model of the chain that was asked; null if the request named no chain'),
  upstream: z.string(),
  account: z.string().nullable(),
  why: z.string(),
  status: z.number().nullable(),
  cause: z.string().nullable(),
  text: z
    .string()
    .nullable()
    .describe("the provider's error text without secrets and repetitions of the request (`explain_upstream_text`)"),
  ms: z.number().describe('the duration of the attempt; for a running attempt, until now'),
})

export const tokens = {
  input_tokens: z.number(),
  cache_read_tokens: z.number(),
  cache_write_tokens: z.number(),
  cache_write_1h_tokens: z.number(),
  output_tokens: z.number(),
  reasoning_tokens: z.number(),
}

/** The token counts as fields that can be null. */
export const maybeTokens = Object.fromEntries(
  Object.entries(tokens).map(([name, count]) => [name, count.nullable()]),
) as Record<keyof typeof tokens, z.ZodNullable<z.ZodNumber>>

export const usage = named('TokenCounts', { ...tokens, calls: z.record(z.string(), z.number()).optional() })

const settlementStates = ['pending', 'waiting', 'in the ledger', 'spooled', 'refused', 'returned', 'none'] as const

/** The facts that explain the answer to a request. A value that is unknown or does not apply is null. */
export const explanation = named('Explanation', {
  request_id: z.string(),
  account: z.object({ id: z.string().nullable(), name: z.string().nullable() }).nullable(),
  key: z.object({ id: z.string().nullable(), prefix: z.string().nullable() }).nullable(),
  person: z.string().nullable().describe('the id of the person who used the key'),
  key_name: z.string().nullable().optional().describe('the label of the key; left out if the store cannot be read'),
  person_name: z
    .string()
    .nullable()
    .optional()
    .describe('the name of the person; left out if the store cannot be read'),
  labels: z.string().nullable().describe('such as project=apollo,team=red'),
  model: z.string().nullable(),
  alias: z.string().nullable(),
  fell_back: z
    .array(z.object({ from: z.string(), to: z.string(), cause: z.string() }))
    .nullable()
    .describe(
      'each change to the next model of a chain, and its cause; null if the request named no chain. From the ledger alone, it is one step, from the first model that was passed over to the one that answered',
    ),
  moved: z
    .object({ why: z.string(), cost: amount.nullable() })
    .nullable()
    .describe(
      'why the conversation left the upstream account that has its prompt cache (`failed`, `off`, `cooling`, `hanging`, `slow`, `preferred`), and the most that this cost: the price of its fresh input minus the price of reading it from a cache',
    ),
  wire: z.object({ client: z.string().nullable(), model: z.string().nullable() }),
  attempts: z.array(attempt).nullable().describe('null if only the ledger has the request'),
  stopped: z.enum(['seen', 'final', 'attempts', 'budget', 'nobody']).nullable(),
  losses: z.array(z.object({ field: z.string(), what: z.string(), why: z.string() })).nullable(),
  usage: usage.nullable(),
  price: prices.extend({ version: z.string() }).nullable(),
  settlement: z.object({
    state: z.enum(settlementStates),
    outcome: z.string().nullable(),
    status: z.number().nullable(),
    code: z.string().nullable(),
    reason: z.string().nullable().describe(reasonsText),
    message: z.string().nullable().describe('the message of the error, as the client got it'),
    param: z.string().nullable().describe('the field that the error names'),
    cause: z.string().nullable(),
    usage_source: z.string().nullable(),
    amount: amount.nullable(),
    flags: z.array(z.string()).readonly(),
  }),
})

export type Explanation = z.output<typeof explanation>
