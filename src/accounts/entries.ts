import type { Debit } from './ledger.ts'
import type { DebitRow } from './poster.ts'

/** A line of the ledger. A credit has a reference, a debit all the rest. Amounts in nano-credits, times in Unix milliseconds. */
export type Entry = {
  accountId: string
  seq: number
  kind: 'credit' | 'debit'
  amountNanos: bigint
  balanceAfterNanos: bigint
  createdMs: number
  reference: string | undefined
  bill: Omit<DebitRow, 'accountId' | 'amountNanos' | 'createdMs' | 'prices'> | undefined
}

/** What the access log says of one request. */
export type LogLine = { requestId: string; amountNanos: bigint; outcome: string }

export type VerifyOptions = {
  priceNanos: (prices: Debit['prices'], usage: Debit['usage']) => bigint
  /** All billed requests of the access log, where it is to be compared: it must reach as far back as the ledger. */
  log?: Iterable<LogLine>
}
