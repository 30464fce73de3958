import assert from 'node:assert/strict'
import test from 'node:test'
import type { BookError } from '../../src/accounts/book-error.ts'
import { type AccountRow, type KeyRow, newAccount, noPerson } from '../../src/accounts/book-rows.ts'
import {
  type BookChange,
  createAccount,
  createKey,
  credit,
  type Facts,
  revokeKey,
  rotateKey,
  updateKey,
} from '../../src/accounts/book-rules.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { keyBounds } from '../../src/accounts/key-bounds.ts'
import { digestKey } from '../../src/accounts/keys.ts'

const account: AccountRow = { ...newAccount('acct_1', 'one', 1), balanceNanos: 10n }
const moment = { nowMs: 5, calendar: createCalendar(utc) }
const key: KeyRow = {
  id: 'key_1',
  accountId: 'acct_1',
  digest: 'd',
  prefix: 'sk-tri-12345678',
  label: 'laptop',
  createdMs: 1,
  accountName: 'one',
  personName: undefined,
  expiresMs: undefined,
  ownExpiresMs: undefined,
  scope: 'key_1',
  bounds: keyBounds.none,
  spend: undefined,
  ...noPerson,
  heldNanos: undefined,
  revokedMs: undefined,
  lastUsedMs: undefined,
  origin: undefined,
  session: undefined,
}

const at = { nowMs: 9, calendar: createCalendar(utc) }

function decide<T>(change: BookChange<T>, facts: Partial<Facts> = {}) {
  const none = {
    account: undefined,
    accountNamed: undefined,
    keys: [],
    credit: undefined,
    operators: [],
    persons: [],
    personKeys: [],
    accounts: [],
    made: undefined,
    grants: undefined,
    reporting: undefined,
    clock: undefined,
    nowMs: 9,
  }
  return change.decide({ ...none, ...facts })
}

function codeOf(change: BookChange<unknown>, facts: Partial<Facts> = {}): string {
  try {
    decide(change, facts)
    return 'done'
  } catch (error) {
    return (error as BookError).code
  }
}

test('an account name has 1 to 100 characters and no surrounding blanks, is not an id, and belongs to one account only', () => {
  for (const name of ['a', 'a b', 'x'.repeat(100), '𝒳'.repeat(100), 'ä'])
    assert.equal(codeOf(createAccount(name, 0n, moment)), 'done', name)
  for (const name of [
    '',
    ' ',
    ' a',
    'a ',
    'a\nb',
    'x'.repeat(101),
    'a\u001bb',
    '\u202eabc',
    'acme\u200b',
    'acct_9c0ddTGx6LBHH2xJ',
  ])
    assert.equal(codeOf(createAccount(name, 0n, moment)), 'name_invalid', JSON.stringify(name))
  assert.equal(codeOf(createAccount('one', 0n, moment), { accountNamed: account }), 'name_taken')
})

test('C8 the first credit is booked as create:<id>; without a first credit nothing is booked', () => {
  const { writes, result } = decide(createAccount('one', 7n, moment))
  assert.deepEqual(
    writes.map((write) => write.kind),
    ['insert_account', 'post_credit'],
  )
  assert.deepEqual(writes[1], {
    kind: 'post_credit',
    accountId: result.id,
    amountNanos: 7n,
    reference: `create:${result.id}`,
  })
  assert.deepEqual([result.balanceNanos, result.createdMs], [7n, 5])
  assert.equal(decide(createAccount('one', 0n, moment)).writes.length, 1)
})

test('C8 a reference stands for one credit of one account and amount', () => {
  const again = (accountId: string, amountNanos: bigint) =>
    codeOf(credit('one', 5n, 'invoice'), { account, credit: { accountId, amountNanos } })
  assert.equal(again('acct_1', 5n), 'done')
  assert.equal(again('acct_1', 6n), 'reference_conflict')
  assert.equal(again('acct_2', 5n), 'reference_conflict')
  assert.deepEqual(decide(credit('one', 5n, 'i'), { account, credit: { accountId: 'acct_1', amountNanos: 5n } }), {
    writes: [],
    result: 'exists',
  })
  assert.equal(codeOf(credit('one', 5n, '\t'), { account }), 'reference_missing')
  assert.equal(codeOf(credit('two', 5n, 'i')), 'no_account')
})

