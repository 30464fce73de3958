import type { StoreRow } from '../../accounts/book-rows.ts'
import { type AccountPage, type AccountRow, type KeyRow, readAccountRow, readKeyRow } from '../../accounts/book-rows.ts'
import type { BookWrite, Made } from '../../accounts/book-rules.ts'
import { boundValues } from '../../accounts/key-bounds.ts'
import { onceMs } from '../../accounts/on-behalf.ts'
import { type OperatorRow, type SessionRow, sessionsMax } from '../../accounts/operators.ts'
import { columnsOf, readFields, registers } from '../../accounts/registers.ts'
import type { AuditFilter, AuditRow } from '../../accounts/trail.ts'
import { type Dialect, insert, type Put, type Statement, statement, update } from './dialect.ts'
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
      return [insert(dialect, 'operators', columnsOf(registers.operators, write.operator))]
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
        insert(dialect, 'sessions', columnsOf(registers.sessions, write.session)),
      ]
    }
    case 'delete_session':
      return [statement(dialect, (put) => `DELETE FROM ${schema}.sessions WHERE digest = ${put(write.digest)}`)]
    case 'insert_made': {
      const { actor, key, made } = write
      const old = (put: Put) =>
        `DELETE FROM ${schema}.made WHERE made_ms <= ${put(made.madeMs - onceMs)} OR (actor = ${put(actor)} AND once = ${put(key)})`
      return [
        statement(dialect, old),
        insert(dialect, 'made', columnsOf(registers.made, { actor, once: key, ...made })),
      ]
    }
    case 'insert_key':
      return [insert(dialect, 'keys', { ...columnsOf(registers.keys, write.key), ...boundValues(write.key.bounds) })]
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
      return [update(dialect, 'keys', boundValues(write.bounds), { account_id: write.accountId, scope: write.scope })]
    default:
      return undefined
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
  return insert(dialect, 'audit', columnsOf(registers.audit, row))
}

export function selectOperators(
  dialect: Dialect,
  by: { id?: string; digest?: string; name?: string } = {},
): Query<OperatorRow> {
  return query(
    dialect,
    (row) => readFields(registers.operators, row),
    (put) => {
      const parts = Object.entries(by).map(([column, value]) => `${column} = ${put(value)}`)
      return `SELECT * FROM ${dialect.schema}.operators ${whereAny(parts)} ORDER BY created_ms, id`
    },
  )
}

export function selectSession(dialect: Dialect, digest: string): Query<SessionRow> {
  return query(
    dialect,
    (row) => readFields(registers.sessions, row),
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
    (row) => readFields(registers.made, row),
    (put) => `SELECT * FROM ${dialect.schema}.made WHERE actor = ${put(actor)} AND once = ${put(key)}`,
  )
}

export function selectKeyByDigest(dialect: Dialect, digest: string): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const found = `(SELECT * FROM ${dialect.schema}.keys WHERE digest = ${put(digest)})`
    return `SELECT * FROM ${keysWithSpends(dialect, found)}`
  })
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
  return query(
    dialect,
    (row) => readFields(registers.audit, row),
    (put) => {
      const parts: string[] = []
      if (actor !== undefined) parts.push(`actor = ${put(actor)}`)
      if (operation !== undefined) parts.push(`operation = ${put(operation)}`)
      if (object !== undefined) parts.push(`object = ${put(object)}`)
      if (sinceMs !== undefined) parts.push(`at_ms >= ${put(sinceMs)}`)
      if (untilMs !== undefined) parts.push(`at_ms < ${put(untilMs)}`)
      if (beyond !== undefined) parts.push(`seq < ${put(beyond)}`)
      return `SELECT * FROM ${dialect.schema}.audit ${whereAll(parts)} ORDER BY seq DESC LIMIT ${put(limit)}`
    },
  )
}

export function selectAccountPage(dialect: Dialect, page: AccountPage): Query<AccountRow> {
  const { q, state, ids, sort, beyond, limit } = page
  return query(dialect, readAccountRow, (put) => {
    const parts: string[] = []
    if (state !== undefined) parts.push(`a.state = ${put(state)}`)
    if (ids !== undefined) parts.push(isOneOf(put, 'a.id', ids))
    if (q !== undefined) parts.push(`(${holds(put, 'a.name', q)} OR ${beginsWith(put, 'a.id', q)})`)
    const [columns, word] =
      sort === 'name' ? ['a.name, a.id', ''] : ['a.created_ms, a.id', sort === 'created' ? '' : ' DESC']
    if (beyond) parts.push(`(${columns}) ${word ? '<' : '>'} (${beyond.map(put).join(', ')})`)
    const order = columns.replace(', ', `${word}, `) + word
    return `${dialect.accounts} ${whereAll(parts)} ORDER BY ${order} LIMIT ${put(limit)}`
  })
}

export function isOneOf(put: Put, column: string, ids: readonly string[]): string {
  return ids.length === 0 ? 'FALSE' : `${column} IN (${ids.map((id) => put(id)).join(', ')})`
}

/**
 * Finds a text that people typed at the beginning of a column, in any case of A to Z, by an index of `lower(column)`. Texts sort
 * by their bytes in both databases.
 */
export function startsWith(put: Put, column: string, q: string): string {
  const low = lowerAscii(q)
  // No text has a character above this one.
  return `lower(${column}) >= ${put(low)} AND lower(${column}) < ${put(`${low}\u{10ffff}`)}`
}

/** As both databases do it: `lower` of SQLite, and of PostgreSQL for texts that sort by their bytes. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** The same without an index. */
export function beginsWith(put: Put, column: string, q: string): string {
  return `lower(${column}) LIKE ${put(`${escaped(lowerAscii(q))}%`)} ESCAPE '\\'`
}

/** Finds a text that people typed within a column, in any case of A to Z. */
function holds(put: Put, column: string, q: string): string {
  return `lower(${column}) LIKE ${put(`%${escaped(lowerAscii(q))}%`)} ESCAPE '\\'`
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}

export function whereAll(parts: readonly string[]): string {
  return parts.length ? `WHERE ${parts.join(' AND ')}` : ''
}

function whereAny(parts: readonly string[]): string {
  return parts.length ? `WHERE ${parts.join(' OR ')}` : ''
}
