import assert from 'node:assert/strict'
import test from 'node:test'
import { newAccount } from '../../src/accounts/book-rows.ts'
import { keyBounds, personBounds } from '../../src/accounts/key-bounds.ts'
import { createBoundsBook, createDirectory } from '../../src/accounts/live-accounts.ts'

const budget = { nanos: 100n, per: undefined }
const bounds = { ...keyBounds.none, budget }

function rig(accountsMax?: number) {
  const book = createBoundsBook()
  const directory = createDirectory({
    balances: { set() {} },
    bounds: book,
    readAgain: async () => {},
    accountsMax,
  })
  const tell = (accountId: string, keyIds: string[]) =>
    directory.apply({
      hasForeignKeys: false,
      accounts: [newAccount(accountId, accountId, 1)],
      keys: keyIds.map((id) => ({
        ...{ id, accountId, digest: `digest of ${id}`, prefix: id, label: undefined, expiresMs: undefined },
        ...{
          scope: `line of ${accountId}`,
          bounds,
          spend: undefined,
          personBounds: personBounds.none,
          personSpend: undefined,
        },
      })),
    })
  return { book, directory, tell }
}

test('R15 E6 the known bounds of keys are forgotten together with their accounts', () => {
  const { book, directory, tell } = rig(16)
  for (let n = 0; n < 200; n++) tell(`acct_${n}`, [`key_${n}`])
  const known = Array.from({ length: 200 }, (_, n) => n).filter((n) => book.of(`key_${n}`))
  assert.equal(known.length, 16)
  assert.deepEqual(
    known.map((n) => `acct_${n}`),
    Array.from(directory.listKnown(), ({ id }) => id),
  )
})

test('R15 a revoked key leaves its line of rotations once its requests have ended and it owes nothing', () => {
  const { book, tell } = rig()
  tell('acct', ['old', 'new'])
  const live = book.of('old')!
  live.heldNanos = 5n
  tell('acct', ['new'])
  assert.equal(book.of('old'), live)
  book.owe('old', 7n)
  live.heldNanos = 0n
  tell('acct', ['new'])
  assert.equal(book.left(live, budget, 0).creditNanos, 93n)
  book.owe('old', -7n)
  tell('acct', ['new'])
  assert.equal(book.of('old'), undefined)
  assert.equal(book.of('new'), live)
  const spend = { fromMs: 0, untilMs: 1, spentNanos: 3n }
  book.set('line of acct', spend)
  assert.equal(live.spend, spend)
  assert.deepEqual([...live.keyIds], ['new'])
})

test('R15 a key that returns before it is forgotten stays', () => {
  const { book, tell } = rig()
  tell('acct', ['one'])
  const live = book.of('one')!
  live.heldNanos = 5n
  tell('acct', [])
  tell('acct', ['one'])
  live.heldNanos = 0n
  tell('acct', ['one'])
  assert.equal(book.of('one'), live)
})

test('R16 an account may have any number of keys', () => {
  const { directory, tell } = rig()
  const ids = Array.from({ length: 150_000 }, (_, at) => `key_${at}`)
  for (let at = 0; at < 2; at++) tell('acct', ids)
  assert.equal([...directory.listKnownKeys()].length, ids.length)
})

test('Y20 the bounds of a person are known while they have a key, are shared by all their keys, and go with the last', () => {
  const { book, directory } = rig()
  const budget = { nanos: 5n, per: 'day' } as const
  const tell = (keys: Record<string, string | undefined>) =>
    directory.apply({
      hasForeignKeys: false,
      accounts: [newAccount('acct_1', 'one', 1)],
      keys: Object.entries(keys).map(([id, person]) => ({
        ...{ id, accountId: 'acct_1', digest: id, prefix: id, label: undefined, expiresMs: undefined, scope: id },
        ...{ bounds: { ...keyBounds.none, person }, spend: undefined, personHeldNanos: undefined },
        ...{ personBounds: { budget, requestsPerMinute: undefined }, personSpend: undefined },
      })),
    })
  const liveOf = (id: string) => directory.findKnownKey(id)?.personBounds
  tell({ key_1: 'per_1', key_2: 'per_1', key_3: undefined })
  assert.equal(liveOf('key_1'), liveOf('key_2'))
  assert.equal(liveOf('key_3'), undefined)
  tell({ key_2: 'per_1' })
  assert.equal(book.of('per_1'), liveOf('key_2'))
  liveOf('key_2')!.heldNanos = 3n
  tell({})
  assert.equal(book.of('per_1')?.heldNanos, 3n, 'its requests run')
  book.of('per_1')!.heldNanos = 0n
  book.forget([])
  assert.equal(book.of('per_1'), undefined)
})

test('Y20 the bounds of a person stay known while they have a key of another account than one that was changed', () => {
  const { book, directory } = rig()
  const tell = (accountId: string, keyIds: string[]) =>
    directory.apply({
      hasForeignKeys: false,
      accounts: [newAccount(accountId, accountId, 1)],
      keys: keyIds.map((id) => ({
        ...{ id, accountId, digest: id, prefix: id, label: undefined, expiresMs: undefined, scope: id },
        ...{ bounds: { ...keyBounds.none, person: 'per_1' }, spend: undefined },
        ...{ personBounds: { budget, requestsPerMinute: undefined }, personSpend: undefined },
      })),
    })
  // The session in the old account is over, but its key is not revoked yet.
  tell('acct_old', ['key_session'])
  tell('acct_new', ['key_new'])
  tell('acct_old', [])
  const live = directory.findKnownKey('key_new')!.personBounds!
  book.set('per_1', { fromMs: 0, untilMs: 9, spentNanos: 70n })
  assert.equal(book.left(live, budget, 1).creditNanos, 30n)
  book.owe('per_1', 20n)
  assert.equal(book.left(live, budget, 1).creditNanos, 10n)
  book.owe('per_1', -20n)
  tell('acct_new', [])
  assert.equal(book.of('per_1'), undefined)
})
