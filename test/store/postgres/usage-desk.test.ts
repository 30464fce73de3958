import assert from 'node:assert/strict'
import test from 'node:test'
import { createAccount } from '../../../src/accounts/book-rules.ts'
import { createCalendar, quarterMs, utc } from '../../../src/accounts/calendar.ts'
import { usualReporting } from '../../../src/accounts/usage/reporting.ts'
import { createTraffic } from '../../../src/accounts/usage/traffic.ts'
import { newRequestId } from '../../../src/ids.ts'
import { createPostgresBooks, openPostgresBooks } from '../../../src/store/postgres/books.ts'
import { type Database, openDatabase } from '../../../src/store/postgres/database.ts'
import { createFolding } from '../../../src/store/postgres/fold.ts'
import { postDebits } from '../../../src/store/postgres/post.ts'
import { settleZone, UsageDesk } from '../../../src/store/postgres/usage-desk.ts'
import { atEnd } from '../../support/at-end.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { patienceMs, until } from '../../support/waiting.ts'
import { stopClock } from '../engines.ts'
import { createDebitRow } from '../fixtures.ts'
import { openOperator } from './opened.ts'

test('issue 13: folded sums and awaited counters are written at the same time, even if both have new words', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const url = postgres.createDatabase('desk')
  const books = await openOperator(url)
  const desk = new UsageDesk({ url, patienceMs, reporting: usualReporting, say: () => {}, clock: { isBelieved: true } })
  atEnd(() => desk.close())
  const other = openDatabase({ url, max: 1, patienceMs, purpose: 'trial' })
  atEnd(() => other.close())
  const folded = async (name: string) => {
    const { id } = await books.createAccount(name, 10n ** 9n)
    await postDebits(books.database, [createDebitRow(newRequestId(), id)])
    const mark = async () =>
      (await books.database.query('SELECT seq FROM triwire.sums_marks WHERE account_id = $1', [id]))[0]?.['seq']
    return () => until(async () => (await mark()) === 2n, `${name} is folded`)
  }
  const first = await folded('first')
  await desk.onReached()
  await first()
  const traffic = createTraffic(Date.now)
  traffic.note({ walk: 'infer', status: 404, code: 'model_not_found', accountId: 'new', wire: 'chat' })
  // Both are inside their transactions before either comes to its words.
  const { writing, second } = await other.transact(async ({ query }) => {
    await query('SELECT FROM triwire.usage_state FOR UPDATE')
    const second = await folded('second')
    const waiting = async () => {
      const sessions = await books.database.query(
        `SELECT FROM pg_stat_activity WHERE application_name = 'triwire usage' AND wait_event_type = 'Lock'`,
      )
      return sessions.length
    }
    await desk.onReached()
    await until(async () => (await waiting()) === 1, 'it is folded')
    const writing = desk.answers.traffic(traffic.take())
    await until(async () => (await waiting()) === 2, 'counters are written')
    return { writing, second }
  })
  await Promise.all([writing, second()])
  const [row] = await books.database.query('SELECT requests FROM triwire.traffic_t')
  assert.equal(row!['requests'], 1n)
})

test('X7 X12 C9 figures are kept by the clock of the database, though that of a server is years ahead', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const open = async (name: string) => {
    const url = postgres.createDatabase(name)
    await (await openPostgresBooks(url, { shown: url })).close()
    stopClock(postgres, name, Date.parse('2023-11-15T12:00:00Z'))
    return { url, ...(await openOperator(url)) }
  }
  const told = async ({ query }: Database) => {
    const [row] = await query(
      'SELECT kept_from, (SELECT count(*) FROM triwire.sums_h) AS figures FROM triwire.usage_state',
    )
    return [new Date((row!['kept_from'] as number) * quarterMs).toISOString(), row!['figures']]
  }
  const starting = await open('starting')
  await settleZone(starting.database, usualReporting, starting.url)
  const { url, database, createAccount } = await open('folding')
  const { id } = await createAccount('one', 10n ** 9n)
  await postDebits(database, [createDebitRow(newRequestId(), id)])
  const desk = new UsageDesk({ url, patienceMs, reporting: usualReporting, say: () => {}, clock: { isBelieved: true } })
  atEnd(() => desk.close())
  await desk.onReached()
  await until(async () => (await database.query('SELECT FROM triwire.sums_marks WHERE seq = 2')).length === 1, 'folded')
  assert.deepEqual(
    [await told(starting.database), await told(database)],
    [
      ['2022-10-01T00:00:00.000Z', 0n],
      ['2022-10-01T00:00:00.000Z', 1n],
    ],
  )
})

test('F-S12: after a promoted database server has lost the newest words, figures are still of the right models', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres({ settings: ['fsync = off'] })
  const url = postgres.createDatabase('promoted')
  await (await openPostgresBooks(url, { shown: url })).close()
  const open = () => {
    const database = openDatabase({ url, max: 3, patienceMs, purpose: 'promoted' })
    atEnd(() => database.close())
    return database
  }
  const database = open()
  const [folding, books] = [createFolding(database), createPostgresBooks(database)]
  const { id } = await books.change(createAccount('one', 0n, { nowMs: 0, calendar: createCalendar(utc) }))
  const post = (models: readonly string[]) =>
    postDebits(
      database,
      models.map((model) => ({ ...createDebitRow(newRequestId(), id), model })),
    )
  const hour = 4 * Math.floor(Date.now() / (4 * quarterMs))
  const modelsOf = async ({ readUsage }: typeof books) => {
    while (await folding.fold()) {}
    const asked = { by: ['model'], sums: ['cost'], times: [], sort: 'cost', only: {}, top: 50 } as const
    const { groups } = await readUsage({ ...asked, bounds: [hour - 8, hour + 8], daysOf: undefined })
    return groups.map(({ of }) => of[0]!).sort()
  }
  await post(['m'])
  assert.deepEqual(await modelsOf(books), ['m'])
  // As a standby that was promoted before it had heard of any word, and has numbered others since.
  const others = Array.from({ length: 20 }, (_, n) => `other-${n}`).sort()
  postgres.run(
    `SET search_path = triwire; SET session_replication_role = replica;
     TRUNCATE sums_marks, sums_d, sums_h, sums_k, sums_t, usage_words RESTART IDENTITY;
     INSERT INTO usage_words (kind, word) VALUES ${others.map((word) => `('model', '${word}')`).join()};
     SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'triwire promoted'`,
    'promoted',
  )
  await until(async () => (await modelsOf(books).catch(() => undefined)) !== undefined, 'the database is reached again')
  await post(others)
  assert.deepEqual(await modelsOf(createPostgresBooks(open())), ['m', ...others])
  assert.deepEqual(await modelsOf(books), ['m', ...others])
})
