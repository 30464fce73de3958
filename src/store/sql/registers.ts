import {
  type AccountPage,
  type AccountRow,
  type KeyRow,
  readAccountRow,
  readKeyRow,
  type StoreRow,
} from '../../accounts/book-rows.ts'
import type { BookWrite } from '../../accounts/book-rules.ts'
import { accountBounds, keyBounds, personBounds } from '../../accounts/key-bounds.ts'
import { onceMs } from '../../accounts/on-behalf.ts'
import { type SessionRow, sessionsMax } from '../../accounts/operators.ts'
import { type PersonPage, type PersonRow, readPersonRow } from '../../accounts/persons.ts'
import {
  type BookRow,
  changesOf,
  columnsOf,
  type RegisterName,
  readFields,
  registers,
} from '../../accounts/registers.ts'
import { ownKeyMark, type SignInRow } from '../../accounts/sign-in/rows.ts'
import type { SessionEnd } from '../../accounts/sign-in/session-rules.ts'
import type { AuditFilter, AuditRow } from '../../accounts/trail.ts'
import {
  type Dialect,
  insert,
  isOneOf,
  isText,
  type Put,
  type SqlValue,
  type Statement,
  statement,
  update,
} from './dialect.ts'
import { heldByReplicas, idsOfPerson, keysWithSpends } from './spends.ts'
import { type Query, query } from './step.ts'

/*
 * Statements on registers (tables other than the entries), such as accounts, keys, operators and the audit trail. They
 * work on both databases.
 */

/** Changes of the books that are written without a read of the store. The kinds excluded here need a read first. */
type PlainWrite = Exclude<
  BookWrite,
  {
    kind:
      | 'insert_account'
      | 'post_credit'
      | 'shift_entries'
      | 'count_anew'
      | 'set_zone'
      | 'set_spend'
      | 'clear_spend'
      | 'lock_accounts'
      | 'post_audit'
  }
>

export function writeStatements(dialect: Dialect, write: PlainWrite): Statement[] {
  const remove = (rows: (put: Put) => string) =>
    statement(dialect, (put) => `DELETE FROM ${dialect.schema}.${rows(put)}`)
  switch (write.kind) {
    case 'set_account':
      return [update(dialect, 'accounts', accountValues(write), { id: write.accountId })]
    case 'insert_operator':
      return [insert(dialect, 'operators', columnsOf(registers.operators, write.operator))]
    case 'revoke_operator':
      return [
        update(dialect, 'operators', { revoked_ms: write.revokedMs }, { id: write.operatorId }),
        remove((put) => `sessions WHERE operator_id = ${put(write.operatorId)}`),
      ]
    case 'insert_session':
      return [
        remove((put) => `sessions WHERE expires_ms <= ${put(write.session.createdMs)}`),
        ...forgetOldest(dialect, write.session),
        insert(dialect, 'sessions', columnsOf(registers.sessions, write.session)),
      ]
    case 'delete_session':
      return [remove((put) => `sessions WHERE digest = ${put(write.digest)}`)]
    case 'insert_made': {
      const { actor, key, made } = write
      const until = made.madeMs - onceMs
      return [
        remove((put) => `made WHERE made_ms <= ${put(until)} OR (actor = ${put(actor)} AND once = ${put(key)})`),
        insert(dialect, 'made', columnsOf(registers.made, { actor, once: key, ...made })),
      ]
    }
    case 'insert_person':
      return [
        insert(dialect, 'persons', {
          ...columnsOf(registers.persons, write.person),
          ...personBounds.values(write.person.bounds),
        }),
      ]
    case 'set_person_bounds':
      return [update(dialect, 'persons', personBounds.values(write.bounds), { id: write.personId })]
    case 'set_person':
      return [update(dialect, 'persons', changesOf(registers.persons, write.fields), { id: write.personId })]
    case 'link_person': {
      const { personId, to } = write
      const linked = { linked_id: to, name: null, email: null, account_id: null }
      return [
        update(dialect, 'persons', linked, { id: personId }),
        update(dialect, 'persons', { linked_id: to }, { linked_id: personId }),
        ...(['sign_ins', 'oauth_grants', 'sessions'] as const).map((table) =>
          update(dialect, table, { person_id: to }, { person_id: personId }),
        ),
      ]
    }
    case 'erase_person': {
      const { personId, erasedMs } = write
      const blank = {
        ...{ name: null, external_id: null, email: null, account_id: null, erased_ms: erasedMs },
        ...{ issuer: null, subject: null },
      }
      return [
        // The rows are changed first. So on PostgreSQL, statements that are being stored with the names end before the
        // names are removed.
        update(dialect, 'persons', blank, { id: personId }),
        update(dialect, 'persons', blank, { linked_id: personId }),
        remove((put) => {
          const theirs = idsOfPerson(dialect.schema, put(personId))
          return `statement_people WHERE person IN (${theirs}) OR counts_as IN (${theirs})`
        }),
        // The text of this warning has the person's name.
        remove((put) => {
          const theirs = `${idsOfPerson(dialect.schema, put(personId))} AND o.id LIKE 'needs_changed:person_%:' || p.id || ':%'`
          return `outbox AS o WHERE EXISTS (${theirs})`
        }),
        ...endSessionsOf(dialect, personId, { endedMs: erasedMs, why: 'person_erased', isErasing: true }),
      ]
    }
    case 'sign_out_person': {
      const { personId, endedMs } = write
      return endSessionsOf(dialect, personId, { endedMs, why: 'ended', isErasing: false })
    }
    case 'insert_grant':
      return [
        remove((put) => `oauth_grants WHERE expires_ms <= ${put(write.grant.createdMs)}`),
        insert(dialect, 'oauth_grants', columnsOf(registers.oauth_grants, write.grant)),
      ]
    case 'set_grant':
      return [update(dialect, 'oauth_grants', changesOf(registers.oauth_grants, write.fields), { id: write.grantId })]
    case 'insert_sign_in':
      return [insert(dialect, 'sign_ins', columnsOf(registers.sign_ins, write.signIn))]
    case 'set_sign_in':
      return [update(dialect, 'sign_ins', changesOf(registers.sign_ins, write.fields), { id: write.signInId })]
    case 'give_keys':
      return [update(dialect, 'keys', { person: write.to }, { account_id: write.accountId, person: write.from })]
    case 'insert_key':
      return [
        insert(dialect, 'keys', { ...columnsOf(registers.keys, write.key), ...keyBounds.values(write.key.bounds) }),
      ]
    case 'set_key':
      return [update(dialect, 'keys', changesOf(registers.keys, write.fields), { id: write.keyId })]
    case 'set_bounds':
      return [
        update(dialect, 'keys', keyBounds.values(write.bounds), { account_id: write.accountId, scope: write.scope }),
      ]
  }
}

