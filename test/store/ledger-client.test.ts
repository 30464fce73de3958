import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../src/accounts/account.ts'
import { createKey, digestKey } from '../../src/accounts/keys.ts'
import { foldedMax } from '../../src/accounts/usage/reporting.ts'
import { spoolPath } from '../../src/store/files/spool.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import type { LedgerOptions } from '../../src/store/sqlite/ledger-client.ts'
import { openStore } from '../support/operator.ts'
import { patienceMs, repeat } from '../support/waiting.ts'
import {
  costNanos,
  createDebit,
  createDebitRow,
  createPath,
  open,
  prices,
  until,
  usage,
  verifyOptions,
} from './fixtures.ts'

test('C3 a debit is in the database when its promise resolves, and the live balance follows', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const { ledger, accounts, balances } = await open(t, path)
  const [account, balance] = [accounts.get(id)!, balances.get(id)!]
  assert.equal(balance.balanceNanos, 1_000_000n)
  assert.equal(await ledger.debit(createDebit('req_1', account)), 'posted')
  assert.equal(balance.balanceNanos, 370_000n)
  assert.equal(store.findEntry('req_1')?.amountNanos, costNanos)
  assert.equal(await ledger.debit(createDebit('req_1', account)), 'exists')
  assert.equal(balance.balanceNanos, 370_000n)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B10 a debit is found with its prices and its return; few lookups run at once, and each wait is bounded', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { findDebit, close } = await open(t, path)
  store.postDebits([createDebitRow('req_1', id), createDebitRow('req_2', id)])
  store.postReturns(['req_2'])
  const asked = Array.from({ length: 25 }, (_, i) => findDebit(`req_${i}`))
  const found = await Promise.allSettled(asked)
  assert.deepEqual(
    found.map((one) => (one.status === 'fulfilled' ? one.value?.isReturned : one.reason instanceof StoreSilent)),
    Array.from({ length: 25 }, (_, i) => (i >= 20 ? true : { 1: false, 2: true }[i])),
  )
  const { prices: known, entry } = (await findDebit('req_1'))!
  assert.deepEqual([known, entry.amountNanos, entry.accountName], [prices, costNanos, 'one'])
  await close()
  await assert.rejects(findDebit('req_1'), StoreSilent)
})

test('the debits of one turn share a commit, and each gets its answer', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  // What is folded behind them is a commit too: fewer than are folded at once, and no fold by the clock.
  const { ledger, accounts, balances } = await open(t, path, { foldMs: 3_600_000 })
  const commitsBefore = countCommits(path)
  const debits = Array.from({ length: foldedMax - 1 }, (_, i) =>
    ledger.debit(createDebit(`req_${i}`, accounts.get(id)!)),
  )
  assert.deepEqual(new Set(await Promise.all(debits)), new Set(['posted']))
  assert.equal(countCommits(path) - commitsBefore, 1)
  assert.equal(balances.get(id)?.balanceNanos, -BigInt(debits.length) * costNanos)
})

test('R5 the same request id with another amount raises an alarm and posts no second debit', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { ledger, accounts, lines } = await open(t, path)
  const debit = createDebit('req_1', accounts.get(id)!)
  await ledger.debit(debit)
  assert.equal(await ledger.debit({ ...debit, amountNanos: 1n }), 'exists')
  assert.deepEqual(
    lines.map(({ level, event, fields }) => [level, event, fields.requestId]),
    [['error', 'ledger_conflict', 'req_1']],
  )
  const impossible = { ...debit, requestId: 'req_2', usage: { ...usage, inputTokens: 0.5 } }
  await assert.rejects(ledger.debit(impossible), /cannot hold the debit of request req_2/)
  const [again, twin] = [createDebitRow('req_3', debit.accountId), createDebitRow('req_3', debit.accountId)]
  const both = await Promise.allSettled([ledger.debit(again), ledger.debit(twin)])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['fulfilled', 'rejected'],
  )
})

