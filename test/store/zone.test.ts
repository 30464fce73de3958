import assert from 'node:assert/strict'
import test, { before, suite } from 'node:test'
import { BookError } from '../../src/accounts/book-error.ts'
import { createCalendar, quarterMs } from '../../src/accounts/calendar.ts'
import { type Reporting, usualReporting } from '../../src/accounts/usage/reporting.ts'
import type { StorePlace } from '../../src/config/config.ts'
import { readStorePlace } from '../../src/config/store-place.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { fileAt } from '../support/store-place.ts'
import { until } from '../support/waiting.ts'
import { onEachStore } from './engines.ts'
import { createDebitRow, createPath, open, verifyOptions } from './fixtures.ts'
import { openOperator, openStore } from './postgres/opened.ts'

/* Whose days reports and budgets are by is recorded in the store, and changed by an operator alone (ruling X12). */

const berlin: Reporting = { ...usualReporting, timeZone: 'Europe/Berlin' }
/** The night in which it is the 25th in Berlin and in Kolkata, and not yet in UTC. */
const atMs = Date.parse('2026-10-24T22:30:00Z')

const isRule = (code: string) => (error: unknown) => error instanceof BookError && error.code === code

onEachStore((engine) => {
  test('X12: the zone that the first server names is recorded, and no later server changes it', async () => {
    const store = await engine.open({ atMs })
    assert.deepEqual(await store.readUsageState(), { timeZone: 'UTC', weekStarts: 'monday', keptFrom: 0 })
    await store.adoptReporting(berlin)
    const { keptFrom } = await store.readUsageState()
    await store.adoptReporting({ ...usualReporting, weekStarts: 'sunday' })
    assert.deepEqual(await store.readUsageState(), { timeZone: 'Europe/Berlin', weekStarts: 'sunday', keptFrom })
  })

  test('X12: rezone records another zone and remakes the days in one commit, and the audit records it once', async () => {
    const store = await engine.open({ atMs })
    await store.adoptReporting(usualReporting)
    const { id } = await store.createAccount('a', 1_000_000_000_000n)
    await store.postDebits([createDebitRow('one', id)])
    while (await store.fold(500)) {}
    const { weekStarts } = berlin
    const days = async (timeZone: 'UTC' | 'Asia/Kolkata') => {
      const midnights = { UTC: '2026-10-24T00:00:00Z', 'Asia/Kolkata': '2026-10-24T18:30:00Z' }
      const quarter = Date.parse(midnights[timeZone]) / 900_000
      const bounds = [quarter - 96, quarter, quarter + 96]
      const asked = { by: [], top: 1, only: {}, sort: 'requests', sums: ['requests'], times: [] } as const
      return (await store.readUsage({ ...asked, bounds, daysOf: { timeZone, weekStarts } })).total.sums[0]
    }
    assert.deepEqual(await days('UTC'), [0n, 1n])
    const operator = store.as({ actor: 'cli:ann@here' })
    assert.deepEqual(await operator.rezone('Asia/Kolkata'), { before: 'UTC', after: 'Asia/Kolkata' })
    assert.equal((await store.readUsageState()).timeZone, 'Asia/Kolkata')
    assert.deepEqual(await days('Asia/Kolkata'), [0n, 1n])
    assert.deepEqual(await store.verify(verifyOptions), [])
    assert.deepEqual(await operator.rezone('Asia/Kolkata'), { before: 'Asia/Kolkata', after: 'Asia/Kolkata' })
    await assert.rejects(operator.rezone('Nowhere/Else'), isRule('zone_invalid'))
    const told = await store.listAudit({ operation: 'reporting.rezone', limit: 9 })
    assert.deepEqual(
      told.map(({ actor, before, after }) => [actor, before, after]),
      [['cli:ann@here', '{"time_zone":"UTC"}', '{"time_zone":"Asia/Kolkata"}']],
    )
  })

  test('issue 13 X12: several names of one zone count as one zone, in the file of a server and in the store', async () => {
    const store = await engine.open({ atMs })
    await store.adoptReporting({ ...usualReporting, timeZone: 'utc' })
    assert.equal((await store.readUsageState()).timeZone, 'UTC')
    const operator = store.as({ actor: 'cli:ann@here' })
    assert.deepEqual(await operator.rezone('Utc'), { before: 'UTC', after: 'UTC' })
    assert.deepEqual(await operator.rezone('europe/berlin'), { before: 'UTC', after: 'Europe/Berlin' })
    // A name of a zone that has several stays the one that people have chosen.
    assert.equal((await operator.rezone('Asia/Kolkata')).after, 'Asia/Kolkata')
    assert.deepEqual(await operator.rezone('Asia/Calcutta'), { before: 'Asia/Kolkata', after: 'Asia/Kolkata' })
    await operator.rezone('Europe/Berlin')
    // What another server has recorded in its own way.
    await store.exec(`UPDATE ${engine.name === 'SQLite' ? '' : 'triwire.'}usage_state SET time_zone = 'EUROPE/Berlin'`)
    assert.equal((await store.readUsageState()).timeZone, 'Europe/Berlin')
    assert.deepEqual(await operator.rezone('Europe/Berlin'), { before: 'Europe/Berlin', after: 'Europe/Berlin' })
  })

  for (const [timeZone, keptFrom] of [
    ['Asia/Kolkata', '2026-12-01T18:30:00.000Z'],
    ['America/New_York', '2026-12-01T05:00:00.000Z'],
    ['Europe/London', '2026-12-01T00:00:00.000Z'],
  ] as const) {
    test(`issue 13 X12 C9: if a store is older than its retention, the days of ${timeZone} begin with a whole one, in reports and verify`, async () => {
      const store = await engine.open({ atMs: Date.parse('2026-11-30T12:00:00Z') })
      const { id } = await store.createAccount('a', 1_000_000_000_000n)
      for (const [n, day] of ['2026-11-30', '2026-12-01', '2026-12-02', '2027-01-05'].entries())
        for (const hour of ['02', '12', '20']) {
          await store.turn(Date.parse(`${day}T${hour}:00:00Z`))
          await store.postDebits([createDebitRow(`${n} ${hour}`, id)])
        }
      await store.adoptReporting({ ...usualReporting, keepMonths: 1 })
      while (await store.fold(500)) {}
      while (await store.pruneSome()) {}
      assert.deepEqual(await store.verify(verifyOptions), [])
      await store.rezone(timeZone)
      assert.deepEqual(await store.verify(verifyOptions), [])
      while (await store.pruneSome()) {}
      assert.deepEqual(await store.verify(verifyOptions), [])
      const calendar = createCalendar({ timeZone, weekStarts: 'monday' })
      const bounds = ['2026-11-30', '2026-12-01', '2026-12-02', '2026-12-03'].map(
        (day) => calendar.startOf(day) / quarterMs,
      )
      const asked = { by: [], top: 1, only: {}, sort: 'requests', sums: ['requests'], times: [] } as const
      const days = await store.readUsage({ ...asked, bounds, daysOf: { timeZone, weekStarts: 'monday' } })
      // From the quarters themselves.
      const quarters = await store.readUsage({ ...asked, bounds, daysOf: undefined })
      assert.deepEqual(days.total.sums, quarters.total.sums)
      assert.equal(new Date(days.keptFrom * quarterMs).toISOString(), keptFrom)
    })
  }
})

