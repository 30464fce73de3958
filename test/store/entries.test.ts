import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import fc from 'fast-check'
import { openStore } from '../support/operator.ts'
import { costNanos, createDebitRow, createPath, usage, verifyOptions } from './fixtures.ts'

test('spec 1.4 a debit is recorded under its request id with the tokens and prices it was made of', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  assert.deepEqual(store.postDebits([createDebitRow('req_1', id)]), ['posted'])
  assert.deepEqual(store.findEntry('req_1'), {
    accountId: id,
    seq: 2,
    kind: 'debit',
    amountNanos: 630_000n,
    balanceAfterNanos: 370_000n,
    createdMs: 1_700_000_000_000,
    reference: undefined,
    bill: { requestId: 'req_1', model: 'm-large', usage, usageSource: 'final', priceVersion: 'v1', outcome: 'ok' },
  })
  assert.equal(store.findAccount('one').balanceNanos, 370_000n)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('R5 a debit repeated is one debit; the same id with another content is a conflict and changes nothing', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const debit = createDebitRow('req_1', id)
  assert.deepEqual(store.postDebits([debit, debit]), ['posted', 'exists'])
  assert.deepEqual(store.postDebits([debit, { ...debit, amountNanos: 1n }]), ['exists', 'conflict'])
  assert.equal(store.findAccount('one').balanceNanos, -costNanos)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('a debit that no account can take is rejected, and the rest of its batch is posted', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const good = createDebitRow('req_1', id)
  const batch = [
    { ...good, requestId: 'req_2', accountId: 'acct_gone' },
    { ...good, requestId: 'req_3', amountNanos: 2n ** 64n },
    { ...good, requestId: 'req_4', amountNanos: -1n },
    { ...good, requestId: 'req_5', usage: { ...usage, inputTokens: 0.5 } },
    good,
  ]
  assert.deepEqual(store.postDebits(batch), ['rejected', 'rejected', 'rejected', 'rejected', 'posted'])
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('transfers sum to the balance, whatever is posted, in whatever batches, however often', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  let run = 0
  fc.assert(
    fc.property(fc.array(fc.array(fc.nat({ max: 9 }), { maxLength: 5 }), { maxLength: 5 }), (batches) => {
      const { id } = store.createAccount(`account ${run++}`)
      for (const batch of batches) store.postDebits(batch.map((n) => createDebitRow(`req_${run}_${n}`, id)))
      const distinct = new Set(batches.flat()).size
      assert.equal(store.findAccount(id).balanceNanos, -costNanos * BigInt(distinct))
      assert.equal(store.listEntries({ accountId: id, limit: 100 }).length, distinct)
    }),
    { numRuns: 30 },
  )
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('entries and prices of the ledger are neither changed nor deleted', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  assert.throws(() => db.exec('UPDATE entries SET amount = 0'), /ledger entries are never changed/)
  assert.throws(() => db.exec('DELETE FROM entries'), /ledger entries are never deleted/)
  assert.throws(() => db.exec('UPDATE prices SET input = 0'), /prices of the ledger are never changed/)
  assert.throws(() => db.exec('DELETE FROM prices'), /prices of the ledger are never deleted/)
})

test('U5 no key is in the file', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  store.createAccount('one')
  const { key } = store.createKey('one')
  store.close()
  assert.equal(readFileSync(path).includes(key.slice(15)), false)
})

test('verify finds each kind of tampering', (t) => {
  const tampering: [sql: string, finding: RegExp][] = [
    [
      'UPDATE accounts SET balance = balance + 1',
      /^account acct_\w+: balance 999998740001, its entries sum to 999998740000/,
    ],
    ['UPDATE accounts SET seq = 9', /should have 9 entries, the last is number 3/],
    ['DELETE FROM entries WHERE seq = 2', /entry 3: follows entry 1/],
    ['DELETE FROM entries WHERE seq = 3', /should have 3 entries, the last is number 2/],
    ['UPDATE entries SET balance_after = 0 WHERE seq = 2', /entry 2: balance after it is 0, should be/],
    ['UPDATE entries SET amount = 1 WHERE seq = 2', /request req_1: billed 1, its tokens cost 630000/],
    ['UPDATE entries SET output_tokens = 0 WHERE seq = 2', /request req_1: billed 630000, its tokens cost 330000/],
    ['UPDATE prices SET output = 0', /request req_2: billed 630000, its tokens cost 330000/],
    ["UPDATE entries SET price_version = 'v0' WHERE seq = 2", /request req_1: its prices v0 are not known/],
    ["UPDATE entries SET usage_source = 'waived' WHERE seq = 2", /request req_1: billed 630000, its tokens cost 0/],
    ["UPDATE accounts SET id = 'acct_x'", /has entries and does not exist/],
  ]
  for (const [sql, finding] of tampering) {
    const path = createPath(t)
    const store = openStore(path)
    const { id } = store.createAccount('one', 1_000_000_000_000n)
    store.postDebits([createDebitRow('req_1', id), createDebitRow('req_2', id)])
    assert.deepEqual(store.verify(verifyOptions), [])
    const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
    for (const { name } of db.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all())
      db.exec(`DROP TRIGGER ${name}`)
    db.exec(sql)
    db.close()
    const findings = store.verify(verifyOptions)
    assert.ok(
      findings.some((text) => finding.test(text)),
      `${sql}: ${findings.join('; ')}`,
    )
    store.close()
  }
})

test('verify finds a request id that is booked twice', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
  const db = new DatabaseSync(path)
  const sql = db.prepare("SELECT sql FROM sqlite_master WHERE name = 'entries'").get()!.sql as string
  db.exec(`PRAGMA foreign_keys = OFF; ${sql.replace('TABLE entries', 'TABLE copy').replaceAll(' UNIQUE,', ',')};
    INSERT INTO copy SELECT * FROM entries; UPDATE copy SET id = 9, seq = 2, balance_after = -1260000;
    INSERT INTO copy SELECT * FROM entries; DROP TABLE entries; ALTER TABLE copy RENAME TO entries;
    UPDATE accounts SET seq = 2, balance = -1260000`)
  db.close()
  assert.deepEqual(store.verify(verifyOptions), ['request_id req_1: is booked more than once'])
})

test('verify compares ledger and access log both ways', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  store.postDebits(['req_1', 'req_2', 'req_3'].map((requestId) => createDebitRow(requestId, id)))
  const line = (requestId: string) => ({ requestId, amountNanos: costNanos, outcome: 'ok' })
  const right = ['req_1', 'req_2', 'req_3'].map(line)
  assert.deepEqual(store.verify({ ...verifyOptions, log: right }), [])
  const log = [line('req_1'), line('req_1'), { ...line('req_2'), outcome: 'client_abort' }, line('req_4')]
  assert.deepEqual(store.verify({ ...verifyOptions, log }), [
    'request req_1: has two lines in the log',
    'request req_2: the log says 630000 client_abort, the ledger 630000 ok',
    'request req_3: in the ledger, not in the log',
    'request req_4: billed in the log, not in the ledger',
  ])
})
