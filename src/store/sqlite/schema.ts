import type { DatabaseSync } from 'node:sqlite'
import { nameAndChainEntries } from './migration-2.ts'

/** The columns with sums. Each table with figures for reports has these columns. */
const sums = `
    requests INTEGER NOT NULL, input_tokens INTEGER NOT NULL, cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL, cache_write_1h_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, cost INTEGER NOT NULL`

/**
 * Figures for reports by hours and days (src/accounts/usage), folded from the entries. They are created outside the
 * migrations, because the previous version may still use the file. That version has its own tables, by quarter hours.
 */
export const figures = `
  CREATE TABLE sums_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    folded_id INTEGER NOT NULL           -- entries up to this id need not be looked at: each is below its account's mark
  ) STRICT;
  INSERT INTO sums_state VALUES (1, 0);
  CREATE TABLE sums_marks (
    account_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  ${sumsTable('sums_h', 'hour account key model wires upstream outcome tier band person labels')}
  ${sumsTable('sums_d', 'account key day model wires upstream outcome tier band person labels')}
  ${sumsTable('sums_t', 'day model wires upstream outcome tier band')}
  ${sumsTable('sums_k', 'account key')}
  CREATE INDEX sums_d_day ON sums_d (day);
`

function sumsTable(name: string, columns: string): string {
  const keys = columns.split(' ')
  return `CREATE TABLE ${name} (${keys.map((key) => `${key} INTEGER NOT NULL`).join(', ')}, ${sums.trim()},
    PRIMARY KEY (${keys.join(', ')})) STRICT, WITHOUT ROWID;`
}

/** Adds the columns that only entries of form 3 use (src/accounts/chain.ts), and the table of price lists. */
const detailed = `
  ALTER TABLE entries ADD COLUMN list TEXT;
  ALTER TABLE entries ADD COLUMN band TEXT;
  ALTER TABLE entries ADD COLUMN tier TEXT;
  ALTER TABLE entries ADD COLUMN geo TEXT;
  ALTER TABLE entries ADD COLUMN person TEXT;
  ALTER TABLE entries ADD COLUMN labels TEXT;
  ALTER TABLE entries ADD COLUMN cost_version TEXT;
  ALTER TABLE entries ADD COLUMN cost INTEGER;
  ALTER TABLE entries ADD COLUMN cost_reported TEXT;
  ALTER TABLE entries ADD COLUMN alias TEXT;
  ALTER TABLE entries ADD COLUMN fell_back_from TEXT;
  ALTER TABLE entries ADD COLUMN fell_back_cause TEXT;
  ALTER TABLE entries ADD COLUMN moved TEXT;
  ALTER TABLE entries ADD COLUMN effective INTEGER;

  CREATE TABLE lists (
    digest TEXT PRIMARY KEY,
    text TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER lists_are_not_changed BEFORE UPDATE ON lists
    BEGIN SELECT RAISE(ABORT, 'price lists of the ledger are never changed'); END;
  CREATE TRIGGER lists_are_not_deleted BEFORE DELETE ON lists
    BEGIN SELECT RAISE(ABORT, 'price lists of the ledger are never deleted'); END;
  CREATE TRIGGER lists_are_not_replaced BEFORE INSERT ON lists
    BEGIN SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM lists WHERE digest = NEW.digest OR rowid = NEW.rowid); END;
`

/** Archives of closed months (src/accounts/archive.ts). The tables are empty until the first month is detached. */
const archiving = `
  CREATE TABLE archives (
    month TEXT PRIMARY KEY,
    time_zone TEXT NOT NULL,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('sealing', 'removing', 'away', 'attaching', 'attached')),
    file TEXT NOT NULL,
    file_digest TEXT NOT NULL,
    accounts INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    seals_digest TEXT NOT NULL,
    index_digest TEXT NOT NULL,
    digest TEXT NOT NULL
  ) STRICT;
  CREATE TABLE seals (
    account_id TEXT NOT NULL,
    month TEXT NOT NULL,
    from_seq INTEGER NOT NULL,
    to_seq INTEGER NOT NULL,
    credited INTEGER NOT NULL,
    debited INTEGER NOT NULL,
    balance INTEGER NOT NULL,
    first_digest TEXT NOT NULL,
    last_digest TEXT NOT NULL,
    posted_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, month)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE sealed_sums (
    account_id TEXT NOT NULL, month TEXT NOT NULL, key_id TEXT NOT NULL, person TEXT NOT NULL,
    ${sums.trim()},
    PRIMARY KEY (account_id, month, key_id, person)
  ) STRICT, WITHOUT ROWID;
  -- Request ids of debits and references of credits.
  CREATE TABLE archived (
    id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('debit', 'credit', 'return')),
    month TEXT NOT NULL,
    account_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    amount INTEGER NOT NULL,
    PRIMARY KEY (id, kind)
  ) STRICT, WITHOUT ROWID;
`

