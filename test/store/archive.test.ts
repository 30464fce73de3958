import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import test, { before } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { createSealedSums } from '../../src/accounts/archive.ts'
import { BookError } from '../../src/accounts/book-error.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import type { Entry } from '../../src/accounts/entries.ts'
import {
  type ArchiveWishes,
  attachMonth,
  detachMonth,
  exportMonth,
  planMonth,
} from '../../src/store/archive/archive.ts'
import type { ArchiveStore } from '../../src/store/archive/end.ts'
import { fileColumns, readArchive } from '../../src/store/archive/file.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { archivingVersion as postgresVersion } from '../../src/store/postgres/schema.ts'
import type { Statement } from '../../src/store/sql/dialect.ts'
import { createListing } from '../../src/store/sql/listing.ts'
import { ask, rowsOf } from '../../src/store/sql/step.ts'
import { archivingVersion as sqliteVersion } from '../../src/store/sqlite/schema.ts'
import { isNightly } from '../support/runs.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, verifyOptions } from './fixtures.ts'

/*
 * Closed months that leave the store and come back (issue 48, point 7). Three months of three accounts, in a zone that is an hour ahead
 * of UTC: one account with a key and people, one quiet account, one that gets grants.
 */

const day = 86_400_000
const zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' } as const
const reporting = { ...zone, keepMonths: 13 }
const januaryMs = Date.UTC(2026, 0, 5, 12)
const months = ['2026-01', '2026-02', '2026-03']
const perMonth = 6

const act = { actor: 'cli:test@here' }

function wishes(month: string, more: Partial<ArchiveWishes> = {}): ArchiveWishes {
  return { month, act, ...verifyOptions, ...more }
}

async function foldAll(store: TestStore): Promise<void> {
  while (await store.fold(100));
}

test('issue 48 sealed sums keep the people of one key apart', () => {
  const { add, list } = createSealedSums()
  for (const person of ['per_1', 'per_2', null]) add({ kind: 'debit', amount: 5n, key_id: 'key_1', person })
  assert.deepEqual(
    list().map(({ keyId, person, sums }) => [keyId, person, sums.requests, sums.cost]),
    [
      ['key_1', 'per_1', 1n, 5n],
      ['key_1', 'per_2', 1n, 5n],
      ['key_1', '', 1n, 5n],
    ],
  )
})

type Filled = Record<'a' | 'b' | 'quiet' | 'keyId', string> & { heads: string[] }

/** Fills January to March; the clock then shows the middle of April. */
async function fill(store: TestStore): Promise<Filled> {
  await store.adoptReporting(reporting)
  const { id: a } = await store.createAccount('busy', 50_000_000n)
  const { id: quiet } = await store.createAccount('quiet', 1_000_000n)
  const { id: b } = await store.createAccount('other', 50_000_000n)
  const { id: keyId } = await store.createKey(a, { budget: { nanos: 10n ** 12n, per: undefined } })
  const heads: string[] = []
  for (const [at, month] of months.entries()) {
    const fromMs = januaryMs + at * 30 * day
    for (let n = 0; n < perMonth; n++) {
      await store.turn(fromMs + n * day)
      const make = (account: string, more = {}) => ({
        ...createDebitRow(`req_${month}_${account === a ? 'a' : 'b'}${n}`, account),
        createdMs: fromMs + n * day,
        ...more,
      })
      assert.deepEqual(await store.postDebits([make(a, { keyId }), make(b)]), ['posted', 'posted'])
      if (at === 0 && n === 2) heads.push((await store.audit(verifyOptions)).head!)
    }
    await store.credit(a, 1_000_000n, `invoice ${month}`)
    heads.push((await store.audit(verifyOptions)).head!)
  }
  await store.postDebits([{ ...createDebitRow('req_quiet', quiet), createdMs: januaryMs }])
  await store.turn(Date.UTC(2026, 3, 15))
  await foldAll(store)
  return { a, b, quiet, keyId, heads }
}

async function list(store: TestStore): Promise<Entry[]> {
  return Array.fromAsync(store.eachEntry())
}

async function stateOf(store: TestStore, month: string): Promise<string | undefined> {
  return (await store.listArchives()).find((one) => one.month === month)?.state
}

/** Undoes what later migrations have added to the schema that first knew archives. */
async function toArchivingVersion(store: TestStore): Promise<void> {
  await store.forge(async ({ engine, run }) => {
    const added = { accounts: ['external_id', 'metadata'], keys: ['external_id', 'metadata'] }
    const moved = Object.fromEntries(['traffic_q', 'traffic_d', 'traffic_t'].map((table) => [table, ['moved']]))
    const lasting = ['', '_by_account', '_revoked', '_live'].map((name) => `keys_lasting${name}`)
    for (const index of ['accounts_external', 'keys_external', ...lasting]) await run(`DROP INDEX ${index}`)
    for (const [table, columns] of Object.entries({ ...added, ...moved }))
      for (const column of columns) await run(`ALTER TABLE ${table} DROP COLUMN ${column}`)
    if (engine === 'postgres') await run(`UPDATE schema SET version = ${postgresVersion}`)
    else await run(`PRAGMA application_id = ${0x74_72_69_00 + sqliteVersion}`)
  })
}

