import type { DatabaseSync } from 'node:sqlite'
import {
  type EntryFilter,
  type FoundDebit,
  type Grouping,
  type ListedEntry,
  returnReference,
  type Total,
} from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'

export type Listing = ReturnType<typeof createListing>

const dayMs = 86_400_000

/** The ledger for people to read: filtered and summed by the database, with names beside the ids. */
export function createListing(db: DatabaseSync) {
  const named = `SELECT e.*, a.name AS account_name, k.prefix AS key_prefix, k.label AS key_label FROM entries e
    LEFT JOIN accounts a ON a.id = e.account_id LEFT JOIN keys k ON k.id = e.key_id`
  const byRequestId = db.prepare(`${named} WHERE e.request_id = ?`)
  const byReference = db.prepare('SELECT * FROM entries WHERE reference = ?')
  const pricesOf = db.prepare('SELECT * FROM prices WHERE version = ?')
  const models = db.prepare('SELECT DISTINCT model FROM entries WHERE model IS NOT NULL ORDER BY model')
  return { findEntry, findDebit, listEntries, eachEntry, sumEntries, listModels }

  function findEntry(requestId: string): ListedEntry | undefined {
    const row = byRequestId.get(requestId)
    return row && readListed(row)
  }

  function findDebit(requestId: string): FoundDebit | undefined {
    const entry = findEntry(requestId)
    if (!entry?.bill) return undefined
    const prices = pricesOf.get(entry.bill.priceVersion)
    return {
      entry: { ...entry, bill: entry.bill },
      prices: prices && readPrices(prices),
      isReturned: isReturned(requestId),
    }
  }

  /** A reference of this form may be a top-up of the first release: the return has the next free one (ruling C13). */
  function isReturned(requestId: string): boolean {
    for (let number = 1; ; number++) {
      const row = byReference.get(returnReference(requestId, number))
      if (!row || readEntry(row).returned) return row !== undefined
    }
  }

  /** The newest first. */
  function listEntries({ limit, ...filter }: EntryFilter & { limit: number }): ListedEntry[] {
    const { where, values } = conditions(filter)
    // Within an account both orders are one, and an index has this one.
    const order = filter.accountId === undefined ? 'e.posted_ms DESC, e.id DESC' : 'e.seq DESC'
    const select = db.prepare(`${named} ${where} ORDER BY ${order} LIMIT ?`)
    return select.all(...values, limit).map(readListed)
  }

  /** The oldest first, read as they are asked for. */
  function* eachEntry(filter: EntryFilter = {}): Iterable<ListedEntry> {
    const { where, values } = conditions(filter)
    const order = filter.accountId === undefined ? 'e.posted_ms, e.id' : 'e.seq'
    const select = db.prepare(`${named} ${where} ORDER BY ${order}`)
    for (const row of select.iterate(...values)) yield readListed(row)
  }

  /** One row for each group that has entries, in the order of the groupings; one in all where there are none. */
  function sumEntries(filter: EntryFilter, by: readonly Grouping[]): Total[] {
    const { where, values } = conditions(filter)
    const grouped = by.map((grouping) => groupColumns[grouping])
    const clause = (word: string) => (by.length ? [`${word} BY ${by.map((_, index) => index + 1).join(', ')}`] : [])
    const columns = [...grouped.map(({ column }) => column), sums].join(', ')
    const parts = [`WITH sums AS (SELECT ${columns} FROM entries e ${where}`, ...clause('GROUP')]
    parts.push(') SELECT * FROM sums', ...grouped.flatMap(({ join }) => join ?? []), ...clause('ORDER'))
    const select = db.prepare(parts.join(' '))
    return select.all(...values).map((row) => readTotal(row, by))
  }

  /** Those that the ledger has entries of. */
  function listModels(): string[] {
    return models.all().map((row) => row.model as string)
  }
}

