import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { before } from 'node:test'
import { StoreSilent } from '../../../src/accounts/account.ts'
import { createKey, digestKey } from '../../../src/accounts/keys.ts'
import { newRequestId } from '../../../src/ids.ts'
import { lockStore } from '../../../src/store/files/lock.ts'
import { StoreError } from '../../../src/store/files/store-error.ts'
import { installFunctions } from '../../../src/store/postgres/migrate.ts'
import { closeStore } from '../../../src/store/postgres/moved.ts'
import { postDebits, postFunctions } from '../../../src/store/postgres/post.ts'
import { PostingDesk } from '../../../src/store/postgres/posting-desk.ts'
import { SpendWindows } from '../../../src/store/postgres/spend-windows.ts'
import { packDebit } from '../../../src/store/serving/thread.ts'
import { atEnd } from '../../support/at-end.ts'
import { testFolder } from '../../support/folder.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { repeat, turn, until } from '../../support/waiting.ts'
import { costNanos, createDebit, createDebitRow, prices, usage, verifyOptions } from '../fixtures.ts'
import { openMute, openOperator, openStore } from './opened.ts'

/* A server's side of a database in PostgreSQL, on a real one: what test/store/ledger-client.test.ts demands of a file. */

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres()
})

const newDatabase = () => postgres.createDatabase(`client_${++count}`)

/** A store with an account that has credit and a key, as a server and as an operator know it. */
async function openOne(options: Parameters<typeof openStore>[1] = {}) {
  const url = options.url ?? newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 1_000_000n)
  const { key, id: keyId } = await books.createKey('one')
  const store = await openStore(url, options)
  const account = (await store.directory.findKey(digestKey(key)))!.account
  return { url, books, id, key, keyId, account, ...store }
}

const balanceOf = async ({ books }: { books: Awaited<ReturnType<typeof openOperator>> }) =>
  (await books.findAccount('one')).balanceNanos

test('C3 R5 a debit is in the database when its promise resolves; a repeat is one debit, another amount raises an alarm', {
  skip,
}, async () => {
  const one = await openOne()
  const debit = createDebit(newRequestId(), one.account)
  assert.equal(await one.ledger.debit(debit), 'posted')
  assert.equal((await one.books.findEntry(debit.requestId))?.amountNanos, costNanos)
  assert.equal(await balanceOf(one), 1_000_000n - costNanos)
  assert.equal(await one.ledger.debit(debit), 'exists')
  assert.equal(await one.ledger.debit({ ...debit, amountNanos: 1n }), 'exists')
  assert.deepEqual(
    one.told('ledger_conflict').map(({ requestId }) => requestId),
    [debit.requestId],
  )
  const impossible = { ...createDebit(newRequestId(), one.account), usage: { ...usage, inputTokens: 0.5 } }
  await assert.rejects(one.ledger.debit(impossible), /cannot hold the debit/)
  assert.equal(await balanceOf(one), 1_000_000n - costNanos)
  assert.deepEqual(await one.books.verify(verifyOptions), [])
})

test('the debits of one turn go in few calls, each gets its answer, and the chain is valid', { skip }, async () => {
  const one = await openOne()
  const debits = Array.from({ length: 500 }, () => one.ledger.debit(createDebit(newRequestId(), one.account)))
  assert.deepEqual(new Set(await Promise.all(debits)), new Set(['posted']))
  const [row] = await one.books.database.query('SELECT count(DISTINCT posted_ms)::int AS calls FROM triwire.entries')
  assert.ok((row!.calls as number) <= 5, `${row!.calls} moments`)
  assert.equal(await balanceOf(one), 1_000_000n - 500n * costNanos)
  assert.deepEqual(await one.books.verify(verifyOptions), [])
})

