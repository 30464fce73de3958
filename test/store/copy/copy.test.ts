import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test, { before } from 'node:test'
import { createCalendar, utc } from '../../../src/accounts/calendar.ts'
import { correctAhead } from '../../../src/accounts/corrections.ts'
import type { AccountBounds } from '../../../src/accounts/key-bounds.ts'
import { onBehalf } from '../../../src/accounts/on-behalf.ts'
import { createOperator, revokeOperator } from '../../../src/accounts/operators.ts'
import { createPerson, erasePerson, linkPersons } from '../../../src/accounts/person-rules.ts'
import { beginGrant, decideGrant, pollGrant } from '../../../src/accounts/sign-in/grant-rules.ts'
import { baseOf } from '../../../src/catalog/price-list.ts'
import type { StorePlace } from '../../../src/config/config.ts'
import { readPriceList } from '../../../src/config/price-list.ts'
import { type PricesEntry, prices } from '../../../src/config/price-schema.ts'
import { readStorePlace } from '../../../src/config/store-place.ts'
import { newRequestId } from '../../../src/ids.ts'
import { attachMonth, detachMonth } from '../../../src/store/archive/archive.ts'
import { openSqliteArchive } from '../../../src/store/archive/sqlite-end.ts'
import { type CopyListener, type CopyReport, copyStore } from '../../../src/store/copy/copy.ts'
import { openSource, openTarget } from '../../../src/store/copy/open-end.ts'
import { lockStore } from '../../../src/store/files/lock.ts'
import { createSpool, spoolPath } from '../../../src/store/files/spool.ts'
import { StoreError } from '../../../src/store/files/store-error.ts'
import { openPostgresBooks } from '../../../src/store/postgres/books.ts'
import { openDatabase } from '../../../src/store/postgres/database.ts'
import { testFolder } from '../../support/folder.ts'
import { openStore } from '../../support/operator.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { fileAt } from '../../support/store-place.ts'
import { until } from '../../support/waiting.ts'
import { createDebitRow, verifyOptions } from '../fixtures.ts'

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres()
})

const database = () => readStorePlace(postgres.createDatabase(`copy_${++count}`), '/')
const newFile = () => join(testFolder('copy'), 'triwire.db')

/** Of an entry of form 3: the prices of the fixtures, by a list that has a tier. */
const list = readPriceList(
  prices.parse({
    ...{ input: '3', cache_read: '0.3', cache_write: '3.75', cache_write_1h: '6', output: '15' },
    tiers: { flex: '0.5' },
  }) as PricesEntry,
)
const { version: priceVersion, prices: listed } = baseOf(list)
const detailed = {
  ...{ priceVersion, prices: listed, listText: list.kept!.text },
  details: { list: list.kept!.digest, person: 'p', labels: 'a=b' },
}

const act = { actor: 'operator:root' }
const once = { key: 'once-1', asked: 'to make ann' }