/**
 * The guards of a ledger that has archives. An entry may be deleted only if it is sealed and its month is being
 * removed. An entry in the index of archives can be inserted again only with the same account and number.
 */
export const archiveGuards = `
  DROP TRIGGER entries_are_not_deleted;
  CREATE TRIGGER entries_are_not_deleted BEFORE DELETE ON entries
    WHEN NOT EXISTS (SELECT 1 FROM seals s JOIN archives a ON a.month = s.month AND a.state = 'removing'
      WHERE s.account_id = OLD.account_id AND s.from_seq <= OLD.seq AND s.to_seq >= OLD.seq)
    BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END;
  CREATE TRIGGER archived_entries_are_not_repeated BEFORE INSERT ON entries
    BEGIN
      SELECT RAISE(IGNORE) WHERE EXISTS (SELECT 1 FROM archived a WHERE a.id = NEW.request_id AND a.kind = 'debit'
        AND NOT (a.account_id = NEW.account_id AND a.seq = NEW.seq));
      SELECT RAISE(ABORT, 'ledger entries are never replaced') WHERE EXISTS (SELECT 1 FROM archived a
        WHERE a.id = NEW.reference AND a.kind <> 'debit' AND NOT (a.account_id = NEW.account_id AND a.seq = NEW.seq));
    END;
`

/** SQL, or a function if SQL is not enough. All migrations run in the single transaction of `migrate`. */
export type SqliteMigration = string | ((db: DatabaseSync) => void)

