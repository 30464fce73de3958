import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { costNanos, prices, usage } from './fixtures.ts'

/** When the first entry of `createFirstRelease` was made; each is a second after the one before it. */
export const firstMs = 1_700_000_000_000

/** An entry as the first release wrote it: a credit by its amount, a debit by its request id. */
export type OldEntry = { accountId: string; atMs?: number } & (
  | { creditNanos: bigint; reference: string }
  | { requestId: string }
)

/**
 * A store as the first release (schema version 1) made and filled it, row by row with its own statements. It is closed.
 * @param accounts names by id; each has the key `key_<id>`.
 * @param digests of those keys that somebody will use, by the id of the account.
 */
export function createFirstRelease(
  path: string,
  accounts: Record<string, string>,
  entries: readonly OldEntry[],
  digests: Record<string, string> = {},
): void {
  writeFileSync(path, '', { mode: 0o600 })
  const db = new DatabaseSync(path, { readBigInts: true })
  db.exec(`PRAGMA journal_mode = WAL; ${migrations[0] as string}; PRAGMA user_version = 1`)
  for (const [id, name] of Object.entries(accounts)) {
    db.prepare(
      `INSERT INTO accounts (id, name, state, revision, created_ms)
       VALUES (?, ?, 'active', (SELECT ifnull(max(revision), 0) + 1 FROM accounts), ?)`,
    ).run(id, name, firstMs)
    db.prepare('INSERT INTO keys (id, account_id, digest, prefix, created_ms) VALUES (?, ?, ?, ?, ?)').run(
      `key_${id}`,
      id,
      digests[id] ?? `digest of ${id}`,
      `sk-tri-${name.padEnd(8, '0')}`,
      firstMs,
    )
  }
  db.prepare('INSERT INTO prices VALUES (?, ?, ?, ?, ?, ?)').run('v1', ...Object.values(prices))
  entries.forEach((entry, index) => {
    post(db, entry, entry.atMs ?? firstMs + index * 1_000)
  })
  db.close()
}

function post(db: DatabaseSync, entry: OldEntry, atMs: number): void {
  const { accountId } = entry
  const change = 'requestId' in entry ? -costNanos : entry.creditNanos
  if ('requestId' in entry) {
    db.prepare(
      `INSERT INTO entries (account_id, seq, kind, amount, balance_after, request_id, model, input_tokens, cache_read_tokens,
         cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, usage_source, price_version, outcome, created_ms)
       SELECT id, seq + 1, 'debit', ?2, balance - ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 FROM accounts WHERE id = ?1
       ON CONFLICT (request_id) DO NOTHING`,
    ).run(
      accountId,
      costNanos,
      entry.requestId,
      'm-large',
      usage.inputTokens,
      usage.cacheReadTokens,
      usage.cacheWriteTokens,
      usage.cacheWrite1hTokens,
      usage.outputTokens,
      usage.reasoningTokens,
      'final',
      'v1',
      'ok',
      atMs,
    )
  } else {
    db.prepare(
      `INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, created_ms)
       SELECT id, seq + 1, 'credit', ?2, balance + ?2, ?3, ?4 FROM accounts WHERE id = ?1`,
    ).run(accountId, entry.creditNanos, entry.reference, atMs)
  }
  db.prepare('UPDATE accounts SET seq = seq + 1, balance = balance + ?2 WHERE id = ?1').run(accountId, change)
}