function accountValues({ fields, bounds }: Extract<BookWrite, { kind: 'set_account' }>) {
  return { ...changesOf(registers.accounts, fields), ...(bounds && accountBounds.values(bounds)) }
}

/**
 * Ends all sessions of a person, with their keys. Browser sessions and pending sign-ins are deleted.
 * @param how.isErasing whether to erase the person's data in the sessions too
 */
function endSessionsOf(
  dialect: Dialect,
  personId: string,
  { endedMs, why, isErasing }: { endedMs: number; why: SessionEnd; isErasing: boolean },
): Statement[] {
  const { schema } = dialect
  const end = (put: Put, column: string) => `${column} = coalesce(${column}, ${put(endedMs)})`
  return [
    statement(dialect, (put) => `DELETE FROM ${schema}.oauth_grants WHERE person_id = ${put(personId)}`),
    statement(dialect, (put) => `DELETE FROM ${schema}.sessions WHERE person_id = ${put(personId)}`),
    statement(
      dialect,
      (put) => `UPDATE ${schema}.sign_ins SET ${end(put, 'ended_ms')}, ended_why = coalesce(ended_why, ${put(why)}),
        sealed = NULL${isErasing ? ', agent = NULL, address = NULL' : ''} WHERE person_id = ${put(personId)}`,
    ),
    statement(
      dialect,
      (put) => `UPDATE ${schema}.keys SET ${end(put, 'revoked_ms')}
        WHERE person = ${put(personId)} AND (session IS NOT NULL OR ${isOwnKey(put)})`,
    ),
  ]
}

/** Deletes the oldest sessions of an operator, a person or a key that has too many. */
function forgetOldest(dialect: Dialect, { operatorId, personId, keyId }: SessionRow): Statement[] {
  const sessions = `${dialect.schema}.sessions`
  const owners = { operator_id: operatorId, person_id: personId, key_id: keyId }
  const [column, owner] = Object.entries(owners).find(([, id]) => id !== undefined) ?? []
  if (owner === undefined) return []
  const old = (put: Put) => `DELETE FROM ${sessions} WHERE ${column} = ${put(owner)} AND digest NOT IN (
    SELECT digest FROM ${sessions} WHERE ${column} = ${put(owner)}
    ORDER BY created_ms DESC, digest LIMIT ${sessionsMax - 1})`
  return [statement(dialect, old)]
}