/**
 * The migration at index n leads from version n of the schema to n + 1 (open.ts says where a file has its version). A
 * released migration is never edited; a new one is added at the end. `verify` compares the text of CREATE statements,
 * comments included. Migrations after the second release only add, so that the second release can still use the file.
 *
 * No request, answer or key is stored. The store has only the payer, the cost and the tokens of requests, and the
 * digests of keys. Amounts are nano-credits, times Unix milliseconds.
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
  // From 2 to 3: prices with steps and calls of hosted tools (ruling C11). Existing prices have neither, so no entry is
  // written again and every digest stays.
  `
  ALTER TABLE prices ADD COLUMN terms TEXT;  -- steps and calls as JSON; null where there are none
  ALTER TABLE entries ADD COLUMN calls TEXT; -- priced calls by their kinds; null where there are none
`,
  // From 3 to 4: a store that was moved is marked, so that servers and operators do not use it.
  `
  CREATE TABLE moved (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    to_store TEXT NOT NULL,              -- empty: it is still being filled
    moved_ms INTEGER NOT NULL
  ) STRICT;
`,
  // From 4 to 5: operators, and the audit trail of their changes. It is append-only and chained
  // (src/accounts/trail.ts).
  `
  CREATE TABLE operators (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('admin', 'viewer')),
    digest TEXT NOT NULL UNIQUE,
    prefix TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    revoked_ms INTEGER
  ) STRICT;

  CREATE TABLE sessions (
    digest TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('cookie', 'command')),
    operator_id TEXT,
    key_id TEXT,
    actor TEXT,
    created_ms INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL
  ) STRICT;

  -- What came of creations that may be asked for again (Idempotency-Key), without secrets.
  CREATE TABLE made (
    actor TEXT NOT NULL,
    once TEXT NOT NULL,
    asked TEXT NOT NULL,
    result TEXT NOT NULL,
    made_ms INTEGER NOT NULL,
    PRIMARY KEY (actor, once)
  ) STRICT;

  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    actor TEXT NOT NULL,
    address TEXT,
    operation TEXT NOT NULL,
    object TEXT NOT NULL,
    before TEXT,
    after TEXT,
    digest TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    BEGIN SELECT RAISE(ABORT, 'records of the audit trail are never changed'); END;
  CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
    BEGIN SELECT RAISE(ABORT, 'records of the audit trail are never deleted'); END;
  CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit
    BEGIN SELECT RAISE(ABORT, 'records of the audit trail are never replaced')
      WHERE EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq); END;

  -- Pages of accounts and keys, in the order of their making.
  CREATE INDEX accounts_created ON accounts (created_ms, id);
  CREATE INDEX keys_created ON keys (created_ms, id);
`,
  // From 5 to 6: keys with limits of their own (ruling R15), and warnings (X15). All keys of a line (a key and its
  // successors) have one scope, and share its limits and its spend.
  `
  ALTER TABLE keys ADD COLUMN scope TEXT;               -- the first key of its line
  ALTER TABLE keys ADD COLUMN own_expires_ms INTEGER;   -- the end it was given; expires_ms is that, or the end of its grace
  ALTER TABLE keys ADD COLUMN budget INTEGER CHECK (budget > 0);
  ALTER TABLE keys ADD COLUMN budget_per TEXT CHECK (budget_per IN ('day', 'week', 'month'));
  ALTER TABLE keys ADD COLUMN rpm INTEGER CHECK (rpm > 0);
  ALTER TABLE keys ADD COLUMN models TEXT;              -- with commas between them
  UPDATE keys SET scope = id;
  CREATE INDEX keys_scope ON keys (scope);

  -- What the keys of a scope that has a budget have spent in the window of their last entry: the sum of the ledger's
  -- entries that were posted in it. Moved in the commit of each.
  CREATE TABLE spends (
    scope TEXT PRIMARY KEY,
    from_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    warned INTEGER NOT NULL DEFAULT 0                   -- the level that was warned of in this window: 0, 80 or 100
  ) STRICT;

  -- What is to be warned of, as the last server that was started said.
  CREATE TABLE watched (
    event TEXT NOT NULL CHECK (event IN ('credit_low', 'key_budget')),
    below INTEGER NOT NULL,
    PRIMARY KEY (event, below)
  ) STRICT;
  -- Warnings that wait to be told, written in the commit that they are about.
  CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    event TEXT NOT NULL,
    data TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    next_ms INTEGER NOT NULL,                           -- when it is to be told, or told again
    tries TEXT
  ) STRICT;
  CREATE INDEX outbox_next ON outbox (next_ms);
`,
  // From 6 to 7: figures for reports, folded from the ledger (ruling C9, src/accounts/usage), and counters of requests
  // that cost nothing. The rows refer to accounts, keys, models and so on by numbers of `usage_words`. Times are
  // quarter hours since 1970.
  `
  CREATE TABLE usage_words (
    id INTEGER PRIMARY KEY CHECK (id > 0), -- 0 stands for the empty word
    kind TEXT NOT NULL,
    word TEXT NOT NULL,
    UNIQUE (kind, word)
  ) STRICT;

  CREATE TABLE usage_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    time_zone TEXT NOT NULL,             -- of the days below
    week_starts TEXT NOT NULL,
    kept_from INTEGER NOT NULL,          -- of quarters before it there are no rows any more
    folded_id INTEGER NOT NULL           -- entries up to this id need not be looked at: each is below its account's mark
  ) STRICT;
  INSERT INTO usage_state VALUES (1, 'UTC', 'monday', 0, 0);

  -- Up to which entry an account is folded: moved in the commit that adds the rows.
  CREATE TABLE usage_marks (
    account_id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE usage_q (
    quarter INTEGER NOT NULL, account INTEGER NOT NULL, key INTEGER NOT NULL, model INTEGER NOT NULL,
    wires INTEGER NOT NULL, upstream INTEGER NOT NULL, outcome INTEGER NOT NULL,
    ${sums.trim()},
    PRIMARY KEY (quarter, account, key, model, wires, upstream, outcome)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_d (
    account INTEGER NOT NULL, key INTEGER NOT NULL, day INTEGER NOT NULL, model INTEGER NOT NULL,
    wires INTEGER NOT NULL, upstream INTEGER NOT NULL, outcome INTEGER NOT NULL,
    ${sums.trim()},
    PRIMARY KEY (account, key, day, model, wires, upstream, outcome)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_t (
    day INTEGER NOT NULL, model INTEGER NOT NULL, wires INTEGER NOT NULL, upstream INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    ${sums.trim()},
    PRIMARY KEY (day, model, wires, upstream, outcome)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE usage_k (
    account INTEGER NOT NULL, key INTEGER NOT NULL,
    ${sums.trim()},
    PRIMARY KEY (account, key)
  ) STRICT, WITHOUT ROWID;

  -- Requests that cost nothing, and how long all took, as histograms (src/accounts/usage/histogram.ts). Never money: what was
  -- counted in the seconds before a crash is not in it.
  CREATE TABLE traffic_q (
    quarter INTEGER NOT NULL, account INTEGER NOT NULL, key INTEGER NOT NULL, model INTEGER NOT NULL,
    wires INTEGER NOT NULL, upstream INTEGER NOT NULL, outcome INTEGER NOT NULL, code INTEGER NOT NULL,
    requests INTEGER NOT NULL, first_byte BLOB NOT NULL, total BLOB NOT NULL,
    PRIMARY KEY (quarter, account, key, model, wires, upstream, outcome, code)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE traffic_d (
    account INTEGER NOT NULL, key INTEGER NOT NULL, day INTEGER NOT NULL, model INTEGER NOT NULL,
    wires INTEGER NOT NULL, upstream INTEGER NOT NULL, outcome INTEGER NOT NULL, code INTEGER NOT NULL,
    requests INTEGER NOT NULL, first_byte BLOB NOT NULL, total BLOB NOT NULL,
    PRIMARY KEY (account, key, day, model, wires, upstream, outcome, code)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE traffic_t (
    day INTEGER NOT NULL, model INTEGER NOT NULL, wires INTEGER NOT NULL, upstream INTEGER NOT NULL,
    outcome INTEGER NOT NULL, code INTEGER NOT NULL,
    requests INTEGER NOT NULL, first_byte BLOB NOT NULL, total BLOB NOT NULL,
    PRIMARY KEY (day, model, wires, upstream, outcome, code)
  ) STRICT, WITHOUT ROWID;

  -- For what is done day by day: checking, and throwing away.
  CREATE INDEX usage_d_day ON usage_d (day);
  CREATE INDEX traffic_d_day ON traffic_d (day);
`,
  // From 7 to 8: indexes for pages of keys by account, state and first characters (src/store/sql/key-pages.ts). Each
  // includes the columns that sort a page, so that keys are sorted without being read.
  `
  CREATE INDEX keys_by_account ON keys (account_id, created_ms, id);
  CREATE INDEX keys_by_id_start ON keys (lower(id), created_ms, id);
  CREATE INDEX keys_by_prefix_start ON keys (lower(prefix), created_ms, id, prefix);
  CREATE INDEX keys_by_label_start ON keys (lower(label), created_ms, id, label);
  CREATE INDEX keys_revoked ON keys (created_ms, id) WHERE revoked_ms IS NOT NULL;
  CREATE INDEX keys_live ON keys (created_ms, id) WHERE revoked_ms IS NULL;
  CREATE INDEX keys_expiring ON keys (expires_ms, created_ms, id, revoked_ms)
    WHERE revoked_ms IS NULL AND expires_ms IS NOT NULL;
  CREATE INDEX accounts_suspended ON accounts (created_ms, id) WHERE state = 'suspended';
`,
  detailed,
  // From 9 to 10: people who use keys (ruling Y21). Their names are here and nowhere else.
  `
  CREATE TABLE persons (
    id TEXT PRIMARY KEY,
    name TEXT,
    external_id TEXT,
    email TEXT,
    account_id TEXT REFERENCES accounts (id),
    created_ms INTEGER NOT NULL,
    erased_ms INTEGER,
    linked_id TEXT                       -- the person that this identity belongs to, if it is a second one
  ) STRICT;
  CREATE INDEX persons_created ON persons (created_ms, id);
  CREATE INDEX persons_external ON persons (external_id);
  CREATE INDEX persons_name ON persons (name);
  CREATE INDEX persons_email ON persons (email);
  CREATE INDEX persons_linked ON persons (linked_id);
  ALTER TABLE keys ADD COLUMN person TEXT;
  CREATE INDEX keys_person ON keys (person) WHERE person IS NOT NULL;
`,
  // From 10 to 11: operators who see only sums, prices and statements (ruling Y22).
  'ALTER TABLE operators ADD COLUMN duty TEXT',
  // From 11 to 12: limits of accounts over all their keys (src/accounts/key-bounds.ts). The spend of an account with a
  // budget is in `spends`, under its id as the scope.
  `
  ALTER TABLE accounts ADD COLUMN budget INTEGER CHECK (budget > 0);
  ALTER TABLE accounts ADD COLUMN budget_per TEXT CHECK (budget_per IN ('day', 'week', 'month'));
  ALTER TABLE accounts ADD COLUMN rpm INTEGER CHECK (rpm > 0);
  ALTER TABLE accounts ADD COLUMN warn TEXT;            -- nano-credits, with commas between them
  ALTER TABLE accounts ADD COLUMN monthly_grant INTEGER CHECK (monthly_grant > 0);
  ALTER TABLE accounts ADD COLUMN grant_lapses INTEGER CHECK (grant_lapses IN (0, 1));
  ALTER TABLE accounts ADD COLUMN last_grant TEXT;      -- the reference of the last monthly grant
`,
  // From 12 to 13: labels of requests, as the operator declared them (ruling Y21).
  `
  ALTER TABLE keys ADD COLUMN labels TEXT;              -- such as project=apollo,team=red
  ALTER TABLE keys ADD COLUMN may_choose TEXT;          -- dimensions, with commas between them
`,
  // Entries that a fast clock dated too late, and that a correction names. `effective_ms` is the time at which an entry
  // counts (ruling C15).
  `
  CREATE TABLE shifted (
    account_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    posted_ms INTEGER NOT NULL,
    effective_ms INTEGER NOT NULL,
    PRIMARY KEY (account_id, seq)
  ) STRICT, WITHOUT ROWID;
`,
  // The plan by which an account pays. The configuration declares the plans (ruling C11).
  'ALTER TABLE accounts ADD COLUMN plan TEXT',
  // Facts of the statements of closed months that entries do not contain (src/accounts/statement.ts).
  `
  CREATE TABLE statements (
    account_id TEXT NOT NULL,
    month TEXT NOT NULL,
    header TEXT NOT NULL,                -- JSON
    PRIMARY KEY (account_id, month)
  ) STRICT;
  CREATE TABLE statement_people (
    account_id TEXT NOT NULL,
    month TEXT NOT NULL,
    person TEXT NOT NULL,
    counts_as TEXT NOT NULL,             -- the person that this identity belonged to
    name TEXT NOT NULL,
    PRIMARY KEY (account_id, month, person)
  ) STRICT;
`,
  // In the spend of an account, `seq` is the last entry that is included. The second release does not count the entries
  // that it posts. In the spend of a key, `seq` is null.
  'ALTER TABLE spends ADD COLUMN seq INTEGER',
  // People who sign in (ruling Y20): their sessions, and sign-ins that were begun.
  `
  ALTER TABLE keys ADD COLUMN session TEXT;             -- the sign-in that it is the key of
  ALTER TABLE persons ADD COLUMN issuer TEXT;
  ALTER TABLE persons ADD COLUMN subject TEXT;
  CREATE INDEX persons_subject ON persons (subject) WHERE subject IS NOT NULL;
  ALTER TABLE sessions ADD COLUMN person_id TEXT;
  ALTER TABLE sessions ADD COLUMN role TEXT;
  ALTER TABLE sessions ADD COLUMN sealed TEXT;
  CREATE TABLE sign_ins (
    id TEXT PRIMARY KEY,
    key_id TEXT NOT NULL UNIQUE,
    account_id TEXT NOT NULL,
    person_id TEXT NOT NULL,
    role TEXT NOT NULL,
    generation INTEGER NOT NULL,
    refreshed_ms INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    ended_ms INTEGER,
    ended_why TEXT,
    agent TEXT,
    address TEXT,
    sealed TEXT,
    asked_ms INTEGER NOT NULL,
    claimed_ms INTEGER
  ) STRICT;
  CREATE INDEX sign_ins_created ON sign_ins (created_ms, id);
  CREATE INDEX sign_ins_person ON sign_ins (person_id, created_ms, id);
  CREATE TABLE oauth_grants (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('device', 'code')),
    digest TEXT NOT NULL UNIQUE,
    user_digest TEXT UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    polled_ms INTEGER,
    agent TEXT,
    address TEXT,
    challenge TEXT,
    redirect_uri TEXT,
    person_id TEXT,
    account_id TEXT,
    role TEXT,
    models TEXT,
    sealed TEXT
  ) STRICT;
  CREATE INDEX oauth_grants_expiring ON oauth_grants (expires_ms);
`,
  // Limits of people over all their keys (ruling Y20). The spend of a person with a budget is in `spends`, under their
  // id as the scope.
  `
  ALTER TABLE persons ADD COLUMN budget INTEGER CHECK (budget > 0);
  ALTER TABLE persons ADD COLUMN budget_per TEXT CHECK (budget_per IN ('day', 'week', 'month'));
  ALTER TABLE persons ADD COLUMN rpm INTEGER CHECK (rpm > 0);
  CREATE INDEX persons_budgeted ON persons (account_id) WHERE budget IS NOT NULL;
`,
  // The needs: matters that require an operator's attention. They are stored so that each is announced only once
  // (src/store/sql/needs.ts).
  `
  CREATE TABLE needs (
    id TEXT PRIMARY KEY,
    since_ms INTEGER NOT NULL,
    gone_ms INTEGER,                     -- since when no server finds it
    is_told INTEGER NOT NULL             -- 1: it was sent to webhooks
  ) STRICT;
`,
  // Reports use this index to find the corrected entries that count in a time span.
  'CREATE INDEX shifted_effective ON shifted (effective_ms, posted_ms)',
  // Keys of another gateway, which work until they are rotated (src/accounts/foreign-keys.ts).
  `
  ALTER TABLE keys ADD COLUMN origin TEXT;
  CREATE INDEX keys_foreign ON keys (created_ms, id) WHERE origin IS NOT NULL;
`,
  archiving,
  // The operator's own ids and metadata for accounts and keys.
  `
  ALTER TABLE accounts ADD COLUMN external_id TEXT;
  ALTER TABLE accounts ADD COLUMN metadata TEXT;
  ALTER TABLE keys ADD COLUMN external_id TEXT;
  ALTER TABLE keys ADD COLUMN metadata TEXT;
  CREATE INDEX accounts_external ON accounts (external_id) WHERE external_id IS NOT NULL;
  CREATE INDEX keys_external ON keys (external_id) WHERE external_id IS NOT NULL;
`,
  // Counts of requests whose conversation moved to another upstream account (ruling Y24), in the tables of traffic.
  ['traffic_q', 'traffic_d', 'traffic_t']
    .map((table) => `ALTER TABLE ${table} ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;`)
    .join(' '),
  // Indexes of all keys except those of sign-ins, in the order of pages of keys (SCA-5).
  `
  CREATE INDEX keys_lasting ON keys (created_ms, id) WHERE session IS NULL;
  CREATE INDEX keys_lasting_by_account ON keys (account_id, created_ms, id) WHERE session IS NULL;
  CREATE INDEX keys_lasting_revoked ON keys (created_ms, id) WHERE session IS NULL AND revoked_ms IS NOT NULL;
  CREATE INDEX keys_lasting_live ON keys (created_ms, id) WHERE session IS NULL AND revoked_ms IS NULL;
`,
]

/** The version of the schema in the second release. */
export const secondRelease = 7

/** The first version that has the columns of form 3, a newer layout of entries. */
export const detailedVersion = migrations.indexOf(detailed) + 1

/** The first version of the schema that has archives. */
export const archivingVersion = migrations.indexOf(archiving) + 1
