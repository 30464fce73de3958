import { z } from 'zod'
import { formatCredits } from '../accounts/credit.ts'
import type { Total } from '../accounts/entries.ts'
import { toTokens } from './entry-lines.ts'
import { amount } from './fields.ts'
import { tokens } from './shapes.ts'

const text = z.string().nullable().optional()

/** One row of `ledger totals`: the values that it is grouped by, then its sums. */
export const totalShape = z.object({
  day: z.string().optional().describe('of the reporting zone'),
  model: text,
  account: z.string().optional(),
  account_name: text,
  key_id: text,
  key_prefix: text,
  key_label: text,
  requests: z.number().describe('debits that were not given back'),
  billed: amount,
  credited: amount,
  ...tokens,
})

export type TotalRow = z.output<typeof totalShape>

export function toTotal(total: Total): TotalRow {
  return {
    ...('dayMs' in total && { day: new Date(total.dayMs!).toISOString().slice(0, 10) }),
    ...('model' in total && { model: total.model ?? null }),
    ...('accountId' in total && { account: total.accountId!, account_name: total.accountName ?? null }),
    ...('keyId' in total && {
      key_id: total.keyId ?? null,
      key_prefix: total.keyPrefix ?? null,
      key_label: total.keyLabel ?? null,
    }),
    requests: total.requests,
    billed: formatCredits(total.billedNanos),
    credited: formatCredits(total.creditedNanos),
    ...toTokens(total),
  }
}
