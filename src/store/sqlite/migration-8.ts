/** From 7 to 8: indexes for pages of keys by account, state and first characters (src/store/sql/key-pages.ts). Each has
 * the columns that a page is sorted by, so that keys are sorted without being read. */
export const indexKeys = `
  CREATE INDEX keys_by_account ON keys (account_id, created_ms, id);
  CREATE INDEX keys_by_id_start ON keys (lower(id), created_ms, id);
  CREATE INDEX keys_by_prefix_start ON keys (lower(prefix), created_ms, id, prefix);
  CREATE INDEX keys_by_label_start ON keys (lower(label), created_ms, id, label);
  CREATE INDEX keys_revoked ON keys (created_ms, id) WHERE revoked_ms IS NOT NULL;
  CREATE INDEX keys_live ON keys (created_ms, id) WHERE revoked_ms IS NULL;
  CREATE INDEX keys_expiring ON keys (expires_ms, created_ms, id, revoked_ms)
    WHERE revoked_ms IS NULL AND expires_ms IS NOT NULL;
  CREATE INDEX accounts_suspended ON accounts (created_ms, id) WHERE state = 'suspended';
`