test('B10 a debit is found with its prices and its return; few lookups run at once, and each wait is bounded', {
  skip,
}, async () => {
  const one = await openOne()
  const requestId = newRequestId()
  await one.ledger.debit(createDebit(requestId, one.account))
  const found = await Promise.allSettled(Array.from({ length: 25 }, () => one.findDebit(requestId)))
  assert.deepEqual(
    found.map((each) => (each.status === 'fulfilled' ? each.value?.isReturned : each.reason instanceof StoreSilent)),
    Array.from({ length: 25 }, (_, i) => i >= 20),
  )
  const { prices: known, entry } = (await one.findDebit(requestId))!
  assert.deepEqual([known, entry.amountNanos, entry.accountName], [prices, costNanos, 'one'])
  assert.equal(await one.findDebit(newRequestId()), undefined)
  await one.close()
  await assert.rejects(one.findDebit(requestId), StoreSilent)
})

test('F-C45 F-S22 a change by an operator takes effect in the server within 100 ms, by notice', { skip }, async () => {
  const { books, directory, keyId, key, account, id } = await openOne()
  const known = () => directory.findKnownKey(digestKey(key))
  const lateMs: number[] = []
  const timed = async (change: () => Promise<unknown>, isSo: () => boolean) => {
    await change()
    const committedMs = performance.now()
    await until(isSo)
    lateMs.push(performance.now() - committedMs)
  }
  for (let round = 0; round < 5; round++) {
    await timed(
      () => books.updateAccount('one', { state: 'suspended' }),
      () => account.state === 'suspended',
    )
    await timed(
      () => books.updateAccount('one', { state: 'active' }),
      () => account.state === 'active',
    )
    await timed(
      () => books.updateAccount(id, { name: `name ${round}` }),
      () => account.name === `name ${round}`,
    )
    await books.updateAccount(id, { name: 'one' })
  }
  assert.equal(known()?.account, account)
  await timed(
    () => books.rotateKey(keyId, 60_000),
    () => known()?.expiresMs !== undefined,
  )
  await timed(
    () => books.revokeKey(keyId),
    () => known() === undefined,
  )
  // The middle one: a busy machine may hold up some of them, and a look once a second would be late with most.
  lateMs.sort((a, b) => a - b)
  assert.ok(lateMs[Math.floor(lateMs.length / 2)]! < 100, `ms: ${lateMs.map(Math.round)}`)
})

test('F-C45 a change whose notice was lost takes effect with the next beat', { skip }, async () => {
  const { books, account, id } = await openOne()
  // No command of ours changes rows in this way: no notice is sent.
  await books.database.query(
    `UPDATE triwire.accounts SET state = 'suspended', revision = nextval('triwire.revisions') WHERE id = $1`,
    [id],
  )
  await until(() => account.state === 'suspended')
})

test('Y20 a server reads no keys of sign-ins that ended more than a day ago, also if a request names one', {
  skip,
}, async () => {
  const { books, directory, account } = await openOne()
  const hourMs = 3_600_000
  // An operator can remove the expiry of such a key.
  const ends = { valid: hourMs, ended: -23 * hourMs, 'long ended': -25 * hourMs, endless: null }
  const digests = new Map<string, string>()
  for (const [name, ms] of Object.entries(ends)) {
    const { key, id } = await books.createKey('one')
    digests.set(name, digestKey(key))
    await books.database.query(
      'UPDATE triwire.keys SET session = $1, expires_ms = triwire.now_ms() + $2::bigint WHERE id = $1',
      [id, ms],
    )
  }
  await books.updateAccount('one', { state: 'suspended' })
  await until(() => account.state === 'suspended')
  const known = async (find: (digest: string) => unknown) => {
    const found = await Promise.all([...digests].map(async ([name, digest]) => ((await find(digest)) ? [name] : [])))
    return found.flat()
  }
  assert.deepEqual(await known(directory.findKnownKey), ['valid', 'ended', 'endless'])
  assert.deepEqual(await known((digest) => directory.findKey(digest)), ['valid', 'ended', 'endless'])
})

