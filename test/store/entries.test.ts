import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import fc from 'fast-check'
import type { BookError } from '../../src/accounts/book-error.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import { openStore } from '../support/operator.ts'
import { createFirstRelease } from './first-release.ts'
import { costNanos, createDebitRow, createPath, origin, prices, usage, verifyOptions } from './fixtures.ts'
import { forge, redigest } from './forge.ts'

test('spec 1.4 C9 a debit is recorded under its request id with its tokens and prices, its key, wires and upstream', (t) => {
  const store = openStore(createPath(t), { nowMs: () => 1_700_000_000_500 })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const { id: keyId, prefix } = store.createKey('one', { label: 'laptop' })
  assert.deepEqual(store.postDebits([{ ...createDebitRow('req_1', id), keyId }]), ['posted'])
  const { digest, ...entry } = store.findEntry('req_1')!
  assert.match(digest, /^1:[\w+/]{43}=$/)
  assert.deepEqual(entry, {
    accountId: id,
    seq: 2,
    kind: 'debit',
    amountNanos: 630_000n,
    balanceAfterNanos: 370_000n,
    createdMs: 1_700_000_000_000,
    postedMs: 1_700_000_000_500,
    reference: undefined,
    bill: {
      requestId: 'req_1',
      ...origin,
      keyId,
      usage,
      usageSource: 'final',
      pricedCalls: 0,
      calls: undefined,
      priceVersion: 'v1',
      outcome: 'ok',
    },
    returned: undefined,
    accountName: 'one',
    keyPrefix: prefix,
    keyLabel: 'laptop',
  })
  assert.equal(store.findAccount('one').balanceNanos, 370_000n)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C3 a debit whose figures are an estimate is read as one, whatever else its source is as not', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  for (const usageSource of ['final', 'partial', 'estimated', 'waived'] as const) {
    const usageThen = { ...usage, estimated: usageSource === 'estimated' }
    store.postDebits([{ ...createDebitRow(usageSource, id), usageSource, usage: usageThen }])
    assert.deepEqual(store.findEntry(usageSource)?.bill?.usage, usageThen)
  }
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
  assert.equal(store.findAccount('one').balanceNanos, -costNanos)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('m23 a value of a type that its column or SQLite does not have rejects its debit alone', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const wrong: [name: string, value: unknown][] = [
    ['model', {}],
    ['outcome', true],
    ['model', 5],
    ['prices', { ...prices, outputNanos: {} }],
    ['createdMs', 'yesterday'],
    ['createdMs', 2n ** 63n],
    ['pricedCalls', Number.NaN],
    ['pricedCalls', Number.POSITIVE_INFINITY],
    ['priceVersion', null],
    ['keyId', []],
  ]
  for (const [name, value] of wrong) {
    const bad = { ...createDebitRow(`req_${name} of ${String(value)}`, id), priceVersion: `${name}`, [name]: value }
    const good = createDebitRow(`req_beside ${bad.requestId}`, id)
    assert.deepEqual(store.postDebits([bad, good]), ['rejected', 'posted'], `${name} of ${String(value)}`)
    assert.equal(store.findEntry(bad.requestId), undefined)
  }
  assert.equal(store.findAccount('one').balanceNanos, -costNanos * BigInt(wrong.length))
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('R5 C9 a debit that differs in its origin is a conflict; one that does not tell it, as in an old spool, is the same', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const debit = { ...createDebitRow('req_1', id), keyId: 'key_1' }
  const old = { ...debit, keyId: undefined, clientWire: undefined, modelWire: undefined }
  const other = [
    { ...debit, keyId: 'key_2' },
    { ...debit, clientWire: 'responses' as const },
    { ...debit, upstream: 'other' },
    { ...debit, upstreamAccount: 'other' },
    { ...debit, modelWire: 'chat' as const },
    { ...debit, pricedCalls: 1 },
  ]
  assert.deepEqual(store.postDebits([debit, debit, old]), ['posted', 'exists', 'exists'])
  assert.deepEqual(new Set(store.postDebits(other)), new Set(['conflict']))
  assert.deepEqual(
    store.postDebits([
      { ...old, requestId: 'req_2' },
      { ...debit, requestId: 'req_2' },
    ]),
    ['posted', 'conflict'],
  )
})

test('C15 INSERT OR REPLACE changes no entry: a booked request id is left as it is, all else is refused', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  store.postDebits([createDebitRow('req_1', id)])
  const before = [...store.eachEntry()]
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  const replace = (column: string, value: string, where: string) => {
    const names = db
      .prepare("SELECT name FROM pragma_table_info('entries')")
      .all()
      .map(({ name }) => name as string)
    const values = names.map((name) => (name === column ? value : name))
    db.exec(`INSERT OR REPLACE INTO entries (${names}) SELECT ${values} FROM entries WHERE ${where}`)
  }
  replace('amount', '0', 'seq = 2')
  assert.throws(() => replace('amount', '0', 'seq = 1'), /ledger entries are never replaced/)
  for (const column of ['id', 'account_id', 'reference']) {
    // All of its places but one are free: that one is enough.
    const taken = { id: 'id = 1', account_id: 'account_id, seq', reference: 'reference' }[column]!
    const [free, digest] = ["'r2'", "'forged'"]
    const row: Record<string, string> = { id: '9', account_id: `'${id}'`, seq: '9', reference: free, digest }
    if (column === 'id') row.id = '1'
    if (column === 'account_id') row.seq = '1'
    if (column === 'reference') row.reference = `'create:${id}'`
    assert.throws(
      () =>
        db.exec(`INSERT OR REPLACE INTO entries (${Object.keys(row)}, kind, amount, balance_after, created_ms, posted_ms)
          VALUES (${Object.values(row)}, 'credit', 9, 9, 0, 0)`),
      /ledger entries are never replaced/,
      taken,
    )
  }
  db.exec("INSERT OR REPLACE INTO prices VALUES ('v1', 0, 0, 0, 0, 0, NULL)")
  assert.equal(db.prepare('SELECT output FROM prices').get()!.output, 15_000_000_000)
  assert.deepEqual([...store.eachEntry()], before)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C15 entries are posted in the order of their account whatever the clock does, and after the last head', (t) => {
  let now = 1_000
  const store = openStore(createPath(t), { nowMs: () => now })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  now = 500
  store.postDebits([createDebitRow('req_1', id)])
  assert.match(store.audit(verifyOptions).head!, /^1\/1970-01-01T00:00:01\.000Z\//)
  store.postDebits([createDebitRow('req_2', id)])
  store.credit('one', 1n, 'late')
  now = 9_000
  store.postDebits([createDebitRow('req_3', id)])
  assert.deepEqual(
    [...store.eachEntry()].map(({ postedMs }) => postedMs),
    [1_000, 1_000, 1_001, 1_001, 9_000],
  )
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C15 a head is of what was posted before it: two heads with nothing between them differ in their moment only', (t) => {
  let now = 1_000
  const store = openStore(createPath(t), { nowMs: () => now++ })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  const headOf = () => parseHead(store.audit(verifyOptions).head!)
  const [first, second] = [headOf(), headOf()]
  assert.equal(first.hash, second.hash)
  assert.ok(first.momentMs < second.momentMs)
  store.postDebits([createDebitRow('req_1', id)])
  assert.notEqual(headOf().hash, first.hash)
  for (const against of [first, second]) assert.deepEqual(store.verify({ ...verifyOptions, against }), [])
  const wrong = { ...first, hash: second.hash.replace(/^./, (c) => (c === 'x' ? 'y' : 'x')) }
  const { findings, head } = store.audit({ ...verifyOptions, against: wrong })
  assert.deepEqual(findings, ['head of 1970-01-01T00:00:01.002Z: what it covered was changed, or is gone'])
  assert.equal(head, undefined)
})

test('C13 a debit is given back once, under its own reference, and verify pairs the two', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const { id: keyId } = store.createKey('one')
  store.postDebits([{ ...createDebitRow('req_1', id), keyId }, createDebitRow('req_2', id)])
  assert.deepEqual(store.postReturns(['req_1', 'req_1', 'req_9']), ['posted', 'exists', 'absent'])
  assert.deepEqual(store.postReturns(['req_1']), ['exists'])
  const [entry] = store.listEntries({ limit: 1 })
  assert.deepEqual(
    [entry!.kind, entry!.amountNanos, entry!.balanceAfterNanos, entry!.reference, entry!.bill],
    ['credit', costNanos, 1_000_000n - costNanos, 'return:req_1', undefined],
  )
  assert.deepEqual(entry!.returned, { requestId: 'req_1', ...origin, keyId })
  assert.equal(store.findAccount('one').balanceNanos, 1_000_000n - costNanos)
  assert.throws(
    () => store.credit('one', 1n, 'return:req_2'),
    ({ code, subject }: BookError) => code === 'reference_reserved' && subject === 'return:req_2',
  )
  assert.deepEqual(store.verify(verifyOptions), [])

  const refused = { requestId: 'req_1', outcome: 'internal_error' }
  const billed = { requestId: 'req_2', amountNanos: costNanos, outcome: 'ok' }
  assert.deepEqual(store.verify({ ...verifyOptions, log: [refused, billed] }), [])
  const log = [
    { ...billed, requestId: 'req_1' },
    { ...billed, amountNanos: undefined, outcome: 'internal_error' },
  ]
  assert.deepEqual(store.verify({ ...verifyOptions, log }), [
    'request req_1: the log says 630000 ok, the ledger 630000 returned',
    'request req_2: the log says 0 internal_error, the ledger 630000 ok',
  ])
  // A started answer that a bug of ours ended was shown and paid for: giving it back is a forgery.
  const shown = { ...refused, amountNanos: costNanos }
  assert.deepEqual(store.verify({ ...verifyOptions, log: [shown, billed] }), [
    'request req_1: the log says 630000 internal_error, the ledger 630000 returned',
  ])
  const old = { ...shown, cause: 'ledger_unsettled' }
  assert.deepEqual(store.verify({ ...verifyOptions, log: [old, billed] }), [])
})