test('F-C45 F-S22 a change that an operator makes beside a running server takes effect there at once', async (t) => {
  const path = createPath(t)
  const { directory, accounts, balances, ledger } = await open(t, path)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { key, id: keyId } = store.createKey('one')
  await until(() => directory.findKnownKey(digestKey(key)) !== undefined)
  const found = directory.findKnownKey(digestKey(key))!
  assert.deepEqual([found.id, found.account, found.expiresMs], [keyId, accounts.get(id), undefined])
  assert.equal(directory.findKnownKey(createKey().digest), undefined)

  store.credit('one', 5n, 'invoice')
  await until(() => balances.get(id)?.balanceNanos === 5n)
  const posting = ledger.debit(createDebit('req_1', found.account))
  store.credit('one', 10n, 'invoice 2')
  await posting
  await until(() => balances.get(id)?.balanceNanos === 15n - costNanos)
  store.updateAccount('one', { state: 'suspended' })
  await until(() => accounts.get(id)?.state === 'suspended')
  assert.equal(accounts.get(id), found.account)
  store.rotateKey(keyId, 60_000)
  await until(() => directory.findKnownKey(digestKey(key))?.expiresMs !== undefined)
  store.revokeKey(keyId)
  await until(() => directory.findKnownKey(digestKey(key)) === undefined)
})

test('R16 a new key is found by the first lookup, forty of forty times, though the store is polled once an hour', async (t) => {
  const path = createPath(t)
  const { directory } = await open(t, path, { pollMs: 3_600_000 })
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one')
  for (let i = 0; i < 40; i++) {
    const { key, id } = store.createKey('one')
    assert.equal((await directory.findKey(digestKey(key)))?.id, id)
    assert.equal(directory.findKnownKey(digestKey(key))?.id, id, 'from then on memory holds it')
  }
  assert.equal(await directory.findKey(createKey().digest), undefined)
})

test('R16 C5 if the store is delayed, a lookup of a key ends in time without an answer, and works again afterwards', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { key } = store.createKey('one')
  const { ledger, directory, accounts } = await open(t, path, { busyMs: 400, lookMs: 20, pollMs: 3_600_000 })
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  const debit = ledger.debit(createDebit('req_1', accounts.get(id)!))
  // Sooner or later the thread waits for the lock and hears nothing.
  let failure: unknown
  for (let tries = 0; tries < 1_000 && !failure; tries++) {
    try {
      assert.equal(await directory.findKey(createKey().digest), undefined)
    } catch (error) {
      failure = error
    }
  }
  assert.ok(failure instanceof StoreSilent)
  assert.ok(directory.findKnownKey(digestKey(key)))
  blocker.exec('COMMIT')
  await debit
  // On a busy machine one question or another may still take longer than twenty milliseconds.
  let found: unknown = failure
  const isTold = async () => {
    found = await Promise.resolve(directory.findKey(createKey().digest)).catch((error: unknown) => error)
    return !(found instanceof StoreSilent)
  }
  await until(isTold, 'the store answers again')
  assert.equal(found, undefined)
})

test('R16 C5 a lookup in a lost store fails at once, as silent', async (t) => {
  const path = createPath(t)
  openStore(path).close()
  const { directory, fatals } = await open(t, path, { pollMs: 3_600_000 })
  renameSync(path, `${path}.moved`)
  await assert.rejects(async () => directory.findKey(createKey().digest), StoreSilent)
  await until(() => fatals.length > 0)
  assert.equal(fatals.length, 1)
})

test('uses of keys are written from time to time', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one')
  const { key } = store.createKey('one')
  const { directory } = await open(t, path, { touchMs: 10 })
  directory.touch(directory.findKnownKey(digestKey(key))!)
  await until(() => store.listKeys('one')[0]?.lastUsedMs !== undefined)
})