test('R16 a new key is found by the first lookup, forty of forty times', { skip }, async () => {
  const { books, directory } = await openOne()
  for (let i = 0; i < 40; i++) {
    const { key, id } = await books.createKey('one')
    assert.equal((await directory.findKey(digestKey(key)))?.id, id)
    assert.equal(directory.findKnownKey(digestKey(key))?.id, id)
  }
  assert.equal(await directory.findKey(createKey().digest), undefined)
})

test('R16 unknown keys are looked up in at most 200 statements a second, whichever client asks', { skip }, async () => {
  const { directory, key, workers } = await openOne()
  let asked = 0
  const { postMessage } = workers[0]!
  workers[0]!.postMessage = function (message: { question?: string }, ...rest) {
    if (message.question === 'lookUp') asked++
    return postMessage.call(this, message, ...rest)
  }
  const beganMs = performance.now()
  for (let wave = 0; wave < 40; wave++) {
    const guesses = Array.from({ length: 100 }, () => createKey().digest)
    const found = await Promise.all(guesses.map(async (digest) => directory.findKey(digest)))
    assert.ok(found.every((one) => one === undefined))
  }
  const took = performance.now() - beganMs
  assert.ok(asked <= 1 + took / 5, `${asked} statements in ${Math.round(took)} ms`)
  assert.ok(directory.findKnownKey(digestKey(key)))
})

test('if memory cannot hold all accounts, it keeps those in use, and the others are looked up', {
  skip,
}, async () => {
  const url = newDatabase()
  const books = await openOperator(url)
  const keys: string[] = []
  for (let i = 0; i < 40; i++) {
    await books.createAccount(`account ${i}`)
    keys.push((await books.createKey(`account ${i}`)).key)
  }
  const { directory, countAccounts } = await openStore(url, { accountsMax: 16 })
  assert.equal(countAccounts(), 0)
  for (const key of keys) {
    for (const one of [keys[0]!, key]) {
      const found = await directory.findKey(digestKey(one))
      assert.ok(found)
      directory.touch(found)
    }
    assert.ok(countAccounts()! <= 16)
  }
  assert.ok(directory.findKnownKey(digestKey(keys[0]!)), 'the one that is used all the time was never forgotten')
  assert.equal(directory.findKnownKey(digestKey(keys[1]!)), undefined)
  assert.equal((await directory.findKey(digestKey(keys[1]!)))?.account.name, 'account 1')
})

test('uses of keys are written from time to time', { skip }, async () => {
  const { books, directory, key } = await openOne({ touchMs: 20 })
  directory.touch(directory.findKnownKey(digestKey(key))!)
  await until(async () => (await books.listKeys())[0]!.lastUsedMs !== undefined)
})

/** Nobody can post to the account until it is let go. */
async function holdAccount({ books, id }: { books: OpenedBooks; id: string }) {
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = books.database.transact(async ({ query }) => {
    await query('SELECT FROM triwire.balances WHERE account_id = $1 FOR UPDATE', [id])
    held.resolve()
    await release.promise
  })
  await held.promise
  return async () => {
    release.resolve()
    await holding
  }
}
type OpenedBooks = Awaited<ReturnType<typeof openOperator>>

test('F-S1 while an account is locked, its debit is spooled at the deadline and it gets no new inference; afterwards it recovers', {
  skip,
}, async () => {
  const one = await openOne({ settleDeadlineMs: 50, patienceMs: 300 })
  const free = await holdAccount(one)
  const requestId = newRequestId()
  assert.equal(await one.ledger.debit(createDebit(requestId, one.account)), 'spooled')
  assert.deepEqual([one.ledger.whyBlocked(), one.ledger.whyBlocked(one.id)], [undefined, 'owing'])
  assert.deepEqual(
    [statSync(one.spool).mode & 0o777, readFileSync(one.spool, 'utf8').includes(requestId)],
    [0o600, true],
  )
  await until(() => one.told('ledger_trouble').length > 0)
  await free()
  await until(() => one.ledger.whyBlocked(one.id) === undefined)
  assert.ok(await one.books.findEntry(requestId))
  await until(() => readFileSync(one.spool, 'utf8') === '')
  assert.deepEqual(await one.books.verify(verifyOptions), [])
})

