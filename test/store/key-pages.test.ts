import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { type KeyPage, type KeyRow, type KeyState, keySorts, keyStates } from '../../src/accounts/book-rows.ts'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { readFilter } from '../../src/operations/filter.ts'
import { openPostgresBooks } from '../../src/store/postgres/books.ts'
import { dialect as postgresDialect } from '../../src/store/postgres/run.ts'
import { pageKeys } from '../../src/store/sql/key-pages.ts'
import { selectAccountPage } from '../../src/store/sql/registers.ts'
import { openDatabase } from '../../src/store/sqlite/open.ts'
import { createDialect } from '../../src/store/sqlite/run.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'
import { type Engine, onEachStore, type TestStore } from './engines.ts'
import { createPath } from './fixtures.ts'

const nowMs = 1_700_000_100_000

/** Rows for the tables, made by the statements of one engine as well as of the other. Each 50th account is suspended. */
function fill(engine: Engine, keys: number): string {
  const revision =
    engine.name === 'SQLite' ? 'INSERT INTO accounts (id, name, state, revision, created_ms)' : 'INSERT INTO accounts'
  const order = engine.name === 'SQLite' ? '' : ' (id, name, state, revision, created_ms)'
  const numbers = (count: number) =>
    `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})`
  return `${revision}${order} ${numbers(100)}
      SELECT 'acct_' || i, 'account ' || i, CASE WHEN i % 50 = 7 THEN 'suspended' ELSE 'active' END, i + 1, 5 FROM n;
    INSERT INTO keys (id, account_id, digest, prefix, label, created_ms, expires_ms, revoked_ms, scope) ${numbers(keys)}
      SELECT 'key_' || CASE WHEN i % 2 = 0 THEN 'A' ELSE 'a' END || i, 'acct_' || CASE WHEN i % 3 = 0 THEN 0 ELSE i % 100 END,
        'digest ' || i, 'sk-tri-' || CASE WHEN i % 4 = 0 THEN 'Xy' ELSE 'xY' END || i % 97,
        CASE i % 5 WHEN 0 THEN NULL WHEN 1 THEN 'sk-tri-xy' WHEN 2 THEN 'KEY_a' || i % 7 WHEN 3 THEN 'Été_100%' || i % 7 ELSE 'Laptop of key_a' END,
        1700000000000 + i / 3, CASE WHEN i % 11 = 0 THEN ${nowMs} + i % 3 - 1 END, CASE WHEN i % 13 = 0 THEN ${nowMs} END,
        'key_' || CASE WHEN i % 2 = 0 THEN 'A' ELSE 'a' END || i FROM n;`
}

const balances = 'INSERT INTO balances (account_id) SELECT id FROM accounts;'

async function openFilled(
  engine: Engine,
  keys: number,
): Promise<{ store: TestStore; all: KeyRow[]; suspended: Set<string> }> {
  const store = await engine.open({ atMs: nowMs })
  await store.exec(fill(engine, keys) + (engine.name === 'SQLite' ? '' : balances))
  const accounts = await store.listAccounts()
  const suspended = new Set(accounts.filter(({ state }) => state === 'suspended').map(({ id }) => id))
  return { store, all: await store.listKeys(), suspended }
}

const lower = (text: string | undefined) => text?.replace(/[A-Z]/g, (letter) => letter.toLowerCase())

/** The state by the order of `keyStates`. */
function stateOf({ revokedMs, expiresMs, accountId }: KeyRow, suspended: ReadonlySet<string>): KeyState {
  if (revokedMs !== undefined) return 'revoked'
  if (expiresMs !== undefined && expiresMs <= nowMs) return 'expired'
  return suspended.has(accountId) ? 'suspended' : 'active'
}

/** What a page of all is, by looking at each key. */
function expected(
  all: readonly KeyRow[],
  suspended: ReadonlySet<string>,
  { accountId, q, state, ids, sort }: Partial<KeyPage>,
): string[] {
  const begins = (text: string | undefined) => lower(text)?.startsWith(lower(q)!) ?? false
  const fits = (key: KeyRow) =>
    (accountId === undefined || key.accountId === accountId) &&
    (q === undefined || begins(key.id) || begins(key.prefix) || begins(key.label)) &&
    (state === undefined || stateOf(key, suspended) === state) &&
    (ids === undefined || ids.includes(key.id))
  const sign = sort === '-created' ? -1 : 1
  const found = all.filter(fits).sort((a, b) => sign * (a.createdMs - b.createdMs || (a.id < b.id ? -1 : 1)))
  return found.map(({ id }) => id)
}

async function walk(store: TestStore, page: Partial<KeyPage>, limit: number): Promise<string[]> {
  const found: string[] = []
  let beyond: KeyPage['beyond']
  for (;;) {
    const rows = await store.pageKeys({ nowMs, ...page, limit, beyond })
    found.push(...rows.map(({ id }) => id))
    if (rows.length < limit) return found
    beyond = [rows.at(-1)!.createdMs, rows.at(-1)!.id]
  }
}