test('F-S1 Y16 if the database is locked, the debit is spooled at its deadline and its account blocked until the lock ends', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const { id: two } = store.createAccount('two', 1_000_000n)
  const { ledger, accounts, balances, lines } = await open(t, path, { settleDeadlineMs: 50, busyMs: 20 })
  const [account, balance] = [accounts.get(id)!, balances.get(id)!]
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  assert.equal(ledger.whyBlocked(id), undefined)
  assert.equal(await ledger.debit(createDebit('req_1', account)), 'spooled')
  assert.deepEqual([ledger.whyBlocked(id), balance.owedNanos, balance.balanceNanos], ['owing', costNanos, 370_000n])
  const mode = statSync(spoolPath(path)).mode & 0o777
  assert.deepEqual([mode, readFileSync(spoolPath(path), 'utf8').includes('req_1')], [0o600, true])
  assert.deepEqual([ledger.whyBlocked(), ledger.whyBlocked(two)], [undefined, undefined])
  assert.equal(await ledger.debit(createDebit('req_2', accounts.get(two)!)), 'spooled')
  // Nothing of any account was committed, so the server is not ready (BRK-14).
  assert.deepEqual([ledger.whyBlocked(), ledger.whyBlocked(two)], ['stalled', 'owing'])
  // The thread reports the lock after it has tried, which may be after the deadline.
  await until(() => lines.some(({ event }) => event === 'ledger_busy'))
  assert.deepEqual(new Set(lines.map(({ event }) => event)), new Set(['ledger_busy', 'ledger_unsettled']))
  await assert.rejects(ledger.debit(createDebit('req_1', account)), /being settled already/)

  blocker.exec('COMMIT')
  await until(() => ledger.whyBlocked(id) === undefined)
  assert.equal(ledger.whyBlocked(), undefined)
  assert.ok(store.findEntry('req_1') && store.findEntry('req_2'))
  assert.equal(ledger.whyBlocked(two), undefined)
  assert.deepEqual([balance.owedNanos, balance.balanceNanos], [0n, 370_000n])
  await until(() => readFileSync(spoolPath(path), 'utf8') === '')
  assert.equal(await ledger.debit(createDebit('req_1', account)), 'exists')
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B7 C13 F-S1 a start that cannot commit takes nothing until a commit works', async (t) => {
  const path = createPath(t)
  openStore(path).close()
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  const { ledger, lines } = await open(t, path, { settleDeadlineMs: 50, busyMs: 20, isStuck: true })
  assert.equal(ledger.whyBlocked(), 'uncommitted')
  await until(() => lines.length > 0)
  assert.deepEqual(new Set(lines.map(({ event }) => event)), new Set(['ledger_busy']))
  blocker.exec('COMMIT')
  await until(() => ledger.whyBlocked() === undefined)
})

/** A store whose database is locked and whose spool cannot be written: a folder in its place. */
async function openStuck(t: TestContext, options: Partial<LedgerOptions> = {}) {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  const opened = await open(t, path, { settleDeadlineMs: 30, busyMs: 10, lookMs: 150, ...options })
  const blocker = openBlocker(t, path)
  const lock = () => {
    blocker.exec('BEGIN IMMEDIATE')
    mkdirSync(spoolPath(path))
  }
  const free = () => blocker.exec('COMMIT')
  /** The thread has read its messages and waits for the lock: it answers nothing any more. */
  const standsBeforeLock = async () => {
    const ask = async () => opened.directory.findKey(createKey().digest)
    const isSilent = () =>
      ask().then(
        () => false,
        () => true,
      )
    // Once it may be silent because it had no turn of the processor.
    await until(async () => (await isSilent()) && (await isSilent()) && (await isSilent()))
  }
  const [account, balance] = [opened.accounts.get(id)!, opened.balances.get(id)!]
  return { path, store, ...opened, account, balance, lock, free, standsBeforeLock }
}