/** Selects rows of a register. With `AND` all columns must have the values in `by`; with `OR` one of them must. */
export function selectRegister<N extends RegisterName>(
  dialect: Dialect,
  name: N,
  by: Readonly<Record<string, SqlValue>> = {},
  { word = 'AND', order = '' }: { word?: 'AND' | 'OR'; order?: string } = {},
): Query<BookRow<N>> {
  const read = (row: StoreRow) => readFields(registers[name], row) as BookRow<N>
  return query(dialect, read, (put) => {
    const parts = Object.entries(by).map(([column, value]) => `${column} = ${put(value)}`)
    return `SELECT * FROM ${dialect.schema}.${name} ${whereAll(parts, word)} ${order}`
  })
}

/** Selects one key. @param column a column with unique values */
export function selectKey(dialect: Dialect, column: 'id' | 'digest', value: string): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const found = `(SELECT * FROM ${dialect.schema}.keys WHERE ${column} = ${put(value)})`
    return `SELECT * FROM ${keysWithSpends(dialect, found)}`
  })
}

/** Selects valid keys that a person made for their agents in an account. */
export function selectOwnKeys(dialect: Dialect, { personId, accountId }: SignInRow): Query<KeyRow> {
  return query(dialect, readKeyRow, (put) => {
    const found = `(SELECT * FROM ${dialect.schema}.keys WHERE person = ${put(personId)} AND account_id = ${put(accountId)}
      AND revoked_ms IS NULL AND ${isOwnKey(put)})`
    return `SELECT * FROM ${keysWithSpends(dialect, found)}`
  })
}

/** SQL: whether a person made the key for an agent. SQLite's LIKE would ignore the case of the mark. */
function isOwnKey(put: Put): string {
  return `substr(label, 1, ${ownKeyMark.length}) = ${put(ownKeyMark)}`
}

/**
 * Selects all people, or the people with one of these strings as id, external id, email or name. Each person is
 * selected with all identities.
 */
export function selectPersons(dialect: Dialect, asked: 'all' | readonly string[]): Query<PersonRow> {
  const { schema } = dialect
  return query(dialect, readPersonRow, (put) => {
    if (asked === 'all') return personsWithSpends(dialect)
    const texts = asked.filter(isText)
    const is = (column: string) =>
      isOneOf(put, column, column === 'email' ? texts.map((one) => one.toLowerCase()) : texts)
    const found = ['id', 'external_id', 'email', 'name'].map(is).join(' OR ')
    return `WITH found AS (SELECT id, coalesce(linked_id, id) AS person FROM ${schema}.persons WHERE ${found})
      ${personsWithSpends(dialect)} WHERE id IN (SELECT person FROM found) OR linked_id IN (SELECT person FROM found)`
  })
}

function personsWithSpends({ schema, isShared }: Dialect): string {
  const held = isShared ? `CASE WHEN p.budget IS NOT NULL THEN ${heldByReplicas('p.id')} END` : 'NULL'
  return `SELECT p.*, s.from_ms, s.until_ms, s.spent, ${held} AS held FROM ${schema}.persons p LEFT JOIN ${schema}.spends s ON s.scope = p.id`
}

/** Selects the person with this identity at a provider. All identities of the person are included. */
export function selectIdentity(dialect: Dialect, identity: { issuer: string; subject: string }): Query<PersonRow> {
  const { schema } = dialect
  return query(
    dialect,
    readPersonRow,
    (put) => `WITH found AS (SELECT coalesce(linked_id, id) AS person FROM ${schema}.persons
      WHERE subject = ${put(identity.subject)} AND issuer = ${put(identity.issuer)})
      ${personsWithSpends(dialect)} WHERE id IN (SELECT person FROM found) OR linked_id IN (SELECT person FROM found)`,
  )
}