const searches = [
  'key_a',
  'KEY_A1',
  'sk-tri-xy',
  'SK-TRI-XY9',
  'laptop',
  'été',
  'Été_100%',
  '_',
  '%',
  'xy',
  'sk-tri-xy96x',
  'key_\u{10ffff}',
  'x\0',
]

onEachStore((engine) => {
  test('SCA-5 keys are paged by account, state, and the start of id, characters or label, combined and in both orders', async () => {
    const { store, all, suspended } = await openFilled(engine, 250)
    const ids = all.filter((_, at) => at % 20 === 0).map(({ id }) => id)
    const seen = new Set<KeyState>()
    for (const accountId of [undefined, 'acct_0', 'acct_7', 'acct_none'])
      for (const state of [undefined, ...keyStates])
        for (const q of [undefined, ...searches])
          for (const only of [undefined, ids]) {
            const sort = keySorts[(searches.length + (q?.length ?? 0) + (state?.length ?? 0)) % 2]!
            const page = { accountId, state, q, ids: only, sort }
            const found = (await store.pageKeys({ nowMs, ...page, limit: 300 })).map(({ id }) => id)
            assert.deepEqual(found, expected(all, suspended, page), JSON.stringify(page))
            if (found.length > 0 && state !== undefined) seen.add(state)
          }
    assert.deepEqual([...seen].sort(), [...keyStates].sort())
    for (const sort of keySorts)
      for (const page of [{}, { q: 'key_' }, { q: 'laptop' }, { state: 'expired' as const }, { accountId: 'acct_0' }])
        assert.deepEqual(await walk(store, { ...page, sort }, 40), expected(all, suspended, { ...page, sort }))
  })

  test('SCA-5 a page without the keys of sessions has all others, by every filter and in both orders', async () => {
    const { store, suspended } = await openFilled(engine, 4_000)
    await store.exec(`UPDATE keys SET session = id WHERE created_ms < 1700000000500 OR label = 'KEY_a3'`)
    const lasting = (await store.listKeys()).filter(({ session }) => session === undefined)
    assert.ok(lasting.length > 1_000 && lasting.length < 3_000)
    for (const accountId of [undefined, 'acct_0', 'acct_7'])
      for (const state of [undefined, ...keyStates])
        for (const q of [undefined, 'key_a', 'KEY_a39', 'laptop', 'Été_100%5'])
          for (const sort of keySorts) {
            const page = { accountId, state, q, sort }
            const found = await walk(store, { ...page, isWithoutSessions: true }, 300)
            assert.deepEqual(found, expected(lasting, suspended, page), JSON.stringify(page))
          }
  })

  test('SCA-5 pages are correct however many keys match either filter', async () => {
    const { store, all, suspended } = await openFilled(engine, 13_000)
    const last = all.slice(-30).map(({ id }) => id)
    await store.exec(`UPDATE keys SET label = 'Rare' WHERE id IN (${last.map((id) => `'${id}'`).join()})`)
    const now = await store.listKeys()
    const pages: Partial<KeyPage>[] = [
      { q: 'key_' },
      { q: 'rare' },
      { q: 'key_', state: 'suspended' },
      { q: 'sk-tri-', state: 'active', accountId: 'acct_0' },
      { q: 'rare', state: 'active' },
      { state: 'suspended' },
      { state: 'active' },
      { state: 'revoked', accountId: 'acct_0' },
      { q: 'rare', accountId: 'acct_0' },
      { q: 'key_a12', state: 'expired' },
    ]
    for (const [at, page] of pages.entries()) {
      const sorted = { ...page, sort: keySorts[at % 2]! }
      assert.deepEqual(await walk(store, sorted, 3_000), expected(now, suspended, sorted), JSON.stringify(page))
    }
  })

  test('SCA-5 of very many keys with one label few are read: a filter asks for the account, and an id is found among them', async () => {
    const { store } = await openFilled(engine, 2_600)
    const ofOne = (await store.listKeys('acct_0')).map(({ id }) => id)
    assert.ok(ofOne.length < 1_000)
    const [last] = (await store.listKeys()).slice(-1)
    await store.exec(`UPDATE keys SET label = '${last!.id}'`)
    const found = await store.findKeys(last!.id)
    assert.deepEqual([found.length, found.some(({ id }) => id === last!.id)], [1_001, true])
    assert.deepEqual((await store.findKeys(last!.id, 'acct_0')).map(({ id }) => id).sort(), ofOne.toSorted())
    const filter = (asked: { account?: string }) =>
      readFilter({ books: store, calendar: createCalendar(utc) }, { key: last!.id, ...asked })
    await assert.rejects(filter({}), /Several accounts have a key "key_a2599": name one of them with `account`/)
    assert.deepEqual((await filter({ account: 'acct_0' })).keyIds?.toSorted(), ofOne.toSorted())
    await store.exec(`UPDATE keys SET account_id = 'acct_0'`)
    await assert.rejects(
      filter({ account: 'acct_0' }),
      /More than 1000 keys are called "key_a2599": name one by its id/,
    )
  })

  test('SCA-5 a key is found by all of its characters or by its label, case-sensitively, among many that differ in case', async () => {
    const { store } = await openFilled(engine, 300)
    const found = async (name: string) => (await store.findKeys(name)).map(({ id }) => id).sort()
    assert.deepEqual(await found('key_A4'), ['key_A4'])
    assert.deepEqual(await found('key_a4'), [])
    const all = await store.listKeys()
    for (const name of ['sk-tri-Xy8', 'sk-tri-xY1', 'sk-tri-XY1', 'Été_100%3', 'été_100%3'])
      assert.deepEqual(
        await found(name),
        all
          .filter(({ prefix, label }) => prefix === name || label === name)
          .map(({ id }) => id)
          .sort(),
        name,
      )
  })
})

