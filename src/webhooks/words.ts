import type { Books } from '../accounts/books.ts'
import { formatBudget } from '../accounts/budget.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { StoredWarning, WebhookEvent } from '../accounts/warnings.ts'

/** A webhook before it is signed. The same id always has the same content, except for names that have changed since. */
export type WebhookMessage = {
  id: string
  event: WebhookEvent
  atMs: number
  data: Readonly<Record<string, unknown>>
  /** For `credit_low`: the limit that was passed. Only receivers with the same limit get the message. */
  belowNanos?: bigint | undefined
}

export function bodyOf({ event, atMs, data }: WebhookMessage): string {
  return JSON.stringify({ type: event, timestamp: new Date(atMs).toISOString(), data })
}

/** Makes a message of a warning in the store, with the names that operators know. */
export async function messageOf(warning: StoredWarning, books: Books): Promise<WebhookMessage> {
  const { id, event, atMs, data } = warning
  const text = (name: string) => String(data[name])
  if (event === 'credit_low') {
    const { name } = await books.findAccount(text('account'))
    const belowNanos = BigInt(text('below_nanos'))
    const balance = formatCredits(BigInt(text('balance_nanos')))
    const account = { id: text('account'), name }
    return { id, event, atMs, belowNanos, data: { account, balance, below: formatCredits(belowNanos) } }
  }
  const [first] = (await books.findKeys(text('key'))).filter((key) => key.id === data['key'])
  const keys = first ? (await books.listKeys(first.accountId)).filter(({ scope }) => scope === first.scope) : []
  // After a rotation, operators know the newest key that is in use.
  const key = keys.filter(({ revokedMs }) => revokedMs === undefined).at(-1) ?? first
  const per = data['per'] as 'day' | 'week' | 'month' | null
  return {
    ...{ id, event, atMs },
    data: {
      account: { id: key?.accountId ?? null, name: key?.accountName ?? null },
      key: { id: key?.id ?? data['key'], prefix: key?.prefix ?? null, label: key?.label ?? null },
      budget: formatBudget({ nanos: BigInt(text('budget_nanos')), per: per ?? undefined }),
      spent: formatCredits(BigInt(text('spent_nanos'))),
      renews_at: per === null ? null : new Date(Number(data['until_ms'])).toISOString(),
    },
  }
}
