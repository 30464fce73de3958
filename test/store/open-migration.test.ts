import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { type ChainedRow, chainedColumns, digestEntry } from '../../src/accounts/chain.ts'
import { lockStore } from '../../src/store/files/lock.ts'
import { spoolPath } from '../../src/store/files/spool.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { migrations as postgresMigrations } from '../../src/store/postgres/schema.ts'
import { migrate } from '../../src/store/sqlite/open.ts'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { openStore } from '../support/operator.ts'
import { createFirstRelease, firstMs } from './first-release.ts'
import { costNanos, createDebitRow, createPath, open, prices, until, usage, verifyOptions } from './fixtures.ts'

const accounts = { acct_b: 'two', acct_a: 'one' }

const entries = [
  { accountId: 'acct_b', creditNanos: 5_000_000n, reference: 'create:acct_b' },
  { accountId: 'acct_a', creditNanos: 9_000_000n, reference: 'create:acct_a' },
  { accountId: 'acct_b', requestId: 'req_1' },
  { accountId: 'acct_a', requestId: 'req_2', atMs: firstMs + 60_000 },
  { accountId: 'acct_a', requestId: 'req_3', atMs: firstMs + 30_000 },
]

test('F-S7 the first migration is unchanged since its release', () => {
  assert.equal(
    hash('sha256', migrations[0] as string),
    '1f0cb57ecb13248049e592f07427614ca20c898b28cb9f9acea3e113fd75b479',
  )
})

test('F-S7 SCA-12 the texts of later migrations are those that stores were made with', () => {
  const hashes = (texts: readonly unknown[]) =>
    texts.map((text) => (typeof text === 'string' ? hash('sha256', text).slice(0, 16) : 'code'))
  assert.deepEqual(hashes(migrations), [
    ...['1f0cb57ecb132480', 'code', '06d483b24ddb6c07', 'ee883fa60d6c179e', '8b2693e9b11f9a08'],
    ...['b34f9f76a2a23728', 'eba5ba1fe9bdba0c', 'b2fab822365b7211', '2e39dd6a84a12ff1'],
    ...['bf2482768d2072b7', '8bd013a04a0dfa0d', 'a6f9c1ee71b5de34', '3e189578207f2f9c'],
    'b8fdf11fae15834c',
    'a4a325fc3d3354f4',
    '0290adba21a9aebb',
    '0821bd3bdb759b20',
    '0b6ae0a63f36726d',
    '99d69a0e14da83ba',
    'c02bfd10e300579d',
    '9ad0963d3bf94734',
    '32b3f2c9ed955fce',
    '1c7e6c7246f8c763',
    '1a1082b92adb55c4',
    '67745c668748b880',
    '66cbd67f8322068b',
  ])
  assert.deepEqual(hashes(postgresMigrations.map(({ sql }) => sql)), [
    ...['abbc43240d4c03ef', '7e901270a4a1eab8', '78a91401dd094d69', 'ceda54f564fe0006', '27f29c945ac80cd3'],
    ...['5483ce4bada5321c', 'c20f3bbccb279a70', '8994ba3157d93d3f', '7ecb3eb1b944d01e'],
    'f3d7f1cc3fab8149',
    'c4b76cb6ee11b3d1',
    'e742252417f32d85',
    '2e6e423de5f009e9',
    'f923061c8c154cce',
    '1f58a5650a6bbbb2',
    'd8488a3a387e8534',
    '150711e19730a184',
    'bff83d788bce0368',
    '5525a88fed5cb936',
    '14e4dd3794826171',
    'd6474311f732bad0',
    'a3a5143b2e580c99',
  ])
  assert.deepEqual(
    postgresMigrations.map(({ oldest }) => oldest),
    Array(postgresMigrations.length).fill(1),
  )
})

