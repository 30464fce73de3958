/**
 * From 5 to 6: keys that are narrower than their accounts (ruling R15), and warnings (X15). All keys of a line of rotations
 * have one scope, by which their bounds and what they have spent are the same.
 */
export const boundKeys = `
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
`
