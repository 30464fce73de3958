/**
 * The migration at index n leads from version n of the schema to n + 1, in one transaction. It only adds, so servers of
 * the previous version can run beside newer servers. After the migration, a server can use the store only if it knows
 * version `oldest` of the schema. A released migration is never edited; a new one is added at the end.
 *
 * No request, answer or key is stored, only the payer, cost and tokens of requests, and the digests of keys. Amounts
 * are nano-credits. Times are Unix milliseconds of the database's clock. Sorted and searched columns are in byte order,
 * as in SQLite and in heads (ruling C15).
 */
export type PostgresMigration = { sql: string; oldest: number }

const sums = `requests bigint NOT NULL, input_tokens bigint NOT NULL, cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL, cache_write_1h_tokens bigint NOT NULL, output_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL, cost bigint NOT NULL`
const counted = 'requests bigint NOT NULL, first_byte bytea NOT NULL, total bytea NOT NULL'

function sumsTable(name: string, columns: string): string {
  const keys = columns.split(' ')
  return `CREATE TABLE triwire.${name} (${keys.map((key) => `${key} integer`).join(', ')}, ${sums}, PRIMARY KEY (${keys.join(', ')}));`
}

/** Adds columns for entries of form 3 (src/accounts/chain.ts), null in other entries, and a table for price lists. */
const detailed: PostgresMigration = {
  oldest: 1,
  sql: `
  ALTER TABLE triwire.entries
    ADD COLUMN list text, ADD COLUMN band text, ADD COLUMN tier text, ADD COLUMN geo text, ADD COLUMN person text,
    ADD COLUMN labels text, ADD COLUMN cost_version text, ADD COLUMN cost bigint, ADD COLUMN cost_reported text,
    ADD COLUMN alias text, ADD COLUMN fell_back_from text, ADD COLUMN fell_back_cause text, ADD COLUMN moved text,
    ADD COLUMN effective bigint;
  CREATE TABLE triwire.lists (digest text COLLATE "C" PRIMARY KEY, text text NOT NULL);
  CREATE TRIGGER lists_are_not_changed BEFORE UPDATE OR DELETE ON triwire.lists
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_change('price lists of the ledger');
  CREATE TRIGGER lists_are_not_emptied BEFORE TRUNCATE ON triwire.lists
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('price lists of the ledger');
`,
}

/** Archives of closed months (src/accounts/archive.ts). The tables are empty until the first month is detached. */
const archiving: PostgresMigration = {
  oldest: 1,
  sql: `
  CREATE TABLE triwire.archives (
    month text COLLATE "C" PRIMARY KEY,
    time_zone text NOT NULL,
    from_ms bigint NOT NULL,
    until_ms bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('sealing', 'removing', 'away', 'attaching', 'attached')),
    file text NOT NULL,
    file_digest text NOT NULL,
    accounts bigint NOT NULL,
    entries bigint NOT NULL,
    seals_digest text NOT NULL,
    index_digest text NOT NULL,
    digest text NOT NULL
  );
  CREATE TABLE triwire.seals (
    account_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    credited bigint NOT NULL,
    debited bigint NOT NULL,
    balance bigint NOT NULL,
    first_digest text NOT NULL,
    last_digest text NOT NULL,
    posted_ms bigint NOT NULL,
    PRIMARY KEY (account_id, month)
  );
  CREATE TABLE triwire.sealed_sums (
    account_id text COLLATE "C" NOT NULL, month text COLLATE "C" NOT NULL, key_id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL, ${sums},
    PRIMARY KEY (account_id, month, key_id, person)
  );
  -- By the ids of entries: those of debits are made of their request ids, and credits keep their references.
  CREATE TABLE triwire.archived (
    id uuid PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('debit', 'credit', 'return')),
    month text COLLATE "C" NOT NULL,
    account_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    amount bigint NOT NULL
  );
`,
}

