import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { before } from 'node:test'
import { StoreSilent } from '../../../src/accounts/account.ts'
import { accountBounds } from '../../../src/accounts/key-bounds.ts'
import { createKey, digestKey } from '../../../src/accounts/keys.ts'
import { readStorePlace } from '../../../src/config/store-place.ts'
import { newRequestId } from '../../../src/ids.ts'
import { openSource } from '../../../src/store/copy/open-end.ts'
import { readReplicas } from '../../../src/store/open.ts'
import { type Database, openDatabase, openSession, type Transaction } from '../../../src/store/postgres/database.ts'
import { DirectoryDesk } from '../../../src/store/postgres/directory-desk.ts'
import { makePartitions, migrate } from '../../../src/store/postgres/migrate.ts'
import { Pace } from '../../../src/store/postgres/pace.ts'
import { postDebits, postFunctions } from '../../../src/store/postgres/post.ts'
import { type Pending, PostingLane } from '../../../src/store/postgres/posting-lane.ts'
import { migrations } from '../../../src/store/postgres/schema.ts'
import { SpendWindows } from '../../../src/store/postgres/spend-windows.ts'
import type { Say } from '../../../src/store/serving/thread.ts'
import type { Row } from '../../../src/store/sql/step.ts'
import { atEnd } from '../../support/at-end.ts'
import { testFolder } from '../../support/folder.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { turn, until } from '../../support/waiting.ts'
import { costNanos, createDebit, createDebitRow, prices } from '../fixtures.ts'
import { openMute, openOperator, openStore } from './opened.ts'

/* What an operator's other work, and faults at a bad moment, do to a store in PostgreSQL. */

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres({ settings: ['fsync = off'] })
})

const newDatabase = () => postgres.createDatabase(`faults_${++count}`)

function open(url: string, patienceMs = 20_000): Database {
  const database = openDatabase({ url, max: 4, patienceMs, purpose: 'test' })
  atEnd(() => database.close())
  return database
}

async function openAccount() {
  const url = newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 100_000_000n)
  const { key } = await books.createKey('one')
  return { url, books, id, key, database: books.database }
}

