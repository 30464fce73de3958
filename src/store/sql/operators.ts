import type { StoreRow } from '../../accounts/book-rows.ts'
import {
  type AccountPage,
  type AccountRow,
  type KeyPage,
  type KeyRow,
  readAccountRow,
  readKeyRow,
} from '../../accounts/book-rows.ts'
import type { BookWrite, Made } from '../../accounts/book-rules.ts'
import { onceMs } from '../../accounts/on-behalf.ts'
import { type OperatorRow, type SessionRow, sessionsMax } from '../../accounts/operators.ts'
import type { AuditFilter, AuditRow } from '../../accounts/trail.ts'
import { type Dialect, insert, type Put, type Statement, statement } from './dialect.ts'
import { keyStatements } from './keys.ts'
import { keysWithSpends } from './spends.ts'
import type { Query } from './step.ts'

/*
 * Statements about operators, the audit trail, and pages of accounts and keys. Both databases understand them.
 */

export function query<T>(dialect: Dialect, read: (row: StoreRow) => T, write: (put: Put) => string): Query<T> {
  return { ...statement(dialect, write), read }
}

/** @returns undefined for a write that is about neither operators nor keys. `insertAudit` is for `post_audit`. */
export function writeStatements(dialect: Dialect, write: BookWrite): Statement[] | undefined {
  const { schema } = dialect
  switch (write.kind) {
    case 'insert_operator':
      return [insert(dialect, 'operators', operatorColumns(write.operator))]
    case 'revoke_operator':
      return [
        statement(
          dialect,
          (put) =>
            `UPDATE ${schema}.operators SET revoked_ms = ${put(write.revokedMs)} WHERE id = ${put(write.operatorId)}`,
        ),
        statement(dialect, (put) => `DELETE FROM ${schema}.sessions WHERE operator_id = ${put(write.operatorId)}`),
      ]
    case 'insert_session': {
      const { createdMs } = write.session
      return [
        statement(dialect, (put) => `DELETE FROM ${schema}.sessions WHERE expires_ms <= ${put(createdMs)}`),
        ...forgetOldest(dialect, write.session),
        insert(dialect, 'sessions', sessionColumns(write.session)),
      ]
    }
    case 'delete_session':
      return [statement(dialect, (put) => `DELETE FROM ${schema}.sessions WHERE digest = ${put(write.digest)}`)]
    case 'insert_made': {
      const { actor, key, made } = write
      const old = (put: Put) =>
        `DELETE FROM ${schema}.made WHERE made_ms <= ${put(made.madeMs - onceMs)} OR (actor = ${put(actor)} AND once = ${put(key)})`
      const row = { actor, once: key, asked: made.asked, result: made.result, made_ms: made.madeMs }
      return [statement(dialect, old), insert(dialect, 'made', row)]
    }
    default:
      return keyStatements(dialect, write)
  }
}

/** An operator who has too many sessions is signed out of the oldest ones. */
function forgetOldest(dialect: Dialect, { operatorId, keyId }: SessionRow): Statement[] {
  const [column, owner] = operatorId === undefined ? ['key_id', keyId] : ['operator_id', operatorId]
  if (owner === undefined) return []
  return [
    statement(
      dialect,
      (put) =>
        `DELETE FROM ${dialect.schema}.sessions WHERE ${column} = ${put(owner)} AND digest NOT IN (
           SELECT digest FROM ${dialect.schema}.sessions WHERE ${column} = ${put(owner)}
           ORDER BY created_ms DESC, digest LIMIT ${sessionsMax - 1})`,
    ),
  ]
}

export function insertAudit(dialect: Dialect, row: AuditRow): Statement {
  const { seq, atMs, actor, address, operation, object, before, after, digest } = row
  return insert(dialect, 'audit', { seq, at_ms: atMs, actor, address, operation, object, before, after, digest })
}

function operatorColumns(row: OperatorRow) {
  return {
    ...{ id: row.id, name: row.name, role: row.role, digest: row.digest, prefix: row.prefix },
    ...{ created_ms: row.createdMs, expires_ms: row.expiresMs, revoked_ms: row.revokedMs ?? null },
  }
}

function sessionColumns(row: SessionRow) {
  return {
    ...{ digest: row.digest, kind: row.kind, operator_id: row.operatorId ?? null, key_id: row.keyId ?? null },
    ...{ actor: row.actor ?? null, created_ms: row.createdMs, seen_ms: row.seenMs, expires_ms: row.expiresMs },
  }
}

export function selectOperators(
  dialect: Dialect,
  by: { id?: string; digest?: string; name?: string } = {},
): Query<OperatorRow> {
  return query(dialect, readOperatorRow, (put) => {
    const parts = Object.entries(by).map(([column, value]) => `${column} = ${put(value)}`)
    return `SELECT * FROM ${dialect.schema}.operators ${whereAny(parts)} ORDER BY created_ms, id`
  })
}

export function selectSession(dialect: Dialect, digest: string): Query<SessionRow> {
  return query(
    dialect,
    readSessionRow,
    (put) => `SELECT * FROM ${dialect.schema}.sessions WHERE digest = ${put(digest)}`,
  )
}

export function touchSession(dialect: Dialect, digest: string, seenMs: number): Statement {
  return statement(
    dialect,
    (put) => `UPDATE ${dialect.schema}.sessions SET seen_ms = ${put(seenMs)} WHERE digest = ${put(digest)}`,
  )
}

