import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import test, { before } from 'node:test'
import { type BookStore, createBooks } from '../../../src/accounts/books.ts'
import { parseHead } from '../../../src/accounts/chain.ts'
import type { Debit } from '../../../src/accounts/ledger.ts'
import { newRequestId } from '../../../src/ids.ts'
import { createPostgresBooks, openPostgresBooks } from '../../../src/store/postgres/books.ts'
import { type Database, openDatabase, openSession } from '../../../src/store/postgres/database.ts'
import { makePartitions, migrate } from '../../../src/store/postgres/migrate.ts'
import { closeStore } from '../../../src/store/postgres/moved.ts'
import { postCredits, postDebits, postFunctions } from '../../../src/store/postgres/post.ts'
import { openStore } from '../../../src/store/sqlite/store.ts'
import { atEnd } from '../../support/at-end.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { patienceMs, until } from '../../support/waiting.ts'
import { stopClock } from '../engines.ts'
import { costNanos, createDebitRow, createPath, verifyOptions } from '../fixtures.ts'

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres({ settings: ['fsync = off'] })
})

function open(url: string, max = 4): Database {
  const database = openDatabase({ url, max, patienceMs, purpose: 'test' })
  atEnd(() => database.close())
  return database
}

/** @param order of texts in it, where it is not that of their bytes. */
async function create(order?: string): Promise<{ url: string; name: string; database: Database; store: BookStore }> {
  const name = `books_${++count}`
  postgres.run(`CREATE DATABASE ${name} ${order ? `TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE '${order}'` : ''}`)
  const url = postgres.url.replace(/postgres$/, name)
  const database = open(url)
  await migrate(database, url, postFunctions)
  // So few at once that everything takes several slices.
  return { url, name, database, store: createPostgresBooks(database, { readMax: 3, sumMax: 5, verifyMax: 4 }) }
}

const requestId = (n: number) => `req_0199${n.toString(16).padStart(8, '0')}7abc8def0123456789ab`

test('R15 holds of a replica that has gone silent are reported as held by no replica', { skip }, async () => {
  const { database, store } = await create()
  const books = createBooks(store, () => 1)
  await books.createAccount('one')
  const { id } = await books.createKey('one', { budget: { nanos: 9n, per: undefined } })
  const held = async () => (await books.findKeys(id))[0]!.heldNanos ?? 0n
  const now = 'triwire.now_ms()'
  await database.query(`INSERT INTO triwire.present (replica, seen_ms) VALUES (1, ${now}), (2, ${now} - 60000)`)
  for (const [replica, nanos] of [
    [1, 2],
    [2, 3],
    [3, 4],
  ])
    await database.query(
      `INSERT INTO triwire.shares (scope, replica, turn, held, window_ms, taken) VALUES ($1, $2, 1, $3, ${now}, 0)`,
      [id, replica, nanos],
    )
  assert.equal(await held(), 2n)
})

test('R15 X7 a budget uses the days of the database, though the clock of the operator is a day ahead or behind', {
  skip,
}, async () => {
  const { url, name } = await create()
  stopClock(postgres, name, Date.parse('2026-11-22T12:00:00Z'))
  const database = open(url)
  const store = createPostgresBooks(database)
  const day = { fromMs: Date.parse('2026-11-22T00:00:00Z'), untilMs: Date.parse('2026-11-23T00:00:00Z') }
  const budget = { nanos: 10n ** 9n, per: 'day' } as const
  for (const nowMs of [day.untilMs, day.fromMs - 1]) {
    const books = createBooks(store, () => nowMs)
    const { id } = await books.createAccount(`${nowMs}`, 10n ** 12n)
    const keys = [(await books.createKey(id, { budget })).id, (await books.createKey(id)).id]
    const post = () =>
      postDebits(
        database,
        keys.map((keyId) => ({ ...createDebitRow(newRequestId(), id), keyId })),
      )
    const spends = () => Promise.all(keys.map(async (key) => (await books.findKeys(key))[0]!.spend))
    await post()
    await books.updateKey(keys[1]!, { budget })
    const once = { ...day, spentNanos: costNanos }
    assert.deepEqual(await spends(), [once, once])
    await post()
    const twice = { ...day, spentNanos: 2n * costNanos }
    assert.deepEqual(await spends(), [twice, twice])
  }
  assert.deepEqual(await createBooks(store, () => 1).verify(verifyOptions), [])
})