async function awayIn(work: () => Promise<unknown>, subject: string): Promise<void> {
  await assert.rejects(
    work,
    (error) => error instanceof BookError && error.code === 'month_away' && error.subject === subject,
  )
}

/** Changes past the triggers, and the finding. @property sql of the busy account */
const forgeries: [name: string, sql: (a: string) => string[], finding: RegExp][] = [
  [
    'the sum of a sealed row',
    (a) => [`UPDATE seals SET credited = credited + 5, debited = debited + 5 WHERE account_id = '${a}'`],
    /archive of 2026-01: its sealed rows/,
  ],
  [
    'the balance of a sealed row',
    (a) => [`UPDATE seals SET balance = balance + 5 WHERE account_id = '${a}' AND month = '2026-01'`],
    /sealed row of 2026-01: balance after it is/,
  ],
  [
    'the last digest of a sealed row',
    (a) => [`UPDATE seals SET last_digest = '1:x' WHERE account_id = '${a}' AND month = '2026-02'`],
    /is not what its digest was made of/,
  ],
  [
    'a sealed row is gone',
    (a) => [`DELETE FROM seals WHERE account_id = '${a}' AND month = '2026-01'`],
    /sealed row of 2026-02: follows entry 0/,
  ],
  [
    'the sums of a key',
    (a) => [`UPDATE sealed_sums SET cost = cost - 1 WHERE account_id = '${a}'`],
    /its sealed rows are not as they were made/,
  ],
  [
    'a request is taken out of the index',
    () => ["DELETE FROM archived WHERE month = '2026-01' AND seq = 3"],
    /archive of 2026-01: its index/,
  ],
  [
    'the file that was sealed',
    () => ["UPDATE archives SET file_digest = 'x' WHERE month = '2026-02'"],
    /archive of 2026-02: its digest does not fit/,
  ],
  [
    'the month in between is gone',
    () => ["DELETE FROM archives WHERE month = '2026-02'", "DELETE FROM seals WHERE month = '2026-02'"],
    /archive of 2026-02: the audit trail says that it was detached, and it is missing/,
  ],
  [
    'an archive is gone, and its sealed rows are not',
    () => ["DELETE FROM archives WHERE month = '2026-02'"],
    /has a sealed row of 2026-02, of which there is no archive/,
  ],
  [
    'all traces of a month but the audit',
    () => [...['archives', 'seals', 'sealed_sums', 'archived'].map((table) => `DELETE FROM ${table}`)],
    /follows entry 0/,
  ],
  [
    'a month that is said to be here',
    () => ["UPDATE archives SET state = 'attached' WHERE month = '2026-02'"],
    /sealed row of 2026-02: is not what the entries end with/,
  ],
]