/** Three accounts, one of them empty, with keys, credits, debits and a returned debit. */
function fill(path: string, debits = 30): void {
  const store = openStore(path)
  const calendar = createCalendar(utc)
  const [one, two] = [store.createAccount('one', 10_000_000_000n), store.createAccount('two', 7n)]
  store.createAccount('three')
  const bounds = {
    budget: { nanos: 10n ** 9n, per: 'month' },
    requestsPerMinute: 7,
    models: ['a', 'b*'],
    labels: ['a=b'],
    mayChoose: ['a'],
  } as const
  const narrow = store.createKey(one.id, { label: 'canary label', ...bounds, expiresMs: 9e12 })
  const person = store.change(
    createPerson(
      {
        name: 'Ada',
        externalId: 'u-1',
        account: 'one',
        budget: { nanos: 10n ** 9n, per: 'week' },
        requestsPerMinute: 9,
      },
      { nowMs: 4, calendar },
    ),
  )
  store.change(
    linkPersons('u-1', store.change(createPerson({ externalId: 'u-2' }, { nowMs: 5, calendar })).id, {
      calendar,
      sumsOf: () => undefined,
    }),
  )
  store.change(erasePerson(store.change(createPerson({ name: 'gone' }, { nowMs: 6, calendar })).id, 7))
  store.updateKey(narrow.id, { person: person.id })
  store.rotateKey(narrow.id, 60_000)
  store.revokeKey(store.createKey(two.id).id)
  const rows = Array.from({ length: debits }, (_, at) => ({
    ...createDebitRow(requestId(at), at % 3 ? one.id : two.id),
    ...(at % 3 === 1 && { keyId: narrow.id }),
  }))
  store.postDebits([
    ...rows,
    { ...createDebitRow('an old id', one.id), calls: { web_search: 2 }, pricedCalls: 2, ...detailed },
  ])
  store.postReturns([requestId(4)])
  store.credit(two.id, -3n, 'correction')
  const operator = store.change(onBehalf({ ...act, once }, createOperator('ann', 'admin', 9e12, 1), 1))
  store.change(onBehalf(act, createOperator('bob', 'viewer', 9e12, 2), 2))
  const { id: grant, code } = store.change(beginGrant({ kind: 'device', agent: 'claude_code' }))
  const dev = { issuer: 'i', subject: 's', account: 'one', role: 'member', sealed: 'sealed' } as const
  store.change(decideGrant(grant, dev, { calendar, sumsOf: () => undefined }))
  assert.ok('session' in store.change(pollGrant(code, { accessMs: 1, idleMs: 2, absoluteMs: 3 })))
  store.change(onBehalf(act, revokeOperator(operator.operator.id, 3), 3))
  store.close()
}

const requestId = (at: number) =>
  `req_019389${at.toString(16).padStart(6, '0')}7000800000000000${at.toString(16).padStart(4, '0')}`

type Heard = { notes: string[]; progress: string[] }

