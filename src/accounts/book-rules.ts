/*
 * The rules of the books, without a store: what a change must know, and what follows from it. A store finds the facts and
 * makes the writes in one transaction; it decides nothing. So every store has the same rules, whether it answers at once
 * or from another machine.
 */
import { randomText } from '../ids/base62.ts'
import { BookError } from './book-error.ts'
import type { AccountRow, IssuedKey, KeyRow } from './book-rows.ts'
import { readReturnReference } from './entries.ts'
import { createKey as makeKey, mayHoldKey, nameOfKey } from './keys.ts'

/** What a change asks about. */
export type Question = {
  /** An account by its id, else by its name. */
  account?: string
  /** An account by its name alone. */
  accountName?: string
  /** Keys by id or by their first characters. */
  key?: string
  /** The credit that was booked with this reference, of any account. */
  reference?: string
}

/** What the store found: nothing where it was not asked, or where there is nothing. */
export type Facts = {
  account: AccountRow | undefined
  accountNamed: AccountRow | undefined
  keys: readonly KeyRow[]
  credit: { accountId: string; amountNanos: bigint } | undefined
}

/** One thing to be written. Whatever it is, servers learn that its account has changed. */
export type Write =
  | { kind: 'insert_account'; account: AccountRow }
  | { kind: 'set_state'; accountId: string; state: AccountRow['state'] }
  | { kind: 'set_name'; accountId: string; name: string }
  | { kind: 'post_credit'; accountId: string; amountNanos: bigint; reference: string }
  | { kind: 'insert_key'; accountId: string; key: KeyRow }
  | { kind: 'expire_key'; accountId: string; keyId: string; expiresMs: number }
  | { kind: 'revoke_key'; accountId: string; keyId: string; revokedMs: number }

export type Change<T> = {
  about: Question
  /** Pure. @throws BookError, and then nothing is written. */
  decide(facts: Facts): { writes: readonly Write[]; result: T }
}

/** What a 64-bit integer holds (ruling C1). */
const nanosMax = 2n ** 63n - 1n

export function createAccount(name: string, creditNanos: bigint, nowMs: number): Change<AccountRow> {
  return {
    about: { accountName: name },
    decide({ accountNamed }) {
      checkName(name)
      if (accountNamed) throw new BookError('name_taken', name)
      const id = `acct_${randomText(16)}`
      const account: AccountRow = { id, name, state: 'active', balanceNanos: 0n, createdMs: nowMs }
      const writes: Write[] = [{ kind: 'insert_account', account }]
      if (creditNanos !== 0n) writes.push(postCredit(account, creditNanos, `create:${id}`))
      return { writes, result: { ...account, balanceNanos: creditNanos } }
    },
  }
}

export function setAccountState(idOrName: string, state: AccountRow['state']): Change<AccountRow> {
  return {
    about: { account: idOrName },
    decide(facts) {
      const account = theAccount(facts, idOrName)
      return { writes: [{ kind: 'set_state', accountId: account.id, state }], result: { ...account, state } }
    },
  }
}

export function renameAccount(idOrName: string, name: string): Change<AccountRow> {
  return {
    about: { account: idOrName, accountName: name },
    decide(facts) {
      checkName(name)
      const account = theAccount(facts, idOrName)
      const { accountNamed } = facts
      if (accountNamed && accountNamed.id !== account.id) throw new BookError('name_taken', name)
      return { writes: [{ kind: 'set_name', accountId: account.id, name }], result: { ...account, name } }
    },
  }
}

export function credit(idOrName: string, amountNanos: bigint, reference: string): Change<'posted' | 'exists'> {
  return {
    about: { account: idOrName, reference },
    decide(facts) {
      checkReference(reference)
      const account = theAccount(facts, idOrName)
      const { credit } = facts
      if (!credit) return { writes: [postCredit(account, amountNanos, reference)], result: 'posted' }
      const isSame = credit.accountId === account.id && credit.amountNanos === amountNanos
      if (!isSame) throw new BookError('reference_conflict', reference)
      return { writes: [], result: 'exists' }
    },
  }
}

