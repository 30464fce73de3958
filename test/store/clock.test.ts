import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test, { before } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { BookError } from '../../src/accounts/book-error.ts'
import { createBooks } from '../../src/accounts/books.ts'
import { quarterMs } from '../../src/accounts/calendar.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import type { ServerStore } from '../../src/accounts/server-store.ts'
import type { Act } from '../../src/accounts/trail.ts'
import { newRequestId } from '../../src/ids.ts'
import { createSpool, spoolPath } from '../../src/store/files/spool.ts'
import { ClockDesk } from '../../src/store/postgres/control.ts'
import { openStore as openFile } from '../../src/store/sqlite/store.ts'
import { atEnd } from '../support/at-end.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../support/postgres.ts'
import { until } from '../support/waiting.ts'
import { onEachStore, stopClock } from './engines.ts'
import { createDebit, createDebitRow, createPath, type LogLine, open, verifyOptions } from './fixtures.ts'
import { openOperator, openStore } from './postgres/opened.ts'

/* A clock that dates entries is held against a steady one, and nothing is dated by one in doubt (ruling Y15). */

const [hourMs, dayMs] = [3_600_000, 86_400_000]
const noon = Date.UTC(2026, 10, 21, 12)

onEachStore((engine) => {
  const credits = (ms: number) => new Date(ms).toISOString()

  test('Y15 a clock more than 366 days past the newest entry credits no account until it is confirmed', async () => {
    const store = await engine.open({ atMs: noon - 10_000 * dayMs })
    // An empty store asks for no confirmation.
    const { id } = await store.createAccount('one')
    await store.turn(noon)
    await store.credit(id, 5n, 'first')
    await store.turn(noon + 366 * dayMs)
    await store.credit(id, 5n, 'after a rest')
    const aheadMs = noon + 2 * 366 * dayMs + 1
    await store.turn(aheadMs)
    const refused = { code: 'clock_doubtful', subject: credits(aheadMs) }
    await assert.rejects(store.credit(id, 5n, 'ahead'), refused)
    await assert.rejects(store.createAccount('two', 5n), refused)
    // Operations that date no entry work, and a credit that is already booked is reported as such.
    await store.createAccount('three')
    assert.equal(await store.credit(id, 5n, 'first'), 'exists')
    assert.equal((await store.findAccount(id)).balanceNanos, 10n)
    assert.deepEqual(await store.confirmClock(), { time: credits(aheadMs) })
    assert.equal(await store.credit(id, 5n, 'ahead'), 'posted')
    const [record] = await store.listAudit({ operation: 'clock.confirm', limit: 9 })
    assert.deepEqual(
      [record?.object, record?.actor, record?.after],
      ['clock', 'triwire', `{"time":"${credits(aheadMs)}"}`],
    )
    assert.deepEqual((await store.verifyAudit()).findings, [])
  })

  test('Y15 a server that checks the clock decides: an idle store alone blocks nothing, a doubt does', async () => {
    const store = await engine.open({ atMs: noon })
    const { id } = await store.createAccount('one', 5n)
    const wrong = store.as({ actor: 'operator:ann', expectedMs: Number.NaN })
    await assert.rejects(wrong.credit(id, 5n, 'a'), BookError)
    await store.turn(noon + 400 * dayMs)
    assert.equal(
      await store.as({ actor: 'operator:ann', expectedMs: noon + 400 * dayMs }).credit(id, 5n, 'a'),
      'posted',
    )
  })

  for (const aheadMs of [2 * dayMs, 730 * dayMs])
    test(`Y15 entries ${aheadMs / dayMs} days ahead are a finding of the first verify, and do not date other accounts`, async () => {
      const store = await engine.open({ atMs: noon })
      const { id } = await store.createAccount('one', 5n)
      const { id: other } = await store.createAccount('two', 5n)
      await store.turn(noon + aheadMs)
      await store.postDebits([createDebitRow('req_1', id)])
      await store.turn(noon + 1_000)
      const at = credits(noon + aheadMs)
      const finding = `account ${id}: its last entry is posted at ${at}, and that is to come: a clock was ahead`
      for (let n = 0; n < 2; n++)
        assert.deepEqual(await store.audit(verifyOptions), { findings: [finding], head: undefined })
      assert.deepEqual(await store.verify(verifyOptions), [finding])
      await store.postDebits([createDebitRow('req_2', other)])
      assert.equal((await store.findEntry('req_2'))!.postedMs, noon + 1_001)
      await store.turn(noon + aheadMs - hourMs)
      assert.deepEqual(await store.verify(verifyOptions), [])
    })

  for (const aheadMs of [2 * dayMs, 730 * dayMs])
    test(`Y15 a verify by a clock ${aheadMs / dayMs} days ahead moves nothing: with the correct clock all is as before`, async () => {
      const store = await engine.open({ atMs: noon + aheadMs })
      // A head of no entries lies nowhere.
      assert.match((await store.audit(verifyOptions)).head!, /^1\/1970-01-01T00:00:00\.000Z\//)
      await store.turn(noon)
      const { id } = await store.createAccount('one', 5n)
      await store.turn(noon + aheadMs)
      const against = parseHead((await store.audit(verifyOptions)).head!)
      assert.equal(against.momentMs, noon)
      await store.turn(noon + 1)
      await store.postDebits([createDebitRow('req_1', id)])
      assert.equal((await store.findEntry('req_1'))!.postedMs, noon + 1)
      assert.deepEqual(await store.verify({ ...verifyOptions, against }), [])
    })
})

/** A server on a store whose clock a test may turn; its account has had an entry at the start. */
type Served = {
  store: ServerStore
  lines: LogLine[]
  spool: string
  /** Moves the clock that dates entries. */
  turn(ms: number): Promise<void>
  confirm(): Promise<void>
  /** Books credit as the server of the store does. */
  credit(reference: string): Promise<'posted' | 'exists'>
  debit(requestId: string): ReturnType<ServerStore['ledger']['debit']>
  /** When it was posted; undefined: it is not in the ledger. */
  postedMs(requestId: string): Promise<number | undefined>
  /** What the clock shows now. */
  nowMs(): number
}

type Serving = { newestMs?: number; settleDeadlineMs?: number; isStuck?: boolean }

/** @param turned added to wall and steady clock. */
async function serveFile({ newestMs = Date.now() - dayMs, ...options }: Serving = {}, turned = turnable()) {
  const path = createPath()
  const operator = openFile(path, { nowMs: () => newestMs })
  atEnd(() => operator.close())
  const { id } = await createBooks(operator, () => newestMs).createAccount('one', 10n ** 12n)
  const opened = await open({ after: atEnd } as never, path, { turned, pollMs: 5, settleDeadlineMs: 30, ...options })
  const nowMs = () => Date.now() + turned[0]!
  const beside = openFile(path, { nowMs })
  atEnd(() => beside.close())
  const served: Served = {
    ...{ store: opened, lines: opened.lines, spool: spoolPath(path), nowMs },
    async turn(ms) {
      turned[0]! += ms
    },
    confirm: async () => void (await createBooks(beside, nowMs).confirmClock()),
    credit: (reference) => createBooks(beside, nowMs, serverOf(opened)).credit('one', 1n, reference),
    debit: (requestId) => opened.ledger.debit(createDebit(requestId, opened.accounts.get(id)!)),
    postedMs: async (requestId) => (await beside.findEntry(requestId))?.postedMs,
  }
  return { ...served, turned, beside }
}

function turnable(): Float64Array {
  return new Float64Array(new SharedArrayBuffer(16))
}

const skipped = withoutPostgres()
let postgres: Postgres
let databases = 0

before(async () => {
  if (!skipped) postgres = await startPostgres({ settings: ['fsync = off'] })
})

async function serveDatabase({ newestMs = noon - dayMs, ...options }: Serving = {}): Promise<Served> {
  const name = `clock_${++databases}`
  const url = postgres.createDatabase(name)
  stopClock(postgres, name, newestMs)
  const books = await openOperator(url)
  await books.createAccount('one', 10n ** 12n)
  const { key } = await books.createKey('one')
  let atMs = newestMs
  const turn = async (ms: number) => {
    atMs += ms
    await books.database.query(`UPDATE turned.clock SET ms = ${atMs}`)
  }
  await turn(noon - newestMs)
  const store = await openStore(url, { settleDeadlineMs: 30, ...options })
  const { account } = (await store.directory.findKey(digestKey(key)))!
  return {
    ...{ store, lines: store.lines, spool: store.spool, turn, nowMs: () => atMs },
    confirm: async () => void (await books.confirmClock()),
    credit: (reference) => books.as(serverOf(store)).credit('one', 1n, reference),
    debit: (requestId) => store.ledger.debit(createDebit(requestId, account)),
    postedMs: async (requestId) => (await books.findEntry(requestId))?.postedMs,
  }
}

const engines = [
  { name: 'SQLite', serve: (options?: Serving) => serveFile(options) as Promise<Served>, skip: false as const },
  { name: 'PostgreSQL', serve: serveDatabase, skip: skipped },
]

/** New inference is taken, and no account owes a debit (ruling Y16). */
const isReady = ({ ledger }: Served['store']) =>
  ledger.whyBlocked() === undefined && ledger.backlog().blockedAccounts === 0

const serverOf = ({ clock }: ServerStore): Act => ({ actor: 'triwire', expectedMs: clock.expectedMs() })

/** However slow the machine is: what its deadline puts into the spool is posted all the same. */
async function postOne({ debit, postedMs }: Pick<Served, 'debit' | 'postedMs'>): Promise<void> {
  const requestId = newRequestId()
  await debit(requestId)
  await until(() => postedMs(requestId), 'it is posted')
}

const clockLines = ({ lines }: Served) =>
  lines
    .filter(({ event }) => /^clock_(?:wrong|right)/.test(event))
    .map(({ event, fields }) => [event, fields['problem']])

for (const { name, serve, skip } of engines) {
  for (const moveMs of [730 * dayMs, 2 * hourMs, -2 * hourMs, -730 * dayMs])
    test(`Y15 on ${name}: when a clock moves ${moveMs / hourMs} hours, new requests are refused, running ones spooled, and all posted after it is back`, {
      skip,
    }, async () => {
      const served = await serve()
      const { store, debit, turn, postedMs } = served
      await debit(newRequestId())
      await turn(moveMs)
      const requestId = newRequestId()
      // Whoever was let in before anybody has noticed.
      assert.equal(await debit(requestId), 'spooled')
      await until(() => store.ledger.whyBlocked() === 'clock', 'the clock is in doubt')
      assert.match(store.clock.doubt!, /^the clock is in doubt.* triwire clock confirm$/)
      assert.deepEqual([store.ledger.whyBlocked(), await postedMs(requestId)], ['clock', undefined])
      assert.ok(readFileSync(served.spool, 'utf8').includes(requestId))
      await turn(-moveMs)
      await until(() => isReady(store), 'it is back')
      assert.ok(Math.abs((await postedMs(requestId))! - served.nowMs()) < hourMs)
      assert.deepEqual(clockLines(served), [
        ['clock_wrong', 'moved'],
        ['clock_right', undefined],
      ])
    })

  test(`Y15 BRK-5 on ${name}: a credit at the very moment at which the clock moves is refused, before anybody has noticed`, {
    skip,
  }, async () => {
    const { store, turn, credit, confirm } = await serve()
    await until(() => store.clock.news !== undefined, 'the clock is judged')
    for (const moveMs of [730 * dayMs, 61 * 60_000, -61 * 60_000]) {
      assert.equal(store.clock.doubt, undefined)
      assert.equal(await credit(`before ${moveMs}`), 'posted')
      await turn(moveMs)
      await assert.rejects(credit(`ahead ${moveMs}`), { code: 'clock_doubtful' })
      await turn(-moveMs)
      await until(() => store.clock.doubt === undefined, 'it is back')
      assert.equal(await credit(`ahead ${moveMs}`), 'posted')
    }
    await turn(50 * 60_000)
    assert.equal(await credit('less than an hour'), 'posted')
    await turn(20 * 60_000)
    await assert.rejects(credit('more in two moves'), { code: 'clock_doubtful' })
    await until(() => store.clock.doubt !== undefined, 'the clock is in doubt')
    await assert.rejects(credit('in doubt'), { code: 'clock_doubtful' })
    await confirm()
    await until(() => store.clock.doubt === undefined, 'it is confirmed')
    assert.equal(await credit('confirmed'), 'posted')
  })

  test(`Y15 on ${name}: a store clock that differs from this machine's is reported as an event, if the two can differ`, {
    skip,
  }, async () => {
    const { lines, store } = await serve()
    await until(() => store.clock.news !== undefined, 'the store has told its time')
    const differs = lines.filter(({ event }) => event === 'clock_differs')
    assert.equal(differs.length, name === 'SQLite' ? 0 : 1)
  })

  test(`Y15 on ${name}: a confirmation ends the doubt and lasts; the next move is in doubt again`, {
    skip,
  }, async () => {
    const served = await serve()
    const { store, debit, turn, confirm, postedMs } = served
    // One of before the doubt counts for nothing.
    await confirm()
    await turn(3 * dayMs)
    const requestId = newRequestId()
    assert.equal(await debit(requestId), 'spooled')
    await until(() => store.clock.doubt !== undefined, 'the clock is in doubt')
    await confirm()
    await until(() => isReady(store), 'it is confirmed')
    assert.ok(Math.abs((await postedMs(requestId))! - served.nowMs()) < hourMs)
    await postOne(served)
    await turn(-2 * hourMs)
    await until(() => store.clock.doubt !== undefined, 'the clock is in doubt again')
    await turn(2 * hourMs)
    await until(() => isReady(store), 'it is back')
    assert.equal(clockLines(served).length, 4)
  })

  test(`Y15 on ${name}: a start more than 366 days past the newest entry takes nothing until it is confirmed`, {
    skip,
  }, async () => {
    const served = await serve({ newestMs: (name === 'SQLite' ? Date.now() : noon) - 367 * dayMs, isStuck: true })
    const { store, confirm } = served
    await until(() => store.clock.news?.problem === 'rest', 'the clock is judged')
    assert.deepEqual(store.ledger.whyBlocked(), 'clock')
    assert.match(store.clock.doubt!, /366 days .* triwire clock confirm$/)
    await confirm()
    await until(() => isReady(store), 'it is confirmed')
    await postOne(served)
  })

  test(`Y15 on ${name}: a newest entry ahead of the clock is reported at the start, and no request is refused`, {
    skip,
  }, async () => {
    const served = await serve({ newestMs: (name === 'SQLite' ? Date.now() : noon) + 2 * dayMs })
    const { store } = served
    assert.equal(isReady(store), true)
    assert.match(store.clock.text!, /newest entry is more than an hour ahead of the clock/)
    await postOne(served)
    assert.deepEqual(clockLines(served), [['clock_wrong', 'ahead']])
  })
}

test('Y15 on SQLite: debits of a spool that waited for a confirmed clock are in the balance before a request is admitted', async () => {
  const path = createPath()
  const newestMs = Date.now() - 367 * dayMs
  const operator = openFile(path, { nowMs: () => newestMs })
  const { id } = await createBooks(operator, () => newestMs).createAccount('one', 10n ** 12n)
  operator.close()
  const spool = createSpool(spoolPath(path))
  const spooled = createDebit(newRequestId(), { id })
  await spool.append([spooled])
  await spool.close()
  const { ledger, balances } = await open({ after: atEnd } as never, path, {
    pollMs: 5,
    settleDeadlineMs: 30,
    isStuck: true,
  })
  await until(() => ledger.whyBlocked() === 'clock', 'the clock is in doubt')
  assert.equal(balances.get(id)!.balanceNanos, 10n ** 12n)
  const beside = openFile(path)
  atEnd(() => beside.close())
  await createBooks(beside, Date.now).confirmClock()
  await until(() => ledger.whyBlocked() === undefined, 'it is confirmed')
  assert.equal(balances.get(id)!.balanceNanos, 10n ** 12n - spooled.amountNanos)
})

test('Y15 when a machine sleeps for hours both clocks move on: only a move of one alone is in doubt', async () => {
  const served = await serveFile()
  const { store, turned, turn } = served
  // Wall and steady clock are read one after the other: the steady one first, which alone makes no doubt for an hour.
  for (let n = 0; n < 10; n++) {
    turned[1]! += hourMs / 2
    turned[0]! += hourMs / 2
  }
  await postOne(served)
  await turn(2 * hourMs)
  await until(() => store.clock.doubt !== undefined, 'the clock is in doubt')
  assert.equal(clockLines(served).length, 1)
})

test('Y15 the successor of a thread that died in doubt is in doubt', async () => {
  const workers: Worker[] = []
  const note = (worker: Worker) => void workers.push(worker)
  process.on('worker', note)
  atEnd(() => process.off('worker', note))
  const { store, turn, lines, postedMs, debit } = await serveFile()
  await turn(2 * hourMs)
  await until(() => store.clock.doubt !== undefined, 'the clock is in doubt')
  await workers.at(-1)!.terminate()
  await until(() => lines.some(({ event }) => event === 'ledger_worker_restart') && workers.length > 1)
  const requestId = newRequestId()
  assert.equal(await debit(requestId), 'spooled')
  assert.deepEqual([await postedMs(requestId), isReady(store)], [undefined, false])
  await turn(-2 * hourMs)
  await until(() => isReady(store), 'it is back')
  assert.ok(await postedMs(requestId))
})

test('Y15 a clock in doubt discards no figures of reports', async () => {
  const newestMs = Date.now() - 730 * dayMs
  const { beside, store, confirm } = await serveFile({ newestMs, isStuck: true })
  await until(() => store.clock.news?.problem === 'rest', 'the clock is judged')
  const keptMs = () => beside.atOnce.readUsageState().keptFrom * quarterMs
  assert.ok(keptMs() > 0 && keptMs() < newestMs, new Date(keptMs()).toISOString())
  await confirm()
  await until(() => isReady(store), 'it is confirmed')
})

test('Y15 BRK-14 a lock of the audit trail does not delay the look at a clock that is right', {
  skip: skipped,
}, async () => {
  const { database, ...books } = await openOperator(postgres.createDatabase('audit_locked'))
  await books.createAccount('one', 5n)
  let movedMs = 0
  const problems: unknown[] = []
  const say = (_: unknown, { problem }: { problem: unknown }) => void problems.push(problem)
  const desk = new ClockDesk(say as never, () => performance.now() + movedMs, undefined)
  await desk.onBeat(database)
  await database.transact(async (other) => {
    await other.query('LOCK TABLE triwire.audit IN ACCESS EXCLUSIVE MODE')
    movedMs += 60_000
    await desk.onBeat(database)
  })
  movedMs += 2 * hourMs
  await desk.onBeat(database)
  assert.deepEqual(problems, [undefined, undefined, 'moved'])
})