export function selectMade(dialect: Dialect, { actor, key }: { actor: string; key: string }): Query<Made> {
  return query(
    dialect,
    readMade,
    (put) =>
      `SELECT asked, result, made_ms FROM ${dialect.schema}.made WHERE actor = ${put(actor)} AND once = ${put(key)}`,
  )
}

export function selectKeyByDigest(dialect: Dialect, digest: string): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => `SELECT * FROM ${keysWithSpends(dialect)} WHERE digest = ${put(digest)}`)
}

export function selectAudit(
  dialect: Dialect,
  {
    actor,
    operation,
    object,
    sinceMs,
    untilMs,
    limit,
    beyond,
  }: AuditFilter & { limit: number; beyond?: number | undefined },
): Query<AuditRow> {
  return query(dialect, readAuditRow, (put) => {
    const parts: string[] = []
    if (actor !== undefined) parts.push(`actor = ${put(actor)}`)
    if (operation !== undefined) parts.push(`operation = ${put(operation)}`)
    if (object !== undefined) parts.push(`object = ${put(object)}`)
    if (sinceMs !== undefined) parts.push(`at_ms >= ${put(sinceMs)}`)
    if (untilMs !== undefined) parts.push(`at_ms < ${put(untilMs)}`)
    if (beyond !== undefined) parts.push(`seq < ${put(beyond)}`)
    return `SELECT * FROM ${dialect.schema}.audit ${whereAll(parts)} ORDER BY seq DESC LIMIT ${put(limit)}`
  })
}

export function selectAccountPage(dialect: Dialect, page: AccountPage): Query<AccountRow> {
  const { q, state, ids, sort, beyond, limit } = page
  return query(dialect, readAccountRow, (put) => {
    const parts: string[] = []
    if (state !== undefined) parts.push(`a.state = ${put(state)}`)
    if (ids !== undefined) parts.push(isOneOf(put, 'a.id', ids))
    if (q !== undefined) parts.push(holds(put, q, ['a.name'], ['a.id']))
    const [columns, word] =
      sort === 'name' ? ['a.name, a.id', ''] : ['a.created_ms, a.id', sort === 'created' ? '' : ' DESC']
    if (beyond) parts.push(`(${columns}) ${word ? '<' : '>'} (${beyond.map(put).join(', ')})`)
    const order = columns.replace(', ', `${word}, `) + word
    return `${dialect.accounts} ${whereAll(parts)} ORDER BY ${order} LIMIT ${put(limit)}`
  })
}

export function selectKeyPage(dialect: Dialect, { accountId, q, ids, beyond, limit }: KeyPage): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const parts: string[] = []
    if (accountId !== undefined) parts.push(`account_id = ${put(accountId)}`)
    if (ids !== undefined) parts.push(isOneOf(put, 'id', ids))
    if (q !== undefined) parts.push(holds(put, q, ['label'], ['id', 'prefix']))
    if (beyond) parts.push(`(created_ms, id) > (${beyond.map(put).join(', ')})`)
    return `SELECT * FROM ${keysWithSpends(dialect)} ${whereAll(parts)} ORDER BY created_ms, id LIMIT ${put(limit)}`
  })
}

function isOneOf(put: Put, column: string, ids: readonly string[]): string {
  return ids.length === 0 ? 'FALSE' : `${column} IN (${ids.map((id) => put(id)).join(', ')})`
}

/** Finds a text that people typed, in any case: within some columns, or at the beginning of others. */
function holds(put: Put, q: string, within: readonly string[], begins: readonly string[]): string {
  const escaped = q.replace(/[\\%_]/g, '\\$&')
  const like = (column: string, pattern: string) => `lower(${column}) LIKE lower(${put(pattern)}) ESCAPE '\\'`
  const parts = [
    ...within.map((column) => like(column, `%${escaped}%`)),
    ...begins.map((column) => like(column, `${escaped}%`)),
  ]
  return `(${parts.join(' OR ')})`
}

function whereAll(parts: readonly string[]): string {
  return parts.length ? `WHERE ${parts.join(' AND ')}` : ''
}

function whereAny(parts: readonly string[]): string {
  return parts.length ? `WHERE ${parts.join(' OR ')}` : ''
}

function readOperatorRow(row: StoreRow): OperatorRow {
  return {
    id: row.id as string,
    name: row.name as string,
    role: row.role as OperatorRow['role'],
    digest: row.digest as string,
    prefix: row.prefix as string,
    createdMs: Number(row.created_ms),
    expiresMs: Number(row.expires_ms),
    revokedMs: row.revoked_ms === null ? undefined : Number(row.revoked_ms),
  }
}

function readSessionRow(row: StoreRow): SessionRow {
  const text = (name: string) => (row[name] as string | null) ?? undefined
  return {
    digest: row.digest as string,
    kind: row.kind as SessionRow['kind'],
    operatorId: text('operator_id'),
    keyId: text('key_id'),
    actor: text('actor'),
    createdMs: Number(row.created_ms),
    seenMs: Number(row.seen_ms),
    expiresMs: Number(row.expires_ms),
  }
}

function readAuditRow(row: StoreRow): AuditRow {
  return {
    seq: Number(row.seq),
    atMs: Number(row.at_ms),
    actor: row.actor as string,
    address: row.address as string | null,
    operation: row.operation as string,
    object: row.object as string,
    before: row.before as string | null,
    after: row.after as string | null,
    digest: row.digest as string,
  }
}

function readMade(row: StoreRow): Made {
  return { asked: row.asked as string, result: row.result as string, madeMs: Number(row.made_ms) }
}
