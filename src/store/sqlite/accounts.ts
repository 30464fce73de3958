import type { DatabaseSync } from 'node:sqlite'
import { createKey } from '../../accounts/keys.ts'
import { randomText } from '../../ids/base62.ts'
import type { Entries } from './entries.ts'
import { StoreError, transact } from './open.ts'

export type AccountRow = {
  id: string
  name: string
  state: 'active' | 'suspended'
  balanceNanos: bigint
  createdMs: number
}

export type KeyRow = {
  id: string
  accountId: string
  digest: string
  prefix: string
  /** What its owner calls it. Several keys may have the same: a rotated one and its successor do. */
  label: string | undefined
  createdMs: number
  expiresMs: number | undefined
  revokedMs: number | undefined
  lastUsedMs: number | undefined
}

/** What a server needs to know again after another process has written: whole accounts, each with all its valid keys. */
export type Changes = { revision: bigint; accounts: AccountRow[]; keys: KeyRow[] }

export type Accounts = ReturnType<typeof createAccounts>

/** Accounts and keys. Every change counts the account's revision up, which is how a running server finds it. */
export function createAccounts(db: DatabaseSync, entries: Pick<Entries, 'postCredit'>, nowMs: () => number) {
  const columns = 'id, name, state, balance, created_ms'
  const byIdOrName = db.prepare(`SELECT ${columns} FROM accounts WHERE id = ?1 OR name = ?1 ORDER BY id = ?1 DESC`)
  const all = db.prepare(`SELECT ${columns} FROM accounts ORDER BY created_ms, id`)
  const insert = db.prepare(
    `INSERT INTO accounts (id, name, state, revision, created_ms)
     VALUES (?, ?, 'active', (SELECT ifnull(max(revision), 0) + 1 FROM accounts), ?) ON CONFLICT (name) DO NOTHING`,
  )
  const setState = db.prepare('UPDATE accounts SET state = ? WHERE id = ?')
  const countUp = db.prepare('UPDATE accounts SET revision = (SELECT max(revision) + 1 FROM accounts) WHERE id = ?')
  const insertKey = db.prepare(
    'INSERT INTO keys (id, account_id, digest, prefix, label, created_ms) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const keysOf = db.prepare('SELECT * FROM keys WHERE ?1 IS NULL OR account_id = ?1 ORDER BY created_ms, id')
  const keysByName = db.prepare('SELECT * FROM keys WHERE id = ?1 OR prefix = ?1')
  const setRevoked = db.prepare('UPDATE keys SET revoked_ms = ifnull(revoked_ms, ?) WHERE id = ?')
  const setExpiry = db.prepare('UPDATE keys SET expires_ms = min(ifnull(expires_ms, ?1), ?1) WHERE id = ?2')
  const setUsed = db.prepare('UPDATE keys SET last_used_ms = max(ifnull(last_used_ms, 0), ?) WHERE id = ?')
  const dataVersion = db.prepare('PRAGMA data_version')
  const newest = db.prepare('SELECT ifnull(max(revision), 0) AS revision FROM accounts')
  const accountsSince = db.prepare(`SELECT ${columns} FROM accounts WHERE revision > ?`)
  const keysSince = db.prepare(
    'SELECT * FROM keys WHERE revoked_ms IS NULL AND account_id IN (SELECT id FROM accounts WHERE revision > ?)',
  )
  return {
    createAccount,
    listAccounts,
    findAccount,
    setAccountState,
    credit,
    createKey: addKey,
    listKeys,
    revokeKey,
    rotateKey,
    touchKeys,
    readDataVersion,
    readChanges,
  }

  /** Credit given at once is booked with the reference `create:<id>` (ruling C8). @throws StoreError when the name is taken. */
  function createAccount(name: string, creditNanos = 0n): AccountRow {
    if (!/^\S(.{0,98}\S)?$/u.test(name))
      throw new StoreError('An account name has 1 to 100 characters and no blanks around')
    return transact(db, () => {
      const id = `acct_${randomText(16)}`
      const { changes } = insert.run(id, name, nowMs())
      if (!changes) throw new StoreError(`There is already an account named "${name}": choose another name`)
      if (creditNanos !== 0n) entries.postCredit({ accountId: id, amountNanos: creditNanos, reference: `create:${id}` })
      return findAccount(id)
    })
  }

  function listAccounts(): AccountRow[] {
    return all.all().map(readAccount)
  }

  /** By id, else by name. @throws StoreError when there is none. */
  function findAccount(idOrName: string): AccountRow {
    const row = byIdOrName.get(idOrName)
    if (!row) throw new StoreError(`There is no account "${idOrName}": see triwire account list`)
    return readAccount(row)
  }

  function setAccountState(idOrName: string, state: 'active' | 'suspended'): AccountRow {
    return transact(db, () => {
      const { id } = findAccount(idOrName)
      setState.run(state, id)
      countUp.run(id)
      return findAccount(id)
    })
  }

  /**
   * A top-up, or a correction when negative. The same reference with the same account and amount is the same top-up, however
   * often it is asked for. @throws StoreError for the same reference with another account or amount (ruling C8).
   */
  function credit(idOrName: string, amountNanos: bigint, reference: string): 'posted' | 'exists' {
    if (!reference.trim())
      throw new StoreError('A credit needs a reference: the number of its payment, or why it is given')
    return transact(db, () => {
      const accountId = findAccount(idOrName).id
      const result = entries.postCredit({ accountId, amountNanos, reference })
      if (result === 'posted') countUp.run(accountId)
      return result
    })
  }

  /** @returns the secret with the rest, this once. */
  function addKey(idOrName: string, label?: string): { key: string; id: string; prefix: string } {
    if (label !== undefined && !/^[^\s\p{C}]([^\p{C}]{0,98}[^\s\p{C}])?$/u.test(label))
      throw new StoreError('A label has 1 to 100 characters and no blanks around')
    if (label?.includes('sk-tri-')) throw new StoreError('A label is not secret: it must not hold a key')
    return transact(db, () => issueKey(findAccount(idOrName).id, label))
  }

  function listKeys(idOrName?: string): KeyRow[] {
    return keysOf.all(idOrName === undefined ? null : findAccount(idOrName).id).map(readKeyRow)
  }

  /** For good, and again without harm. @param idOrPrefix as `key list` shows them. */
  function revokeKey(idOrPrefix: string): KeyRow {
    return transact(db, () => {
      const { id, accountId } = findKey(idOrPrefix)
      setRevoked.run(nowMs(), id)
      countUp.run(accountId)
      return findKey(id)
    })
  }

  /** A new key for the account; the old one is good for `graceMs` more, never longer than it already was. */
  function rotateKey(idOrPrefix: string, graceMs: number): { key: string; id: string; prefix: string } {
    return transact(db, () => {
      const old = findKey(idOrPrefix)
      if (old.revokedMs !== undefined)
        throw new StoreError(`Key ${old.id} is revoked: make a new one with triwire key create`)
      setExpiry.run(nowMs() + graceMs, old.id)
      return issueKey(old.accountId, old.label)
    })
  }

  function issueKey(accountId: string, label: string | undefined): { key: string; id: string; prefix: string } {
    const { key, id, prefix, digest } = createKey()
    insertKey.run(id, accountId, digest, prefix, label ?? null, nowMs())
    countUp.run(accountId)
    return { key, id, prefix }
  }

  function findKey(idOrPrefix: string): KeyRow {
    const rows = keysByName.all(idOrPrefix)
    if (rows.length > 1)
      throw new StoreError(`Several keys begin with ${idOrPrefix}: name one by its id, see triwire key list`)
    if (!rows[0]) throw new StoreError(`There is no key "${idOrPrefix}": see triwire key list`)
    return readKeyRow(rows[0])
  }

  /** Notes when keys were last used. It changes nothing that a server reads again. */
  function touchKeys(uses: Iterable<readonly [keyId: string, usedMs: number]>): void {
    transact(db, () => {
      for (const [keyId, usedMs] of uses) setUsed.run(usedMs, keyId)
    })
  }

  /** Another number whenever another connection has committed, and only then. */
  function readDataVersion(): bigint {
    return dataVersion.get()!.data_version as bigint
  }

  /** @param revision of the last reading; −1n for everything. */
  function readChanges(revision: bigint): Changes {
    db.exec('BEGIN')
    try {
      return {
        revision: newest.get()!.revision as bigint,
        accounts: accountsSince.all(revision).map(readAccount),
        keys: keysSince.all(revision).map(readKeyRow),
      }
    } finally {
      db.exec('COMMIT')
    }
  }
}

type Row = Record<string, unknown>

function readAccount(row: Row): AccountRow {
  return {
    id: row.id as string,
    name: row.name as string,
    state: row.state as AccountRow['state'],
    balanceNanos: row.balance as bigint,
    createdMs: Number(row.created_ms),
  }
}

function readKeyRow(row: Row): KeyRow {
  return {
    id: row.id as string,
    accountId: row.account_id as string,
    digest: row.digest as string,
    prefix: row.prefix as string,
    label: (row.label as string | null) ?? undefined,
    createdMs: Number(row.created_ms),
    expiresMs: readTime(row.expires_ms),
    revokedMs: readTime(row.revoked_ms),
    lastUsedMs: readTime(row.last_used_ms),
  }
}

function readTime(value: unknown): number | undefined {
  return value === null ? undefined : Number(value)
}
