/** From 4 to 5: who may operate, and what operators have changed. Append-only and chained (src/accounts/trail.ts). */
export const addOperators = `
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
`
