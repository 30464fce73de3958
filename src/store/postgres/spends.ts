import type { BookWrite, SpendBase } from '../../accounts/book-rules.ts'
import type { TimeSpan } from '../../accounts/budget.ts'
import { clampNanos } from '../../accounts/credit.ts'
import { sumSpendSlice, walkSpend } from '../sql/spends.ts'
import { rearm } from '../sql/warnings.ts'
import type { Transaction } from './database.ts'
import { lockAccounts } from './post.ts'
import { dialect } from './slices.ts'
import { ask } from './texts.ts'

type SpendKey = { accountId: string; scope: string } & TimeSpan

/** What the keys of a scope have spent in a window, up to the last entry of their account by now (ruling R15). */
export async function sumSpend(
  { query }: Pick<Transaction, 'query'>,
  of: SpendKey,
  afterSeq = 0,
): Promise<SpendBase & { throughSeq: number }> {
  const [end] = await ask(query, 'SELECT seq FROM triwire.balances WHERE account_id = $1', [of.accountId])
  const throughSeq = Number((end?.seq as bigint | undefined) ?? 0n)
  const slices = walkSpend(of, { after: afterSeq, through: throughSeq })
  let step = slices.next()
  while (!step.done) {
    const { text, values } = sumSpendSlice(dialect, step.value)
    const [row] = await ask(query, text, values)
    const { spent, first } = row as { spent: bigint | null; first: bigint | null }
    step = slices.next({ spentNanos: spent ?? 0n, firstMs: first === null ? undefined : Number(first) })
  }
  return { spentNanos: step.value, throughSeq }
}

/** Counts a window from the ledger, while no debit of the account is posted. */
export async function setSpend(
  transaction: Transaction,
  { accountId, scope, fromMs, untilMs, spentNanos, throughSeq }: Extract<BookWrite, { kind: 'set_spend' }>,
): Promise<void> {
  await lockAccounts(transaction, [accountId])
  const of = { accountId, scope, fromMs, untilMs }
  const tail = throughSeq === undefined ? 0n : (await sumSpend(transaction, of, throughSeq)).spentNanos
  await transaction.query(
    `INSERT INTO triwire.spends (scope, from_ms, until_ms, spent) VALUES ($1, $2, $3, $4) ON CONFLICT (scope)
     DO UPDATE SET from_ms = excluded.from_ms, until_ms = excluded.until_ms, spent = excluded.spent`,
    [scope, fromMs, untilMs, clampNanos(spentNanos + tail)],
  )
  await armSpend(transaction, scope)
}

/** By another budget another part of it is spent: what is so already is nobody's news. */
export async function armSpend({ query }: Transaction, scope: string): Promise<void> {
  const { text, values } = rearm(dialect, scope)
  await query(text, values)
}
