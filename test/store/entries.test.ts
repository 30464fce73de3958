import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { BookError } from '../../src/accounts/book-error.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore } from './engines.ts'
import { costNanos, createDebitRow, origin, prices, usage, verifyOptions } from './fixtures.ts'
import { redigest } from './forge.ts'

onEachStore((engine) => {
  test('spec 1.4 C9 a debit is recorded under its request id with its tokens and prices, its key, wires and upstream', async () => {
    const store = await engine.open({ atMs: 1_700_000_000_500 })
    const { id } = await store.createAccount('one', 1_000_000n)
    const { id: keyId, prefix } = await store.createKey('one', { label: 'laptop' })
    assert.deepEqual(await store.postDebits([{ ...createDebitRow('req_1', id), keyId }]), ['posted'])
    const { digest, ...entry } = (await store.findEntry('req_1'))!
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
      details: undefined,
      accountName: 'one',
      keyPrefix: prefix,
      keyLabel: 'laptop',
    })
    assert.equal((await store.findAccount('one')).balanceNanos, 370_000n)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C3 a debit whose figures are an estimate is read as an estimate, one with any other source is not', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
    for (const usageSource of ['final', 'partial', 'estimated', 'waived'] as const) {
      const usageThen = { ...usage, estimated: usageSource === 'estimated' }
      await store.postDebits([{ ...createDebitRow(usageSource, id), usageSource, usage: usageThen }])
      assert.deepEqual((await store.findEntry(usageSource))?.bill?.usage, usageThen)
    }
  })

  test('R5 a repeated debit is one debit; the same id with other content is a conflict and changes nothing', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
    const debit = createDebitRow('req_1', id)
    assert.deepEqual(await store.postDebits([debit, debit]), ['posted', 'exists'])
    assert.deepEqual(await store.postDebits([debit, { ...debit, amountNanos: 1n }]), ['exists', 'conflict'])
    assert.equal((await store.findAccount('one')).balanceNanos, -costNanos)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('a debit that no account can take is rejected, and the rest of its batch is posted', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
    const good = createDebitRow('req_1', id)
    const batch = [
      { ...good, requestId: 'req_2', accountId: 'acct_gone' },
      { ...good, requestId: 'req_3', amountNanos: 2n ** 64n },
      { ...good, requestId: 'req_4', amountNanos: -1n },
      { ...good, requestId: 'req_5', usage: { ...usage, inputTokens: 0.5 } },
      good,
    ]
    assert.deepEqual(await store.postDebits(batch), ['rejected', 'rejected', 'rejected', 'rejected', 'posted'])
    assert.equal((await store.findAccount('one')).balanceNanos, -costNanos)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('m23 a value whose type the column or the database does not have rejects its debit alone', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
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
      assert.deepEqual(await store.postDebits([bad, good]), ['rejected', 'posted'], `${name} of ${String(value)}`)
      assert.equal(await store.findEntry(bad.requestId), undefined)
    }
    assert.equal((await store.findAccount('one')).balanceNanos, -costNanos * BigInt(wrong.length))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('R5 C9 a debit with a different origin is a conflict; one without an origin, as in an old spool, is the same', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
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
    assert.deepEqual(await store.postDebits([debit, debit, old]), ['posted', 'exists', 'exists'])
    assert.deepEqual(new Set(await store.postDebits(other)), new Set(['conflict']))
    assert.deepEqual(
      await store.postDebits([
        { ...old, requestId: 'req_2' },
        { ...debit, requestId: 'req_2' },
      ]),
      ['posted', 'conflict'],
    )
  })

  test('C15 entries are posted in the order of their account, whatever the clock does, and after the last head', async () => {
    const store = await engine.open({ atMs: 1_000 })
    const { id } = await store.createAccount('one', 5n)
    await store.turn(500)
    await store.postDebits([createDebitRow('req_1', id)])
    // Y15: of two heads, the one by a clock that is earlier than its entries covers none of them, the other all.
    assert.match((await store.audit(verifyOptions)).head!, /^1\/1970-01-01T00:00:00\.500Z\//)
    await store.turn(1_000)
    assert.match((await store.audit(verifyOptions)).head!, /^1\/1970-01-01T00:00:01\.000Z\//)
    await store.postDebits([createDebitRow('req_2', id)])
    await store.credit('one', 1n, 'late')
    await store.turn(9_000)
    await store.postDebits([createDebitRow('req_3', id)])
    assert.deepEqual(
      (await Array.fromAsync(store.eachEntry())).map(({ postedMs }) => postedMs),
      [1_000, 1_000, 1_001, 1_001, 9_000],
    )
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C15 Y15 a head covers what was posted before it: two heads with nothing between them are the same', async () => {
    const store = await engine.open({ atMs: 1_000 })
    const { id } = await store.createAccount('one', 5n)
    const headOf = async () => parseHead((await store.audit(verifyOptions)).head!)
    const first = await headOf()
    assert.equal(first.momentMs, 1_000)
    await store.turn(1_001)
    assert.deepEqual(await headOf(), first)
    await store.turn(1_002)
    await store.postDebits([createDebitRow('req_1', id)])
    const second = await headOf()
    assert.equal(second.momentMs, 1_002)
    assert.notEqual(second.hash, first.hash)
    for (const against of [first, second]) assert.deepEqual(await store.verify({ ...verifyOptions, against }), [])
    const wrong = { ...first, hash: first.hash.replace(/^./, (c) => (c === 'x' ? 'y' : 'x')) }
    const { findings, head } = await store.audit({ ...verifyOptions, against: wrong })
    assert.deepEqual(findings, ['head of 1970-01-01T00:00:01.000Z: what it covered was changed, or is gone'])
    assert.equal(head, undefined)
  })

  test('C13 a debit is returned once, under its own reference, and verify pairs the two', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 1_000_000n)
    const { id: keyId } = await store.createKey('one')
    await store.postDebits([{ ...createDebitRow('req_1', id), keyId }, createDebitRow('req_2', id)])
    assert.deepEqual(await store.giveBack(['req_1', 'req_1', 'req_9']), ['req_1', 'req_1'])
    assert.deepEqual(await store.giveBack(['req_1']), ['req_1'])
    const [entry] = await store.listEntries({ limit: 1 })
    assert.deepEqual(
      [entry!.kind, entry!.amountNanos, entry!.balanceAfterNanos, entry!.reference, entry!.bill],
      ['credit', costNanos, 1_000_000n - costNanos, 'return:req_1', undefined],
    )
    assert.deepEqual(entry!.returned, { requestId: 'req_1', ...origin, keyId })
    assert.equal((await store.findAccount('one')).balanceNanos, 1_000_000n - costNanos)
    await assert.rejects(
      store.credit('one', 1n, 'return:req_2'),
      ({ code, subject }: BookError) => code === 'reference_reserved' && subject === 'return:req_2',
    )
    assert.deepEqual(await store.verify(verifyOptions), [])

    const refused = { requestId: 'req_1', outcome: 'internal_error' }
    const billed = { requestId: 'req_2', amountNanos: costNanos, outcome: 'ok' }
    assert.deepEqual(await store.verify({ ...verifyOptions, log: [refused, billed] }), [])
    const log = [
      { ...billed, requestId: 'req_1' },
      { ...billed, amountNanos: undefined, outcome: 'internal_error' },
    ]
    assert.deepEqual(await store.verify({ ...verifyOptions, log }), [
      'request req_1: the log says 630000 ok, the ledger 630000 returned',
      'request req_2: the log says 0 internal_error, the ledger 630000 ok',
    ])
    // A started answer that a bug of ours ended was shown and paid for: giving it back is a forgery.
    const shown = { ...refused, amountNanos: costNanos }
    assert.deepEqual(await store.verify({ ...verifyOptions, log: [shown, billed] }), [
      'request req_1: the log says 630000 internal_error, the ledger 630000 returned',
    ])
    const old = { ...shown, cause: 'ledger_unsettled' }
    assert.deepEqual(await store.verify({ ...verifyOptions, log: [old, billed] }), [])
  })

  test('C13 a return without a debit does nothing, and each debit is returned once', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 1_000_000n)
    const free = { ...createDebitRow('req_2', id), amountNanos: 0n, usageSource: 'waived' as const }
    await store.postDebits([createDebitRow('req_1', id), free])
    for (const [asked, returned] of [
      [['req_9'], []],
      [['req_9'], []],
      [
        ['req_1', 'req_9', 'req_2'],
        ['req_1', 'req_2'],
      ],
      [['req_1'], ['req_1']],
    ] as const) {
      assert.deepEqual(await store.giveBack(asked), returned)
    }
    assert.equal((await store.findAccount('one')).balanceNanos, 1_000_000n)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C13 verify finds a return of another amount, of another account, before its debit, or without a debit', async () => {
    const changes: [sql: string, finding: RegExp][] = [
      [
        "UPDATE entries SET amount = 1 WHERE kind = 'credit'",
        /^request req_1: billed 630000 of acct_\w+, returned 1 of/,
      ],
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
      const store = await engine.open()
      await store.postDebits([createDebitRow('req_1', (await store.createAccount('one')).id)])
      await store.giveBack(['req_1'])
      await store.forge(({ run }) => run(sql))
      const findings = await store.verify(verifyOptions)
      assert.ok(
        findings.some((text) => finding.test(text)),
        `${sql}: ${findings.join('; ')}`,
      )
    }
  })

  test('C13 verify finds a debit that is returned twice, under two references', async () => {
    const store = await engine.open()
    await store.postDebits([createDebitRow('req_1', (await store.createAccount('one')).id)])
    await store.giveBack(['req_1'])
    await store.forge(async (forger) => {
      await forger.run(`INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, usage_source, created_ms, posted_ms, digest)
        SELECT account_id, seq + 1, kind, amount, 0, 'return:req_1/2', usage_source, created_ms, posted_ms, digest
        FROM entries WHERE kind = 'credit'`)
      await redigest(forger)
    })
    assert.deepEqual(await store.verify(verifyOptions), ['request req_1: is returned twice'])
  })

  test('entries sum to the balance, whatever is posted, in whatever batches, however often', async () => {
    const store = await engine.open()
    let run = 0
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.nat({ max: 9 }), { maxLength: 5 }), { maxLength: 5 }), async (batches) => {
        const { id } = await store.createAccount(`account ${run++}`)
        for (const batch of batches) await store.postDebits(batch.map((n) => createDebitRow(`req_${run}_${n}`, id)))
        const distinct = new Set(batches.flat()).size
        assert.equal((await store.findAccount(id)).balanceNanos, -costNanos * BigInt(distinct))
        assert.equal((await store.listEntries({ accountId: id, limit: 100 })).length, distinct)
      }),
      { numRuns: runsUpTo(30) },
    )
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('entries and prices of the ledger are neither changed nor deleted', async () => {
    const store = await engine.open()
    await store.postDebits([createDebitRow('req_1', (await store.createAccount('one')).id)])
    await assert.rejects(store.exec('UPDATE entries SET amount = 0'), /ledger entries are never changed/)
    await assert.rejects(store.exec('DELETE FROM entries'), /ledger entries are never (changed or )?deleted/)
    await assert.rejects(store.exec('UPDATE prices SET input = 0'), /prices of the ledger are never changed/)
    await assert.rejects(store.exec('DELETE FROM prices'), /prices of the ledger are never (changed or )?deleted/)
  })

  test('verify finds each kind of tampering', async () => {
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
      const store = await engine.open()
      const { id } = await store.createAccount('one', 1_000_000_000_000n)
      await store.postDebits([createDebitRow('req_1', id), createDebitRow('req_2', id)])
      assert.deepEqual(await store.verify(verifyOptions), [])
      await store.forge(({ run }) => run(sql))
      const findings = await store.verify(verifyOptions)
      assert.ok(
        findings.some((text) => finding.test(text)),
        `${sql}: ${findings.join('; ')}`,
      )
    }
  })

  test('verify compares ledger and access log both ways', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
    await store.postDebits(['req_1', 'req_2', 'req_3'].map((requestId) => createDebitRow(requestId, id)))
    const line = (requestId: string) => ({ requestId, amountNanos: costNanos, outcome: 'ok' })
    const right = ['req_1', 'req_2', 'req_3'].map(line)
    assert.deepEqual(await store.verify({ ...verifyOptions, log: right }), [])
    const log = [line('req_1'), line('req_1'), { ...line('req_2'), outcome: 'client_abort' }, line('req_4')]
    assert.deepEqual(await store.verify({ ...verifyOptions, log }), [
      'request req_1: has two lines in the log',
      'request req_2: the log says 630000 client_abort, the ledger 630000 ok',
      'request req_3: in the ledger, not in the log',
      'request req_4: billed in the log, not in the ledger',
    ])
  })

  test('C15 F-S3 a connection’s memory of its chains is valid only until another connection commits', async () => {
    const one = await engine.open()
    const two = await one.beside()
    const { id } = await one.createAccount('one', 1_000_000_000n)
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(await one.postDebits([createDebitRow(`req_a${round}`, id)]), ['posted'])
      assert.deepEqual(await two.postDebits([createDebitRow(`req_b${round}`, id)]), ['posted'])
      await one.credit(id, 5n, `payment ${round}`)
      assert.deepEqual(await one.postDebits([createDebitRow(`req_c${round}`, id)]), ['posted'])
    }
    assert.deepEqual(await one.verify(verifyOptions), [])
  })
})
