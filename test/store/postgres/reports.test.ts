import assert from 'node:assert/strict'
import test from 'node:test'
import { StoreSilent } from '../../../src/accounts/account.ts'
import { utc } from '../../../src/accounts/calendar.ts'
import { readStorePlace } from '../../../src/config/store-place.ts'
import { openServingBooks } from '../../../src/store/open-books.ts'
import { createPostgresBooks, openPostgresBooks } from '../../../src/store/postgres/books.ts'
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts'
import { atEnd } from '../../support/at-end.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { until } from '../../support/waiting.ts'

/** A database of that name with our schema in it. */
async function startStore(name: string) {
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const url = postgres.createDatabase(name)
  await (await openPostgresBooks(url, { shown: url })).close()
  return { postgres, url }
}

test('issue 13: reports of a server on PostgreSQL run in their own thread, and fail as the books do', {
  skip: withoutPostgres(),
}, async () => {
  const { postgres, url } = await startStore('reports')
  const { books, close } = await openServingBooks(readStorePlace(url, '/'), Date.now)
  const question = { bounds: [0, 96], daysOf: undefined, by: [], only: {}, times: [], top: 1, sort: 'cost' } as const
  const ask = () => books.as({ actor: 'tester' }).readUsage({ ...question, sums: ['cost'] })
  assert.deepEqual((await ask()).total.sums, [[0n]])
  assert.deepEqual((await books.sumEntries({}, []))[0]!.requests, 0)
  postgres.stop('immediate')
  await assert.rejects(ask(), StoreSilent)
  postgres.start()
  assert.deepEqual((await ask()).total.sums, [[0n]])
  await close()
})

test('F-P2 issue 13: a report that waits for the database does not keep its server from ending', {
  skip: withoutPostgres(),
}, async () => {
  const { url } = await startStore('stuck')
  const holder = openDatabase({ url, max: 2, patienceMs: 30_000, purpose: 'trial' })
  atEnd(() => holder.close())
  const { books, close } = await openServingBooks(readStorePlace(url, '/'), Date.now)
  await holder.transact(async ({ query }) => {
    await query('LOCK TABLE triwire.usage_state IN ACCESS EXCLUSIVE MODE')
    const asked = books.as({ actor: 'tester' }).readUsage({
      ...{ bounds: [0, 96], daysOf: undefined, by: [], only: {}, times: [], top: 1, sort: 'cost', sums: ['cost'] },
    })
    const refused = assert.rejects(asked, StoreSilent)
    const session = `SELECT FROM pg_stat_activity WHERE application_name = 'triwire reports' AND wait_event_type = 'Lock'`
    await until(async () => (await holder.query(session)).length === 1, 'it waits')
    await close()
    await refused
    // The server has not given it up.
    assert.equal((await holder.query(session)).length, 1)
  })
})

/** Tells each statement of a transaction before it is asked. */
function listening(database: Database, tell: (text: string) => void): Database {
  return {
    ...database,
    transact: (work) =>
      database.transact((transaction) =>
        work({
          ...transaction,
          query(text, ...more) {
            tell(text)
            return transaction.query(text, ...more)
          },
        }),
      ),
  }
}

test('issue 13: days of keys are summed as they are read, even for a ranking, and no million rows are sorted for it', {
  skip: withoutPostgres(),
}, async () => {
  const { url } = await startStore('tops')
  const database = openDatabase({ url, max: 2, patienceMs: 5_000, purpose: 'trial' })
  await database.query(
    `INSERT INTO triwire.usage_words (kind, word) SELECT 'key', 'k' || n FROM generate_series(1, 100) n`,
  )
  await database.query(
    `INSERT INTO triwire.sums_d SELECT 0, k, 96 * d, m, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, k
     FROM generate_series(1, 100) k, generate_series(1, 100) d, generate_series(1, 4) m`,
  )
  const sums = 'sum(requests), 0, 0, 0, 0, 0, 0, sum(cost)'
  await database.query(`INSERT INTO triwire.sums_k SELECT account, key, ${sums} FROM triwire.sums_d GROUP BY 1, 2`)
  await database.query(
    `INSERT INTO triwire.sums_t SELECT day, model, 0, 0, 0, 0, 0, ${sums} FROM triwire.sums_d GROUP BY 1, 2`,
  )
  await database.query('ANALYZE triwire.sums_d')
  const asked: string[] = []
  const { readUsage } = createPostgresBooks(listening(database, (text) => asked.push(text)))
  const question = { daysOf: utc, by: ['key'], only: {}, times: [], top: 2, sort: 'cost', sums: ['cost'] } as const
  const bounds = [96, 96 * 51, 96 * 101]
  const told = await readUsage({ ...question, bounds })
  assert.deepEqual(
    told.groups.map(({ of, sums }) => [of, sums]),
    [
      [['k100'], [[20_000n, 20_000n]]],
      [['k99'], [[19_800n, 19_800n]]],
    ],
  )
  assert.deepEqual(told.total.sums, [[1_010_000n, 1_010_000n]])
  const ranking = asked.find((text) => text.includes('sums_d') && text.includes('0 AS bucket'))!
  const plan = (await database.query(`EXPLAIN ${ranking}`)).map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /HashAggregate/)
  assert.doesNotMatch(plan, /Sort/)
  await database.close()
})

test('issue 13: more simultaneous reports than connections wait for one another, without deadlock', {
  skip: withoutPostgres(),
}, async () => {
  const { url } = await startStore('crowded')
  const database = openDatabase({ url, max: 2, patienceMs: 5_000, purpose: 'trial' })
  atEnd(() => database.close())
  await database.query(`INSERT INTO triwire.usage_words (kind, word) VALUES ('key', 'k')`)
  await database.query(
    `INSERT INTO triwire.sums_d SELECT 0, id, 96, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7 FROM triwire.usage_words`,
  )
  const { readUsage } = createPostgresBooks(database)
  const question = { daysOf: utc, by: ['key'], only: {}, times: [], top: 2, sort: 'cost', sums: ['cost'] } as const
  const asked = Array.from({ length: 5 }, () => readUsage({ ...question, bounds: [96, 96 * 2] }))
  const told = await Promise.all(asked)
  for (const { groups } of told) assert.deepEqual(groups[0]?.of, ['k'])
})

test('issue 46 C15: entries that are dated ahead are found by the index of times, however long the ledger is', {
  skip: withoutPostgres(),
}, async () => {
  const { url } = await startStore('ahead')
  const database = openDatabase({
    url,
    max: 1,
    patienceMs: 5_000,
    purpose: 'trial',
    settings: { enable_seqscan: 'off' },
  })
  atEnd(() => database.close())
  const asked: [text: string, values: readonly unknown[]][] = []
  const { listAhead } = createPostgresBooks({
    ...database,
    query(text, values = [], ...more) {
      asked.push([text, values])
      return database.query(text, values, ...more)
    },
  })
  assert.deepEqual(await listAhead(), [])
  const [text, values] = asked.find(([text]) => text.includes('has_grant'))!
  const plan = (await database.query(`EXPLAIN ${text}`, values)).map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /Index Cond: \(posted_ms > /)
})