test('B7 C13 F-S1 if database and spool fail, the debit fails and is never booked; nothing is taken until the store works', async (t) => {
  const { store, ledger, account, balance, lock, free, lines } = await openStuck(t)
  lock()
  await assert.rejects(ledger.debit(createDebit('req_1', account)), /neither database nor spool/)
  assert.deepEqual([ledger.whyBlocked(), balance.balanceNanos, balance.owedNanos], ['stuck', 1_000_000n, 0n])
  free()
  await until(() => ledger.whyBlocked(account.id) === undefined)
  assert.equal(await ledger.debit(createDebit('req_2', account)), 'posted')
  assert.equal(store.findEntry('req_1'), undefined)
  assert.equal(balance.balanceNanos, 1_000_000n - costNanos)
  assert.deepEqual(lines.find(({ event }) => event === 'ledger_withdrawn')?.fields, { withdrawn: 1, returned: [] })
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B7 C13 a commit that succeeds after the deadline is the answer: its client is not refused', async (t) => {
  let nowMs = 0
  const options = { busyMs: 10_000, clockMs: () => nowMs }
  const { store, ledger, account, lock, free, lines, standsBeforeLock } = await openStuck(t, options)
  await ledger.debit(createDebit('req_0', account))
  lock()
  const debit = ledger.debit(createDebit('req_1', account))
  await standsBeforeLock()
  nowMs = 30
  await until(() => lines.some(({ event }) => event === 'ledger_unsettled'))
  free()
  assert.equal(await debit, 'posted')
  assert.ok(store.findEntry('req_1'))
  await until(() => ledger.whyBlocked(account.id) === undefined)
  assert.equal(store.sumEntries({}, [])[0]!.requests, 2)
})

test('B7 C13 a commit that succeeds after its client was refused is returned, and verify pairs the two', async (t) => {
  let nowMs = 0
  const options = { busyMs: 10_000, clockMs: () => nowMs }
  const { store, ledger, account, balance, lock, free, standsBeforeLock } = await openStuck(t, options)
  lock()
  const debit = assert.rejects(ledger.debit(createDebit('req_1', account)), /neither database nor spool/)
  await standsBeforeLock()
  const passing = repeat(() => {
    nowMs += 500
  })
  await debit
  passing.stop()
  assert.deepEqual([ledger.whyBlocked(), store.findEntry('req_1')], ['stuck', undefined])
  free()
  await until(() => ledger.whyBlocked(account.id) === undefined)
  assert.ok(store.findEntry('req_1'))
  assert.deepEqual([balance.balanceNanos, store.findAccount('one').balanceNanos], [1_000_000n, 1_000_000n])
  const log = [{ requestId: 'req_1', outcome: 'internal_error', cause: 'ledger_unsettled' }]
  assert.deepEqual(store.verify({ ...verifyOptions, log }), [])
})