test('C15 a read by slices gives the rows that SQLite reads at once, in the same order', { skip }, async (t) => {
  const { database, store } = await create('de')
  const file = openStore(createPath(t))
  atEnd(() => file.close())
  const [ours, theirs] = [createBooks(store, () => 1), createBooks(file, () => 1)]
  const accounts: string[] = []
  for (const name of ['b', 'Ä', 'a', 'B']) {
    const { id } = await ours.createAccount(name)
    const { id: other } = await theirs.createAccount(name)
    accounts.push(id, other)
  }
  const debits = Array.from({ length: 40 }, (_, n) => ({
    ...createDebitRow(requestId(n), ''),
    model: ['m', 'M', 'é', 'z'][n % 4]!,
    amountNanos: 630_000n,
  }))
  for (const [n, debit] of debits.entries()) {
    const at = (n % 4) * 2
    await postDebits(database, [{ ...debit, accountId: accounts[at]! }])
    file.postDebits([{ ...debit, accountId: accounts[at + 1]! }])
    // Entries of one millisecond are in the order of the accounts' ids, which each store draws for itself.
    const postedMs = Date.now()
    await until(() => Date.now() > postedMs + 1)
  }
  const shape = (entries: readonly { bill?: { requestId: string } | undefined }[]) =>
    entries.map((e) => e.bill?.requestId)
  assert.deepEqual(shape(await Array.fromAsync(ours.eachEntry())), shape(await Array.fromAsync(theirs.eachEntry())))
  for (const filter of [{}, { model: 'é' }, { model: 'none' }])
    for (const limit of [1, 3, 7, 100])
      assert.deepEqual(
        shape(await ours.listEntries({ ...filter, limit })),
        shape(await theirs.listEntries({ ...filter, limit })),
        `${limit}`,
      )
  assert.deepEqual(await ours.listModels(), await theirs.listModels())
  assert.deepEqual(await ours.sumEntries({}, ['model']), await theirs.sumEntries({}, ['model']))
  assert.deepEqual(await ours.sumEntries({ model: 'é' }, []), await theirs.sumEntries({ model: 'é' }, []))
  const [first, , third] = accounts as [string, string, string]
  for (const accountId of [first, third, 'acct_gone']) {
    const listed = await ours.listEntries({ accountId, limit: 100 })
    assert.deepEqual(
      listed.map(({ seq }) => seq),
      Array.from({ length: accountId === 'acct_gone' ? 0 : 10 }, (_, n) => 10 - n),
    )
    const sinceMs = listed[4]?.postedMs
    const later = listed.filter(({ postedMs }) => postedMs >= (sinceMs ?? 0))
    assert.deepEqual(await ours.listEntries({ accountId, sinceMs, limit: 100 }), later)
    assert.deepEqual(await Array.fromAsync(ours.eachEntry({ accountId, sinceMs })), later.toReversed())
    assert.equal((await ours.sumEntries({ accountId, sinceMs }, []))[0]?.requests, later.length)
  }
  assert.deepEqual(await ours.verify(verifyOptions), [])
})

test('C9 entries of keys are found by their accounts, one or several', { skip }, async () => {
  const { database, store } = await create()
  const books = createBooks(store, Date.now)
  const rows: Debit[] = []
  const keyIds: string[] = []
  for (const name of ['one', 'two']) {
    const { id } = await books.createAccount(name)
    const key = await books.createKey(id, { label: 'laptop' })
    keyIds.push(key.id)
    for (let n = 0; n < 10; n++)
      rows.push({ ...createDebitRow(requestId(rows.length), id), keyId: n % 2 ? key.id : undefined })
  }
  await postDebits(database, rows)
  const [one] = keyIds as [string]
  assert.equal((await books.listEntries({ keyIds: [one], limit: 100 })).length, 5)
  assert.equal((await books.listEntries({ keyIds, limit: 100 })).length, 10)
  assert.equal((await books.listEntries({ keyIds: [], limit: 100 })).length, 0)
  const totals = await books.sumEntries({ keyIds }, ['key', 'day'])
  assert.deepEqual(
    totals.map(({ requests, keyLabel, keyId }) => [requests, keyLabel, keyId]),
    keyIds.toSorted().map((id) => [5, 'laptop', id]),
  )
  const all = await books.sumEntries({}, ['key'])
  assert.deepEqual(
    all.map(({ requests, keyId }) => [requests, keyId]),
    [[10, undefined], ...keyIds.toSorted().map((id) => [5, id])],
  )
})

