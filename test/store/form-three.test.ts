import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { parseHead } from '../../src/accounts/chain.ts'
import type { Debit, EntryDetails } from '../../src/accounts/ledger.ts'
import { baseOf } from '../../src/catalog/price-list.ts'
import { readPriceList } from '../../src/config/price-list.ts'
import { type PricesEntry, prices as pricesSchema } from '../../src/config/price-schema.ts'
import { spoolPath } from '../../src/store/files/spool.ts'
import { openDatabase as openSqlite } from '../../src/store/sqlite/open.ts'
import { detailedVersion, migrations, secondRelease } from '../../src/store/sqlite/schema.ts'
import { openStore } from '../support/operator.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, createPath, open, prices, until, verifyOptions } from './fixtures.ts'

/*
 * Form 3 of the ledger (issue 46, point 4): its columns come and go on both engines, and nothing of it is written before an
 * entry uses it, so that the second release can go on with the store until then.
 */

/** A list whose every moment is in its band, and whose factors change nothing: what a debit costs stays as in the fixtures. */
const list = readPriceList(
  pricesSchema.parse({
    ...{ input: '3', cache_read: '0.3', cache_write: '3.75', cache_write_1h: '6', output: '15' },
    bands: [{ name: 'peak', zone: 'UTC', days: 'mon-sun', hours: ['00:00-24:00'], times: '1' }],
    ...{ tiers: { priority: '1' }, geos: { us: '1' } },
  }) as PricesEntry,
)
const { version: priceVersion, prices: listed } = baseOf(list)

/** The parts of an entry that name its prices, each of which needs the others. */
const ofList = { list: list.kept!.digest, band: 'peak', tier: 'priority', geo: 'us' }

const details: EntryDetails = {
  ...ofList,
  person: 'person_1',
  labels: 'project=apollo,team=größe',
  costVersion: 'cost-1',
  costNanos: costNanos / 2n,
  costReported: '0.00031',
  alias: 'smart',
  fellBackFrom: 'm-first',
  fellBackCause: 'cooling',
  moved: 'cooling',
  effectiveMs: 1_700_000_000_123,
}

const half = Object.fromEntries(Object.entries(prices).map(([name, nanos]) => [name, nanos / 2n])) as typeof prices

function detailed(requestId: string, accountId: string, some: EntryDetails = details): Debit {
  const debit = createDebitRow(requestId, accountId)
  return {
    ...{ ...debit, details: some, costPrices: half },
    ...(some.list !== undefined && { listText: list.kept!.text, priceVersion, prices: listed }),
  }
}

/** What the database itself says must be known of its schema. */
async function readOldest(store: TestStore, engine: string): Promise<number> {
  let oldest = 0
  await store.forge(async ({ all }) => {
    const sql = engine === 'SQLite' ? 'PRAGMA user_version' : 'SELECT oldest FROM triwire.schema'
    const [row] = await all(sql)
    oldest = Number(Object.values(row!)[0])
  })
  return oldest
}