function conditions({ accountId, keyIds, model, sinceMs, untilMs }: EntryFilter) {
  const parts: [sql: string, values: readonly (string | number)[]][] = []
  if (accountId !== undefined) parts.push(['e.account_id = ?', [accountId]])
  if (keyIds) {
    const list = keyIds.map(() => '?').join(', ')
    parts.push([`e.key_id IN (${list})`, keyIds])
    // By the key's account, whose entries an index has together.
    if (accountId === undefined) {
      parts.push([`e.account_id IN (SELECT account_id FROM keys WHERE id IN (${list}))`, keyIds])
    }
  }
  if (model !== undefined) parts.push(['e.model = ?', [model]])
  if (sinceMs !== undefined) parts.push(['e.posted_ms >= ?', [sinceMs]])
  if (untilMs !== undefined) parts.push(['e.posted_ms < ?', [untilMs]])
  const where = parts.length ? `WHERE ${parts.map(([sql]) => sql).join(' AND ')}` : ''
  return { where, values: parts.flatMap(([, values]) => values) }
}

const groupColumns: Record<Grouping, { column: string; join?: string }> = {
  day: { column: `e.posted_ms / ${dayMs} AS day` },
  model: { column: 'e.model AS model' },
  account: {
    column: 'e.account_id AS account_id',
    join: 'LEFT JOIN (SELECT id, name AS account_name FROM accounts) a ON a.id = sums.account_id',
  },
  key: {
    column: 'e.key_id AS key_id',
    join: 'LEFT JOIN (SELECT id, prefix AS key_prefix, label AS key_label FROM keys) k ON k.id = sums.key_id',
  },
}

/** A return has the origin of its debit and no tokens; it takes the debit's tokens away from no sum, for they were used. */
const sums = `
  sum(CASE WHEN e.kind = 'debit' THEN 1 WHEN e.usage_source IS NOT NULL THEN -1 ELSE 0 END) AS requests,
  sum(CASE WHEN e.kind = 'debit' THEN e.amount WHEN e.usage_source IS NOT NULL THEN -e.amount ELSE 0 END) AS billed,
  sum(CASE WHEN e.kind = 'credit' AND e.usage_source IS NULL THEN e.amount ELSE 0 END) AS credited,
  sum(e.input_tokens) AS input_tokens, sum(e.cache_read_tokens) AS cache_read_tokens,
  sum(e.cache_write_tokens) AS cache_write_tokens, sum(e.cache_write_1h_tokens) AS cache_write_1h_tokens,
  sum(e.output_tokens) AS output_tokens, sum(e.reasoning_tokens) AS reasoning_tokens`

function readListed(row: Record<string, unknown>): ListedEntry {
  return {
    ...readEntry(row),
    accountName: textOf(row.account_name),
    keyPrefix: textOf(row.key_prefix),
    keyLabel: textOf(row.key_label),
  }
}

function readTotal(row: Record<string, unknown>, by: readonly Grouping[]): Total {
  return {
    ...(by.includes('day') && { dayMs: Number(row.day) * dayMs }),
    ...(by.includes('model') && { model: textOf(row.model) }),
    ...(by.includes('account') && { accountId: row.account_id as string, accountName: textOf(row.account_name) }),
    ...(by.includes('key') && {
      keyId: textOf(row.key_id),
      keyPrefix: textOf(row.key_prefix),
      keyLabel: textOf(row.key_label),
    }),
    requests: Number(row.requests),
    billedNanos: (row.billed as bigint | null) ?? 0n,
    creditedNanos: (row.credited as bigint | null) ?? 0n,
    inputTokens: Number(row.input_tokens),
    cacheReadTokens: Number(row.cache_read_tokens),
    cacheWriteTokens: Number(row.cache_write_tokens),
    cacheWrite1hTokens: Number(row.cache_write_1h_tokens),
    outputTokens: Number(row.output_tokens),
    reasoningTokens: Number(row.reasoning_tokens),
  }
}

function textOf(value: unknown): string | undefined {
  return (value as string | null) ?? undefined
}