test('C1 sums of amounts are exact beyond what one account can hold', { skip }, async () => {
  const { store } = await create()
  const books = createBooks(store, Date.now)
  for (const name of ['one', 'two', 'three']) await books.createAccount(name, 2n ** 63n - 1n)
  const [total] = await books.sumEntries({}, [])
  assert.equal(total?.creditedNanos, 3n * (2n ** 63n - 1n))
})

test('C15 verify compares a store, moved or not, with the schema of its kind, whatever settings the database has', {
  skip,
}, async () => {
  const verify = async (setting: string | undefined, isMoved: boolean) => {
    const { url, name, database } = await create()
    if (setting) postgres.run(`ALTER DATABASE ${name} SET ${setting}`)
    if (isMoved) await closeStore(database, 'elsewhere')
    const books = createBooks(createPostgresBooks(open(url)), () => 1)
    assert.deepEqual(await books.verify(verifyOptions), [], `${setting ?? 'no setting'}`)
    postgres.run('DROP TRIGGER lists_are_not_changed ON triwire.lists', name)
    const [finding] = await books.verify(verifyOptions)
    assert.match(finding!, /trigger lists_are_not_changed on lists is missing/)
  }
  for (const isMoved of [false, true, false])
    for (const setting of [undefined, 'quote_all_identifiers = on', 'bytea_output = escape'])
      await verify(setting, isMoved)
})

test('C15 verify finds nothing in a ledger that is written to meanwhile, and a head taken meanwhile is valid', {
  skip,
}, async () => {
  const { database } = await create()
  // Enough to come to the end of a busy account.
  const books = createBooks(createPostgresBooks(database, { readMax: 3, sumMax: 5, verifyMax: 100 }), Date.now)
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.push((await books.createAccount(`account ${n}`, 1_000n)).id)
  let isOver = false
  let posted = 0
  const post = async (lane: number) => {
    for (let n = 0; !isOver; n++) {
      const rows = ids.map((id, at) => ({
        ...createDebitRow(requestId(lane * 1_000_000 + n * 10 + at), id),
        priceVersion: `v${n}`,
      }))
      posted += (await postDebits(database, rows)).postings.length
    }
  }
  const lanes = [post(1), post(2)]
  const heads: string[] = []
  for (let round = 0; round < 4; round++) {
    const before = posted
    await until(() => posted > before + 20)
    const { findings, head } = await books.audit(verifyOptions)
    assert.deepEqual(findings, [])
    heads.push(head!)
  }
  isOver = true
  await Promise.all(lanes)
  for (const head of heads) assert.deepEqual(await books.verify({ ...verifyOptions, against: parseHead(head) }), [])
})