test('C1 no credit or correction takes a balance outside of 64 bits, at either end', () => {
  const [max, min] = [2n ** 63n - 1n, -(2n ** 63n)]
  assert.equal(codeOf(credit('one', max - 10n, 'i'), { account }), 'done')
  assert.equal(codeOf(credit('one', max - 9n, 'i'), { account }), 'overflow')
  assert.equal(codeOf(credit('one', min - 10n, 'i'), { account }), 'done')
  assert.equal(codeOf(credit('one', min - 11n, 'i'), { account }), 'overflow')
})

test('a key is stored as its digest; the secret is only in the answer', () => {
  const { writes, result } = decide(createKey('one', {}, at), { account })
  const [write] = writes
  assert.ok(write?.kind === 'insert_key')
  assert.equal(write.key.digest, digestKey(result.key))
  assert.ok(!JSON.stringify(write).includes(result.key))
  assert.equal(codeOf(createKey('two', {}, at)), 'no_account')
})

test('C9 a label has 1 to 100 characters, no surrounding blanks and no key in it, and a refusal does not repeat it', () => {
  const refusalOf = (label: string) => {
    try {
      const { writes } = decide(createKey('one', { label }, at), { account })
      return writes[0]?.kind === 'insert_key' && writes[0].key.label === label ? 'kept' : 'lost'
    } catch (error) {
      const { code, subject } = error as BookError
      return `${code} ${subject}`
    }
  }
  for (const label of ['a', 'CI of team A', 'x'.repeat(100), '𝒳'.repeat(100)])
    assert.equal(refusalOf(label), 'kept', label)
  for (const label of ['', ' ', ' a', 'a ', 'a\nb', 'a\u202eb', 'x'.repeat(101)])
    assert.equal(refusalOf(label), 'label_invalid acct_1', JSON.stringify(label))
  const { result } = decide(createKey('one', {}, at), { account })
  for (const label of [result.key, result.prefix, `mine: ${result.key}`])
    assert.equal(refusalOf(label), 'label_secret acct_1')
})

test('R15 a budget begins with the current day of the store, whatever the clock of the operator says', () => {
  const budget = { nanos: 5n, per: 'day' } as const
  const [dayMs, untilMs] = [86_400_000, 3 * 86_400_000]
  for (const change of [createKey('one', { budget }, at), updateKey('key_1', { budget }, at.calendar)] as const) {
    const { writes } = decide<unknown>(change, { account, keys: [key], nowMs: untilMs - 1 })
    const write = writes.at(-1)
    assert.ok(write?.kind === 'set_spend')
    assert.deepEqual([write.fromMs, write.untilMs], [untilMs - dayMs, untilMs])
  }
})

test('C9 a rotated key passes its label on', () => {
  const { writes } = decide(rotateKey('key_1', 0), { keys: [key] })
  assert.ok(writes[1]?.kind === 'insert_key')
  assert.equal(writes[1].key.label, 'laptop')
})

test('C13 references of returns are reserved for the ledger', () => {
  assert.equal(codeOf(credit('one', 5n, 'return:req_1'), { account }), 'reference_reserved')
  assert.equal(codeOf(credit('one', 5n, 'a return:req_1'), { account }), 'done')
})

test('a key is identified by a text that matches only one key', () => {
  assert.equal(codeOf(revokeKey('sk', 1)), 'no_key')
  assert.equal(codeOf(revokeKey('sk', 1), { keys: [key, { ...key, id: 'key_2' }] }), 'key_ambiguous')
})

test('a key is revoked once, and keeps the time of the first revocation', () => {
  const { writes, result } = decide(revokeKey('key_1', 50), { keys: [key] })
  assert.deepEqual(writes, [{ kind: 'set_key', accountId: 'acct_1', keyId: 'key_1', fields: { revokedMs: 50 } }])
  assert.equal(result.revokedMs, 50)
  assert.deepEqual(decide(revokeKey('key_1', 90), { keys: [result] }), { writes: [], result })
})