test('F-S1 a locked account does not delay the debits of the others', { skip }, async () => {
  const one = await openOne({ patienceMs: 2_000, settleDeadlineMs: 30_000 })
  await one.books.createAccount('two', 1_000_000n)
  const { key } = await one.books.createKey('two')
  const two = (await one.directory.findKey(digestKey(key)))!.account
  // A new price is written by the first debit that needs it, and the others wait for that.
  await one.ledger.debit(createDebit(newRequestId(), two))
  const free = await holdAccount(one)
  const stuck = one.ledger.debit(createDebit(newRequestId(), one.account))
  // What was asked in one turn is answered together.
  await turn()
  await turn()
  for (let i = 0; i < 20; i++) assert.equal(await one.ledger.debit(createDebit(newRequestId(), two)), 'posted')
  await free()
  assert.equal(await stuck, 'posted')
})

test('B7 C13 if database and spool fail, the debit fails and is never booked; nothing is taken until the store works', {
  skip,
}, async () => {
  let nowMs = 0
  const one = await openOne({ settleDeadlineMs: 50, patienceMs: 100, clockMs: () => nowMs })
  const passing = repeat(() => {
    nowMs += 4
  })
  mkdirSync(one.spool)
  const free = await holdAccount(one)
  const requestId = newRequestId()
  await assert.rejects(one.ledger.debit(createDebit(requestId, one.account)), /neither database nor spool/)
  await free()
  await until(() => one.ledger.whyBlocked(one.id) === undefined)
  assert.equal(await one.ledger.debit(createDebit(newRequestId(), one.account)), 'posted')
  assert.equal(await one.books.findEntry(requestId), undefined)
  assert.equal(await balanceOf(one), 1_000_000n - costNanos)
  assert.deepEqual(one.told('ledger_withdrawn'), [{ withdrawn: 1, returned: [] }])
  passing.stop()
  rmdirSync(one.spool)
})

test('B7 C13 a commit whose answer never came, after its client was refused, is returned, and verify pairs the two', {
  skip,
}, async () => {
  let nowMs = 0
  const direct = newDatabase()
  const mute = await openMute(postgres, direct)
  const books = await openOperator(direct)
  const { id } = await books.createAccount('one', 1_000_000n)
  const { key } = await books.createKey('one')
  const options = { settleDeadlineMs: 50, patienceMs: 300, clockMs: () => nowMs }
  const store = await openStore(mute.url, options)
  const { account } = (await store.directory.findKey(digestKey(key)))!
  await store.ledger.debit(createDebit(newRequestId(), account))
  mkdirSync(store.spool)
  mute.mute()
  const requestId = newRequestId()
  const refused = assert.rejects(store.ledger.debit(createDebit(requestId, account)), /neither database nor spool/)
  await until(() => books.findEntry(requestId), 'it is booked, and nobody here knows')
  const passing = repeat(() => {
    nowMs += 50
  })
  await refused
  passing.stop()
  assert.equal(store.ledger.whyBlocked(id) === undefined, false)
  mute.speak()
  await until(() => store.ledger.whyBlocked(id) === undefined)
  assert.deepEqual(
    store.told('ledger_withdrawn').map(({ returned }) => returned),
    [[requestId]],
  )
  assert.equal((await books.findAccount(id)).balanceNanos, 1_000_000n - costNanos)
  const log = [{ requestId, outcome: 'internal_error', cause: 'ledger_unsettled' }]
  assert.deepEqual(
    (await books.verify({ ...verifyOptions, log })).filter((finding) => finding.includes(requestId)),
    [],
  )
  rmdirSync(store.spool)
})