test('C15 a head waits for the posts that are under way, and later posts come after it', { skip }, async () => {
  const { database, store, name } = await create()
  const books = createBooks(store, Date.now)
  const { id } = await books.createAccount('one')
  const [posted, proceed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const posting = database.transact(async (transaction) => {
    await postCredits(transaction, [{ kind: 'post_credit', accountId: id, amountNanos: 5n, reference: 'slow' }], 1)
    posted.resolve()
    await proceed.promise
  })
  await posted.promise
  const auditing = books.audit(verifyOptions)
  await until(
    () => postgres.run(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`, name) === '1',
  )
  proceed.resolve()
  await posting
  const head = parseHead((await auditing).head!)
  const [entry] = await books.listEntries({ limit: 1 })
  assert.ok(entry!.postedMs <= head.momentMs)
  await postDebits(database, [createDebitRow(requestId(1), id)])
  assert.ok((await books.findEntry(requestId(1)))!.postedMs > head.momentMs)
  await store.change({
    about: {},
    decide: () => ({ writes: [{ kind: 'post_credit', accountId: id, amountNanos: 5n, reference: 'late' }], result: 0 }),
  })
  assert.deepEqual(await books.verify({ ...verifyOptions, against: head }), [])
})

test('law 13 a grant lapses by the balance that the account has when no more debits of it are posted', {
  skip,
}, async () => {
  const { database, store, name } = await create()
  const books = createBooks(store, Date.now)
  const { id } = await books.createAccount('one')
  await books.credit(id, -40n, 'overdrawn')
  const grant = { nanos: 100n, lapses: true }
  await books.updateAccount(id, { grant })
  // The grant is of an earlier month.
  const [last] = await books.listEntries({ accountId: id, limit: 1 })
  const reference = `grant:${id}/2026-01`
  await database.transact(async ({ query }) => {
    await query('SET LOCAL session_replication_role = replica')
    await query('UPDATE triwire.credits SET reference = $1 WHERE reference = $2', [reference, last!.reference])
    await query('UPDATE triwire.accounts SET last_grant = $1', [reference])
  })
  const [posted, proceed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const posting = database.transact(async (transaction) => {
    await postCredits(transaction, [{ kind: 'post_credit', accountId: id, amountNanos: -30n, reference: 'slow' }], 1)
    posted.resolve()
    await proceed.promise
  })
  await posted.promise
  const granting = books.grant(id)
  await until(
    () =>
      postgres.run(
        `SELECT count(*) FROM pg_stat_activity WHERE datname = '${name}' AND wait_event_type = 'Lock'`,
        name,
      ) === '1',
  )
  proceed.resolve()
  await posting
  assert.equal(await granting, true)
  // Of the 60 that were left, 30 were spent meanwhile. The other 30 lapse, and the new grant comes.
  assert.equal((await books.findAccount(id)).balanceNanos, 100n)
})

test('C8 for simultaneous operators, a reference is one credit, a name one account, and revisions commit in order', {
  skip,
}, async () => {
  const { url, database, store } = await create()
  const others = [store, createPostgresBooks(open(url)), createPostgresBooks(open(url))].map((one) =>
    createBooks(one, Date.now),
  )
  const [first] = others as [(typeof others)[0]]
  const { id } = await first.createAccount('one')
  const heard: bigint[] = []
  const ends = await Promise.allSettled([
    ...Array.from({ length: 30 }, (_, n) => others[n % 3]!.credit(id, 7n, `invoice ${n % 5}`)),
    ...Array.from({ length: 9 }, (_, n) => others[n % 3]!.createAccount('two')),
  ])
  const made = ends.map((end) => (end.status === 'fulfilled' ? end.value : (end.reason as { code?: string }).code))
  assert.deepEqual(
    ['posted', 'exists', 'name_taken'].map((word) => made.filter((one) => one === word).length),
    [5, 25, 8],
  )
  assert.equal((await first.findAccount(id)).balanceNanos, 35n)
  for (const row of await database.query('SELECT revision FROM triwire.accounts ORDER BY revision'))
    heard.push(row.revision as bigint)
  const [{ last } = {}] = await database.query(`SELECT last_value AS last FROM triwire.revisions`)
  assert.equal(heard.at(-1), last)
  assert.deepEqual(await first.verify(verifyOptions), [])
})

test('R16 a change sends its notice in its commit, and a commit without a change sends none', { skip }, async () => {
  const { url, store, database } = await create()
  const books = createBooks(store, Date.now)
  const heard: string[] = []
  const session = await openSession({ url, patienceMs, purpose: 'test' })
  atEnd(() => session.close())
  session.onNotified = (channel, payload) => heard.push(`${channel} ${payload}`)
  await session.query('LISTEN triwire_changes')
  const { id } = await books.createAccount('one', 5n)
  await books.credit(id, 5n, 'invoice')
  await books.credit(id, 5n, 'invoice')
  await assert.rejects(books.credit(id, 6n, 'invoice'))
  await postDebits(database, [createDebitRow(requestId(1), id)])
  await books.updateAccount(id, { state: 'suspended' })
  await until(() => heard.length === 3)
  assert.deepEqual(heard, ['triwire_changes 1', 'triwire_changes 2', 'triwire_changes 3'])
})

test('two callers that open the books of a new database at once both succeed; one that needs existing books gets an error', {
  skip,
}, async () => {
  const url = postgres.createDatabase('fresh')
  await assert.rejects(openPostgresBooks(url, { shown: 'postgres://h/fresh', create: false }), {
    name: 'Error',
    message: 'There is no store in postgres://h/fresh: name the right database, or create an account',
  })
  const [one, two] = await Promise.all([openPostgresBooks(url, { shown: url }), openPostgresBooks(url, { shown: url })])
  atEnd(() => Promise.all([one.close(), two.close()]))
  const { id } = await createBooks(one, Date.now).createAccount('one')
  assert.equal((await createBooks(two, Date.now).findAccount('one')).id, id)
})

test('each fault that prevents opening the books is reported with its cure', { skip }, async () => {
  const cases: [url: string, message: RegExp][] = [
    [postgres.url.replace(/postgres$/, 'gone'), /^postgres:\/\/h\/x has no such database: create it/],
    [postgres.url.replace('tri@', 'nobody@'), /^postgres:\/\/h\/x refuses the user/],
    [`${postgres.url}?sslmode=require`, /^postgres:\/\/h\/x does not support TLS/],
    ['postgres://tri@127.0.0.1:1/postgres', /^postgres:\/\/h\/x cannot be reached: /],
  ]
  for (const [url, message] of cases)
    await assert.rejects(openPostgresBooks(url, { shown: 'postgres://h/x' }), { message }, url)
})

test('F-S6 entries of a wildly wrong clock prevent no month from being created, are logged, and stay unchanged', {
  skip,
}, async () => {
  const { database, store } = await create()
  const books = createBooks(store, Date.now)
  const { id } = await books.createAccount('one')
  const [{ ms } = {}] = await database.query(
    `SELECT (extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') + interval '2 months 3 days') * 1000)::bigint AS ms`,
  )
  const mad = `req_${(ms as bigint).toString(16).padStart(12, '0')}7abc8def0123456789ab`
  const far = `req_${'ee'.repeat(6)}7abc8def0123456789ab`
  const [{ name } = {}] = await database.query(
    `SELECT 'entries_' || to_char(now() AT TIME ZONE 'UTC' + interval '2 months', 'YYYY_MM') AS name`,
  )
  await database.query(`DROP TABLE triwire.${name}`)
  await postDebits(database, [createDebitRow(mad, id), createDebitRow(far, id), createDebitRow('req_odd', id)])
  await database.transact((transaction) => makePartitions(transaction))
  const [{ found } = {}] = await database.query(`SELECT to_regclass('triwire.${name}')::text AS found`)
  assert.equal(found, null)
  const { findings, notes, head } = await books.audit(verifyOptions)
  assert.deepEqual(findings, [])
  assert.ok(head)
  assert.match(notes!.join(), /^2 entries are in the default partition, req_0.* among them: the clock/)
})

test('U5 no key is in the files of the database', { skip }, async () => {
  const { store } = await create()
  const books = createBooks(store, Date.now)
  const { id } = await books.createAccount('one')
  const { key, prefix } = await books.createKey(id)
  await books.findKeys(key)
  await books.rotateKey(key, 5)
  postgres.run('CHECKPOINT')
  const filesWith = (text: string) => spawnSync('grep', ['-rlaF', text, postgres.folder], { encoding: 'utf8' }).stdout
  assert.match(filesWith(prefix), /base/)
  assert.equal(filesWith(key.slice(prefix.length)), '')
})

test('C15 verify accepts a store whose database user has the name of our schema', { skip }, async () => {
  postgres.run('CREATE ROLE triwire LOGIN SUPERUSER')
  const url = postgres.createDatabase('named_alike').replace('//tri@', '//triwire@')
  const books = await openPostgresBooks(url, { shown: url })
  try {
    assert.deepEqual(await books.verify(verifyOptions), [])
  } finally {
    await books.close()
  }
})