test('B7 C13 F-P1 a return that a dead run could only note is posted at the next start, if there is a debit', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 1_000_000n)
  store.postDebits([createDebitRow('req_1', id)])
  const note = (...requestIds: string[]) => requestIds.map((returned) => `${JSON.stringify({ returned })}\n`).join('')
  for (const posted of [1, 0]) {
    // The second time as if the crash had come between the commit and the end of the spool.
    writeFileSync(spoolPath(path), note('req_1', 'req_9'), { mode: 0o600 })
    const { lines, balances, close } = await open(t, path)
    const fields = { posted: 0, known: 0, returned: 1, rejected: 0, unreadable: 0, aside: undefined }
    assert.deepEqual(lines[0], { level: 'info', event: 'crash_recovery', fields }, `${posted}`)
    assert.equal(balances.get(id)?.balanceNanos, 1_000_000n)
    assert.equal(existsSync(spoolPath(path)), false)
    await close()
  }
  assert.equal(store.listEntries({ limit: 9 }).filter(({ returned }) => returned).length, 1)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('F-P1 debits that a crashed run left in the spool are posted once at the next start', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  let nowMs = 0
  const first = await open(t, path, { settleDeadlineMs: 30, busyMs: 10, clockMs: () => nowMs })
  const account = first.accounts.get(id)!
  await first.ledger.debit(createDebit('req_1', account))
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  const spooled = [createDebit('req_2', account), createDebit('req_3', account)].map((debit) =>
    first.ledger.debit(debit),
  )
  nowMs = 30
  assert.deepEqual(await Promise.all(spooled), ['spooled', 'spooled'])
  const left = readFileSync(spoolPath(path), 'utf8')
  blocker.exec('COMMIT')
  await first.close()
  assert.ok(store.findEntry('req_3'))

  // As if one of the three had not reached the database, and the crash had torn a line that was never promised.
  const lost = left.replaceAll('req_2', 'req_4')
  writeFileSync(spoolPath(path), lost, { mode: 0o600 })
  const second = await open(t, path)
  assert.deepEqual(second.lines[0], {
    level: 'info',
    event: 'crash_recovery',
    fields: { posted: 1, known: 1, returned: 0, rejected: 0, unreadable: 0, aside: undefined },
  })
  assert.equal(second.balances.get(id)?.balanceNanos, -4n * costNanos)
  assert.equal(existsSync(spoolPath(path)), false)
  await second.close()

  writeFileSync(spoolPath(path), `${left}{"requestId":"req_5","amou`, { mode: 0o600 })
  const third = await open(t, path)
  assert.deepEqual([third.lines[0]?.level, third.lines[0]?.fields.unreadable], ['error', 1])
  assert.ok(existsSync(third.lines[0]!.fields.aside as string))
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('F-P16 a second server on the same store is refused; once the first has ended it may start', async (t) => {
  const path = createPath(t)
  const first = await open(t, path)
  await assert.rejects(open(t, path), /Another triwire server is running on/)
  await first.close()
  await open(t, path)
})

test('F-S5 a store that is removed or replaced while the server runs is fatal, and debits go to the spool', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one')
  store.close()
  const { ledger, accounts, fatals } = await open(t, path, { settleDeadlineMs: 50 })
  renameSync(path, `${path}.moved`)
  await until(() => fatals.length > 0)
  assert.match(fatals[0]!.message, /was removed or replaced while the server runs/)
  assert.equal(ledger.whyBlocked(), 'lost')
  assert.equal(await ledger.debit(createDebit('req_1', accounts.get(id)!)), 'spooled')
})

test('F-S5 a store that is lost while it is opened leaves no thread running', async (t) => {
  const path = createPath(t)
  openStore(path).close()
  const workers = noteWorkers(t)
  openBlocker(t, path).exec('BEGIN IMMEDIATE')
  let isTried = false
  const log = () => {
    isTried = true
  }
  const opening = assert.rejects(open(t, path, { settleDeadlineMs: 60_000, busyMs: 20, log }), StoreError)
  await until(() => isTried, 'its first commit finds the store locked')
  renameSync(path, `${path}.moved`)
  await opening
  await until(() => workers.every(({ threadId }) => threadId < 0), 'its thread ends')
  assert.equal(workers.length, 1)
})

test('F-S5 a debit that arrives before the loss of the store is noticed is spooled, and not reported as posted', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one')
  store.close()
  const { ledger, accounts, fatals } = await open(t, path, { settleDeadlineMs: 50, pollMs: 3_600_000 })
  renameSync(path, `${path}.moved`)
  assert.equal(await ledger.debit(createDebit('req_1', accounts.get(id)!)), 'spooled')
  assert.ok(readFileSync(spoolPath(path), 'utf8').includes('req_1'))
  await until(() => fatals.length > 0)
})