test('B7 C13 giving back writes to the disk, also where there is nothing to give back, and each debit once', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const free = { ...createDebitRow('req_2', id), amountNanos: 0n, usageSource: 'waived' as const }
  store.postDebits([createDebitRow('req_1', id), free])
  for (const [asked, returned] of [
    [['req_9'], []],
    [['req_9'], []],
    [
      ['req_1', 'req_9', 'req_2'],
      ['req_1', 'req_2'],
    ],
    [['req_1'], ['req_1']],
  ] as const) {
    const before = store.countFrames()
    assert.deepEqual(store.giveBack(asked), returned)
    assert.ok(store.countFrames() > before, 'its commit has something to sync')
  }
  assert.equal(store.findAccount('one').balanceNanos, 1_000_000n)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C13 C8 a top-up of the first release that has the reference of a return blocks none: the return takes the next one', (t) => {
  const path = createPath(t)
  createFirstRelease(path, { acct_a: 'one', acct_b: 'two' }, [
    { accountId: 'acct_a', creditNanos: 1_000_000n, reference: 'create:acct_a' },
    { accountId: 'acct_b', creditNanos: costNanos, reference: 'return:req_1' },
    { accountId: 'acct_b', creditNanos: 1n, reference: 'return:req_1/2' },
    { accountId: 'acct_a', requestId: 'req_1' },
  ])
  const store = openStore(path)
  t.after(() => store.close())
  assert.deepEqual(store.postReturns(['req_1', 'req_1']), ['posted', 'exists'])
  const [entry] = store.listEntries({ limit: 1 })
  assert.deepEqual(
    [entry!.accountId, entry!.reference, entry!.returned?.requestId, entry!.amountNanos],
    ['acct_a', 'return:req_1/3', 'req_1', costNanos],
  )
  assert.equal(store.findAccount('one').balanceNanos, 1_000_000n)
  assert.equal(store.findAccount('two').balanceNanos, costNanos + 1n)
  const [total] = store.sumEntries({}, [])
  assert.deepEqual([total!.requests, total!.billedNanos, total!.creditedNanos], [0, 0n, 1_000_001n + costNanos])
  const refused = { requestId: 'req_1', outcome: 'internal_error' }
  assert.deepEqual(store.verify({ ...verifyOptions, log: [refused] }), [])
})