/** A spool with these lines in a folder of its own. */
function leaveSpool(stateDir: string, lines: readonly object[]): string {
  mkdirSync(stateDir, { recursive: true })
  const text = lines.map((line) => JSON.stringify(line, (_, value) => (typeof value === 'bigint' ? `${value}` : value)))
  const path = join(stateDir, 'replica.spool')
  writeFileSync(path, `${text.join('\n')}\n`, { mode: 0o600 })
  return path
}

test('F-P1 X13 C13 at a start, debits spooled by dead runs below state_dir are posted once, and noted returns are made', {
  skip,
}, async () => {
  const url = newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 100_000_000n)
  const [known, open, noted, dead, alive] = Array.from({ length: 5 }, newRequestId) as [
    string,
    string,
    string,
    string,
    string,
  ]
  await postDebits(books.database, [createDebitRow(known, id), createDebitRow(noted, id)])
  const spoolsDir = testFolder('state')
  const own = leaveSpool(join(spoolsDir, 'a'), [
    createDebitRow(known, id),
    createDebitRow(open, id),
    { returned: noted },
  ])
  const gone = leaveSpool(join(spoolsDir, 'b'), [createDebitRow(dead, id)])
  const running = leaveSpool(join(spoolsDir, 'c'), [createDebitRow(alive, id)])
  const unlock = lockStore(join(spoolsDir, 'c', 'replica'))
  const store = await openStore(url, { stateDir: join(spoolsDir, 'a'), spoolsDir })
  assert.deepEqual(
    [own, gone, running].map((path) => existsSync(path)),
    [false, false, true],
  )
  const zero = { known: 0, returned: 0, rejected: 0, unreadable: 0, aside: undefined }
  assert.deepEqual(store.told('crash_recovery'), [
    { ...zero, posted: 1, known: 1, returned: 1, spool: own },
    { ...zero, posted: 1, spool: gone },
  ])
  assert.deepEqual(
    await Promise.all([known, open, dead, alive].map(async (one) => (await books.findEntry(one)) !== undefined)),
    [true, true, true, false],
  )
  assert.equal((await books.findAccount('one')).balanceNanos, 100_000_000n - 3n * costNanos)
  unlock()
  assert.deepEqual(await books.verify({ ...verifyOptions, log: undefined }), [])
})

test('X13 a spooled debit of an account that a restored database lacks is set aside, and is not taken for a locked one', {
  skip,
}, async () => {
  const url = newDatabase()
  await openOperator(url)
  const stateDir = join(testFolder('state'), 'a')
  const path = leaveSpool(stateDir, [createDebitRow(newRequestId(), 'acct_0000000000000000')])
  const store = await openStore(url, { stateDir })
  const [told] = store.told('crash_recovery')
  assert.deepEqual([told?.rejected, told?.held], [1, undefined])
  assert.deepEqual([existsSync(`${told?.aside}`), existsSync(path)], [true, false])
})

test('F-P16 X13 a second server with the same state_dir is refused; with its own state_dir it serves beside the first', {
  skip,
}, async () => {
  const first = await openOne()
  await assert.rejects(
    openStore(first.url, { stateDir: first.stateDir }),
    (error) =>
      error instanceof StoreError && /has the state_dir .*: stop it first, or give this one/.test(error.message),
  )
  const second = await openStore(first.url)
  const account = (await second.directory.findKey(digestKey(first.key)))!.account
  assert.equal(await second.ledger.debit(createDebit(newRequestId(), account)), 'posted')
  await first.close()
  await openStore(first.url, { stateDir: first.stateDir })
})