onEachStore((engine) => {
  test('issue 46 each detail of a debit is read back from the ledger, by itself and with all others', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 100_000_000n)
    const names = Object.keys(details) as (keyof EntryDetails)[]
    const alone = names
      .filter((name) => !['costNanos', 'costVersion', ...Object.keys(ofList)].includes(name))
      .map((name) => detailed(`req_${name}`, id, { [name]: details[name] }))
    const both = detailed('req_cost', id, { costVersion: 'cost-1', costNanos: details.costNanos })
    const rows = [
      ...alone,
      detailed('req_list', id, ofList),
      both,
      detailed('req_all', id),
      createDebitRow('req_none', id),
    ]
    assert.deepEqual(
      await store.postDebits(rows),
      rows.map(() => 'posted'),
    )
    for (const { requestId, details: some } of rows) {
      const entry = (await store.findEntry(requestId))!
      assert.deepEqual(entry.details, some)
      assert.equal(entry.digest.slice(0, 2), some ? '3:' : '1:')
    }
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('R5 issue 46 a repeated debit with details is one debit, and with other details a conflict', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 100_000_000n)
    const debit = detailed('req_1', id)
    assert.deepEqual(await store.postDebits([debit]), ['posted'])
    assert.deepEqual(await store.postDebits([debit]), ['exists'])
    const { labels: _, ...fewer } = details
    for (const other of [{ ...details, person: 'person_2' }, { ...details, costNanos: 1n }, fewer])
      assert.deepEqual(await store.postDebits([{ ...debit, details: other }]), ['conflict'])
    assert.deepEqual(await store.postDebits([createDebitRow('req_1', id)]), ['conflict'])
  })

  test('issue 46 the return of a debit has the fields that reports group by, and not the provider’s charge', async () => {
    const store = await engine.open()
    const { id } = await store.createAccount('one', 100_000_000n)
    await store.postDebits([detailed('req_1', id), createDebitRow('req_2', id)])
    await store.giveBack(['req_1', 'req_2'])
    const returns = (await store.listEntries({ limit: 2, accountId: id })).toReversed()
    const { list, band, tier, geo, person, labels, alias, fellBackFrom } = details
    assert.deepEqual(returns[0]!.details, { list, band, tier, geo, person, labels, alias, fellBackFrom })
    assert.deepEqual([returns[1]!.details, returns[1]!.digest.slice(0, 2)], [undefined, '1:'])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 46 the store may go back to the second release until it has an entry of form 3, and old heads stay valid', async () => {
    const store = await engine.open()
    const older = engine.name === 'SQLite' ? secondRelease : 1
    const { id } = await store.createAccount('one', 100_000_000n)
    await store.postDebits([createDebitRow('req_1', id)])
    await store.giveBack(['req_1'])
    assert.equal(await readOldest(store, engine.name), older)
    const { head } = await store.audit(verifyOptions)
    await store.postDebits([detailed('req_2', id)])
    assert.ok((await readOldest(store, engine.name)) > older)
    await store.postDebits([detailed('req_3', id), createDebitRow('req_4', id)])
    assert.deepEqual((await store.audit({ ...verifyOptions, against: parseHead(head!) })).findings, [])
  })

  test('C15 law 4 a changed detail with the old digest is found, and a changed cost with a new one too', async () => {
    for (const change of ["person = 'person_2'", "labels = 'a=b'", 'band = NULL', "cost_reported = '1'", 'cost = 1']) {
      const store = await engine.open()
      const { id } = await store.createAccount('one', 100_000_000n)
      await store.postDebits([detailed('req_1', id)])
      await store.forge(({ run }) => run(`UPDATE entries SET ${change} WHERE request_id = 'req_1'`))
      const findings = await store.verify(verifyOptions)
      assert.ok(findings.includes(`account ${id}, entry 2: is not what its digest was made of`), change)
      if (change === 'cost = 1')
        assert.ok(findings.includes('request req_1: has cost 1, by its tokens 315000'), `${findings}`)
    }
  })
})

test('issue 46 a server logs the first entry of form 3 once, and a spool line keeps all details', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 100_000_000n)
  store.close()
  const server = await open(t, path)
  const begun = () => server.lines.filter(({ event }) => event === 'ledger_form_3').length
  await server.ledger.debit(createDebitRow('req_1', id))
  assert.equal(begun(), 0)
  await server.ledger.debit(detailed('req_2', id))
  await until(() => begun() === 1)
  await server.ledger.debit(detailed('req_3', id))
  await server.close()
  assert.equal(begun(), 1)
  const { createSpool } = await import('../../src/store/files/spool.ts')
  const spool = createSpool(spoolPath(path))
  await spool.append([detailed('req_4', id)])
  await spool.close()
  const next = await open(t, path)
  await next.close()
  assert.equal(next.lines.filter(({ event }) => event === 'ledger_form_3').length, 0)
  const after = openStore(path)
  t.after(() => after.close())
  assert.deepEqual(after.findEntry('req_4')!.details, details)
  assert.deepEqual(after.verify(verifyOptions), [])
})

test('F-S7 issue 46 a store of the second release is upgraded; that release checks the store version it knows', (t) => {
  const path = createPath(t)
  const notes: string[] = []
  // As that release makes it: its migrations, and its number of them.
  writeFileSync(path, '', { mode: 0o600 })
  const old = new DatabaseSync(path, { readBigInts: true })
  for (const step of migrations.slice(0, secondRelease)) typeof step === 'string' ? old.exec(step) : step(old)
  old.exec(`PRAGMA user_version = ${secondRelease}`)
  old.close()
  openStore(path, { note: (text) => void notes.push(text) }).close()
  assert.match(notes.join(), /the version before this one can open it until an entry of form 3 is written$/)
  const version = () => {
    const db = openSqlite(path)
    const versions = ['user_version', 'application_id'].map((name) => Number(db.prepare(`PRAGMA ${name}`).get()![name]))
    db.close()
    return [versions[0], versions[1]! & 0xff]
  }
  assert.deepEqual(version(), [secondRelease, migrations.length])
  const store = openStore(path)
  const { id } = store.createAccount('one', 100_000_000n)
  store.postDebits([detailed('req_1', id)])
  store.close()
  assert.deepEqual(version(), [detailedVersion, migrations.length])
})