export const migrations: readonly PostgresMigration[] = [
  {
    oldest: 1,
    sql: `
  CREATE SEQUENCE triwire.revisions;
  CREATE TABLE triwire.accounts (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    state text NOT NULL CHECK (state IN ('active', 'suspended')),
    revision bigint NOT NULL,            -- of triwire.revisions, with every change an operator makes to it or its keys
    created_ms bigint NOT NULL
  );
  CREATE INDEX accounts_revision ON triwire.accounts (revision);

  CREATE TABLE triwire.keys (
    id text COLLATE "C" PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL REFERENCES triwire.accounts,
    digest text COLLATE "C" NOT NULL UNIQUE,
    prefix text COLLATE "C" NOT NULL,
    label text COLLATE "C",
    created_ms bigint NOT NULL,
    expires_ms bigint,
    revoked_ms bigint,
    last_used_ms bigint,
    scope text COLLATE "C",              -- the first key of its line of rotations, whose bounds and spending all of it share
    own_expires_ms bigint,               -- the end it was given; expires_ms is that, or the end of its grace
    budget bigint CHECK (budget > 0),
    budget_per text CHECK (budget_per IN ('day', 'week', 'month')),
    rpm integer CHECK (rpm > 0),
    models text                          -- with commas between them
  ) WITH (fillfactor = 80);
  CREATE INDEX keys_account ON triwire.keys (account_id);
  CREATE INDEX keys_scope ON triwire.keys (scope);
  CREATE INDEX keys_budgeted ON triwire.keys (account_id) WHERE budget IS NOT NULL;

  -- Where the chain of an account ends. Apart from accounts: every debit writes it, and only here.
  CREATE TABLE triwire.balances (
    account_id text COLLATE "C" PRIMARY KEY REFERENCES triwire.accounts,
    balance bigint NOT NULL DEFAULT 0,   -- always the balance_after of the entry with this seq
    seq bigint NOT NULL DEFAULT 0,
    posted_ms bigint NOT NULL DEFAULT 0,
    digest text
  ) WITH (fillfactor = 40);

  -- What the keys of a scope that has a budget have spent in the window of their last entry (ruling R15): the sum of the
  -- ledger's entries that were posted in it. Moved in the commit of each.
  CREATE TABLE triwire.spends (
    scope text COLLATE "C" PRIMARY KEY,
    from_ms bigint NOT NULL,
    until_ms bigint NOT NULL,
    spent bigint NOT NULL,
    warned integer NOT NULL DEFAULT 0    -- the level that was warned of in this window: 0, 80 or 100
  ) WITH (fillfactor = 40);

  -- What is to be warned of, as the last server that was started said.
  CREATE TABLE triwire.watched (
    event text COLLATE "C" NOT NULL CHECK (event IN ('credit_low', 'key_budget')),
    below bigint NOT NULL,
    PRIMARY KEY (event, below)
  );
  -- Warnings that wait to be told, written in the commit that they are about.
  CREATE TABLE triwire.outbox (
    id text COLLATE "C" PRIMARY KEY,
    event text NOT NULL,
    data text NOT NULL,
    at_ms bigint NOT NULL,
    next_ms bigint NOT NULL,             -- when it is to be told, or told again
    tries text
  );
  CREATE INDEX outbox_next ON triwire.outbox (next_ms);

  CREATE TABLE triwire.prices (
    version text COLLATE "C" PRIMARY KEY,
    input bigint NOT NULL,
    cache_read bigint NOT NULL,
    cache_write bigint NOT NULL,
    cache_write_1h bigint NOT NULL,
    output bigint NOT NULL,
    terms text                           -- steps and calls as JSON
  );

  -- The id is made of the request's, which begins with the time: unique for ever, and the key of the partitions too. No
  -- foreign keys: each would lock a row that all replicas write.
  CREATE TABLE triwire.entries (
    id uuid NOT NULL PRIMARY KEY,
    account_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('credit', 'debit')),
    amount bigint NOT NULL,              -- a credit adds it, a debit takes it away
    balance_after bigint NOT NULL,
    reference text COLLATE "C",
    request_id text COLLATE "C",
    key_id text COLLATE "C",
    client_wire text COLLATE "C",
    model text COLLATE "C",
    model_wire text,
    upstream text,
    upstream_account text,
    input_tokens bigint,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    cache_write_1h_tokens bigint,
    output_tokens bigint,
    reasoning_tokens bigint,
    priced_calls bigint NOT NULL,
    calls text,
    usage_source text,
    price_version text,
    outcome text,
    created_ms bigint NOT NULL,
    posted_ms bigint NOT NULL,
    digest text NOT NULL,                -- see src/accounts/chain.ts
    CHECK (kind = 'debit' OR reference IS NOT NULL),
    CHECK (kind = 'debit' OR usage_source IS NULL OR (usage_source = 'waived' AND reference LIKE 'return:_%')),
    CHECK (kind = 'credit' OR (request_id IS NOT NULL AND price_version IS NOT NULL AND amount >= 0))
  ) PARTITION BY RANGE (id);
  CREATE INDEX entries_account ON triwire.entries (account_id, seq);
  CREATE INDEX entries_posted ON triwire.entries (posted_ms);
  -- A clock gone mad loses nothing.
  CREATE TABLE triwire.entries_default PARTITION OF triwire.entries DEFAULT;

  -- References are unique over all partitions (ruling C8).
  CREATE TABLE triwire.credits (
    reference text COLLATE "C" PRIMARY KEY,
    entry_id uuid NOT NULL,
    account_id text COLLATE "C" NOT NULL,
    amount bigint NOT NULL
  );

  -- The moment of the last head, behind which all is posted (ruling C15).
  CREATE TABLE triwire.head (one boolean PRIMARY KEY DEFAULT true CHECK (one), moment_ms bigint NOT NULL);
  INSERT INTO triwire.head (moment_ms) VALUES (0);

  CREATE FUNCTION triwire.refuse_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '% are never changed or deleted', TG_ARGV[0]; END $$;
  CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON triwire.entries
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_change('ledger entries');
  CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON triwire.entries
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('ledger entries');
  -- Of a partition by its own name too.
  CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON triwire.entries_default
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('ledger entries');
  CREATE TRIGGER prices_are_not_changed BEFORE UPDATE OR DELETE ON triwire.prices
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_change('prices of the ledger');
  CREATE TRIGGER prices_are_not_emptied BEFORE TRUNCATE ON triwire.prices
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('prices of the ledger');
  CREATE TRIGGER credits_are_not_changed BEFORE UPDATE OR DELETE ON triwire.credits
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_change('references of the ledger');
  CREATE TRIGGER credits_are_not_emptied BEFORE TRUNCATE ON triwire.credits
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('references of the ledger');

  CREATE FUNCTION triwire.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

  -- The least id of a moment.
  CREATE FUNCTION triwire.uuid_floor(moment timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS
    $$ SELECT (lpad(to_hex((extract(epoch FROM moment) * 1000)::bigint), 12, '0') || '00000000000000000000')::uuid $$;

  -- Servers and replicas. Who has not left may be alive.
  CREATE TABLE triwire.replicas (
    id integer PRIMARY KEY GENERATED BY DEFAULT AS IDENTITY,
    name text NOT NULL,
    version text NOT NULL,
    config_digest text NOT NULL,
    seal_fingerprint text NOT NULL,
    started_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,             -- of the last minute or so: the beat itself is unlogged
    left_ms bigint
  );

  -- Upstream accounts that are left alone, by their places in the configuration (src/upstream/pool-memory.ts).
  CREATE TABLE triwire.cooldowns (
    place text PRIMARY KEY,
    until_ms bigint NOT NULL,
    cause text NOT NULL,
    tell text NOT NULL,
    cool text NOT NULL,                  -- whether it may cool all of a pool (ruling U1)
    met_by text                          -- the server that has met it, for people
  );

  -- Who may operate, by the digests of their tokens.
  CREATE TABLE triwire.operators (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    role text NOT NULL CHECK (role IN ('admin', 'viewer')),
    digest text COLLATE "C" NOT NULL UNIQUE,
    prefix text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    revoked_ms bigint
  );
  CREATE TABLE triwire.sessions (
    digest text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('cookie', 'command')),
    operator_id text,
    key_id text,
    actor text,
    created_ms bigint NOT NULL,
    seen_ms bigint NOT NULL,
    expires_ms bigint NOT NULL
  );

  -- What came of creations that may be asked for again (Idempotency-Key), without secrets.
  CREATE TABLE triwire.made (
    actor text COLLATE "C" NOT NULL,
    once text COLLATE "C" NOT NULL,
    asked text NOT NULL,
    result text NOT NULL,
    made_ms bigint NOT NULL,
    PRIMARY KEY (actor, once)
  );

  -- What operators have changed: append-only, and chained (src/accounts/trail.ts).
  CREATE TABLE triwire.audit (
    seq bigint PRIMARY KEY,
    at_ms bigint NOT NULL,
    actor text COLLATE "C" NOT NULL,
    address text,
    operation text COLLATE "C" NOT NULL,
    object text COLLATE "C" NOT NULL,
    before text,
    after text,
    digest text NOT NULL
  );
  CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE ON triwire.audit
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_change('records of the audit trail');
  CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON triwire.audit
    FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_change('records of the audit trail');
  CREATE INDEX accounts_created ON triwire.accounts (created_ms, id);
  CREATE INDEX keys_created ON triwire.keys (created_ms, id);

  -- Figures for reports, folded from the ledger (ruling C9, src/accounts/usage), and counters of what costs nothing. Accounts,
  -- keys, models and the like stand by numbers, 0 for none. Times are quarter hours since 1970.
  CREATE TABLE triwire.usage_words (
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    kind text COLLATE "C" NOT NULL,
    word text COLLATE "C" NOT NULL,
    UNIQUE (kind, word)
  );
  CREATE TABLE triwire.usage_state (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    time_zone text NOT NULL,             -- of the days below
    week_starts text NOT NULL,
    kept_from integer NOT NULL           -- of quarters before it there are no rows any more
  );
  INSERT INTO triwire.usage_state (time_zone, week_starts, kept_from) VALUES ('UTC', 'monday', 0);
  -- Up to which entry an account is folded: moved in the commit that adds the rows, by who has locked it.
  CREATE TABLE triwire.usage_marks (
    account_id text COLLATE "C" PRIMARY KEY,
    seq bigint NOT NULL
  ) WITH (fillfactor = 60);
  CREATE TABLE triwire.usage_q (
    quarter integer, account integer, key integer, model integer, wires integer, upstream integer, outcome integer,
    ${sums},
    PRIMARY KEY (quarter, account, key, model, wires, upstream, outcome)
  );
  CREATE TABLE triwire.usage_d (
    account integer, key integer, day integer, model integer, wires integer, upstream integer, outcome integer,
    ${sums},
    PRIMARY KEY (account, key, day, model, wires, upstream, outcome)
  );
  CREATE INDEX usage_d_day ON triwire.usage_d (day);
  CREATE TABLE triwire.usage_t (
    day integer, model integer, wires integer, upstream integer, outcome integer,
    ${sums},
    PRIMARY KEY (day, model, wires, upstream, outcome)
  );
  CREATE TABLE triwire.usage_k (account integer, key integer, ${sums}, PRIMARY KEY (account, key));
  -- Never money: what was counted in the seconds before a crash is not in it. Histograms: src/accounts/usage/histogram.ts.
  CREATE TABLE triwire.traffic_q (
    quarter integer, account integer, key integer, model integer, wires integer, upstream integer, outcome integer,
    code integer, ${counted},
    PRIMARY KEY (quarter, account, key, model, wires, upstream, outcome, code)
  );
  CREATE TABLE triwire.traffic_d (
    account integer, key integer, day integer, model integer, wires integer, upstream integer, outcome integer,
    code integer, ${counted},
    PRIMARY KEY (account, key, day, model, wires, upstream, outcome, code)
  );
  CREATE INDEX traffic_d_day ON triwire.traffic_d (day);
  CREATE TABLE triwire.traffic_t (
    day integer, model integer, wires integer, upstream integer, outcome integer, code integer, ${counted},
    PRIMARY KEY (day, model, wires, upstream, outcome, code)
  );

  -- One row once the store's content is elsewhere.
  CREATE TABLE triwire.moved (one boolean PRIMARY KEY DEFAULT true CHECK (one), to_store text NOT NULL, moved_ms bigint NOT NULL);

  -- What may be lost: each replica's share of a scope (an account, or a key with limits of its own), written by that replica
  -- alone and always as absolute figures.
  CREATE UNLOGGED TABLE triwire.shares (
    scope text NOT NULL,
    replica integer NOT NULL,
    turn bigint NOT NULL,                -- grows with each writing: one that comes late is told from its successor
    held bigint NOT NULL,                -- what its running requests hold, and what it owes the ledger
    window_ms bigint NOT NULL,           -- where the scope's window began, as far as it knows
    taken integer NOT NULL,              -- its places in that window
    PRIMARY KEY (scope, replica)
  ) WITH (fillfactor = 30);
  CREATE UNLOGGED TABLE triwire.present (replica integer PRIMARY KEY, seen_ms bigint NOT NULL) WITH (fillfactor = 30);
  CREATE UNLOGGED TABLE triwire.epoch (one boolean PRIMARY KEY DEFAULT true CHECK (one), since_ms bigint NOT NULL);
  CREATE UNLOGGED TABLE triwire.failures (
    ip_key text PRIMARY KEY,
    window_ms bigint NOT NULL,
    count integer NOT NULL
  ) WITH (fillfactor = 50);
`,
  },
  // The address of a replica's admin side for other replicas, as JSON (`ReplicaDoor` in src/accounts/server-store.ts).
  { oldest: 1, sql: 'ALTER TABLE triwire.replicas ADD COLUMN door text' },
  // Indexes for pages of keys by account, state and first characters (src/store/sql/key-pages.ts). Each includes the
  // columns that sort a page, so that keys are sorted without being read.
  {
    oldest: 1,
    sql: `
  CREATE INDEX keys_by_account ON triwire.keys (account_id, created_ms, id);
  CREATE INDEX keys_by_id_start ON triwire.keys (lower(id), created_ms, id);
  CREATE INDEX keys_by_prefix_start ON triwire.keys (lower(prefix), created_ms, id, prefix);
  CREATE INDEX keys_by_label_start ON triwire.keys (lower(label), created_ms, id, label);
  CREATE INDEX keys_revoked ON triwire.keys (created_ms, id) WHERE revoked_ms IS NOT NULL;
  CREATE INDEX keys_live ON triwire.keys (created_ms, id) WHERE revoked_ms IS NULL;
  CREATE INDEX keys_expiring ON triwire.keys (expires_ms, created_ms, id, revoked_ms)
    WHERE revoked_ms IS NULL AND expires_ms IS NOT NULL;
  CREATE INDEX accounts_suspended ON triwire.accounts (created_ms, id) WHERE state = 'suspended';
`,
  },
  // Figures for reports by hours and days (src/accounts/usage), summed from the entries. Servers of the previous
  // version have their own tables, by quarter hours.
  {
    oldest: 1,
    sql: `
  CREATE TABLE triwire.sums_marks (account_id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL) WITH (fillfactor = 60);
  ${sumsTable('sums_h', 'hour account key model wires upstream outcome tier band person labels')}
  ${sumsTable('sums_d', 'account key day model wires upstream outcome tier band person labels')}
  CREATE INDEX sums_d_day ON triwire.sums_d (day);
  ${sumsTable('sums_t', 'day model wires upstream outcome tier band')}
  ${sumsTable('sums_k', 'account key')}
`,
  },
  detailed,
  // People who use keys (ruling Y21). Their names are here and nowhere else.
  {
    oldest: 1,
    sql: `
  CREATE TABLE triwire.persons (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C",
    external_id text COLLATE "C",
    email text COLLATE "C",
    account_id text COLLATE "C" REFERENCES triwire.accounts,
    created_ms bigint NOT NULL,
    erased_ms bigint,
    linked_id text COLLATE "C"           -- the person that this identity belongs to, if it is a second one
  );
  CREATE INDEX persons_created ON triwire.persons (created_ms, id);
  CREATE INDEX persons_external ON triwire.persons (external_id);
  CREATE INDEX persons_name ON triwire.persons (name);
  CREATE INDEX persons_email ON triwire.persons (email);
  CREATE INDEX persons_linked ON triwire.persons (linked_id);
  ALTER TABLE triwire.keys ADD COLUMN person text COLLATE "C";
  CREATE INDEX keys_person ON triwire.keys (person) WHERE person IS NOT NULL;
`,
  },
  // Operators who see only sums, prices and statements (ruling Y22).
  { oldest: 1, sql: 'ALTER TABLE triwire.operators ADD COLUMN duty text' },
  // Limits of accounts, which all keys of an account share (src/accounts/key-bounds.ts). The spend of an account with a
  // budget is in `spends`, under the account's id as the scope. The index has only those accounts that must be checked
  // when an entry is posted.
  {
    oldest: 1,
    sql: `
  ALTER TABLE triwire.accounts ADD COLUMN budget bigint CHECK (budget > 0),
    ADD COLUMN budget_per text CHECK (budget_per IN ('day', 'week', 'month')),
    ADD COLUMN rpm integer CHECK (rpm > 0),
    ADD COLUMN warn text,                -- nano-credits, with commas between them
    ADD COLUMN monthly_grant bigint CHECK (monthly_grant > 0),
    ADD COLUMN grant_lapses integer CHECK (grant_lapses IN (0, 1)),
    ADD COLUMN last_grant text;          -- the reference of the last monthly grant
  CREATE INDEX accounts_bounded ON triwire.accounts (id) WHERE budget IS NOT NULL OR warn IS NOT NULL;
`,
  },
  // `labels`: the key's labels, such as project=apollo,team=red. `may_choose`: the dimensions in which the key's client
  // may choose a label, separated by commas (ruling Y21).
  { oldest: 1, sql: 'ALTER TABLE triwire.keys ADD COLUMN labels text, ADD COLUMN may_choose text' },
  // Entries that a fast clock dated too late, and that a correction names. `effective_ms` is the time at which an entry
  // counts (ruling C15).
  {
    oldest: 1,
    sql: `
  CREATE TABLE triwire.shifted (
    account_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    posted_ms bigint NOT NULL,
    effective_ms bigint NOT NULL,
    PRIMARY KEY (account_id, seq)
  );
`,
  },
  // The plan of the configuration by which an account pays (ruling C11).
  { oldest: 1, sql: 'ALTER TABLE triwire.accounts ADD COLUMN plan text' },
  // Facts for the statements of closed months. No entry contains these facts (src/accounts/statement.ts).
  {
    oldest: 1,
    sql: `
  CREATE TABLE triwire.statements (
    account_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    header text NOT NULL,                -- JSON
    PRIMARY KEY (account_id, month)
  );
  CREATE TABLE triwire.statement_people (
    account_id text COLLATE "C" NOT NULL,
    month text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    counts_as text COLLATE "C" NOT NULL, -- the person that this identity belonged to
    name text NOT NULL,
    PRIMARY KEY (account_id, month, person)
  );
`,
  },
  // The number of the last entry that the spend of an account includes; null for keys. The second release posts entries
  // without adding them to the spend of accounts. This number shows which entries are missing.
  { oldest: 1, sql: 'ALTER TABLE triwire.spends ADD COLUMN seq bigint' },
  // People who sign in (ruling Y20): their sessions, and sign-ins that were begun.
  {
    oldest: 1,
    sql: `
  ALTER TABLE triwire.keys ADD COLUMN session text;     -- the sign-in that it is the key of
  ALTER TABLE triwire.persons ADD COLUMN issuer text COLLATE "C", ADD COLUMN subject text COLLATE "C";
  CREATE INDEX persons_subject ON triwire.persons (subject) WHERE subject IS NOT NULL;
  ALTER TABLE triwire.sessions ADD COLUMN person_id text, ADD COLUMN role text, ADD COLUMN sealed text;
  CREATE TABLE triwire.sign_ins (
    id text COLLATE "C" PRIMARY KEY,
    key_id text COLLATE "C" NOT NULL UNIQUE,
    account_id text COLLATE "C" NOT NULL,
    person_id text COLLATE "C" NOT NULL,
    role text NOT NULL,
    generation bigint NOT NULL,
    refreshed_ms bigint NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    ended_ms bigint,
    ended_why text,
    agent text,
    address text,
    sealed text,
    asked_ms bigint NOT NULL,
    claimed_ms bigint
  );
  CREATE INDEX sign_ins_created ON triwire.sign_ins (created_ms, id);
  CREATE INDEX sign_ins_person ON triwire.sign_ins (person_id, created_ms, id);
  CREATE TABLE triwire.oauth_grants (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('device', 'code')),
    digest text COLLATE "C" NOT NULL UNIQUE,
    user_digest text COLLATE "C" UNIQUE,
    state text NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL,
    polled_ms bigint,
    agent text,
    address text,
    challenge text,
    redirect_uri text,
    person_id text COLLATE "C",
    account_id text COLLATE "C",
    role text,
    models text,
    sealed text
  );
  CREATE INDEX oauth_grants_expiring ON triwire.oauth_grants (expires_ms);
`,
  },
  // Limits of people over all their keys (ruling Y20). The spend of a person with a budget is in `spends`, with the
  // person's id as the scope.
  {
    oldest: 1,
    sql: `
  ALTER TABLE triwire.persons ADD COLUMN budget bigint CHECK (budget > 0),
    ADD COLUMN budget_per text CHECK (budget_per IN ('day', 'week', 'month')),
    ADD COLUMN rpm integer CHECK (rpm > 0);
  CREATE INDEX persons_budgeted ON triwire.persons (account_id) WHERE budget IS NOT NULL;
`,
  },
  // Needs: things that an operator should act on. The rows ensure that each is announced once (src/store/sql/needs.ts).
  {
    oldest: 1,
    sql: `
  CREATE TABLE triwire.needs (
    id text COLLATE "C" PRIMARY KEY,
    since_ms bigint NOT NULL,
    gone_ms bigint,                      -- since when no server finds it
    is_told integer NOT NULL             -- 1: it was sent to webhooks
  );
`,
  },
  // Reports use this index to find the corrected entries that count in a time span.
  { oldest: 1, sql: 'CREATE INDEX shifted_effective ON triwire.shifted (effective_ms, posted_ms)' },
  // Keys of another gateway, which work until they are rotated (src/accounts/foreign-keys.ts).
  {
    oldest: 1,
    sql: `
  ALTER TABLE triwire.keys ADD COLUMN origin text;
  CREATE INDEX keys_foreign ON triwire.keys (created_ms, id) WHERE origin IS NOT NULL;
`,
  },
  archiving,
  // The operator's own ids and metadata for accounts and keys.
  {
    oldest: 1,
    sql: `
  ALTER TABLE triwire.accounts ADD COLUMN external_id text COLLATE "C", ADD COLUMN metadata text;
  ALTER TABLE triwire.keys ADD COLUMN external_id text COLLATE "C", ADD COLUMN metadata text;
  CREATE INDEX accounts_external ON triwire.accounts (external_id) WHERE external_id IS NOT NULL;
  CREATE INDEX keys_external ON triwire.keys (external_id) WHERE external_id IS NOT NULL;
`,
  },
  // Counts of requests whose conversation moved to another upstream account (ruling Y24), in the tables of traffic.
  {
    oldest: 1,
    sql: ['traffic_q', 'traffic_d', 'traffic_t']
      .map((table) => `ALTER TABLE triwire.${table} ADD COLUMN moved bigint NOT NULL DEFAULT 0;`)
      .join(' '),
  },
  // Indexes of all keys except those of sign-ins. Their order is that of the pages of keys (SCA-5).
  {
    oldest: 1,
    sql: `
  CREATE INDEX keys_lasting ON triwire.keys (created_ms, id) WHERE session IS NULL;
  CREATE INDEX keys_lasting_by_account ON triwire.keys (account_id, created_ms, id) WHERE session IS NULL;
  CREATE INDEX keys_lasting_revoked ON triwire.keys (created_ms, id) WHERE session IS NULL AND revoked_ms IS NOT NULL;
  CREATE INDEX keys_lasting_live ON triwire.keys (created_ms, id) WHERE session IS NULL AND revoked_ms IS NULL;
`,
  },
]

