const sums = `
    requests INTEGER NOT NULL, input_tokens INTEGER NOT NULL, cache_read_tokens INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL, cache_write_1h_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, cost INTEGER NOT NULL`

/**
 * From 6 to 7: figures for reports, folded from the ledger (ruling C9, src/accounts/usage), and counters of what costs nothing.
 * Accounts, keys, models and the like stand by numbers. Times are quarter hours since 1970.
 */
export const addUsage = `
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
`
