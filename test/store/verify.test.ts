import assert from 'node:assert/strict'
import test from 'node:test'
import { newAccount } from '../../src/accounts/book-rows.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import { onEachStore } from './engines.ts'
import { costNanos, createDebitRow, prices, verifyOptions } from './fixtures.ts'
import { follow, redigest } from './forge.ts'

onEachStore((engine) => {
  test('CON-10 a verification shows its progress', async () => {
    const store = await engine.open({ atMs: Date.UTC(2026, 9, 14, 12) })
    const { id } = await store.createAccount('one', 10n ** 12n)
    await store.postDebits(Array.from({ length: 5_100 }, (_, at) => createDebitRow(`req_${at}`, id)))
    while (await store.fold(500)) {}
    const shown: string[] = []
    assert.deepEqual(await store.verify({ ...verifyOptions, progress: (words) => shown.push(words) }), [])
    assert.ok(shown.includes('verifying: 5000 of 5101 entries (98 %)'), shown.join('\n'))
    assert.ok(shown.includes('verifying: the figures of 2026-10-14'), shown.join('\n'))
  })

  test('C15 the moments of heads do not go back with the clock, so that entries posted in between come after the first', async () => {
    const store = await engine.open({ atMs: 5_000 })
    const { id } = await store.createAccount('one', 5n)
    await store.turn(9_000)
    const first = parseHead((await store.audit(verifyOptions)).head!)
    await store.turn(1_000)
    const second = parseHead((await store.audit(verifyOptions)).head!)
    assert.deepEqual(second, first)
    await store.postDebits([createDebitRow('req_1', id)])
    assert.deepEqual(await store.verify({ ...verifyOptions, against: first }), [])
  })

  test('C15 verify finds an entry that was posted before the previous one, whatever its digest says', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 5n)
    await store.postDebits([createDebitRow('req_1', id)])
    await store.forge(async (forger) => {
      await forger.run('UPDATE entries SET posted_ms = 1 WHERE seq = 2')
      await redigest(forger)
    })
    assert.deepEqual(await store.verify(verifyOptions), [
      `account ${id}, entry 2: was posted before the entry before it`,
    ])
  })

  test('C15 verify does not accept a digest of a form that it does not know', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 5n)
    await store.forge(async (forger) => {
      await forger.run("UPDATE entries SET digest = '4' || substr(digest, 2)")
      await follow(forger)
    })
    assert.deepEqual(await store.verify(verifyOptions), [
      `account ${id}, entry 1: has a digest of a form that is not known here`,
    ])
  })

  test('C15 a missing or future moment of the last head is a finding, and no head is made', async () => {
    const store = await engine.open({ atMs: 1_000 })
    await store.createAccount('one', 5n)
    const missing = `${engine.place}: the moment of its last head is missing: what is posted may fall among what that head covered`
    const ahead = (moment: string) =>
      `${engine.place}: its last head was taken at ${moment}, and that is more than a day to come`
    const cases: [sql: string, finding: string][] = [
      ['DELETE FROM head', missing],
      ['UPDATE head SET moment_ms = 86401001', ahead('1970-01-02T00:00:01.001Z')],
      ['UPDATE head SET moment_ms = 9223372036854775807', ahead('9223372036854775807 ms')],
    ]
    for (const [sql, finding] of cases) {
      await store.forge(({ run }) => run(sql))
      assert.deepEqual(await store.verify(verifyOptions), [finding], sql)
      assert.deepEqual(await store.audit(verifyOptions), { findings: [finding], head: undefined }, sql)
      await store.forge(({ run }) => run('UPDATE head SET moment_ms = 1000'))
    }
    // A clock that was ahead by hours when the head was taken is no forgery.
    await store.forge(({ run }) => run('UPDATE head SET moment_ms = 86401000'))
    assert.deepEqual(await store.verify(verifyOptions), [])
    await store.turn(2_000)
    assert.match((await store.audit(verifyOptions)).head!, /^1\/1970-01-02T00:00:01\.000Z\//)
  })

  test('C15 an audit that finds something missing records it again, so that it is reported once', async () => {
    const store = await engine.open()
    await store.createAccount('one', 5n)
    await store.forge(({ run }) => run('DELETE FROM head'))
    assert.equal((await store.audit(verifyOptions)).findings.length, 1)
    assert.deepEqual((await store.audit(verifyOptions)).findings, [])
  })

  test('C15 a debit is not posted before the previous one, though the clock goes back between two of one connection', async () => {
    const store = await engine.open({ atMs: 5_000 })
    const { id } = await store.createAccount('one', 5n)
    for (const [at, requestId] of [
      [9_000, 'req_1'],
      [1_000, 'req_2'],
    ] as const) {
      await store.turn(at)
      await store.postDebits([createDebitRow(requestId, id)])
    }
    assert.equal((await store.findEntry('req_2'))?.postedMs, 9_000)
    await store.turn(9_000)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C15 verify distinguishes a key that does not exist from one of another account', async () => {
    const store = await engine.open()
    const [one, other] = [await store.createAccount('one', 5n), await store.createAccount('other', 5n)]
    const key = await store.createKey('other')
    await store.postDebits([createDebitRow('req_1', one.id), createDebitRow('req_2', one.id)])
    await store.forge(async (forger) => {
      await forger.run("UPDATE entries SET key_id = ? WHERE request_id = 'req_1'", key.id)
      await forger.run("UPDATE entries SET key_id = 'key_gone' WHERE request_id = 'req_2'")
      await redigest(forger)
    })
    assert.deepEqual(await store.verify(verifyOptions), [
      `account ${one.id}, entry 2: its key ${key.id} belongs to account ${other.id}`,
      `account ${one.id}, entry 3: its key key_gone does not exist`,
    ])
  })

  test('C9 verify with the log prints none for a field that the entry lacks and the log line has', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one')
    await store.postDebits([createDebitRow('req_1', id)])
    const log = [{ requestId: 'req_1', outcome: 'ok', amountNanos: costNanos, keyId: 'key_1' }]
    assert.deepEqual(await store.verify({ ...verifyOptions, log }), [
      'request req_1: the log says key key_1, the ledger none',
    ])
  })

  test('C11 verify recomputes the sum of steps and calls, and finds a call that was removed or made up', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 5n)
    const steps = [{ ...prices, above: 100, outputNanos: 30_000_000_000n }]
    const stepped = { ...prices, steps, calls: { web_search: 10_000_000n } }
    const calls = { web_search: 2 }
    const debit = { ...createDebitRow('req_1', id), prices: stepped, priceVersion: 'v2', calls, pricedCalls: 2 }
    // 116 tokens of input are above the step: 20 of output cost twice as much.
    const amountNanos = costNanos + 300_000n + 20_000_000n
    assert.deepEqual(await store.postDebits([{ ...debit, amountNanos }, createDebitRow('req_2', id)]), [
      'posted',
      'posted',
    ])
    assert.deepEqual(
      await store.postDebits([
        { ...debit, amountNanos },
        { ...debit, amountNanos, calls: { x: 2 } },
      ]),
      ['exists', 'conflict'],
    )
    assert.deepEqual(await store.verify(verifyOptions), [])
    assert.deepEqual((await store.findDebit('req_1'))!.prices, stepped)
    assert.deepEqual((await store.findEntry('req_1'))!.bill!.calls, calls)
    assert.match((await store.findEntry('req_1'))!.digest, /^2:/)
    assert.match((await store.findEntry('req_2'))!.digest, /^1:/)
    const entry = `account ${id}, entry 2`
    await store.forge(({ run }) => run("UPDATE entries SET calls = 'web_search:1' WHERE seq = 2"))
    assert.deepEqual(await store.verify(verifyOptions), [
      `${entry}: is not what its digest was made of`,
      `request req_1: billed ${amountNanos}, its tokens and calls cost ${amountNanos - 10_000_000n}`,
      'request req_1: priced calls 2, of all kinds 1',
    ])
    await store.forge(({ run }) => run('UPDATE entries SET calls = NULL WHERE seq = 2'))
    assert.ok((await store.verify(verifyOptions)).includes(`${entry}: is not what its digest was made of`))
  })

  test('C15 the same content has the same head, whatever the store', async () => {
    const store = await engine.open({ atMs: 1_700_000_000_000 })
    // In an order that is not that of their bytes.
    for (const id of ['acct_é', 'acct_B', 'acct_a', 'acct_🙂']) {
      const account = newAccount(id, id, 1)
      await store.change({
        about: {},
        decide: () => ({
          writes: [
            { kind: 'insert_account', account },
            { kind: 'post_credit', accountId: id, amountNanos: -5n, reference: `first of ${id}` },
          ],
          result: undefined,
        }),
      })
      const row = { ...createDebitRow(`req of ${id}`, id), calls: { web_search: 1 }, pricedCalls: 1, model: 'é"\\' }
      await store.turn(1_700_000_001_000)
      assert.deepEqual(await store.postDebits([row, createDebitRow(`other of ${id}`, id)]), ['posted', 'posted'])
      await store.giveBack([`other of ${id}`])
    }
    const priceNanos = () => costNanos
    const { findings, head } = await store.audit({ ...verifyOptions, priceNanos })
    assert.deepEqual(findings, [])
    assert.equal(head, '1/2023-11-14T22:13:21.000Z/Brb6JpeKQjJfBvU8VrPl8JDVU555yvPTyrJJiy2Adic')
  })
})