test('F-P15 a store thread that dies is restarted once and owes nothing; the second death is fatal', {
  skip,
}, async () => {
  const one = await openOne({ patienceMs: 500 })
  const free = await holdAccount(one)
  const [requestId, later] = [newRequestId(), newRequestId()]
  const debit = one.ledger.debit(createDebit(requestId, one.account))
  await until(async () => {
    const [row] = await one.books.database.query(
      `SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = 'triwire posting'`,
    )
    return row!.n
  })
  await one.workers[0]!.terminate()
  await free()
  assert.match(await debit, /posted|exists/)
  assert.equal(one.told('ledger_worker_restart').length, 1)
  await until(() => one.ledger.whyBlocked(one.id) === undefined)
  assert.equal(await balanceOf(one), 1_000_000n - costNanos)
  await one.workers[1]!.terminate()
  await until(() => one.fatals.length === 1)
  assert.equal(one.ledger.whyBlocked(), 'lost')
  assert.equal(await one.ledger.debit(createDebit(later, one.account)), 'spooled')
})

type Operator = Awaited<ReturnType<typeof openOperator>>

/** Where the chain of the only account ends. */
const readEnd = async ({ database }: Operator) => (await database.query('SELECT * FROM triwire.balances'))[0]!

/**
 * Makes the database one that was promoted before it had heard of the entries after `end`.
 * @param cut the purpose of the connections that end
 */
async function promote({ database }: Operator, end: Record<string, unknown>, cut = 'control'): Promise<void> {
  await database.transact(async ({ query }) => {
    await query('SET LOCAL session_replication_role = replica')
    await query('DELETE FROM triwire.entries WHERE seq > $1', [end.seq])
    await query('UPDATE triwire.balances SET balance = $1, seq = $2, posted_ms = $3, digest = $4', [
      end.balance,
      end.seq,
      end.posted_ms,
      end.digest,
    ])
  })
  await database.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()',
    [`triwire ${cut}`],
  )
}

test('C3 F-S12: debits of the last minute that a promoted database server lacks are posted again, and so are their returns', {
  skip,
}, async () => {
  const one = await openOne()
  const ids = Array.from({ length: 60 }, newRequestId)
  const post = (some: readonly string[]) =>
    Promise.all(some.map((id) => one.ledger.debit(createDebit(id, one.account))))
  await post(ids.slice(0, 20))
  const end = await readEnd(one.books)
  await post(ids.slice(20))
  await promote(one.books, end)
  await until(async () => (await balanceOf(one)) === 1_000_000n - 60n * costNanos)
  await until(() => one.told('ledger_looked_again').length > 0)
  assert.deepEqual(one.told('ledger_looked_again'), [{ looked: 60, missing: 40 }])
  assert.deepEqual(await one.books.verify(verifyOptions), [])
  await until(() => one.ledger.whyBlocked(one.id) === undefined)
})