onEachStore((engine) => {
  let filled: Filled
  let copy: () => Promise<TestStore>
  before(async () => {
    const keep = async (store: TestStore) => {
      filled = await fill(store)
    }
    copy = await engine.prepare(keep, { atMs: januaryMs, zone })
  })
  const open = async () => ({ store: await copy(), ...filled })

  test('issue 48 a closed month is detached and attached again, and verify passes with and without it', async () => {
    const { store, heads } = await open()
    const all = await list(store)
    const planned = await planMonth(store.archives, wishes('2026-01'), true)
    const exported = await exportMonth(store.archives, wishes('2026-01'))
    assert.equal(planned.entries, exported.entries)
    assert.deepEqual(await list(store), all, 'an export changes nothing')

    const detached = await detachMonth(store.archives, wishes('2026-01'))
    assert.equal(detached.state, 'away')
    assert.equal(await stateOf(store, '2026-01'), 'away')
    const there = await store.listEntries({ limit: 1_000 })
    assert.equal(there.length, all.length - detached.entries)
    assert.deepEqual(await store.verify(verifyOptions), [])
    // The second one was taken after the last entry of January, with which the sealed rows end.
    for (const head of heads.slice(1))
      assert.deepEqual(await store.verify({ ...verifyOptions, against: parseHead(head) }), [])
    const [inside] = await store.verify({ ...verifyOptions, against: parseHead(heads[0]!) })
    assert.match(inside!, /it is of a time in 2026-01, which is away: attach that month/)
    assert.deepEqual(await store.verifyAudit().then(({ findings }) => findings), [])

    await attachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await list(store), all)
    for (const head of heads) assert.deepEqual(await store.verify({ ...verifyOptions, against: parseHead(head) }), [])
    await detachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 nothing of a detached month is booked twice: debits, credits, returns', async () => {
    const { store, a, keyId } = await open()
    await detachMonth(store.archives, wishes('2026-01'))
    const before = await store.findAccount(a)
    const debit = { ...createDebitRow('req_2026-01_a1', a), createdMs: januaryMs + day, keyId }
    assert.deepEqual(await store.postDebits([debit]), ['exists'])
    assert.deepEqual(await store.postDebits([{ ...debit, amountNanos: 1n }]), ['conflict'])
    assert.equal(await store.credit(a, 1_000_000n, 'invoice 2026-01'), 'exists')
    await assert.rejects(store.credit(a, 2n, 'invoice 2026-01'), { code: 'reference_conflict' })
    assert.equal((await store.findAccount(a)).balanceNanos, before.balanceNanos)
    assert.deepEqual(await store.verify(verifyOptions), [])

    // A debit whose client was refused is returned once, even if it is in a detached month.
    assert.deepEqual(await store.giveBack(['req_2026-01_a1']), ['req_2026-01_a1'])
    await store.giveBack(['req_2026-01_a1'])
    assert.equal((await store.findAccount(a)).balanceNanos, before.balanceNanos + costNanos)
    assert.deepEqual(await store.verify(verifyOptions), [])
    await attachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await store.postDebits([debit]), ['exists'])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 R5 one call may repeat debits of the ledger and of a detached month beside new ones', async () => {
    const { store, a } = await open()
    await detachMonth(store.archives, wishes('2026-01'))
    const debits = ['req_2026-01_a1', 'req_2026-02_a1', 'req_new'].map((id) => createDebitRow(id, a))
    const { balanceNanos } = await store.findAccount(a)
    assert.deepEqual(await store.postDebits(debits), ['exists', 'exists', 'posted'])
    assert.deepEqual(await store.postDebits(debits.toReversed()), ['exists', 'exists', 'exists'])
    assert.equal((await store.findAccount(a)).balanceNanos, balanceNanos - costNanos)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 C13 a returned debit is not returned again, wherever debit and return are', async () => {
    const { store, a } = await open()
    const last = `req_2026-01_a${perMonth - 1}`
    await store.turn(Date.UTC(2026, 3, 15))
    await store.postDebits([createDebitRow('req_april', a)])
    await store.giveBack(['req_april', last])
    await store.turn(Date.UTC(2026, 5, 1))
    await store.postDebits([createDebitRow('req_may', a), createDebitRow('req_may_2', a)])
    await foldAll(store)
    const { balanceNanos } = await store.findAccount(a)
    for (const month of [...months, '2026-04']) {
      await detachMonth(store.archives, wishes(month))
      await store.giveBack(['req_april', last])
      assert.equal((await store.findAccount(a)).balanceNanos, balanceNanos, month)
      assert.deepEqual(await store.verify(verifyOptions), [])
    }
    for (const month of [...months, '2026-04']) {
      await attachMonth(store.archives, wishes(month))
      // The return is in April, and is away for as long.
      assert.equal((await store.findDebit('req_2026-01_a5'))?.isReturned, true)
      assert.equal((await store.findDebit('req_2026-01_a4'))?.isReturned, false)
      await store.giveBack(['req_april', last])
      assert.equal((await store.findAccount(a)).balanceNanos, balanceNanos, month)
      assert.deepEqual(await store.verify(verifyOptions), [])
    }
  })

  test('issue 48 an operation that needs the detached month names it; all others work as before', async () => {
    const { store, a, keyId } = await open()
    const aprilMs = Date.UTC(2026, 2, 31, 22)
    const februaryMs = Date.UTC(2026, 0, 31, 23)
    const marchMs = Date.UTC(2026, 1, 28, 23)
    const month = { accountId: a, fromMs: februaryMs, toMs: marchMs }
    const asked = async () => ({
      february: await store.sumMonth(month),
      totals: await store.sumEntries({ sinceMs: februaryMs }, ['account']),
      head: await store.makeHead(aprilMs - 1),
      spent: await store.readSpent(a, keyId),
      key: await store.findKeys(keyId),
    })
    const before = await asked()
    await detachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await asked(), before)
    await awayIn(() => store.sumMonth({ ...month, fromMs: Date.UTC(2025, 11, 31, 23), toMs: februaryMs }), '2026-01')
    await awayIn(() => store.sumEntries({}, []), '2026-01')
    await awayIn(() => store.sumEntries({ untilMs: februaryMs }, []), '2026-01')
    await awayIn(() => list(store), '2026-01')
    await awayIn(() => store.findEntry('req_2026-01_a1'), '2026-01')
    assert.equal(await store.findDebit('req_2026-01_b2'), undefined)
    assert.equal((await store.findArchived('req_2026-01_b2'))?.month, '2026-01')
    await awayIn(() => store.makeHead(februaryMs - 1), '2026-01')
    await awayIn(() => store.rezone('UTC'), '2026-01')
    assert.equal(await store.findEntry('req_never'), undefined)
  })

  test('issue 48 totals that are summed in slices name a month that was detached meanwhile', async () => {
    const { store } = await open()
    const { dialect, run } = store.archives
    const sum = async () => {
      const step = createListing(dialect, { readMax: 5, sumMax: 5 }).sumEntries({}, [])
      let turn = step.next()
      for (let n = 0; !turn.done; n++) {
        if (n === 3) await detachMonth(store.archives, wishes('2026-01'))
        turn = step.next(await run(rowsOf(turn.value as Statement)))
      }
    }
    await awayIn(sum, '2026-01')
  })

  test('issue 48 R15 a budget for ever counts detached months, whether it was set before or after', async () => {
    const { store, a, keyId } = await open()
    await detachMonth(store.archives, wishes('2026-01'))
    const used = BigInt(months.length * perMonth) * costNanos
    await store.updateKey(keyId, { budget: { nanos: 10n ** 13n, per: 'month' } })
    await store.updateKey(keyId, { budget: { nanos: 10n ** 13n, per: undefined } })
    assert.equal((await store.findKeys(keyId))[0]!.spend!.spentNanos, used)
    await store.updateAccount(a, { budget: { nanos: 10n ** 13n, per: undefined } })
    assert.equal((await store.findAccount(a)).spend!.spentNanos, used)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 a month stays open for seven days after its end', async () => {
    const { store } = await open()
    const closedMs = Date.UTC(2026, 4, 7, 22)
    await store.turn(closedMs - 1)
    await assert.rejects(detachMonth(store.archives, wishes('2026-04')), { code: 'month_open' })
    await store.turn(closedMs)
    await assert.rejects(detachMonth(store.archives, wishes('2026-04')), { code: 'month_order' })
  })

  test('issue 48 months are detached in their order, once closed and folded, and a quiet account keeps its last entry', async () => {
    const { store, a, quiet } = await open()
    const detach = (month: string) => detachMonth(store.archives, wishes(month))
    await assert.rejects(detach('2026-02'), { code: 'month_order', subject: '2026-01' })
    await assert.rejects(detach('2026-04'), { code: 'month_open' })
    await assert.rejects(attachMonth(store.archives, wishes('2026-01')), /is not detached/)
    for (const month of months) {
      await detach(month)
      assert.deepEqual(await store.verify(verifyOptions), [], month)
    }
    assert.equal((await store.listEntries({ accountId: quiet, limit: 9 })).length, 1)
    assert.equal((await store.listEntries({ accountId: a, limit: 9 })).length, 1)
    // Any of them comes back by itself.
    await attachMonth(store.archives, wishes('2026-02'))
    assert.deepEqual(await store.verify(verifyOptions), [])
    await store.postDebits([createDebitRow('req_new', a)])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  for (const timeZone of ['UTC', 'Asia/Tokyo'])
    test(`issue 48 X12 months are detached in their order after a change to another zone: ${timeZone}`, async () => {
      const store = await engine.open({ atMs: Date.UTC(2026, 0, 31, 10), zone })
      await store.adoptReporting(reporting)
      const { id } = await store.createAccount('one', 10n ** 12n)
      // Around the end of January in each zone, then one in each later month.
      const moments = ['2026-01-31T14:30Z', '2026-01-31T22:30Z', '2026-01-31T23:30Z', '2026-02-01T00:30Z']
      for (const [n, at] of [...moments, '2026-02-15T12:00Z', '2026-03-15T12:00Z', '2026-04-15T12:00Z'].entries()) {
        await store.turn(Date.parse(at))
        await store.postDebits([createDebitRow(`req_${n}`, id)])
      }
      await foldAll(store)
      const before = await list(store)
      await detachMonth(store.archives, wishes('2026-01'))
      await attachMonth(store.archives, wishes('2026-01'))
      await store.rezone(timeZone)
      await foldAll(store)
      await assert.rejects(detachMonth(store.archives, wishes('2026-03')), { code: 'month_order', subject: '2026-02' })
      for (const month of months) {
        await detachMonth(store.archives, wishes(month))
        assert.deepEqual(await store.verify(verifyOptions), [], month)
      }
      for (const month of months) await attachMonth(store.archives, wishes(month))
      assert.deepEqual(await list(store), before)
      assert.deepEqual(await store.verify(verifyOptions), [])
    })

  test('issue 48 statements and heads of other months stay the same, whichever months are away', async () => {
    const { store, a, b, quiet } = await open()
    // The zone is an hour ahead of UTC, from the end of March on by two.
    const starts = [0, 1, 2, 3].map((at) => Date.UTC(2026, at, 1) - (at === 3 ? 2 : 1) * 3_600_000)
    const sums = (at: number) =>
      Promise.all(
        [a, b, quiet].map((accountId) => store.sumMonth({ accountId, fromMs: starts[at]!, toMs: starts[at + 1]! })),
      )
    const head = (at: number) => store.makeHead(starts[at + 1]! - 1)
    const before = []
    for (const at of months.keys())
      before.push({ sums: await sums(at), head: await head(at), first: await store.makeHead(starts[at]!) })
    for (const month of months) await detachMonth(store.archives, wishes(month))
    for (const away of [[0], [1], [2], [0, 1], [0, 2], [1, 2]]) {
      for (const [at, month] of months.entries())
        await (away.includes(at) ? detachMonth : attachMonth)(store.archives, wishes(month))
      for (const at of months.keys()) {
        if (!away.includes(at)) assert.deepEqual(await sums(at), before[at]!.sums, `away ${away}, statement ${at}`)
        if (away.every((one) => one < at)) {
          assert.equal(await head(at), before[at]!.head, `away ${away}, head ${at}`)
          assert.equal(await store.makeHead(starts[at]!), before[at]!.first, `away ${away}, first head ${at}`)
        }
      }
    }
  })

  for (const [name, sql, finding] of forgeries)
    test(`issue 48 C15 verify finds a forged archive: ${name}`, async () => {
      const { store, a } = await open()
      for (const month of ['2026-01', '2026-02']) await detachMonth(store.archives, wishes(month))
      assert.deepEqual(await store.verify(verifyOptions), [])
      await store.forge(async (forger) => {
        for (const text of sql(a)) await forger.run(text)
      })
      const findings = await store.verify(verifyOptions)
      assert.ok(
        findings.some((one) => finding.test(one)),
        findings.join('\n'),
      )
    })

  test('issue 48 X7 the copy of a store with attached months has no archives, and verify passes', async () => {
    const { store } = await open()
    await detachMonth(store.archives, wishes('2026-01'))
    await attachMonth(store.archives, wishes('2026-01'))
    await store.forge(async ({ run }) => {
      for (const table of ['archives', 'seals', 'sealed_sums', 'archived']) await run(`DELETE FROM ${table}`)
    })
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 only the first detachment prevents the previous triwire from opening the store', async () => {
    const { store } = await open()
    const read = async () => {
      let oldest = 0
      await store.forge(async ({ engine, all }) => {
        const sql = engine === 'sqlite' ? 'PRAGMA user_version' : 'SELECT oldest FROM schema'
        oldest = Number(Object.values((await all(sql))[0]!)[0])
      })
      return oldest
    }
    const before = await read()
    await exportMonth(store.archives, wishes('2026-01'))
    assert.equal(await read(), before)
    await detachMonth(store.archives, wishes('2026-01'))
    assert.equal(await read(), store.archives.lock === undefined ? sqliteVersion : postgresVersion)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 a file that was changed, cut or swapped is refused, and nothing is changed', async () => {
    const { store } = await open()
    const { file } = await detachMonth(store.archives, wishes('2026-01'))
    const whole = readFileSync(file)
    const text = gunzipSync(whole).toString()
    const forged = [
      gzipSync(text.replace('req_2026-01_a1', 'req_2026-01_a9')),
      whole.subarray(0, whole.length - 20),
      gzipSync(text.split('\n').slice(0, -3).join('\n')),
    ]
    for (const bytes of forged) {
      writeFileSync(file, bytes)
      for (const work of [attachMonth, exportMonth])
        await assert.rejects(work(store.archives, wishes('2026-01')), /is not the archive of 2026-01 as it was sealed/)
      // By itself, each of them is found to be forged too.
      await assert.rejects(async () => {
        for await (const _ of readArchive(file, '2026-01', verifyOptions, {}));
      }, /is not a complete archive of 2026-01|cannot be read/)
    }
    rmSync(file)
    await assert.rejects(attachMonth(store.archives, wishes('2026-01')), /does not exist: name its path with --file/)
    assert.equal(await stateOf(store, '2026-01'), 'away')
    const moved = `${file}.moved`
    writeFileSync(moved, whole)
    await attachMonth(store.archives, wishes('2026-01', { file: moved }))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 a detachment that was interrupted removes no further entry without its file', async () => {
    const { store } = await open()
    const { shown, dialect, fileOf, lock, idOf, tidy, begin } = store.archives
    const run: ArchiveStore['run'] = async (step) => {
      if ((await stateOf(store, '2026-01')) === 'removing') throw new Error('killed')
      return store.archives.run(step)
    }
    const archives = { shown, dialect, fileOf, lock, idOf, tidy, begin, close: async () => {}, run }
    await assert.rejects(detachMonth(archives, wishes('2026-01')), /killed/)
    const { file } = (await store.listArchives())[0]!
    const whole = readFileSync(file)
    const count = async () =>
      (await store.archives.run(ask(dialect, () => `SELECT 1 FROM ${dialect.schema}.entries`))).length
    const before = await count()
    writeFileSync(file, whole.subarray(0, 99))
    await assert.rejects(
      detachMonth(store.archives, wishes('2026-01')),
      /is not the archive of 2026-01 as it was sealed/,
    )
    rmSync(file)
    await assert.rejects(detachMonth(store.archives, wishes('2026-01')), /does not exist: name its path with --file/)
    assert.equal(await count(), before)
    const moved = `${file}.moved`
    writeFileSync(moved, whole)
    await detachMonth(store.archives, wishes('2026-01', { file: moved }))
    assert.deepEqual(
      (await store.listArchives()).map((one) => [one.state, one.file]),
      [['away', moved]],
    )
    await attachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 a detachment that was interrupted before it removed entries changes nothing, even beside a detached month', async () => {
    const { store } = await open()
    await detachMonth(store.archives, wishes('2026-01'))
    const { shown, dialect, fileOf, lock, idOf, tidy, begin } = store.archives
    const run: ArchiveStore['run'] = async (step) => {
      const sealed = ask(dialect, () => `SELECT 1 FROM ${dialect.schema}.seals WHERE month = '2026-02'`)
      if ((await store.archives.run(sealed)).length > 0) throw new Error('killed')
      return store.archives.run(step)
    }
    const archives = { shown, dialect, fileOf, lock, idOf, tidy, begin, close: async () => {}, run }
    const before = await store.listEntries({ limit: 1_000 })
    await assert.rejects(detachMonth(archives, wishes('2026-02')), /killed/)
    assert.equal(await stateOf(store, '2026-02'), 'sealing')
    assert.deepEqual(await store.listEntries({ limit: 1_000 }), before)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 of two commands at any moment one is refused, and the store stays correct', async () => {
    const { store } = await open()
    const { shown, dialect, fileOf, lock, idOf, tidy, begin } = store.archives
    const works = { detachMonth, attachMonth }
    const fails: string[] = []
    // The second command runs as a whole between two statements of the first one.
    for (const [first, second] of [
      ['detachMonth', 'detachMonth'],
      ['attachMonth', 'detachMonth'],
      ['detachMonth', 'attachMonth'],
    ] as const)
      for (let at = 0, isBetween = true; isBetween; at += isNightly ? 3 : 9) {
        if (first === 'attachMonth') await detachMonth(store.archives, wishes('2026-01'))
        else if ((await stateOf(store, '2026-01')) !== undefined) await attachMonth(store.archives, wishes('2026-01'))
        // The month is then as if it had never been detached, and is sealed again.
        if (second === first)
          await store.forge(async ({ run }) => {
            for (const table of ['archives', 'seals', 'sealed_sums', 'archived']) await run(`DELETE FROM ${table}`)
          })
        let left = at
        isBetween = false
        const run: ArchiveStore['run'] = async (step) => {
          if (left-- === 0) {
            isBetween = true
            await works[second](store.archives, wishes('2026-01')).catch((error) => fails.push(error.message))
          }
          return store.archives.run(step)
        }
        const archives = { shown, dialect, fileOf, lock, idOf, tidy, begin, close: async () => {}, run }
        await works[first](archives, wishes('2026-01')).catch((error) => fails.push(error.message))
        assert.deepEqual(await store.verify(verifyOptions), [], `${second} in ${first}, at ${at}`)
      }
    for (const message of fails)
      assert.match(
        message,
        /another command is working on 2026-01|is not detached|has no entries|not overwritten|lacks accounts|differs from what/,
      )
    assert.ok(fails.some((message) => /another command/.test(message)))
  })

  test('issue 48 an existing file is not overwritten, unless it is the same', async () => {
    const { store } = await open()
    await assert.rejects(
      exportMonth(store.archives, wishes('2024-02')),
      /2024-02 has no entries that can be archived: it has none, or only the last one of an account, which stays$/,
    )
    const { file } = await exportMonth(store.archives, wishes('2026-01'))
    assert.equal(statSync(file).mode & 0o777, 0o600)
    await detachMonth(store.archives, wishes('2026-01'))
    const whole = readFileSync(file)
    for (const work of [exportMonth, detachMonth])
      await assert.rejects(
        work(store.archives, wishes('2026-02', { file })),
        (error) =>
          error instanceof StoreError && /is another file, and is not overwritten: .*--file/.test(error.message),
      )
    assert.deepEqual(readFileSync(file), whole)
    assert.deepEqual(
      readdirSync(dirname(file)).filter((name) => name.endsWith('.part')),
      [],
    )
    assert.equal(await stateOf(store, '2026-02'), undefined)
    await assert.rejects(
      exportMonth(store.archives, wishes('2026-02', { file: `${file}.none/file` })),
      (error) => error instanceof StoreError && /cannot be written: its folder does not exist/.test(error.message),
    )
    await assert.rejects(
      exportMonth(store.archives, wishes('2026-02', { file: dirname(file) })),
      (error) => error instanceof StoreError && /: it is a folder \(EISDIR\); .* --file/.test(error.message),
    )
    await attachMonth(store.archives, wishes('2026-01'))
  })

  test('issue 48 a migration while a month is away, or on its way, changes nothing of it', async () => {
    const breakAfter = async (store: TestStore, steps: number, work: typeof detachMonth) => {
      let left = steps
      const run: ArchiveStore['run'] = async (step) => {
        if (left-- === 0) throw new Error('killed')
        return store.archives.run(step)
      }
      const { shown, dialect, fileOf, lock, idOf, tidy, begin } = store.archives
      const archives = { shown, dialect, fileOf, lock, idOf, tidy, begin, close: async () => {}, run }
      await assert.rejects(work(archives, wishes('2026-01')), /killed/)
    }
    const states = {
      sealing: (store: TestStore) => breakAfter(store, 20, detachMonth),
      removing: (store: TestStore) => breakAfter(store, 24, detachMonth),
      away: (store: TestStore) => detachMonth(store.archives, wishes('2026-01')),
      attaching: async (store: TestStore) => {
        await detachMonth(store.archives, wishes('2026-01'))
        await breakAfter(store, 2, attachMonth)
      },
      attached: async (store: TestStore) => {
        await detachMonth(store.archives, wishes('2026-01'))
        await attachMonth(store.archives, wishes('2026-01'))
      },
    }
    for (const [state, reach] of Object.entries(states)) {
      const { store, a, keyId } = await open()
      const all = await list(store)
      await reach(store)
      assert.equal(await stateOf(store, '2026-01'), state)
      await toArchivingVersion(store)
      const migrated = await store.reopen()
      assert.deepEqual(await migrated.verify(verifyOptions), [], state)
      const again = { ...createDebitRow('req_2026-01_a1', a), createdMs: januaryMs + day, keyId }
      assert.deepEqual(await migrated.postDebits([again]), ['exists'], state)
      await detachMonth(store.archives, wishes('2026-01'))
      assert.deepEqual(await migrated.verify(verifyOptions), [], state)
      await attachMonth(store.archives, wishes('2026-01'))
      assert.deepEqual(await migrated.verify(verifyOptions), [], state)
      assert.deepEqual(await list(migrated), all, state)
    }
  })

  test('issue 48 entries come back from a file that was written before a column was added', async () => {
    const { store } = await open()
    const all = await list(store)
    // No entry of these has a value in it.
    const at = fileColumns.indexOf('person')
    const [later] = fileColumns.splice(at, 1)
    try {
      await detachMonth(store.archives, wishes('2026-01'))
    } finally {
      fileColumns.splice(at, 0, later!)
    }
    await exportMonth(store.archives, wishes('2026-01'))
    await attachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await list(store), all)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  if (engine.name === 'SQLite')
    test('issue 48 a disk that is full is named with its store', async () => {
      const { store, a } = await open()
      // The index of so many archived entries needs further pages.
      await store.turn(Date.UTC(2026, 3, 16))
      await store.postDebits(Array.from({ length: 200 }, (_, n) => createDebitRow(`req_${n}`, a)))
      await store.turn(Date.UTC(2026, 4, 20))
      await foldAll(store)
      // The connection of the command may add no page.
      await store.archives.run(ask(store.archives.dialect, () => 'PRAGMA max_page_count = 1'))
      await assert.rejects(
        async () => {
          for (const month of [...months, '2026-04']) await detachMonth(store.archives, wishes(month))
        },
        (error) => error instanceof StoreError && /triwire\.db cannot grow: the disk is full/.test(error.message),
      )
      assert.deepEqual(await store.verify(verifyOptions), [])
    })

  test('issue 48 entries that are not folded stay, and the message has the cure', async () => {
    const { store, a } = await open()
    await store.turn(Date.UTC(2026, 3, 16))
    await store.postDebits([createDebitRow('req_1', a), createDebitRow('req_2', a)])
    await store.turn(Date.UTC(2026, 4, 20))
    for (const month of months) await detachMonth(store.archives, wishes(month))
    await assert.rejects(detachMonth(store.archives, wishes('2026-04')), { code: 'month_unfolded' })
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 C9 X12 entries that must be summed again are not removed, in an attached month or one that is being sealed', async () => {
    const { store } = await open()
    const { shown, dialect, fileOf, run, lock, idOf, tidy } = store.archives
    const begin = () => store.rezone('Asia/Tokyo').then(store.archives.begin)
    const rezoned = { shown, dialect, fileOf, run, lock, idOf, tidy, begin, close: async () => {} }
    await assert.rejects(detachMonth(rezoned, wishes('2026-01')), { code: 'month_unfolded' })
    assert.equal(await stateOf(store, '2026-01'), 'sealing')
    await store.rezone(zone.timeZone)
    await foldAll(store)
    await detachMonth(store.archives, wishes('2026-01'))
    await attachMonth(store.archives, wishes('2026-01'))
    await store.rezone('UTC')
    await assert.rejects(detachMonth(store.archives, wishes('2026-01')), { code: 'month_unfolded' })
    assert.equal(await stateOf(store, '2026-01'), 'attached')
    assert.deepEqual(await store.verify(verifyOptions), [])
    await foldAll(store)
    await detachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 a command that is killed at any moment leaves a correct store, and continues when run again', async () => {
    const dies = async (work: (store: ArchiveStore) => Promise<unknown>, store: TestStore, at: number) => {
      let left = at
      const run: ArchiveStore['run'] = async (step) => {
        if (left-- <= 0) throw new Error('killed')
        return store.archives.run(step)
      }
      const begin = async () => {
        if (left-- <= 0) throw new Error('killed')
        return store.archives.begin()
      }
      const { shown, dialect, fileOf, lock, idOf, tidy } = store.archives
      return work({ shown, dialect, fileOf, lock, idOf, tidy, close: async () => {}, run, begin }).then(
        () => false,
        (error) => {
          if (error.message !== 'killed') throw error
          return true
        },
      )
    }
    const { store } = await open()
    const all = (await store.listEntries({ limit: 1_000 })).length
    for (const [work, word] of [
      [(archives: ArchiveStore) => detachMonth(archives, wishes('2026-01')), 'detach'],
      [(archives: ArchiveStore) => attachMonth(archives, wishes('2026-01')), 'attach'],
      [(archives: ArchiveStore) => detachMonth(archives, wishes('2026-01')), 'detach again'],
    ] as const) {
      let moments = 0
      // Each try is killed one statement later, and begins where the one before it ended.
      for (let at = 0; await dies(work, store, at); at++) {
        assert.deepEqual(await store.verify(verifyOptions), [], `${word}, killed at ${at}`)
        moments++
      }
      assert.deepEqual(await store.verify(verifyOptions), [], word)
      assert.ok(moments >= 5, `${word}: ${moments} moments`)
    }
    assert.ok((await store.listEntries({ limit: 1_000 })).length < all)
    await attachMonth(store.archives, wishes('2026-01'))
    assert.equal((await list(store)).length, all)
  })
})

onEachStore((engine) => {
  test('issue 48 R15 a budget whose entries are all in one month is right while that month is being detached and attached', async () => {
    const store = await engine.open({ atMs: januaryMs, zone })
    await store.adoptReporting(reporting)
    const { id } = await store.createAccount('one', 50_000_000n)
    const { id: keyId } = await store.createKey(id, { budget: { nanos: 10n ** 12n, per: undefined } })
    await store.postDebits([{ ...createDebitRow('req_1', id), keyId }])
    await store.turn(januaryMs + 40 * day)
    await store.postDebits([createDebitRow('req_2', id)])
    await store.turn(Date.UTC(2026, 3, 15))
    await foldAll(store)
    const { shown, dialect, fileOf, lock, idOf, tidy, begin } = store.archives
    let state = 'removing'
    const run: ArchiveStore['run'] = async (step) => {
      if ((await stateOf(store, '2026-01')) === state) throw new Error('killed')
      return store.archives.run(step)
    }
    const archives = { shown, dialect, fileOf, lock, idOf, tidy, begin, close: async () => {}, run }
    await assert.rejects(detachMonth(archives, wishes('2026-01')), /killed/)
    assert.deepEqual(await store.verify(verifyOptions), [], state)
    state = 'attaching'
    await assert.rejects(attachMonth(archives, wishes('2026-01')), /killed/)
    assert.deepEqual(await store.verify(verifyOptions), [], state)
    await attachMonth(store.archives, wishes('2026-01'))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 C15 corrected entries of two months are detached with the second, if the first has no others', async () => {
    const store = await engine.open({ atMs: januaryMs, zone })
    await store.adoptReporting(reporting)
    const { id } = await store.createAccount('busy', 50_000_000n)
    const [february, march, aheadMs] = [Date.UTC(2026, 1, 20), Date.UTC(2026, 2, 5), 200 * day]
    for (const ms of [february, march]) {
      await store.turn(ms + aheadMs)
      if (ms === february) await store.confirmClock()
      await store.postDebits([{ ...createDebitRow(`req_${ms}`, id), createdMs: ms + aheadMs }])
    }
    await store.turn(march)
    await store.correctAhead(march)
    await store.postDebits([{ ...createDebitRow('req_last', id), createdMs: march }])
    await store.turn(Date.UTC(2026, 3, 15))
    await foldAll(store)
    await detachMonth(store.archives, wishes('2026-01'))
    await assert.rejects(detachMonth(store.archives, wishes('2026-02')), /2026-02 has no entries that can be archived/)
    assert.equal((await detachMonth(store.archives, wishes('2026-03'))).entries, 3)
    assert.deepEqual(await store.verify(verifyOptions), [])
    for (const month of ['2026-03', '2026-01']) await attachMonth(store.archives, wishes(month))
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 Y20 the last grant and all entries after it stay, and the rest of the grant lapses as ever', async () => {
    const store = await engine.open({ atMs: januaryMs, zone })
    await store.adoptReporting(reporting)
    const { id } = await store.createAccount('granted', 50_000_000n)
    await store.updateAccount(id, { grant: { nanos: 10_000_000n, lapses: true } })
    for (const ms of [januaryMs + day, Date.UTC(2026, 1, 10)]) {
      await store.turn(ms)
      await store.postDebits([{ ...createDebitRow(`req_${ms}`, id), createdMs: ms }])
    }
    await store.turn(Date.UTC(2026, 3, 15))
    await foldAll(store)
    // Only the credit with which the account was created precedes the grant.
    assert.equal((await detachMonth(store.archives, wishes('2026-01'))).entries, 1)
    assert.equal(await store.grant(id), true)
    const lapse = (await store.listEntries({ limit: 9 })).find(({ reference }) => reference?.startsWith('lapse:'))
    assert.equal(lapse?.amountNanos, 2n * costNanos - 10_000_000n)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 48 an entry that stayed is detached with a later month, and then counts as away', async () => {
    const store = await engine.open({ atMs: januaryMs, zone })
    await store.adoptReporting(reporting)
    const { id: busy } = await store.createAccount('busy', 50_000_000n)
    const { id: idle } = await store.createAccount('idle', 50_000_000n)
    const post = async (ms: number, accounts: string[]) => {
      await store.turn(ms)
      for (const account of accounts)
        await store.postDebits([{ ...createDebitRow(`req_${ms}_${account}`, account), createdMs: ms }])
    }
    await post(januaryMs + day, [busy, idle])
    await post(Date.UTC(2026, 1, 10), [busy])
    await foldAll(store)
    const januarySpan = { fromMs: Date.UTC(2025, 11, 31, 23), toMs: Date.UTC(2026, 0, 31, 23) }
    const january = await store.sumMonth({ accountId: idle, ...januarySpan })
    await detachMonth(store.archives, wishes('2026-01'))
    await post(Date.UTC(2026, 1, 20), [busy, idle])
    await post(Date.UTC(2026, 2, 20), [busy, idle])
    await foldAll(store)
    await detachMonth(store.archives, wishes('2026-02'))
    assert.deepEqual(await store.verify(verifyOptions), [])
    await attachMonth(store.archives, wishes('2026-01'))
    await awayIn(() => store.sumMonth({ accountId: idle, ...januarySpan }), '2026-02')
    await awayIn(() => store.sumEntries({ untilMs: januarySpan.toMs }, []), '2026-02')
    await attachMonth(store.archives, wishes('2026-02'))
    assert.deepEqual(await store.sumMonth({ accountId: idle, ...januarySpan }), january)
    assert.deepEqual(await store.verify(verifyOptions), [])
  })
})