test('C13 verify finds a return of another amount, of another account, before its debit, or of nothing', (t) => {
  const changes: [sql: string, finding: RegExp][] = [
    ["UPDATE entries SET amount = 1 WHERE kind = 'credit'", /^request req_1: billed 630000 of acct_\w+, returned 1 of/],
    [
      "UPDATE entries SET account_id = 'acct_x' WHERE kind = 'credit'",
      /^request req_1: billed .*, returned 630000 of acct_x$/,
    ],
    ["UPDATE entries SET seq = 0 WHERE kind = 'credit'", /^request req_1: billed /],
    [
      "UPDATE entries SET reference = 'return:req_9' WHERE kind = 'credit'",
      /^request req_9: is returned and was never billed$/,
    ],
  ]
  for (const [sql, finding] of changes) {
    const path = createPath(t)
    const store = openStore(path)
    t.after(() => store.close())
    store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
    store.postReturns(['req_1'])
    forge(path, (db) => db.exec(sql))
    const findings = store.verify(verifyOptions)
    assert.ok(
      findings.some((text) => finding.test(text)),
      `${sql}: ${findings.join('; ')}`,
    )
  }
})

test('C13 verify finds a debit that is returned twice, under two references', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
  store.postReturns(['req_1'])
  forge(path, (db) => {
    db.exec(`INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, usage_source, created_ms, posted_ms, digest)
      SELECT account_id, seq + 1, kind, amount, 0, 'return:req_1/2', usage_source, created_ms, posted_ms, digest
      FROM entries WHERE kind = 'credit'`)
    redigest(db)
  })
  assert.deepEqual(store.verify(verifyOptions), ['request req_1: is returned twice'])
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
  const { id } = store.createAccount('one')
  store.postDebits([createDebitRow('req_1', id)])
  const db = new DatabaseSync(path)
  const sql = db.prepare("SELECT sql FROM sqlite_master WHERE name = 'entries'").get()!.sql as string
  db.exec(`PRAGMA foreign_keys = OFF; ${sql.replace('TABLE entries', 'TABLE copy').replaceAll(' UNIQUE,', ',')};
    INSERT INTO copy SELECT * FROM entries; UPDATE copy SET id = 9, seq = 2, balance_after = -1260000;
    INSERT INTO copy SELECT * FROM entries; DROP TABLE entries; ALTER TABLE copy RENAME TO entries;
    UPDATE accounts SET seq = 2, balance = -1260000`)
  db.close()
  assert.deepEqual(store.verify(verifyOptions), [
    'request_id req_1: is booked more than once',
    'the file: table entries is not as triwire made it',
    'the file: trigger entries_are_not_changed is missing',
    'the file: trigger entries_are_not_deleted is missing',
    'the file: trigger entries_are_not_replaced is missing',
    `account ${id}, entry 2: is not what its digest was made of`,
  ])
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

test('C15 F-S3 what a connection remembers of its chains is good only until somebody else commits', (t) => {
  const path = createPath(t)
  const one = openStore(path)
  const two = openStore(path)
  const { id } = one.createAccount('one', 1_000_000_000n)
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(one.postDebits([createDebitRow(`req_a${round}`, id)]), ['posted'])
    assert.deepEqual(two.postDebits([createDebitRow(`req_b${round}`, id)]), ['posted'])
    one.credit(id, 5n, `payment ${round}`)
    assert.deepEqual(one.postDebits([createDebitRow(`req_c${round}`, id)]), ['posted'])
  }
  assert.deepEqual(one.verify(verifyOptions), [])
  one.close()
  two.close()
})

test('C15 F-S3 what is rolled back is not remembered', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 1_000_000_000n)
  assert.deepEqual(store.postDebits([createDebitRow('req_1', id)]), ['posted'])
  const broken = createDebitRow('req_3', id)
  // Not the debit's own trouble but a bug: the whole batch goes back.
  Object.defineProperty(broken, 'usage', {
    get() {
      throw new Error('a bug')
    },
  })
  assert.throws(() => store.postDebits([createDebitRow('req_2', id), broken]), /a bug/)
  assert.deepEqual(store.postDebits([createDebitRow('req_2', id)]), ['posted'])
  assert.deepEqual(store.verify(verifyOptions), [])
  store.close()
})