test('C3 F-S12 X13: debits of a spool of an earlier run are posted again too, if a standby lacks them after the spool is removed', {
  skip,
}, async () => {
  const url = newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 1_000_000n)
  const end = await readEnd(books)
  const stateDir = join(testFolder('state'), 'a')
  const spool = leaveSpool(stateDir, [createDebitRow(newRequestId(), id)])
  const store = await openStore(url, { stateDir })
  assert.equal(existsSync(spool), false)
  await promote(books, end)
  await until(() => store.told('ledger_looked_again').length > 0)
  assert.deepEqual(store.told('ledger_looked_again'), [{ looked: 1, missing: 1 }])
  assert.equal((await books.findAccount('one')).balanceNanos, 1_000_000n - costNanos)
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('C3 F-S12: a debit that was posted again is looked for as well if a second standby takes over', {
  skip,
}, async () => {
  const url = newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 10_000_000n)
  const end = await readEnd(books)
  await installFunctions(books.database, postFunctions)
  let nowMs = 0
  const desk = new PostingDesk({
    ...{ url, patienceMs: 20_000, say: () => {}, clockMs: () => nowMs, isSuccessor: false },
    windows: new SpendWindows(),
  })
  atEnd(() => desk.close())
  await desk.onReached()
  const post = (requestId: string) => desk.answers.post([packDebit(createDebitRow(requestId, id))])
  const first = newRequestId()
  await post(first)
  nowMs = 100_000
  await promote(books, end, 'posting')
  await until(() => books.findEntry(first), 'it is posted again')
  nowMs = 125_000
  await post(newRequestId())
  await promote(books, end, 'posting')
  const balance = async () => (await books.findAccount('one')).balanceNanos
  await until(async () => (await balance()) === 10_000_000n - 2n * costNanos, 'both are posted again')
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('C3 F-S12: no posted debit is forgotten while a search for lost debits runs, because the search may fail', {
  skip,
}, async () => {
  const url = newDatabase()
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', 10_000_000n)
  const end = await readEnd(books)
  await installFunctions(books.database, postFunctions)
  let nowMs = 0
  const desk = new PostingDesk({
    ...{ url, patienceMs: 8_000, say: () => {}, clockMs: () => nowMs, isSuccessor: false },
    windows: new SpendWindows(),
  })
  atEnd(() => desk.close())
  await desk.onReached()
  const post = (requestId: string) => desk.answers.post([packDebit(createDebitRow(requestId, id))])
  await post(newRequestId())
  await books.database.transact(async ({ query }) => {
    // Every search waits for this lock, and fails. Debits are posted meanwhile.
    await query('LOCK TABLE triwire.archived IN ACCESS EXCLUSIVE MODE')
    await promote(books, end, 'posting')
    nowMs = 130_000
    await post(newRequestId())
    await until(async () => (await searches(books)) > 0, 'a search waits')
    await until(async () => (await searches(books)) === 0, 'the search has failed')
  })
  const balance = async () => (await books.findAccount('one')).balanceNanos
  await until(async () => (await balance()) === 10_000_000n - 2n * costNanos, 'the lost debit is posted again')
  assert.deepEqual(await books.verify(verifyOptions), [])
})

/** The number of searches for lost debits that wait for a lock. */
const searches = async ({ database }: Operator) =>
  (
    await database.query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'SELECT id FROM triwire.entries%'`,
    )
  ).length

test('C3: a ledger that refuses every debit is checked again once a second, and not with every try', {
  skip,
}, async () => {
  const one = await openOne()
  await one.ledger.debit(createDebit(newRequestId(), one.account))
  await one.books.database.transact((transaction) => closeStore(transaction, 'another'))
  void one.ledger.debit(createDebit(newRequestId(), one.account))
  // Trouble is logged once a second.
  await until(() => one.told('ledger_trouble').length >= 4)
  const looks = one.told('ledger_looked_again').length
  assert.ok(looks >= 1 && looks <= 5, `${looks} looks`)
})

test('closing settles the debits that are under way', { skip }, async () => {
  const one = await openOne()
  const requestId = newRequestId()
  const debit = one.ledger.debit(createDebit(requestId, one.account))
  await one.close()
  assert.equal(await debit, 'posted')
  assert.ok(await one.books.findEntry(requestId))
})

test('a database that cannot be used is refused at the start, with the cure and without the password', {
  skip,
}, async () => {
  postgres.run(`CREATE ROLE poor LOGIN`)
  const url = newDatabase()
  const refused = async (url: string, words: RegExp, options: Parameters<typeof openStore>[1] = {}) => {
    await assert.rejects(openStore(url, { shown: 'postgres://shown', ...options }), (error) => {
      assert.ok(error instanceof StoreError, String(error))
      assert.match(error.message, words)
      return true
    })
  }
  await refused(url.replace('tri@', 'poor@'), /postgres:\/\/shown gives the user too few rights: the user must own/)
  await refused(`${url}_not_there`, /has no such database: create it/)
  await refused(url.replace('tri@', 'nobody@'), /refuses the user/)
  await refused(`${url}?sslmode=require`, /does not support TLS/)
  const stateDir = testFolder('state')
  mkdirSync(join(stateDir, 'replica.spool'))
  const unread = /replica\.spool cannot be read: it is a folder \(EISDIR\); it may have debits/
  // On a busy machine, the start may take longer than the usual patience. The reason would then only be logged.
  await refused(url, unread, { stateDir, patienceMs: 20_000 })
  await openStore(url)
})