test('C15 entries of the first release are digested in the order of their accounts, and keep the time of their posting', (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const store = openStore(path)
  t.after(() => store.close())
  assert.deepEqual(store.verify(verifyOptions), [])
  const db = new DatabaseSync(path, { readOnly: true })
  t.after(() => db.close())
  const rows = db.prepare('SELECT * FROM entries ORDER BY id').all()
  assert.deepEqual(
    rows.map(({ id, account_id, seq, posted_ms }) => [id, account_id, seq, (posted_ms as number) - firstMs]),
    [
      [1, 'acct_b', 1, 0],
      [2, 'acct_a', 1, 1_000],
      [3, 'acct_b', 2, 2_000],
      [4, 'acct_a', 2, 60_000],
      // Made before, and not posted before, the one before it.
      [5, 'acct_a', 3, 60_000],
    ],
  )
  const digestOf = (row: unknown, previous: string | null) => digestEntry(row as ChainedRow, previous)
  const first = digestOf(rows[1], null)
  const second = digestOf(rows[3], first)
  assert.deepEqual(
    [rows[1], rows[3], rows[4]].map((row) => row!.digest),
    [first, second, digestOf(rows[4], second)],
  )
})

test('C9 fields that the first release did not have are empty, and all else is as it was', (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const store = openStore(path)
  t.after(() => store.close())
  const { digest: _, ...entry } = store.findEntry('req_1')!
  assert.deepEqual(entry, {
    accountId: 'acct_b',
    seq: 2,
    kind: 'debit',
    amountNanos: costNanos,
    balanceAfterNanos: 5_000_000n - costNanos,
    createdMs: firstMs + 2_000,
    postedMs: firstMs + 2_000,
    reference: undefined,
    bill: {
      requestId: 'req_1',
      keyId: undefined,
      clientWire: undefined,
      model: 'm-large',
      modelWire: undefined,
      upstream: undefined,
      upstreamAccount: undefined,
      usage,
      usageSource: 'final',
      pricedCalls: 0,
      calls: undefined,
      priceVersion: 'v1',
      outcome: 'ok',
    },
    returned: undefined,
    details: undefined,
    accountName: 'two',
    keyPrefix: undefined,
    keyLabel: undefined,
  })
  assert.equal(store.listKeys('one')[0]!.label, undefined)
  const old = { ...createDebitRow('req_1', 'acct_b'), clientWire: undefined, modelWire: undefined }
  assert.deepEqual(store.postDebits([{ ...old, upstream: undefined, upstreamAccount: undefined }]), ['exists'])
  store.postDebits([createDebitRow('req_9', 'acct_b')])
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C9 a spool of the first release is posted once, with the new fields empty', async (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const line = (requestId: string) => {
    const amounts = Object.fromEntries(Object.entries(prices).map(([name, nanos]) => [name, `${nanos}`]))
    const bill = {
      requestId,
      model: 'm-large',
      amountNanos: `${costNanos}`,
      usage,
      usageSource: 'final',
      outcome: 'ok',
    }
    return JSON.stringify({ ...bill, priceVersion: 'v1', prices: amounts, createdMs: firstMs, accountId: 'acct_b' })
  }
  writeFileSync(spoolPath(path), `\n${line('req_1')}\n${line('req_7')}\n`, { mode: 0o600 })
  // The newest entry is years old: the spool waits until an operator confirms the clock (ruling Y15).
  const server = await open(t, path, { isStuck: true, settleDeadlineMs: 20 })
  assert.equal(existsSync(spoolPath(path)), true)
  confirmClock(path)
  await until(() => server.ledger.whyBlocked() === undefined)
  assert.deepEqual(server.lines.find(({ event }) => event === 'crash_recovery')?.fields, {
    posted: 1,
    known: 1,
    returned: 0,
    rejected: 0,
    unreadable: 0,
    aside: undefined,
  })
  await server.close()
  assert.equal(existsSync(spoolPath(path)), false)
  const store = openStore(path)
  t.after(() => store.close())
  const { bill } = store.findEntry('req_7')!
  assert.deepEqual(
    [bill!.keyId, bill!.clientWire, bill!.upstream, bill!.pricedCalls],
    [undefined, undefined, undefined, 0],
  )
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C9 a current spool line is read back with all its fields', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { id: keyId } = store.createKey('one')
  const debit = { ...createDebitRow('req_1', id), keyId, pricedCalls: 2 }
  const text = JSON.stringify(debit, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  writeFileSync(spoolPath(path), `${text}\n`, { mode: 0o600 })
  await (await open(t, path)).close()
  assert.deepEqual(store.postDebits([debit]), ['exists'])
  const { bill } = store.findEntry('req_1')!
  assert.deepEqual([bill!.keyId, bill!.clientWire, bill!.pricedCalls], [keyId, 'chat', 2])
})

