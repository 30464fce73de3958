import type { DatabaseSync } from 'node:sqlite'
import { nameAndChainEntries } from './migration-2.ts'
import { addSteppedPrices } from './migration-3.ts'
import { noteMoves } from './migration-4.ts'
import { addOperators } from './migration-5.ts'
import { boundKeys } from './migration-6.ts'
import { addUsage } from './migration-7.ts'
import { indexKeys } from './migration-8.ts'

/** SQL, or what SQL alone cannot do. Each runs in the one transaction of `migrate`. */
export type SqliteMigration = string | ((db: DatabaseSync) => void)

/**
 * Each migration leads from the version of its place to the next; the file's version is its `user_version`. What has been
 * released is never edited, only followed.
 *
 * No request, no answer and no key is stored: only who paid how much for how many tokens, and the digests of keys.
 * Amounts are nano-credits, times Unix milliseconds.
 */
export const migrations: readonly SqliteMigration[] = [
  `
  CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('active', 'suspended')),
    balance INTEGER NOT NULL DEFAULT 0,  -- always the balance_after of the entry with this seq
    seq INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL,           -- grows with every change an operator makes to the account or its keys
    created_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX accounts_revision ON accounts (revision);

  CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    digest TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    revoked_ms INTEGER,
    last_used_ms INTEGER
  ) STRICT;
  CREATE INDEX keys_account ON keys (account_id);

  CREATE TABLE prices (
    version TEXT PRIMARY KEY,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cache_write_1h INTEGER NOT NULL,
    output INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('credit', 'debit')),
    amount INTEGER NOT NULL,             -- a credit adds it, a debit takes it away
    balance_after INTEGER NOT NULL,
    reference TEXT UNIQUE,
    request_id TEXT UNIQUE,
    model TEXT,
    input_tokens INTEGER,
    cache_read_tokens INTEGER,
    cache_write_tokens INTEGER,
    cache_write_1h_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    usage_source TEXT,
    price_version TEXT REFERENCES prices (version),
    outcome TEXT,
    created_ms INTEGER NOT NULL,
    UNIQUE (account_id, seq),
    CHECK (kind = 'debit' OR reference IS NOT NULL),
    CHECK (kind = 'credit' OR (request_id IS NOT NULL AND price_version IS NOT NULL AND amount >= 0))
  ) STRICT;

  CREATE TRIGGER entries_are_not_changed BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never changed'); END;
  CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END;
  CREATE TRIGGER prices_are_not_changed BEFORE UPDATE ON prices
    BEGIN SELECT RAISE(ABORT, 'prices of the ledger are never changed'); END;
  CREATE TRIGGER prices_are_not_deleted BEFORE DELETE ON prices
    BEGIN SELECT RAISE(ABORT, 'prices of the ledger are never deleted'); END;
  `,
  nameAndChainEntries,
  addSteppedPrices,
  noteMoves,
  addOperators,
  boundKeys,
  addUsage,
  indexKeys,
]
