import type { ChangeScope, Facts } from '../../accounts/book-rules.ts'
import { readFields, registers } from '../../accounts/registers.ts'
import type { ListedSession, SessionName, SessionPage, SignInRow } from '../../accounts/sign-in/rows.ts'
import type { Dialect } from './dialect.ts'
import { selectKey, selectOwnKeys, selectRegister, whereAll } from './registers.ts'
import { all, first, query, type StoreStep } from './step.ts'

/* Queries about sign-ins, for changes and lists (src/accounts/sign-in). */

/** Finds a session with its key, and the keys that its person has made. */
export function* findSignIn(dialect: Dialect, name: SessionName): StoreStep<Facts['signIn']> {
  const signIn = yield* first(selectSignIn(dialect, name))
  const key = signIn && (yield* first(selectKey(dialect, 'id', signIn.keyId)))
  return signIn && key && { signIn, key, ownKeys: yield* all(selectOwnKeys(dialect, signIn)) }
}

function selectSignIn(dialect: Dialect, name: SessionName) {
  if ('id' in name) return selectRegister(dialect, 'sign_ins', { id: name.id })
  if ('keyId' in name) return selectRegister(dialect, 'sign_ins', { key_id: name.keyId })
  const read = (row: Readonly<Record<string, unknown>>): SignInRow => readFields(registers.sign_ins, row)
  return query(
    dialect,
    read,
    (put) => `SELECT * FROM ${dialect.schema}.sign_ins
      WHERE key_id = (SELECT id FROM ${dialect.schema}.keys WHERE digest = ${put(name.digest)})`,
  )
}

export function findGrant(dialect: Dialect, asked: NonNullable<ChangeScope['oauthGrant']>) {
  return first(selectRegister(dialect, 'oauth_grants', asked))
}

/** Reads a page of sessions, the newest first. */
export function pageSessions(dialect: Dialect, page: SessionPage): StoreStep<ListedSession[]> {
  const { schema } = dialect
  const { isLive, beyond, limit } = page
  const read = (row: Readonly<Record<string, unknown>>): ListedSession => ({
    ...readFields(registers.sign_ins, row),
    accountName: (row['account_name'] as string | null) ?? undefined,
    personName: (row['person_name'] as string | null) ?? undefined,
    lastUsedMs: row['last_used_ms'] === null ? undefined : Number(row['last_used_ms']),
  })
  return all(
    query(dialect, read, (put) => {
      const asked = { id: page.id, key_id: page.keyId, person_id: page.personId, account_id: page.accountId }
      const parts = Object.entries(asked).flatMap(([column, value]) =>
        value === undefined ? [] : [`s.${column} = ${put(value)}`],
      )
      if (isLive)
        parts.push(
          `s.ended_ms IS NULL AND s.expires_ms > ${put(isLive.nowMs)}`,
          `s.refreshed_ms > ${put(isLive.nowMs - isLive.idleMs)}`,
        )
      if (beyond) parts.push(`(s.created_ms, s.id) < (${beyond.map(put).join(', ')})`)
      return `SELECT s.*, k.last_used_ms,
          (SELECT a.name FROM ${schema}.accounts a WHERE a.id = s.account_id) AS account_name,
          (SELECT p.name FROM ${schema}.persons p WHERE p.id = s.person_id) AS person_name
        FROM ${schema}.sign_ins s JOIN ${schema}.keys k ON k.id = s.key_id ${whereAll(parts)}
        ORDER BY s.created_ms DESC, s.id DESC LIMIT ${put(limit)}`
    }),
  )
}
