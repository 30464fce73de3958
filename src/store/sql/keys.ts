import type { BookWrite } from '../../accounts/book-rules.ts'
import { formatModels, type KeyBounds } from '../../accounts/key-bounds.ts'
import { type Dialect, insert, type Statement, update } from './dialect.ts'

/** Statements for a write about keys. @returns undefined for a write about something else, or about what keys have spent. */
export function keyStatements(dialect: Dialect, write: BookWrite): Statement[] | undefined {
  switch (write.kind) {
    case 'insert_key': {
      const { id, accountId, digest, prefix, label, createdMs, expiresMs, ownExpiresMs, scope, bounds } = write.key
      const row = { id, account_id: accountId, digest, prefix, label: label ?? null, created_ms: createdMs, scope }
      const ends = { expires_ms: expiresMs ?? null, own_expires_ms: ownExpiresMs ?? null }
      return [insert(dialect, 'keys', { ...row, ...ends, ...boundColumns(bounds) })]
    }
    case 'expire_key':
      return [update(dialect, 'keys', { expires_ms: write.expiresMs }, { id: write.keyId })]
    case 'set_end': {
      const ends = { expires_ms: write.expiresMs ?? null, own_expires_ms: write.ownExpiresMs ?? null }
      return [update(dialect, 'keys', ends, { id: write.keyId })]
    }
    case 'revoke_key':
      return [update(dialect, 'keys', { revoked_ms: write.revokedMs }, { id: write.keyId })]
    case 'set_label':
      return [update(dialect, 'keys', { label: write.label ?? null }, { id: write.keyId })]
    case 'set_bounds':
      return [update(dialect, 'keys', boundColumns(write.bounds), { account_id: write.accountId, scope: write.scope })]
    default:
      return undefined
  }
}

function boundColumns({ budget, requestsPerMinute, models }: KeyBounds) {
  return {
    budget: budget?.nanos ?? null,
    budget_per: budget?.per ?? null,
    rpm: requestsPerMinute ?? null,
    models: models === undefined ? null : formatModels(models),
  }
}