test('SCA-5 no query for keys reads or sorts all of them: an index finds or orders the rows', () => {
  const path = createPath()
  openDatabase(path, {}).close()
  const db = new DatabaseSync(path)
  const dialect = createDialect(() => nowMs)
  const filters: Partial<KeyPage>[] = [{}, { accountId: 'a' }, { q: 'k' }, ...keyStates.map((state) => ({ state }))]
  const pages = filters
    .flatMap((one) => filters.map((other) => ({ ...one, ...other })))
    .flatMap((page) => [page, { ...page, isWithoutSessions: true }])
  for (const page of pages)
    for (const found of [0n, 20_000n]) {
      const step = pageKeys(dialect, { nowMs, limit: 50, beyond: [5, 'k'], ...page })
      let turn = step.next()
      while (!turn.done) {
        const { text, values } = turn.value as { text: string; values: string[] }
        const plan = db
          .prepare(`EXPLAIN QUERY PLAN ${text}`)
          .all(...values)
          .map(({ detail }) => detail as string)
        const name = `${JSON.stringify(page)}: ${text}\n${plan.join('\n')}`
        // `SCAN k` alone is of what was found: two million keys are never that.
        const [reads, scans] = [/^(SCAN|SEARCH) k USING/, /^SCAN k$/].map((one) =>
          plan.filter((line) => one.test(line)),
        )
        const isFew = text.includes('MATERIALIZED')
        assert.ok(reads!.length > 0 && scans!.length <= (isFew ? 2 : text.includes('LIMIT 1000') ? 2 : 1), name)
        const isCheap = (line: string) => /USING COVERING INDEX|INDEX keys_(lasting_)?revoked|\(id=\?\)/.test(line)
        const isPage = !isFew && !text.startsWith('SELECT count')
        assert.ok(isPage ? reads!.length === 1 : reads!.every(isCheap), name)
        // Hundreds of thousands of keys of sessions may stand before the others.
        if (isPage && page.isWithoutSessions) assert.match(reads![0]!, /INDEX keys_lasting/, name)
        turn = step.next(text.startsWith('SELECT count') ? [{ n: found }] : [])
      }
    }
  db.close()
})

test('SCA-5 in PostgreSQL, the first keys of suspended accounts are read before many of them are counted', () => {
  const step = pageKeys(postgresDialect, { nowMs, limit: 50, state: 'suspended' })
  const { text } = step.next().value as { text: string }
  assert.match(text, /LIMIT 10000\) k/)
  assert.doesNotMatch(text, /SELECT count/)
  assert.match((step.next([]).value as { text: string }).text, /^SELECT count/)
})

test('SCA-5 in PostgreSQL, a page of accounts reads as many rows as it has, even if its plan is made without the values', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const url = postgres.createDatabase('accounts')
  await (await openPostgresBooks(url, { shown: url })).close()
  postgres.run(
    `INSERT INTO triwire.accounts (id, name, state, revision, created_ms)
       SELECT 'acct_' || i, 'name ' || i, 'active', i, i FROM generate_series(1, 20000) i;
     ${balances.replaceAll(/(INTO|FROM) /g, '$1 triwire.')} ANALYZE`,
    'accounts',
  )
  for (const sort of ['created', '-created', 'name'] as const) {
    const beyond = [sort === 'name' ? 'name 5' : 500, 'acct_5'] as [number, string]
    const { text, values } = selectAccountPage(postgresDialect, { sort, beyond, limit: 51 })
    const types = sort === 'name' ? 'text, text' : 'bigint, text'
    const plan = postgres.run(
      `SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; PREPARE page(${types}) AS ${text};
       EXPLAIN (ANALYZE, TIMING OFF, SUMMARY OFF, FORMAT JSON) EXECUTE page(${values.map((one) => `'${one}'`).join()})`,
      'accounts',
    )
    const reads = [...plan.matchAll(/"Actual Rows": (\d+),\s*"Actual Loops": (\d+)/g)].map(
      ([, rows, loops]) => Number(rows) * Number(loops),
    )
    // A sort by name reads one row more, because only the name has an index.
    assert.ok(reads.length > 3 && Math.max(...reads) <= 52, `${sort}: ${plan}`)
  }
})