test('a rotation never extends the life of the old key, by the time of the store, and a revoked key is not rotated', () => {
  const ends = (expiresMs: number | undefined, graceMs: number) => {
    const { writes } = decide(rotateKey('key_1', graceMs), { keys: [{ ...key, expiresMs }], nowMs: 1_000 })
    assert.ok(writes[0]?.kind === 'set_key')
    return writes[0].fields.expiresMs
  }
  assert.deepEqual([ends(undefined, 500), ends(1_200, 500), ends(9_000, 500)], [1_500, 1_200, 1_500])
  const { trail } = decide(rotateKey('key_1', 500), { keys: [key], nowMs: 1_000 })
  assert.equal(trail?.after?.['expires'], '1970-01-01T00:00:01.500Z')
  assert.equal(codeOf(rotateKey('key_1', 0), { keys: [{ ...key, revokedMs: 1 }] }), 'key_revoked')
})

test('R15 a rotated key lives no longer than its grace period, whatever end is requested', () => {
  const to = (expiresMs: number | null, ends: Partial<KeyRow>) =>
    codeOf(updateKey('key_1', { expiresMs }, at.calendar), { keys: [{ ...key, ...ends }], nowMs: 1_000 })
  for (const ownExpiresMs of [undefined, 8_000])
    for (const expiresMs of [900, 2_000]) {
      assert.equal(to(9_000, { expiresMs, ownExpiresMs }), 'key_rotated')
      assert.equal(to(null, { expiresMs, ownExpiresMs }), 'key_rotated')
    }
  const { result } = decide(updateKey('key_1', { expiresMs: 1_500 }, at.calendar), {
    keys: [{ ...key, expiresMs: 2_000 }],
  })
  assert.deepEqual([result.expiresMs, result.ownExpiresMs], [1_500, undefined])
  assert.equal(to(null, { revokedMs: 5 }), 'key_revoked')
  // The grace period may be longer than what was left of the key's own life.
  for (const own of [
    { expiresMs: 2_000, ownExpiresMs: 2_000 },
    { expiresMs: 1_001, ownExpiresMs: 1_001 },
  ]) {
    const [write] = decide(rotateKey('key_1', 5_000), { keys: [{ ...key, ...own }], nowMs: 1_000 }).writes
    assert.ok(write?.kind === 'set_key')
    const rotated = { ...own, ...write.fields }
    assert.deepEqual([to(9_000, rotated), to(null, rotated)], ['key_rotated', 'key_rotated'])
  }
  // In older stores, both ends of a rotated key may be equal. The other keys of its line show the rotation.
  const old = { keys: [{ ...key, expiresMs: 2_000, ownExpiresMs: 2_000 }], isRotated: true, nowMs: 1_000 }
  for (const expiresMs of [9_000, null])
    assert.equal(codeOf(updateKey('key_1', { expiresMs }, at.calendar), old), 'key_rotated')
  // A key that was never rotated may get another end.
  assert.equal(to(null, { expiresMs: 900, ownExpiresMs: 900 }), 'done')
})

test('C8 a reference has no invisible characters: it would be booked beside the one that looks the same', () => {
  for (const reference of ['inv-7 ', ' inv-7', 'inv\u200b-7', 'inv\t7'])
    assert.equal(codeOf(credit('one', 1n, reference), { account }), 'reference_invalid', JSON.stringify(reference))
  // One of an earlier release is known again.
  const earlier = { accountId: account.id, amountNanos: 1n } as Facts['credit']
  assert.equal(decide(credit('one', 1n, 'inv-7 '), { account, credit: earlier }).result, 'exists')
})

test('R4 R15 a key that has ended is not rotated: its successor would be shown although it has ended too', () => {
  const at = (nowMs: number, ends: { expiresMs: number; ownExpiresMs?: number }) =>
    codeOf(rotateKey('key_1', 60_000), { keys: [{ ...key, ...ends }], nowMs })
  assert.equal(at(999, { expiresMs: 1_000, ownExpiresMs: 1_000 }), 'done')
  assert.equal(at(1_000, { expiresMs: 1_000, ownExpiresMs: 1_000 }), 'key_expired')
  // A key whose grace period is over is not rotated either: its owner has the successor.
  assert.equal(at(5_000, { expiresMs: 1_000 }), 'key_expired')
})