/** Selects a page of people, the oldest first. Erased people are left out. */
export function selectPersonPage(dialect: Dialect, page: PersonPage): Query<PersonRow> {
  const { q, accountId, usingAccountId: usedId, beyond, limit } = page
  return query(dialect, readPersonRow, (put) => {
    const parts = ['erased_ms IS NULL']
    if (accountId !== undefined) parts.push(`account_id = ${put(accountId)}`)
    if (usedId !== undefined)
      parts.push(
        `(account_id = ${put(usedId)} OR id IN (SELECT person FROM ${dialect.schema}.keys WHERE account_id = ${put(usedId)}))`,
      )
    const searched = { id: '', name: '%', external_id: '%', email: '%' } as const
    const fits = ([column, before]: [string, '' | '%']) => isLike(put, column, q!, before)
    if (q !== undefined) parts.push(`(${Object.entries(searched).map(fits).join(' OR ')})`)
    if (beyond) parts.push(`(created_ms, id) > (${beyond.map(put).join(', ')})`)
    return `${personsWithSpends(dialect)} ${whereAll(parts)} ORDER BY created_ms, id LIMIT ${put(limit)}`
  })
}

/** The condition on the audit trail for each field of a filter. */
const auditConditions = {
  actor: 'actor =',
  operation: 'operation =',
  object: 'object =',
  sinceMs: 'at_ms >=',
  untilMs: 'at_ms <',
  beyond: 'seq <',
}

export function selectAudit(
  dialect: Dialect,
  { limit, ...filter }: AuditFilter & { limit: number; beyond?: number | undefined },
): Query<AuditRow> {
  return query(
    dialect,
    (row) => readFields(registers.audit, row),
    (put) => {
      const given = Object.entries(filter).filter(([, value]) => value !== undefined)
      const parts = given.map(([name, value]) => `${auditConditions[name as keyof typeof filter]} ${put(value)}`)
      return `SELECT * FROM ${dialect.schema}.audit ${whereAll(parts)} ORDER BY seq DESC LIMIT ${put(limit)}`
    },
  )
}

export function selectAccountPage(dialect: Dialect, page: AccountPage): Query<AccountRow> {
  const { q, state, ids, externalId, otherPlans, sort, beyond, limit } = page
  return query(dialect, readAccountRow, (put) => {
    const parts: string[] = []
    if (state !== undefined) parts.push(`a.state = ${put(state)}`)
    if (ids !== undefined) parts.push(isOneOf(put, 'a.id', ids))
    if (externalId !== undefined) parts.push(`a.external_id = ${put(externalId)}`)
    if (otherPlans !== undefined) parts.push(`a.plan IS NOT NULL AND NOT ${isOneOf(put, 'a.plan', otherPlans)}`)
    if (q !== undefined) parts.push(`(${isLike(put, 'a.name', q, '%')} OR ${isLike(put, 'a.id', q)})`)
    const [columns, word] =
      sort === 'name' ? ['a.name, a.id', ''] : ['a.created_ms, a.id', sort === 'created' ? '' : ' DESC']
    if (beyond) parts.push(`(${columns}) ${word ? '<' : '>'} (${beyond.map(put).join(', ')})`)
    const order = columns.replace(', ', `${word}, `) + word
    // The subquery chooses the page before the join, and the statement contains the limit as a number. Otherwise
    // PostgreSQL may plan for a tenth of all accounts, and read and join far more rows than the page has.
    const page = `${whereAll(parts)} ORDER BY ${order} LIMIT ${Number(limit)}`
    return `${dialect.accounts(`(SELECT * FROM ${dialect.schema}.accounts a ${page})`)} ORDER BY ${order}`
  })
}

/**
 * SQL: whether a column starts with a string that a person typed, ignoring the case of A to Z. It uses an index of
 * `lower(column)`. Both databases sort strings by bytes.
 */
export function startsWith(put: Put, column: string, q: string): string {
  const low = lowerAscii(q)
  // U+10FFFF is the highest character, so the range has all texts that begin with `low`.
  return `lower(${column}) >= ${put(low)} AND lower(${column}) < ${put(`${low}\u{10ffff}`)}`
}

/**
 * Converts only the letters A to Z to lower case. SQLite's `lower` does the same, and so does PostgreSQL's for columns
 * with the collation "C".
 */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

/** SQL: like `startsWith`, but without an index. @param before `%` to find the string anywhere in the column */
export function isLike(put: Put, column: string, q: string, before: '' | '%' = ''): string {
  const text = lowerAscii(q).replace(/[\\%_]/g, '\\$&')
  return `lower(${column}) LIKE ${put(`${before}${text}%`)} ESCAPE '\\'`
}

export function whereAll(parts: readonly string[], word: 'AND' | 'OR' = 'AND'): string {
  return parts.length ? `WHERE ${parts.join(` ${word} `)}` : ''
}