export function createKey(idOrName: string, label: string | undefined, nowMs: number): Change<IssuedKey> {
  return {
    about: { account: idOrName },
    decide(facts) {
      const { id } = theAccount(facts, idOrName)
      if (label !== undefined) checkLabel(label, id)
      const { write, issued } = issueKey(id, label, nowMs)
      return { writes: [write], result: issued }
    },
  }
}

export function revokeKey(idOrPrefix: string, nowMs: number): Change<KeyRow> {
  return {
    about: { key: nameOfKey(idOrPrefix) },
    decide(facts) {
      const key = theKey(facts, idOrPrefix)
      if (key.revokedMs !== undefined) return { writes: [], result: key }
      const write: Write = { kind: 'revoke_key', accountId: key.accountId, keyId: key.id, revokedMs: nowMs }
      return { writes: [write], result: { ...key, revokedMs: nowMs } }
    },
  }
}

export function rotateKey(idOrPrefix: string, graceMs: number, nowMs: number): Change<IssuedKey> {
  return {
    about: { key: nameOfKey(idOrPrefix) },
    decide(facts) {
      const old = theKey(facts, idOrPrefix)
      if (old.revokedMs !== undefined) throw new BookError('key_revoked', old.id)
      const expiresMs = Math.min(old.expiresMs ?? Number.POSITIVE_INFINITY, nowMs + graceMs)
      const { write, issued } = issueKey(old.accountId, old.label, nowMs)
      return {
        writes: [{ kind: 'expire_key', accountId: old.accountId, keyId: old.id, expiresMs }, write],
        result: issued,
      }
    },
  }
}

function theAccount({ account }: Facts, asked: string): AccountRow {
  if (!account) throw new BookError('no_account', asked)
  return account
}

function theKey({ keys }: Facts, asked: string): KeyRow {
  if (keys.length > 1) throw new BookError('key_ambiguous', asked)
  if (!keys[0]) throw new BookError('no_key', asked)
  return keys[0]
}

function postCredit(account: AccountRow, amountNanos: bigint, reference: string): Write {
  const sum = account.balanceNanos + amountNanos
  if (sum > nanosMax || sum < -nanosMax - 1n) throw new BookError('overflow', account.id)
  return { kind: 'post_credit', accountId: account.id, amountNanos, reference }
}

function checkName(name: string): void {
  // No database but SQLite has texts with NUL in them.
  if (!/^\S(.{0,98}\S)?$/u.test(name) || name.includes('\0')) throw new BookError('name_invalid', name)
}

/** An index of PostgreSQL has no room for longer ones. */
const referenceCharsMax = 500

function checkReference(reference: string): void {
  if (!reference.trim()) throw new BookError('reference_missing', reference)
  if (reference.length > referenceCharsMax || reference.includes('\0'))
    throw new BookError('reference_invalid', reference.slice(0, 40))
  if (readReturnReference(reference) !== undefined) throw new BookError('reference_reserved', reference)
}

/** What people say of it is refused by the account it is for: it may be a key. */
function checkLabel(label: string, accountId: string): void {
  if (!/^[^\s\p{C}]([^\p{C}]{0,98}[^\s\p{C}])?$/u.test(label)) throw new BookError('label_invalid', accountId)
  if (mayHoldKey(label)) throw new BookError('label_secret', accountId)
}

function issueKey(accountId: string, label: string | undefined, nowMs: number): { write: Write; issued: IssuedKey } {
  const { key, id, prefix, digest } = makeKey()
  const times = { createdMs: nowMs, expiresMs: undefined, revokedMs: undefined, lastUsedMs: undefined }
  return {
    write: { kind: 'insert_key', accountId, key: { id, accountId, digest, prefix, label, ...times } },
    issued: { key, id, prefix },
  }
}