/**
 * Marks the ledger as having entries of form 3. A server that does not know the columns of form 3 cannot verify the
 * ledger.
 */
export const beginDetails = `UPDATE triwire.schema SET oldest = ${migrations.indexOf(detailed) + 1}
  WHERE oldest < ${migrations.indexOf(detailed) + 1}`

/**
 * The guards of a ledger that has archives. An entry may be deleted only if it is sealed and its month is being
 * removed. An entry that the index of archives contains may be inserted again only unchanged. A server that does not
 * know archives must not use the ledger.
 */
export const archiveGuards = `
  CREATE FUNCTION triwire.refuse_unsealed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM triwire.seals s JOIN triwire.archives a ON a.month = s.month AND a.state = 'removing'
      WHERE s.account_id = OLD.account_id AND s.from_seq <= OLD.seq AND s.to_seq >= OLD.seq) THEN RETURN OLD; END IF;
    RAISE EXCEPTION '% are never changed or deleted', TG_ARGV[0]; END $$;
  DROP TRIGGER entries_are_not_changed ON triwire.entries;
  CREATE TRIGGER entries_are_not_changed BEFORE UPDATE OR DELETE ON triwire.entries
    FOR EACH ROW EXECUTE FUNCTION triwire.refuse_unsealed('ledger entries');
  CREATE FUNCTION triwire.skip_archived() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM triwire.archived a WHERE a.id = NEW.id AND NOT (a.account_id = NEW.account_id AND a.seq = NEW.seq))
      THEN RETURN NULL; END IF;
    RETURN NEW; END $$;
  CREATE TRIGGER archived_entries_are_not_repeated BEFORE INSERT ON triwire.entries
    FOR EACH ROW EXECUTE FUNCTION triwire.skip_archived();`

/** The first version of the schema that has archives. */
export const archivingVersion = migrations.indexOf(archiving) + 1