test('C9 a command that finds an older store under a running server changes nothing and says what to restart', (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const unlock = lockStore(path)
  assert.throws(
    () => openStore(path),
    (error) => error instanceof StoreError && /a server runs on it: restart that server/.test(error.message),
  )
  const db = new DatabaseSync(path)
  assert.equal(db.prepare('PRAGMA user_version').get()!.user_version, 1)
  db.close()
  unlock()
  openStore(path).close()
  // Migrated, it may be used beside a server again; and the migration has let go of the lock.
  const again = lockStore(path)
  openStore(path).close()
  again()
})

test('C9 a command that upgrades an older store reports that, once', (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const notes: string[] = []
  const note = (text: string) => void notes.push(text)
  for (let at = 0; at < 2; at++) openStore(path, { note }).close()
  assert.deepEqual(notes, [`${path} was brought up to date: older versions of triwire can no longer open it`])
})

test('C9 a server, which holds the lock itself, upgrades an older store', async (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const { balances, ledger } = await open(t, path, { isStuck: true, settleDeadlineMs: 20 })
  assert.equal(balances.get('acct_b')?.balanceNanos, 5_000_000n - costNanos)
  assert.notEqual(ledger.whyBlocked(), undefined)
  confirmClock(path)
  await until(() => ledger.whyBlocked() === undefined)
})

test('F-S7 a tampered store of the first release is migrated anyway, and verify reports it', (t) => {
  const path = createPath(t)
  createFirstRelease(path, accounts, entries)
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  db.exec("DELETE FROM accounts WHERE id = 'acct_a'")
  db.close()
  const store = openStore(path)
  t.after(() => store.close())
  assert.deepEqual(store.verify(verifyOptions), ['account acct_a: has entries and does not exist'])
})

test('C15 the migrated file has the same tables and triggers as a new one', (t) => {
  const [fresh, migrated] = [createPath(t), createPath(t)]
  createFirstRelease(migrated, accounts, entries)
  const schemas = [fresh, migrated].map((path) => {
    openStore(path).close()
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name').all()
    db.close()
    return rows
  })
  assert.deepEqual(schemas[1], schemas[0])
})

test('C11 a store of version 2 gets columns for steps and calls, and every digest stays', (t) => {
  const path = createPath(t)
  writeFileSync(path, '', { mode: 0o600 })
  const old = new DatabaseSync(path, { readBigInts: true })
  migrate(old, path, migrations.slice(0, 2))
  old.exec("INSERT INTO accounts (id, name, state, revision, created_ms) VALUES ('acct_a', 'one', 'active', 1, 0)")
  const row = {
    account_id: 'acct_a',
    seq: 1,
    kind: 'credit',
    amount: 5,
    balance_after: 5,
    reference: 'r',
    priced_calls: 0,
  }
  const chained = {
    ...Object.fromEntries(chainedColumns.map((column) => [column, null])),
    ...row,
    created_ms: 1,
    posted_ms: 1,
  }
  const digest = digestEntry(chained as unknown as ChainedRow, null)
  old.exec(`INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, created_ms, posted_ms, digest)
    VALUES ('acct_a', 1, 'credit', 5, 5, 'r', 1, 1, '${digest}'); UPDATE accounts SET seq = 1, balance = 5`)
  old.close()
  const store = openStore(path)
  t.after(() => store.close())
  assert.equal([...store.eachEntry()][0]!.digest, digest)
  store.postDebits([createDebitRow('req_1', 'acct_a')])
  assert.deepEqual(store.verify(verifyOptions), [])
})

function confirmClock(path: string): void {
  const store = openStore(path)
  store.confirmClock()
  store.close()
}
