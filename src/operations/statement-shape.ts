import { z } from 'zod'
import { tokenNames } from '../accounts/statement.ts'
import * as field from './fields.ts'

const text = z.string().nullable()
const entry = z.number().nullable()

/** Token counts by kind. */
export const counts = Object.fromEntries(tokenNames.map((name) => [`${name}_tokens`, z.number()])) as Record<
  `${(typeof tokenNames)[number]}_tokens`,
  z.ZodNumber
>
/** The figures in one line of a statement. */
export const lineShape = z.object({ requests: z.number(), ...counts, amount: field.amount })
/** The prices of the kinds of tokens, in credits per million tokens. */
export const priceShape = z.object({
  ...{ input: field.amount, cache_read: field.amount, cache_write: field.amount, cache_write_1h: field.amount },
  ...{ output: field.amount, has_steps: z.boolean().describe('whether the price depends on the size of a request') },
})

/** A statement for programs. Amounts are decimal texts. */
export const statementShape = field.named('Statement', {
  account: z.string(),
  buyer: z.string().describe('the name of the account'),
  seller: z.string(),
  symbol: z.string(),
  currency: z.string(),
  month: z.string(),
  time_zone: z.string(),
  closed: z.boolean().describe('whether the month is over; then this statement no longer changes'),
  opening: field.amount.describe('the balance before the first entry of the month'),
  credits: field.amount,
  use: field.amount,
  returns: field.amount.describe('refunds of use'),
  closing: field.amount.describe('opening + credits - use + returns'),
  credit_lines: z.array(z.object({ posted: field.when, reference: z.string(), amount: field.amount })),
  use_lines: z.array(
    z.object({ model: text, tier: text, band: text, price: priceShape.nullable(), ...lineShape.shape }),
  ),
  keys: z
    .array(z.object({ key: text, ...lineShape.shape }))
    .describe('use minus returns by key; keys that replace each other by rotation are one line'),
  people: z.array(z.object({ person: text, ...lineShape.shape })).describe('use minus returns by person'),
  labels: z.array(z.object({ labels: text, ...lineShape.shape })).describe('use minus returns by label'),
  from: entry.describe('the number of the first entry of the account in the month'),
  to: entry.describe('the number of the last entry of the account in the month'),
  digest: text.describe('the digest of the last entry'),
  head: z.string().describe('the head of the ledger at the end of the month, for `ledger verify --against`'),
  command: z.string().describe('the command that makes this statement again'),
})

export type ToldStatement = z.output<typeof statementShape>
