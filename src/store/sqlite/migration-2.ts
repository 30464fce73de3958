import type { DatabaseSync } from 'node:sqlite'
import { type ChainedRow, chainedColumns, digestEntry } from '../../accounts/chain.ts'

/**
 * The migration from version 1 to 2. It adds the columns of ruling C9, the chain (C15), reversals of debits (C13), and
 * labels of keys. Entries are written again in their order, because the digest of an entry covers the digest of the
 * entry before it. Facts that the first release did not record stay empty.
 */
export function nameAndChainEntries(db: DatabaseSync): void {
  db.exec(tables)
  chainOldEntries(db)
  db.exec(indexesAndTriggers)
}

/** Adds old entries to the chain. An entry is dated at its creation, but never before the previous entry. */
function chainOldEntries(db: DatabaseSync): void {
  const columns = ['id', ...chainedColumns, 'digest']
  const insert = db.prepare(`INSERT INTO entries (${columns}) VALUES (${columns.map(() => '?')})`)
  let last: { account_id: unknown; posted_ms: number; digest: string } | undefined
  for (const old of db.prepare('SELECT * FROM old_entries ORDER BY account_id, seq').iterate()) {
    const previous = last?.account_id === old.account_id ? last : undefined
    const posted_ms = Math.max(Number(old.created_ms), previous?.posted_ms ?? 0)
    const row = { ...unnamed, ...old, posted_ms } as ChainedRow
    const digest = digestEntry(row, previous?.digest ?? null)
    insert.run(old.id as bigint, ...chainedColumns.map((column) => row[column] as null), digest)
    last = { account_id: row.account_id, posted_ms, digest }
  }
}

const unnamed = {
  key_id: null,
  client_wire: null,
  model_wire: null,
  upstream: null,
  upstream_account: null,
  priced_calls: 0,
}

const tables = `
  ALTER TABLE keys ADD COLUMN label TEXT;

  CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    moment_ms INTEGER NOT NULL           -- of the last head that was taken: what is posted afterwards is posted later
  ) STRICT;
  INSERT INTO head VALUES (1, 0);

  DROP TRIGGER entries_are_not_changed;
  DROP TRIGGER entries_are_not_deleted;
  ALTER TABLE entries RENAME TO old_entries;
  CREATE TABLE entries (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('credit', 'debit')),
    amount INTEGER NOT NULL,             -- a credit adds it, a debit takes it away
    balance_after INTEGER NOT NULL,
    reference TEXT,                      -- of a return: 'return:' and the request id of the debit that it gives back
    request_id TEXT UNIQUE,
    key_id TEXT,                         -- this one and the wires and upstreams: null in entries of the first release
    client_wire TEXT,
    model TEXT,
    model_wire TEXT,
    upstream TEXT,
    upstream_account TEXT,
    input_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    priced_calls INTEGER NOT NULL DEFAULT 0,
    usage_source TEXT,                   -- of a credit: 'waived' makes it a return
    price_version TEXT REFERENCES prices (version),
    outcome TEXT,
    created_ms INTEGER NOT NULL,
    posted_ms INTEGER NOT NULL,
    digest TEXT NOT NULL,                -- see src/accounts/chain.ts
    UNIQUE (account_id, seq),
    CHECK (kind = 'debit' OR reference IS NOT NULL),
    CHECK (kind = 'debit' OR usage_source IS NULL OR (usage_source = 'waived' AND reference GLOB 'return:?*')),
    CHECK (kind = 'credit' OR (request_id IS NOT NULL AND price_version IS NOT NULL AND amount >= 0))
  ) STRICT;
`

const indexesAndTriggers = `
  DROP TABLE old_entries;
  CREATE UNIQUE INDEX entries_reference ON entries (reference) WHERE reference IS NOT NULL;
  -- Those of one account, and so of one key, are found by its numbers. Every index more is paid by every debit.
  CREATE INDEX entries_posted ON entries (posted_ms);

  CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
  CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END;
  -- INSERT OR REPLACE deletes without a trigger of its own. A request id that is booked is left as it is, so that a debit
  -- may be posted again by the spool, by a second worker or by a retry.
  CREATE TRIGGER entries_are_not_replaced BEFORE INSERT ON entries
    BEGIN
      SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM entries WHERE request_id = NEW.request_id);
      SELECT RAISE(ABORT, 'ledger entries are never replaced')
        WHERE EXISTS (SELECT 1 FROM entries WHERE id = NEW.id)
           OR EXISTS (SELECT 1 FROM entries WHERE account_id = NEW.account_id AND seq = NEW.seq)
           OR EXISTS (SELECT 1 FROM entries WHERE reference = NEW.reference);
    END;
  CREATE TRIGGER prices_are_not_replaced BEFORE INSERT ON prices
    BEGIN
      SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM prices WHERE version = NEW.version);
      SELECT RAISE(ABORT, 'prices of the ledger are never replaced') WHERE EXISTS (SELECT 1 FROM prices WHERE rowid = NEW.rowid);
    END;
`