/** @param onPause what happens elsewhere while the copy waits for servers */
async function copy(from: StorePlace, to: StorePlace, onPause: () => unknown = () => {}): Promise<CopyReport & Heard> {
  const heard: Heard = { notes: [], progress: [] }
  let nowMs = 0
  const listener: CopyListener = {
    progress: (words) => void heard.progress.push(words),
    note: (text) => void heard.notes.push(text),
    async pause(ms) {
      nowMs += ms
      await onPause()
    },
    clockMs: () => nowMs,
  }
  const source = await openSource(from)
  try {
    const target = await openTarget(to)
    try {
      return { ...(await copyStore(source, target, listener)), ...heard }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

test('X12 X7 a moved store keeps its zone and the first day of its weeks, there and back', {
  skip,
}, async () => {
  const [file, other] = [newFile(), newFile()]
  fill(file)
  const reporting = { timeZone: 'Europe/Berlin', weekStarts: 'sunday', keepMonths: 13 } as const
  const first = openStore(file)
  first.adoptReporting(reporting, Date.now())
  first.close()
  const place = database()
  await copy(fileAt(file), place)
  await copy(place, fileAt(other))
  const store = openStore(other)
  const { timeZone, weekStarts } = store.readUsageState()
  assert.deepEqual([timeZone, weekStarts], ['Europe/Berlin', 'sunday'])
  store.adoptReporting({ ...reporting, timeZone: 'UTC' }, Date.now())
  assert.equal(store.readUsageState().timeZone, 'Europe/Berlin')
  store.close()
})

/** All that the ledger says of itself, and a head of it. */
function auditFile(path: string) {
  const store = openStore(path)
  try {
    const { findings, head } = store.audit(verifyOptions)
    assert.deepEqual(findings, [])
    const [operators, audit] = [store.listOperators(), store.listAudit({ limit: 99 })]
    assert.deepEqual([operators.length, audit.length], [2, 3])
    const file = new DatabaseSync(path, { readOnly: true })
    const made = file.prepare('SELECT * FROM made').all()
    file.close()
    assert.deepEqual([made.length, made[0]!['once']], [1, once.key])
    const beside = { accounts: store.listAccounts(), keys: store.listKeys(), operators, audit, made }
    return { head, ...beside, entries: [...store.eachEntry()].length }
  } finally {
    store.close()
  }
}

test('C15 X7 a store that is moved into PostgreSQL and back keeps its heads', { skip }, async () => {
  const [file, other] = [newFile(), newFile()]
  fill(file)
  const before = auditFile(file)
  const place = database()
  const there = await copy(fileAt(file), place)
  assert.deepEqual([there.copied, there.sums.entries, there.accounts, there.keys], [35, 35, 3, 4])
  assert.deepEqual([there.sums.credits, there.sums.creditedNanos], [4, 10_000_000_000n + 7n - 3n + 630_000n])
  const back = await copy(place, fileAt(other))
  assert.deepEqual({ ...back.sums }, { ...there.sums })
  assert.equal(back.copied, 35)
  const after = auditFile(other)
  assert.deepEqual({ ...after, head: '' }, { ...before, head: '' })
  const store = openStore(other)
  const against = before.head!.split('/')
  const verdict = store.audit({ ...verifyOptions, against: { momentMs: Date.parse(against[1]!), hash: against[2]! } })
  store.close()
  assert.deepEqual(verdict.findings, [])
  // The first file is the beginning of what is there now: it can be moved into again, with nothing to copy.
  const again = await copy(fileAt(other), fileAt(file))
  assert.deepEqual([again.copied, again.sums.digest], [0, there.sums.digest])
  assert.equal(auditFile(file).head!.split('/')[2], after.head!.split('/')[2])
})

test('X7 a store is copied back after limits and grants of its accounts have changed, and names have been exchanged', {
  skip,
}, async () => {
  const file = newFile()
  fill(file)
  const place = database()
  await copy(fileAt(file), place)
  assert.ok(place.engine === 'postgres')
  const books = await openPostgresBooks(place.url.reveal(), place)
  const [one, two] = [(await books.findAccount('one'))!, (await books.findAccount('two'))!]
  const change = (id: string, fields: object, bounds?: AccountBounds) =>
    books.change({
      about: { account: id },
      decide: () => ({
        writes: [{ kind: 'set_account', accountId: id, fields, ...(bounds && { bounds }) }],
        result: 0,
      }),
    })
  const bounds: AccountBounds = {
    budget: { nanos: 5n, per: 'month' },
    requestsPerMinute: 7,
    warnNanos: [9n, 3n],
    grant: { nanos: 11n, lapses: true },
    plan: 'gold',
    externalId: 'e-1',
    metadata: { team: 'red' },
  }
  await change(one.id, { name: 'other', lastGrant: `grant:${one.id}/2026-10` }, bounds)
  await change(two.id, { name: 'one' })
  await change(one.id, { name: 'two' })
  await books.close()
  await copy(place, fileAt(file))
  const store = openStore(file)
  const [first, second] = [store.findAccount(one.id), store.findAccount(two.id)]
  store.close()
  assert.deepEqual([first.name, second.name], ['two', 'one'])
  assert.deepEqual([first.bounds, first.lastGrant], [bounds, `grant:${one.id}/2026-10`])
})

test('C15 X7 a store whose times were corrected elsewhere is copied back with right figures and its head', {
  skip,
}, async () => {
  const file = newFile()
  fill(file)
  const aheadMs = Date.now() + 30 * 86_400_000
  const ahead = openStore(file, { nowMs: () => aheadMs })
  const { id } = ahead.findAccount('one')
  ahead.postDebits([{ ...createDebitRow('ahead', id), createdMs: aheadMs }])
  while (ahead.fold(100) > 0);
  ahead.audit(verifyOptions)
  ahead.close()
  const place = database()
  await copy(fileAt(file), place)
  assert.ok(place.engine === 'postgres')
  const books = await openPostgresBooks(place.url.reveal(), place)
  await books.change(correctAhead(Date.now(), createCalendar(utc)))
  await books.close()
  await copy(place, fileAt(file))
  const store = openStore(file)
  assert.deepEqual(store.audit(verifyOptions).findings, [])
  while (store.fold(100) > 0);
  assert.deepEqual(store.audit(verifyOptions).findings, [])
  store.credit('two', 5n, 'later')
  assert.ok([...store.eachEntry()].find(({ reference }) => reference === 'later')!.postedMs < aheadMs)
  store.close()
})

const inTenWeeks = () => Date.now() + 70 * 86_400_000
const thisMonth = () => ({ ...verifyOptions, act, month: new Date().toISOString().slice(0, 7) })

/** Detaches the entries of this month, ten weeks later. */
async function detach(path: string): Promise<void> {
  const store = openStore(path, { nowMs: inTenWeeks })
  store.adoptReporting({ ...utc, weekStarts: 'monday', keepMonths: 13 }, inTenWeeks())
  for (const name of ['one', 'two']) store.postDebits([createDebitRow(newRequestId(), store.findAccount(name).id)])
  while (store.fold(100) > 0);
  store.close()
  const archives = openSqliteArchive(path, inTenWeeks)
  await detachMonth(archives, thisMonth())
  await archives.close()
}

test('X7 a month that is detached while a copy waits for a server is refused, and the source stays as it was', async () => {
  const file = newFile()
  fill(file)
  const unlock = lockStore(file)
  const copying = copy(fileAt(file), fileAt(newFile()), async () => {
    await detach(file)
    unlock()
  })
  await assert.rejects(copying, /lacks entries of \d{4}-\d\d, which were detached: bring back all months/)
  const source = await openSource(fileAt(file))
  assert.equal(await source.readMoved(), undefined)
  await source.close()
})

test('X7 a store is copied back after both stores have detached and attached the same month, and verify passes', async () => {
  const [file, other] = [newFile(), newFile()]
  fill(file)
  const nowMs = inTenWeeks
  const detachAndAttach = async (path: string) => {
    await detach(path)
    const archives = openSqliteArchive(path, nowMs)
    await attachMonth(archives, thisMonth())
    await archives.close()
  }
  await detachAndAttach(file)
  await copy(fileAt(file), fileAt(other))
  const store = openStore(other)
  store.credit('one', 5n, 'later')
  store.credit('two', 5n, 'later too')
  store.close()
  await detachAndAttach(other)
  await copy(fileAt(other), fileAt(file))
  const back = openStore(file, { nowMs })
  assert.deepEqual(back.audit(verifyOptions).findings, [])
  back.close()
})

test('C15 a moved store refuses servers and changes, and is read as before', { skip }, async () => {
  const file = newFile()
  fill(file)
  const place = database()
  await copy(fileAt(file), place)
  const said = {
    name: 'Error',
    message: `${file} was moved to ${place.shown}: name that store instead, or move it back with triwire store copy`,
  }
  assert.throws(() => openStore(file, { isServer: true }), said)
  const store = openStore(file)
  assert.throws(() => store.createAccount('four'), said)
  assert.throws(() => store.credit('one', 1n, 'late'), said)
  assert.equal(store.listAccounts().length, 3)
  const { head } = store.audit(verifyOptions)
  assert.equal(store.audit(verifyOptions).head, head)
  store.close()
  await assert.rejects(copy(fileAt(file), database()), said)
  // So does a database, whichever client writes to it.
  const other = newFile()
  await copy(place, fileAt(other))
  const name = place.shown.split('/').at(-1)!
  for (const sql of [
    `UPDATE triwire.accounts SET state = 'suspended'`,
    `UPDATE triwire.balances SET seq = seq`,
    `INSERT INTO triwire.replicas (name, version, config_digest, seal_fingerprint, started_ms, seen_ms) VALUES ('a', 'b', 'c', 'd', 1, 1)`,
  ])
    assert.throws(() => postgres.run(sql, name), new RegExp(`ERROR: +${other}`))
  assert.equal(postgres.run('SELECT count(*) FROM triwire.entries', name), '35')
})

test('C15 statements of a store that was moved are read without a trace, so that it can be moved back', {
  skip,
}, async () => {
  const file = newFile()
  fill(file)
  const place = database()
  await copy(fileAt(file), place)
  const header = {
    buyer: 'one',
    words: { symbol: '', name: 'credits', seller: '' },
    timeZone: 'UTC',
    head: '1/x',
    keys: [],
    persons: [],
  }
  const store = openStore(file)
  const { id } = store.findAccount('one')
  const { headMs } = readHead(file)
  assert.equal(store.closeMonth(Date.now() + 1), true)
  assert.deepEqual(store.keepHeader(id, '2026-10', header), header)
  assert.equal(store.readHeader(id, '2026-10'), undefined)
  assert.deepEqual(readHead(file), { headMs })
  store.close()
  await copy(place, fileAt(file))
  assert.ok(place.engine === 'postgres')
  const books = await openPostgresBooks(place.url.reveal(), place)
  assert.equal(await books.closeMonth(Date.now() + 1), true)
  assert.deepEqual(await books.keepHeader(id, '2026-10', header), header)
  await books.close()
  await copy(fileAt(file), place)
})

/** The moment of the last head. */
function readHead(path: string) {
  const file = new DatabaseSync(path, { readOnly: true })
  const { moment_ms: headMs } = file.prepare('SELECT moment_ms FROM head').get()!
  file.close()
  return { headMs }
}

test('a copy runs beside a server, follows it, and waits for it to stop', { skip }, async () => {
  const file = newFile()
  fill(file)
  const unlock = lockStore(file)
  let rounds = 0
  const place = database()
  const report = await copy(fileAt(file), place, () => {
    rounds++
    const store = openStore(file)
    // A rename to a name that another had, and an account that takes the first one's.
    if (rounds === 1)
      store.change({
        about: { account: 'one' },
        decide: ({ account }) => ({
          writes: [{ kind: 'set_account', accountId: account!.id, fields: { name: 'uno' } }],
          result: 0,
        }),
      })
    if (rounds === 2) store.createKey(store.createAccount('one', 5n).id)
    if (rounds < 12) store.postDebits([createDebitRow(requestId(100 + rounds), store.findAccount('uno').id)])
    else unlock()
    store.close()
  })
  assert.deepEqual(report.notes, [
    `stop the server that runs on ${file}: all but the last entries are copied, and the pause begins when that is done`,
  ])
  assert.equal(report.sums.entries, 35 + 11 + 1)
  const names = postgres.run('SELECT name FROM triwire.accounts ORDER BY name', place.shown.split('/').at(-1)!)
  assert.deepEqual(names.split('\n'), ['one', 'three', 'two', 'uno'])
})

test('X7 of two copies that wait for a server, the first moves the store, and the other is refused', {
  skip,
}, async () => {
  for (const [other, first] of [
    [database(), database()],
    [fileAt(newFile()), database()],
  ] as const) {
    const file = newFile()
    fill(file)
    const unlock = lockStore(file)
    const failing = copy(fileAt(file), other, async () => {
      unlock()
      await copy(fileAt(file), first)
    })
    const message = `${file} was moved to ${first.shown}: name that store instead, or move it back with triwire store copy`
    await assert.rejects(failing, { name: 'Error', message })
    const target = await openTarget(other)
    assert.equal((await target.readMoved())?.to, '', 'no server may use it')
    await target.close()
  }
})

test('X7 a second copy into a target that a copy fills is refused', { skip }, async () => {
  const file = newFile()
  fill(file)
  for (const place of [database(), fileAt(newFile())]) {
    const target = await openTarget(place)
    await target.begin(Date.now())
    await assert.rejects(copy(fileAt(file), place), StoreError)
    await target.close()
  }
})

test('F-S3 debits in the spool are booked before the store is moved', { skip }, async () => {
  const file = newFile()
  fill(file)
  const store = openStore(file)
  const spool = createSpool(spoolPath(file))
  await spool.append([createDebitRow(requestId(200), store.findAccount('one').id)])
  await spool.close()
  store.close()
  const report = await copy(fileAt(file), database())
  assert.deepEqual(report.notes, ['1 debits that waited in the spool were booked'])
  assert.equal(report.sums.entries, 36)
  assert.equal(existsSync(spoolPath(file)), false)
})

test('Y15 F-S3 debits in the spool are not booked before a move while the clock is in doubt', async () => {
  const [file, target] = [newFile(), fileAt(newFile())]
  const before = openStore(file, { nowMs: () => Date.now() - 400 * 86_400_000 })
  const { id } = before.createAccount('one', 10_000_000_000n)
  before.close()
  const spool = createSpool(spoolPath(file))
  await spool.append([createDebitRow(requestId(200), id)])
  await spool.close()
  const why = 'the clock is in doubt, for it is more than 366 days past the newest entry'
  await assert.rejects(copy(fileAt(file), target), {
    name: 'Error',
    message: `${file} has debits in its spool, and ${why}: set it right, or run triwire clock confirm`,
  })
  assert.equal(existsSync(spoolPath(file)), true)
  const store = openStore(file)
  store.confirmClock()
  store.close()
  assert.deepEqual((await copy(fileAt(file), target)).notes, ['1 debits that waited in the spool were booked'])
})

test('X12 R15 F-S3 debits in the spool count in the days of the zone that the store has recorded', {
  skip,
}, async () => {
  const file = newFile()
  const zone = { timeZone: 'Pacific/Auckland', weekStarts: 'monday' } as const
  // The window of that day is over.
  const before = openStore(file, { zone, nowMs: () => Date.now() - 3 * 86_400_000 })
  before.adoptReporting({ ...zone, keepMonths: 13 }, Date.now())
  const account = before.createAccount('one', 10_000_000_000n)
  const key = before.createKey(account.id, { budget: { nanos: 10n ** 9n, per: 'day' } })
  before.close()
  const spool = createSpool(spoolPath(file))
  await spool.append([{ ...createDebitRow(requestId(200), account.id), keyId: key.id }])
  await spool.close()
  await copy(fileAt(file), database())
  const store = openStore(file)
  const { spend } = store.listKeys()[0]!
  store.close()
  const day = createCalendar(zone).periodOf(spend!.fromMs, 'day')
  assert.deepEqual([spend!.fromMs, spend!.untilMs], [day.startMs, day.endMs])
  assert.ok(spend!.spentNanos > 0n)
})

test('an interrupted copy refuses servers, and the next try completes it', { skip }, async () => {
  const file = newFile()
  fill(file)
  const unlock = lockStore(file)
  const place = database()
  const broken = copy(fileAt(file), place, () => {
    throw new Error('broken off')
  })
  await assert.rejects(broken, { message: 'broken off' })
  unlock()
  const name = place.shown.split('/').at(-1)!
  assert.throws(() => postgres.run(`UPDATE triwire.accounts SET state = 'suspended'`, name), /ERROR/)
  const half = newFile()
  await assert.rejects(copy(place, fileAt(half)), {
    message: `${place.shown} is an unfinished copy: repeat triwire store copy until it says that both are equal`,
  })
  assert.equal((await copy(fileAt(file), place)).copied, 0)
  postgres.run(`UPDATE triwire.accounts SET state = 'active'`, name)
  // Between the mark in the source and the opening of the target: the source is closed already.
  postgres.run(`INSERT INTO triwire.moved (to_store, moved_ms) VALUES ('', 1)`, name)
  assert.equal((await copy(fileAt(file), place)).copied, 0)
  assert.equal(postgres.run('SELECT count(*) FROM triwire.moved', name), '0')
})

test('a store that contains anything else is refused as the target of a copy', { skip }, async () => {
  const [file, other] = [newFile(), newFile()]
  fill(file)
  fill(other, 3)
  const place = database()
  await copy(fileAt(other), place)
  await assert.rejects(copy(fileAt(file), place), {
    message: `${place.shown} has other accounts or entries than ${file}: name an empty store, or one that was copied from or to this one`,
  })
  const alias = readStorePlace(place.shown.replace('127.0.0.1', 'localhost'), '/')
  await assert.rejects(copy(place, alias), {
    message: `${place.shown} and ${alias.shown} are the same store: name another one with --to`,
  })
  assert.equal(postgres.run('SELECT count(*) FROM triwire.moved', place.shown.split('/').at(-1)!), '0')
})

test('entries without an account are found before any server has to stop', { skip }, async () => {
  const file = newFile()
  fill(file)
  const place = database()
  await (await openTarget(place)).close()
  postgres.run(
    `INSERT INTO triwire.entries (id, account_id, seq, kind, amount, balance_after, reference, priced_calls, created_ms, posted_ms, digest)
     VALUES (gen_random_uuid(), 'acct_nobody', 1, 'credit', 1, 1, 'stray', 0, 1, 1, '1:x')`,
    place.shown.split('/').at(-1)!,
  )
  await assert.rejects(copy(fileAt(file), place), {
    message: `${place.shown} is not equal to ${file}, which stays as it was: 36 entries, and 35 in accounts here. Copy into an empty store`,
  })
})

test('a command that changes a person while the source is held neither ends the copy nor is lost', {
  skip,
}, async () => {
  const place = database()
  assert.ok(place.engine === 'postgres')
  const books = await openPostgresBooks(place.url.reveal(), place)
  const watching = openDatabase({ url: place.url.reveal(), max: 1, patienceMs: 20_000, purpose: 'test' })
  const source = await openSource(place)
  const creating = Promise.withResolvers<unknown>()
  const outcome = await source.hold(async ({ markMoved }) => {
    const person = books.change(
      onBehalf(act, createPerson({ name: 'Ada' }, { nowMs: 1, calendar: createCalendar(utc) }), 1),
    )
    person.then(creating.resolve, creating.resolve)
    // By then the command has written what it can, and has waited so long that PostgreSQL found no deadlock at its end.
    const waits = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '1.2 s'`
    await until(async () => (await watching.query(waits)).length > 0)
    await markMoved('elsewhere')
    return 'moved'
  })
  assert.deepEqual(outcome, { result: 'moved' })
  assert.match(`${await creating.promise}`, /elsewhere/)
  assert.deepEqual(await books.findPersons(['Ada']), [])
  await Promise.all([books.close(), source.close(), watching.close()])
})

test('C15 the first statement of a month waits while the source is held, so that its header is not lost', {
  skip,
}, async () => {
  const place = database()
  assert.ok(place.engine === 'postgres')
  const books = await openPostgresBooks(place.url.reveal(), place)
  const watching = openDatabase({ url: place.url.reveal(), max: 1, patienceMs: 20_000, purpose: 'test' })
  const source = await openSource(place)
  let keeping: Promise<unknown> | undefined
  await source.hold(async ({ markMoved }) => {
    const header = {
      buyer: 'one',
      words: { symbol: '', name: 'credits', seller: '' },
      timeZone: 'UTC',
      head: '1/x',
      keys: [],
      persons: [],
    }
    keeping = books.keepHeader('acct_one', '2026-10', header).catch((error: Error) => error.message)
    let isOver = false
    keeping.then(() => (isOver = true))
    const waits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    await until(async () => isOver || (await watching.query(waits)).length > 0)
    await markMoved('elsewhere')
  })
  assert.match(`${await keeping}`, /elsewhere/)
  assert.equal(await books.readHeader('acct_one', '2026-10'), undefined)
  await Promise.all([books.close(), source.close(), watching.close()])
})

test('a difference is found, and the source stays as it was', { skip }, async () => {
  const file = newFile()
  fill(file)
  const unlock = lockStore(file)
  const place = database()
  const name = place.shown.split('/').at(-1)!
  const failing = copy(fileAt(file), place, () => {
    postgres.run(
      `SET triwire.copying = on; ALTER TABLE triwire.entries DISABLE TRIGGER USER;
       DELETE FROM triwire.entries WHERE reference = 'correction'; ALTER TABLE triwire.entries ENABLE TRIGGER USER;
       UPDATE triwire.balances SET balance = balance + 1 WHERE seq > 15`,
      name,
    )
    unlock()
  })
  await assert.rejects(failing, (error: Error) => {
    assert.ok(error instanceof StoreError)
    assert.match(
      error.message,
      /is not equal to .*, which stays as it was: 1 accounts end otherwise\. Copy into an empty store$/,
    )
    return true
  })
  const db = new DatabaseSync(file)
  assert.equal(db.prepare('SELECT count(*) AS n FROM moved').get()!['n'], 0)
  db.close()
})