/** Somebody reads the ledger in one long statement, as a dump does. @returns ends it */
async function readForLong({ transact }: Database): Promise<() => Promise<void>> {
  const [reading, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const done = transact(async ({ query }) => {
    await query('LOCK TABLE triwire.entries IN ACCESS SHARE MODE')
    reading.resolve()
    await over.promise
  })
  await reading.promise
  return () => {
    over.resolve()
    return done
  }
}

test('F-S6 while a long statement reads the ledger no month is created: no debit waits, and the next call creates it', {
  skip,
}, async () => {
  const { database, id } = await openAccount()
  const [{ month } = {}] = await database.query(
    `SELECT 'triwire.entries_' || to_char(now() AT TIME ZONE 'UTC' + interval '3 months', 'YYYY_MM') AS month`,
  )
  await database.query(`DROP TABLE ${month}`)
  const exists = async () => (await database.query('SELECT to_regclass($1)::text AS name', [month]))[0]!.name !== null
  const end = await readForLong(database)
  const beganMs = performance.now()
  const [, { postings }] = await Promise.all([
    database.transact((transaction) => makePartitions(transaction)),
    postDebits(database, [createDebitRow(newRequestId(), id)]),
  ])
  const tookMs = performance.now() - beganMs
  await end()
  assert.deepEqual([postings, await exists()], [['posted'], false])
  assert.ok(tookMs < 5_000, `${Math.round(tookMs)} ms`)
  await database.transact((transaction) => makePartitions(transaction))
  assert.equal(await exists(), true)
})

test('X7 a migration that finds the ledger in use gives up before debits have waited long; the next try succeeds', {
  skip,
}, async () => {
  const { url, database, id } = await openAccount()
  const next = [...migrations, { oldest: 1, sql: 'ALTER TABLE triwire.entries ADD COLUMN note text' }]
  const end = await readForLong(database)
  const upgrade = () => migrate(database, url, postFunctions, next)
  const upgrading = upgrade()
  upgrading.catch(() => {})
  await until(async () => {
    const [row] = await database.query(`SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted`)
    return row!.n
  })
  const beganMs = performance.now()
  const { postings } = await postDebits(database, [createDebitRow(newRequestId(), id)])
  assert.deepEqual(postings, ['posted'])
  assert.ok(performance.now() - beganMs < 5_000)
  await assert.rejects(upgrading, { code: '55P03' })
  await end()
  await upgrade()
})

test('X7 the previous version posts prices to a table that has more columns since', { skip }, async () => {
  const { database, id } = await openAccount()
  await database.query(`ALTER TABLE triwire.prices ADD COLUMN currency text NOT NULL DEFAULT 'one'`)
  const row = { ...createDebitRow(newRequestId(), id), priceVersion: 'another', prices }
  assert.deepEqual((await postDebits(database, [row])).postings, ['posted'])
})

test('C13 F-S10 a call that fails after its commit does not lead to the belief that its debits are missing', {
  skip,
}, async () => {
  const { database, id } = await openAccount()
  const [known, fresh] = [createDebitRow(newRequestId(), id), createDebitRow(newRequestId(), id)]
  await postDebits(database, [known])
  const failure = Object.assign(new Error('no connection'), { syscall: 'connect' })
  const back = Promise.withResolvers<void>()
  const lane = new PostingLane({
    database: {
      ...database,
      // A call checks the ledger after its commit only if something was booked earlier.
      query: (text, ...rest) =>
        /^SELECT \* FROM triwire\.entries/.test(text) ? Promise.reject(failure) : database.query(text, ...rest),
    },
    windows: new SpendWindows(),
    pace: new Pace(() => 0),
    onBegun() {},
    onConflict: () => assert.fail('nobody was waited for'),
    giveBack: () => back.resolve(),
    onPosted: () => assert.fail('nobody was told'),
    onFree: () => {},
  })
  const pending = [known, fresh].map(
    (row): Pending => ({
      row,
      isDoubtful: false,
      isWithdrawn: false,
      isApart: true,
      settle: () => assert.fail('nobody was told'),
    }),
  )
  lane.take(pending, () => true)
  await back.promise
  const [{ n } = {}] = await database.query('SELECT count(*)::int AS n FROM triwire.entries WHERE kind = $1', ['debit'])
  assert.equal(n, 2)
  assert.deepEqual(
    pending.map(({ isDoubtful }) => isDoubtful),
    [true, true],
  )
})

test('a debit that the ledger refused is not reported as missing when the ledger is searched again', {
  skip,
}, async () => {
  const { url, books, key } = await openAccount()
  const store = await openStore(url)
  const account = (await store.directory.findKey(digestKey(key)))!.account
  await store.ledger.debit(createDebit(newRequestId(), account))
  await assert.rejects(store.ledger.debit(createDebit(newRequestId(), { ...account, id: 'acct_nobody' })))
  await books.database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'triwire control' AND datname = current_database()`,
  )
  await until(() => store.told('ledger_looked_again').length > 0)
  assert.deepEqual(store.told('ledger_looked_again')[0], { looked: 1, missing: 0 })
  await until(() => store.ledger.whyBlocked() === undefined)
})

test('F-P1 F-P15 debits spooled by earlier runs are posted even if the store’s thread died before it did so', {
  skip,
}, async () => {
  const { url, books, id } = await openAccount()
  const requestId = newRequestId()
  const stateDir = join(testFolder('state'), 'a')
  mkdirSync(stateDir, { recursive: true })
  const line = JSON.stringify(createDebitRow(requestId, id), (_, value) =>
    typeof value === 'bigint' ? `${value}` : value,
  )
  const spool = join(stateDir, 'replica.spool')
  writeFileSync(spool, `${line}\n`, { mode: 0o600 })
  postgres.stop()
  const store = await openStore(url, { stateDir, patienceMs: 300, isStuck: true })
  try {
    await until(() => store.told('store_unreachable').length > 0)
    assert.match(String(store.told('store_unreachable')[0]!.error), /cannot be reached: nothing listens there: start/)
    await store.workers[0]!.terminate()
    await until(() => store.told('ledger_worker_restart').length > 0)
  } finally {
    postgres.start()
  }
  await until(() => store.ledger.whyBlocked() === undefined, 'the store is ready')
  assert.equal(existsSync(spool), false)
  assert.ok(await books.findEntry(requestId))
  assert.equal((await books.findAccount(id)).balanceNanos, 100_000_000n - costNanos)
})

test('C5 R16 an unknown key while the database is away counts as undecided, and not as a bug', {
  skip,
}, async () => {
  const { url } = await openAccount()
  const store = await openStore(url, { patienceMs: 300 })
  postgres.stop()
  try {
    await assert.rejects(async () => store.directory.findKey(createKey().digest), StoreSilent)
  } finally {
    postgres.start()
  }
})

test('X7 a promoted database server that lacks changes of operators is read again in full, though its revisions are no lower', async () => {
  const told: { isAnew: boolean; accounts: unknown[] }[] = []
  const say: Say = (_, value) => void told.push(value as never)
  let [timeline, revision] = ['00000001', 5n]
  const unbounded = Object.fromEntries(Object.keys(accountBounds.columns).map((column) => [`of_${column}`, null]))
  const query = async (text: string, values: readonly unknown[] = []): Promise<Row[]> => {
    if (/timeline/.test(text)) return [{ timeline }]
    if (/AS known/.test(text)) return [{ known: 1, newest: revision }]
    if (/AS newest/.test(text)) return [{ newest: revision }]
    return (values[0] as bigint) < revision
      ? [{ of_id: 'a', of_name: 'a', of_state: 'active', of_balance: 0n, ...unbounded, revision, id: null }]
      : []
  }
  const desk = new DirectoryDesk({ database: { query }, accountsMax: 10, say })
  await desk.onReached({ query })
  await desk.onReached({ query })
  assert.deepEqual(
    told.map(({ isAnew }) => isAnew),
    [true],
  )
  timeline = '00000002'
  await desk.onReached({ query })
  assert.deepEqual(
    told.map(({ isAnew }) => isAnew),
    [true, true],
  )
})

test('a command that only reads, or copies from a place, creates no store there', { skip }, async () => {
  const url = newDatabase()
  const place = readStorePlace(url, '/')
  await assert.rejects(readReplicas(place), /There is no store in postgres:/)
  await assert.rejects(openSource(place), /There is no store in postgres:/)
  const [row] = await open(url).query(`SELECT to_regnamespace('triwire')::text AS name`)
  assert.equal(row!.name, null)
})

test('a server that takes connections only with TLS is refused at the start with that reason', { skip }, async () => {
  const url = newDatabase()
  const file = join(postgres.folder, 'data', 'pg_hba.conf')
  postgres.run(`CREATE ROLE distant LOGIN`)
  writeFileSync(file, `hostnossl all distant all reject\n${readFileSync(file, 'utf8')}`)
  postgres.run('SELECT pg_reload_conf()')
  await assert.rejects(
    openStore(url.replace('tri@', 'distant@'), { shown: 'postgres://shown' }),
    /postgres:\/\/shown refuses the user: .*perhaps only with TLS: sslmode/,
  )
})

test('X11 simultaneous queries on one session log no warning of the driver; one missing answer ends the session', {
  skip,
}, async () => {
  const warnings: string[] = []
  const note = ({ message }: Error) => void warnings.push(message)
  process.on('warning', note)
  atEnd(() => process.off('warning', note))
  const mute = await openMute(postgres, newDatabase())
  const session = await openSession({ url: mute.url, patienceMs: 2_000, purpose: 'test' })
  const rows = await Promise.all(Array.from({ length: 6 }, (_, n) => session.query('SELECT $1::int AS n', [n])))
  assert.deepEqual(
    rows.flat(),
    Array.from({ length: 6 }, (_, n) => ({ n })),
  )
  await turn()
  assert.deepEqual(warnings, [])
  mute.mute()
  const asked = ['SELECT 1', 'SELECT 2'].map((text) => session.query(text))
  await Promise.all(asked.map((each) => assert.rejects(each)))
  await until(() => session.isEnded)
})

test('F-S1 a connection lost in a transaction, with or without a query, fails the transaction and ends nothing else', {
  skip,
}, async () => {
  const url = newDatabase()
  const [one, other] = ['cut', 'cutter'].map((purpose) => openDatabase({ url, max: 1, patienceMs: 20_000, purpose }))
  atEnd(() => Promise.all([one!.close(), other!.close()]))
  const cut = (pid: unknown) => other!.query('SELECT pg_terminate_backend($1)', [pid])
  const pidOf = async ({ query }: Transaction) => (await query('SELECT pg_backend_pid() AS pid'))[0]!['pid']
  const asking = one!.transact(async (transaction) => {
    const pid = await pidOf(transaction)
    const asked = transaction.query('SELECT pg_sleep(100)')
    await Promise.all([asked, cut(pid)])
  })
  await assert.rejects(asking)
  const silent = one!.transact(async (transaction) => {
    const pid = await pidOf(transaction)
    await cut(pid)
    await until(async () => (await other!.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])).length === 0)
    await turn()
    await transaction.query('SELECT 1')
  })
  await assert.rejects(silent)
  assert.notEqual(await one!.transact(pidOf), undefined)
})