test('F-P15 F-S1 a restarted thread leaves the spool alone: debits that are still waited for stay in it', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const workers = noteWorkers(t)
  const { ledger, accounts } = await open(t, path, { settleDeadlineMs: 50, busyMs: 20 })
  const account = accounts.get(id)!
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  assert.equal(await ledger.debit(createDebit('req_1', account)), 'spooled')
  await workers[0]!.terminate()
  blocker.exec('COMMIT')
  await until(() => ledger.whyBlocked(id) === undefined)
  assert.ok(store.findEntry('req_1'))
  // It is emptied, and still there for the next one.
  await until(() => readFileSync(spoolPath(path), 'utf8') === '')
  blocker.exec('BEGIN IMMEDIATE')
  assert.equal(await ledger.debit(createDebit('req_2', account)), 'spooled')
  assert.ok(readFileSync(spoolPath(path), 'utf8').includes('req_2'))
  blocker.exec('COMMIT')
})

test('a store that cannot be used is refused at the start, with the cure, and is not left locked', async (t) => {
  const path = createPath(t)
  openStore(path).close()
  chmodSync(path, 0o644)
  await assert.rejects(open(t, path), (error) => error instanceof StoreError && /: run chmod 600 /.test(error.message))
  chmodSync(path, 0o600)
  mkdirSync(`${path}.spool`)
  await assert.rejects(
    open(t, path),
    /triwire\.db\.spool cannot be read: it is a folder \(EISDIR\); it may have debits/,
  )
  rmdirSync(`${path}.spool`)
  await open(t, path)
})

test('closing settles the debits that are under way', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { ledger, accounts, close } = await open(t, path)
  const debit = ledger.debit(createDebit('req_1', accounts.get(id)!))
  await close()
  assert.equal(await debit, 'posted')
  assert.ok(store.findEntry('req_1'))
})

test('a balance that differs from its last entry is reported at the start', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 5n)
  store.close()
  const db = new DatabaseSync(path)
  db.exec('UPDATE accounts SET balance = 6')
  db.close()
  const { lines } = await open(t, path)
  assert.deepEqual(lines, [
    { level: 'error', event: 'ledger_mismatch', fields: { accounts: [id], cure: 'run triwire ledger verify' } },
  ])
})

test('F-P15 a ledger thread that dies is restarted once and owes nothing; the second death is fatal', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const workers = noteWorkers(t)
  const { ledger, accounts, balances, fatals, lines } = await open(t, path, { busyMs: 20 })
  const account = accounts.get(id)!
  const blocker = openBlocker(t, path)
  blocker.exec('BEGIN IMMEDIATE')
  const debit = ledger.debit(createDebit('req_1', account))
  await workers[0]!.terminate()
  blocker.exec('COMMIT')
  assert.equal(await debit, 'posted')
  assert.equal(lines.filter(({ event }) => event === 'ledger_worker_restart').length, 1)
  assert.deepEqual([fatals.length, balances.get(id)?.balanceNanos], [0, -costNanos])

  await workers[1]!.terminate()
  await until(() => fatals.length === 1)
  assert.equal(ledger.whyBlocked(), 'lost')
  assert.equal(await ledger.debit(createDebit('req_2', account)), 'spooled')
})

/** Locks the store from another connection, and waits while the ledger's thread writes. */
function openBlocker(t: TestContext, path: string): DatabaseSync {
  const blocker = new DatabaseSync(path, { timeout: patienceMs })
  t.after(() => blocker.close())
  return blocker
}

/** The ledger's threads, as they start. */
function noteWorkers(t: TestContext): Worker[] {
  const workers: Worker[] = []
  const note = (worker: Worker) => void workers.push(worker)
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  return workers
}

/** Commits in the write-ahead log: frames that say how large the database is after them (https://www.sqlite.org/fileformat.html#walformat). */
function countCommits(path: string): number {
  const log = readFileSync(`${path}-wal`)
  const frameBytes = 24 + log.readUInt32BE(8)
  let commits = 0
  for (let at = 32; at + frameBytes <= log.length; at += frameBytes) if (log.readUInt32BE(at + 4) > 0) commits++
  return commits
}