const sayOther = (shown: string) =>
  `the days of ${shown} are those of Europe/Berlin, and reporting.time_zone says UTC: set it to Europe/Berlin, or stop all servers of the store and run triwire reporting rezone UTC`

async function rezone(place: StorePlace, zone: string): Promise<unknown> {
  const { books, close } = await openBooks(place, { create: false, isAlone: true })
  try {
    return await books.rezone(zone)
  } finally {
    await close()
  }
}

test('X12: a server whose file names another zone does not start until rezone was run, which waits for no server', async (t) => {
  const path = createPath(t)
  const first = await open(t, path, { reporting: berlin })
  await assert.rejects(rezone(fileAt(path), 'UTC'), /Another triwire server is running on .*: stop it first/)
  await first.close()
  await assert.rejects(
    open(t, path, { reporting: usualReporting }),
    (error) => error instanceof StoreError && error.message === sayOther(path),
  )
  const again = await open(t, path, { reporting: { ...berlin, keepMonths: 2 } })
  await again.close()
  assert.deepEqual(await rezone(fileAt(path), 'UTC'), { before: 'Europe/Berlin', after: 'UTC' })
  const last = await open(t, path, { reporting: usualReporting })
  await last.close()
})

suite('on PostgreSQL', { skip: withoutPostgres() }, () => {
  let postgres: Postgres
  before(async () => {
    postgres = await startPostgres({ settings: ['fsync = off'] })
  })

  test('X12: a replica that names another zone does not start, whichever replica runs; rezone needs all of them stopped', async () => {
    const url = postgres.createDatabase('zones')
    const place = readStorePlace(url, '/')
    const one = await openStore(url, { reporting: berlin })
    const refused = () =>
      assert.rejects(
        openStore(url, { reporting: usualReporting, isStuck: true }),
        (error) => error instanceof StoreError && error.message === sayOther(url),
      )
    await refused()
    const two = await openStore(url, { reporting: berlin })
    await assert.rejects(rezone(place, 'UTC'), isRule('servers_run'))
    await one.close()
    await assert.rejects(rezone(place, 'UTC'), isRule('servers_run'))
    await two.close()
    await refused()
    assert.deepEqual(await rezone(place, 'UTC'), { before: 'Europe/Berlin', after: 'UTC' })
    const last = await openStore(url, { reporting: usualReporting })
    await last.close()
  })

  test('X12: a running server survives a lost connection and a dead thread, whatever zone is recorded by then', async () => {
    const url = postgres.createDatabase('goes_on')
    const { database } = await openOperator(url)
    const store = await openStore(url, { reporting: berlin })
    await database.query(`UPDATE triwire.usage_state SET time_zone = 'UTC'`)
    const reached = store.told('store_reached').length
    await database.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'triwire control' AND datname = current_database()`,
    )
    await until(() => store.told('store_reached').length > reached, 'the database is reached again')
    await store.workers[0]!.terminate()
    await until(() => store.told('ledger_worker_restart').length > 0, 'another thread has begun')
    await until(() => store.ledger.whyBlocked() === undefined, 'the store is ready')
    assert.deepEqual(store.fatals, [])
  })
})
