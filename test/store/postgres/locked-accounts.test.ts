import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { before } from 'node:test'
import type { Account } from '../../../src/accounts/account.ts'
import { digestKey } from '../../../src/accounts/keys.ts'
import type { Debit, Ledger } from '../../../src/accounts/ledger.ts'
import { newRequestId } from '../../../src/ids.ts'
import { installFunctions } from '../../../src/store/postgres/migrate.ts'
import { postDebits, postFunctions } from '../../../src/store/postgres/post.ts'
import { PostingDesk } from '../../../src/store/postgres/posting-desk.ts'
import { SlowAccounts } from '../../../src/store/postgres/posting-memory.ts'
import { SpendWindows } from '../../../src/store/postgres/spend-windows.ts'
import { packDebit } from '../../../src/store/serving/thread.ts'
import { atEnd } from '../../support/at-end.ts'
import { testFolder } from '../../support/folder.ts'
import { type Postgres, startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { turn, until } from '../../support/waiting.ts'
import { costNanos, createDebit, createDebitRow, verifyOptions } from '../fixtures.ts'
import { openOperator, openStore } from './opened.ts'

/* A lock on some accounts delays those accounts, and does nothing to the others (ruling Y16). */

const skip = withoutPostgres()
let postgres: Postgres
let count = 0

before(async () => {
  if (!skip) postgres = await startPostgres()
})

/** Accounts with credit and a key that has a budget, in the order in which they are locked. */
async function prepare(accounts: number) {
  const url = postgres.createDatabase(`locked_${++count}`)
  const books = await openOperator(url)
  const payers: { id: string; key: string; keyId: string }[] = []
  for (let n = 0; n < accounts; n++) {
    const { id } = await books.createAccount(`account ${n}`, 100_000_000n)
    const { key, id: keyId } = await books.createKey(`account ${n}`, { budget: { nanos: 2n ** 60n, per: 'day' } })
    payers.push({ id, key, keyId })
  }
  payers.sort((a, b) => (a.id < b.id ? -1 : 1))
  return { url, books, payers }
}

type Prepared = Awaited<ReturnType<typeof prepare>>

/** Rows of an account whose lock keeps everyone from posting to it. */
const holds = {
  'the balances': ['SELECT FROM triwire.balances WHERE account_id = ANY ($1) FOR UPDATE', ({ id }) => id],
  'what keys have spent': ['SELECT FROM triwire.spends WHERE scope = ANY ($1) FOR UPDATE', ({ keyId }) => keyId],
} satisfies Record<string, [sql: string, of: (payer: Prepared['payers'][number]) => string]>

/** @returns what lets go of them */
async function hold({ books }: Prepared, payers: Prepared['payers'], what: keyof typeof holds = 'the balances') {
  const [held, release] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
  const [sql, of] = holds[what]
  const holding = books.database.transact(async ({ query }) => {
    held.resolve((await query(sql, [payers.map(of)])).length)
    await release.promise
  })
  assert.equal(await held.promise, payers.length)
  return async () => {
    release.resolve()
    await holding
  }
}

/** Posts a debit of each in one turn of the event loop. @returns the answers so far, by account */
async function debitAll(ledger: Ledger, accounts: readonly Account[], keyIds: readonly string[]) {
  const answers = new Map<string, string>()
  const ends = accounts.map((account, n) =>
    ledger.debit({ ...createDebit(newRequestId(), account), keyId: keyIds[n]! }).then((how) => {
      answers.set(account.id, how)
    }),
  )
  await turn()
  return { answers, all: Promise.all(ends) }
}

for (const what of Object.keys(holds) as (keyof typeof holds)[])
  for (const [of, locked] of [
    [6, [0]],
    [6, [5]],
    [12, [1, 4, 6, 7, 11]],
  ] as const)
    test(`Y16 F-S1 while a transaction locks ${what} of ${locked.length} of ${of} accounts, the last the ${locked.at(-1)! + 1}th, two servers post the others’ debits of the same turns`, {
      skip,
    }, async () => {
      const prepared = await prepare(of)
      const { url, payers, books } = prepared
      const keyIds = payers.map(({ keyId }) => keyId)
      // No debit is late in this test: what is not answered waits.
      const servers = await Promise.all([1, 2].map(() => openStore(url, { settleDeadlineMs: 600_000 })))
      const ledgers = await Promise.all(
        servers.map(async ({ ledger, directory }) => {
          const keys = await Promise.all(payers.map(({ key }) => directory.findKey(digestKey(key))))
          return { ledger, accounts: keys.map((key) => key!.account) }
        }),
      )
      for (const { ledger, accounts } of ledgers) await (await debitAll(ledger, accounts, keyIds)).all
      const free = await hold(
        prepared,
        locked.map((n) => payers[n]!),
        what,
      )
      const isOther = ({ id }: { id: string }) => !locked.some((n) => payers[n]!.id === id)
      const others = payers.filter(isOther)
      const rounds: Awaited<ReturnType<typeof debitAll>>[] = []
      for (let round = 0; round < 3; round++) {
        const some = await Promise.all(ledgers.map(({ ledger, accounts }) => debitAll(ledger, accounts, keyIds)))
        rounds.push(...some)
        await until(() => some.every(({ answers }) => answers.size === others.length), 'the others have their answers')
      }
      for (const { answers } of rounds)
        assert.deepEqual(new Set(answers.keys()), new Set(others.map(({ id }) => id)), 'and nobody else')
      await free()
      await Promise.all(rounds.map(({ all }) => all))
      assert.ok(rounds.every(({ answers }) => [...answers.values()].every((how) => how === 'posted')))
      for (const { id } of payers)
        assert.equal((await books.findAccount(id)).balanceNanos, 100_000_000n - 8n * costNanos)
      assert.deepEqual(await books.verify(verifyOptions), [])
    })

for (const what of Object.keys(holds) as (keyof typeof holds)[])
  test(`Y16 Y20 a store opens while a transaction locks ${what} of an account whose budget counts too few entries`, {
    skip,
  }, async () => {
    const prepared = await prepare(1)
    const { url, books, payers } = prepared
    const { id } = payers[0]!
    await books.updateAccount(id, { budget: { nanos: 2n ** 60n, per: undefined } })
    await postDebits(books.database, [createDebitRow(newRequestId(), id)])
    await books.database.query('UPDATE triwire.spends SET seq = 0, spent = 0 WHERE scope = $1', [id])
    const release = await hold(prepared, [{ ...payers[0]!, keyId: id }], what)
    assert.equal((await (await openOperator(url)).findAccount(id)).spend!.spentNanos, 0n)
    await release()
    await openStore(url)
    assert.equal((await books.findAccount(id)).spend!.spentNanos, costNanos)
  })

test('Y16 F-S1 at the deadline a locked account is blocked and another one continues; later all its debits are posted, each once', {
  skip,
}, async () => {
  const prepared = await prepare(2)
  const { url, payers, books } = prepared
  const { ledger, directory, told, spool } = await openStore(url, { settleDeadlineMs: 2_000, patienceMs: 400 })
  const [one, two] = await Promise.all(
    payers.map(async ({ key }) => (await directory.findKey(digestKey(key)))!.account),
  )
  const free = await hold(prepared, [payers[0]!])
  const [stuck, posted] = await Promise.all([
    ledger.debit(createDebit(newRequestId(), one!)),
    ledger.debit(createDebit(newRequestId(), two!)),
  ])
  assert.deepEqual([stuck, posted], ['spooled', 'posted'])
  assert.deepEqual(
    [undefined, one!.id, two!.id].map((id) => ledger.whyBlocked(id)),
    [undefined, 'owing', undefined],
  )
  assert.deepEqual(told('ledger_unsettled')[0]!['accounts'], [one!.id])
  assert.equal(await ledger.debit(createDebit(newRequestId(), two!)), 'posted')
  await free()
  await until(() => ledger.whyBlocked(one!.id) === undefined, 'it is blocked no longer')
  await until(() => readFileSync(spool, 'utf8') === '')
  assert.equal((await books.findAccount(one!.id)).balanceNanos, 100_000_000n - costNanos)
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('Y16 F-P1 X13 a server that starts while accounts are locked serves the others; their spooled debits block only them', {
  skip,
}, async () => {
  const prepared = await prepare(3)
  const { url, payers, books } = prepared
  const [mine, theirs, free] = [payers[0]!.id, payers[1]!.id, payers[2]!.id]
  const spoolsDir = testFolder('state')
  const leave = (name: string, ...lines: string[]) => {
    mkdirSync(join(spoolsDir, name), { recursive: true })
    const path = join(spoolsDir, name, 'replica.spool')
    writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
    return path
  }
  const line = (accountId: string) =>
    JSON.stringify(createDebitRow(newRequestId(), accountId), (_, value) =>
      typeof value === 'bigint' ? `${value}` : value,
    )
  const own = leave('a', line(mine), line(free), '{"torn')
  const gone = leave('b', line(theirs), line(free))
  const letGo = await hold(prepared, payers.slice(0, 2))
  const options = { stateDir: join(spoolsDir, 'a'), spoolsDir, patienceMs: 400 }
  const store = await openStore(url, options)
  const blocks = () => [undefined, mine, theirs, free].map((id) => store.ledger.whyBlocked(id))
  assert.deepEqual(blocks(), [undefined, 'owing', 'owing', undefined])
  assert.equal(store.ledger.backlog().spooled, 2)
  assert.deepEqual(
    store.told('crash_recovery').map(({ posted, held, spool }) => ({ posted, held, spool })),
    [own, gone].map((spool) => ({ posted: 1, held: 1, spool })),
  )
  assert.ok(existsSync(own) && existsSync(gone), 'until the next start')
  const aside = readdirSync(join(spoolsDir, 'a')).filter((name) => name.endsWith('.bad'))
  assert.equal(aside.length, 1, 'what nobody can read is put aside')
  const other = (await store.directory.findKey(digestKey(payers[2]!.key)))!.account
  assert.equal(await store.ledger.debit(createDebit(newRequestId(), other)), 'posted')
  await letGo()
  await until(() => blocks().every((block) => block === undefined), 'nobody is blocked any more')
  await store.close()
  const next = await openStore(url, options)
  assert.deepEqual(
    next.told('crash_recovery').map(({ posted, known, held }) => ({ posted, known, held })),
    [own, gone].map(() => ({ posted: 0, known: 2, held: undefined })),
  )
  const debits = await Promise.all(
    [mine, theirs, free].map(async (id) => 100_000_000n - (await books.findAccount(id)).balanceNanos),
  )
  assert.deepEqual(debits, [costNanos, costNanos, 3n * costNanos])
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('Y16 F-P1 C13 a server that starts while an account is locked serves the others, and returns its debit later', {
  skip,
}, async () => {
  const prepared = await prepare(2)
  const { url, payers, books } = prepared
  const [locked, free] = [payers[0]!.id, payers[1]!.id]
  const spoolsDir = testFolder('state')
  const stateDir = join(spoolsDir, 'a')
  mkdirSync(stateDir)
  const rows = [createDebitRow(newRequestId(), locked), createDebitRow(newRequestId(), free)]
  await postDebits(books.database, rows)
  const notes = [...rows.map(({ requestId }) => requestId), 'req_unknown'].map((returned) =>
    JSON.stringify({ returned }),
  )
  const spool = join(stateDir, 'replica.spool')
  writeFileSync(spool, `${notes.join('\n')}\n`, { mode: 0o600 })
  const letGo = await hold(prepared, payers.slice(0, 1))
  const balances = () => Promise.all([locked, free].map(async (id) => (await books.findAccount(id)).balanceNanos))
  const options = { stateDir, spoolsDir, patienceMs: 400 }
  const store = await openStore(url, options)
  assert.deepEqual(
    [undefined, locked, free].map((id) => store.ledger.whyBlocked(id)),
    [undefined, 'owing', undefined],
  )
  const told = store.told('crash_recovery')
  assert.deepEqual([told.length, told[0]?.returned, told[0]?.held, existsSync(spool)], [1, 1, 1, true])
  assert.deepEqual(await balances(), [100_000_000n - costNanos, 100_000_000n])
  await letGo()
  await until(() => store.ledger.whyBlocked(locked) === undefined, 'it is blocked no longer')
  assert.deepEqual(await balances(), [100_000_000n, 100_000_000n])
  await store.close()
  const next = await openStore(url, options)
  assert.equal(next.told('crash_recovery')[0]?.held, undefined)
  assert.equal(existsSync(spool), false)
  assert.deepEqual(await balances(), [100_000_000n, 100_000_000n])
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('Y16 C13 a debit is returned when the lock of its account ends, while an account that was locked too stays locked', {
  skip,
}, async () => {
  const prepared = await prepare(2)
  const { url, payers, books } = prepared
  const [one, two] = [payers[0]!.id, payers[1]!.id]
  const stateDir = join(testFolder('state'), 'a')
  mkdirSync(stateDir)
  const rows = [one, two].map((id) => createDebitRow(newRequestId(), id))
  await postDebits(books.database, rows)
  const notes = rows.map(({ requestId }) => JSON.stringify({ returned: requestId }))
  writeFileSync(join(stateDir, 'replica.spool'), `${notes.join('\n')}\n`, { mode: 0o600 })
  const [letOne, letTwo] = [await hold(prepared, [payers[0]!]), await hold(prepared, [payers[1]!])]
  const { ledger } = await openStore(url, { stateDir, patienceMs: 400 })
  assert.deepEqual(
    [one, two].map((id) => ledger.whyBlocked(id)),
    ['owing', 'owing'],
  )
  await letTwo()
  await until(() => ledger.whyBlocked(two) === undefined, 'the free account is blocked no longer')
  assert.equal(ledger.whyBlocked(one), 'owing')
  assert.equal((await books.findAccount(two)).balanceNanos, 100_000_000n)
  await letOne()
  await until(() => ledger.whyBlocked(one) === undefined, 'and neither is the other')
  assert.deepEqual(await books.verify(verifyOptions), [])
})

test('Y16 C13 a deferred debit that is withdrawn may be in the ledger if a call that had it ended without an answer', {
  skip,
}, async () => {
  const fates: Record<string, string> = {}
  for (const isUnanswered of [false, true])
    for (const isPostedAgain of [false, true]) {
      const prepared = await prepare(2)
      const { url, payers, books } = prepared
      const windows = new SpendWindows()
      const options = { url, patienceMs: 2_000, say: () => {}, clockMs: () => performance.now(), isSuccessor: false }
      const desk = new PostingDesk({ ...options, windows })
      atEnd(() => desk.close())
      await installFunctions(books.database, postFunctions)
      await desk.onReached()
      const free = await hold(prepared, [payers[0]!])
      const [mine, theirs] = payers.map(({ id }) => createDebitRow(newRequestId(), id)) as [Debit, Debit]
      const posting = desk.answers.post([mine, theirs].map(packDebit))
      const endWaiting = async () =>
        (
          await books.database.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE wait_event_type = 'Lock' AND application_name = 'triwire posting' AND datname = current_database()`,
          )
        ).length
      if (isUnanswered) await until(endWaiting, 'the call waits')
      const { postings } = await posting
      assert.deepEqual(postings, ['deferred', 'posted'])
      const again = isPostedAgain ? desk.answers.post([packDebit(mine)]) : undefined
      const name = `${isUnanswered ? 'unanswered' : 'answered'}, ${isPostedAgain ? 'posted again' : 'on its way'}`
      fates[name] = (await desk.answers.withdraw([mine])).fates.join()
      if (again) assert.deepEqual((await again).postings, ['withdrawn'])
      await free()
      assert.equal(await books.findEntry(mine.requestId), undefined)
    }
  assert.deepEqual(fates, {
    'answered, on its way': 'absent',
    'answered, posted again': 'absent',
    'unanswered, on its way': 'unknown',
    'unanswered, posted again': 'unknown',
  })
})

test('Y16 after a call that waited in vain, accounts with locked rows count as slow, or all of the call if no row is locked', () => {
  const slow = new SlowAccounts()
  const accuse = (accountIds: string, locked: string | undefined) => {
    slow.accuse(new Set(accountIds), locked === undefined ? undefined : new Set(locked))
    return slow.list().join('')
  }
  assert.equal(accuse('abc', 'b'), 'b')
  assert.equal(accuse('ac', 'ab'), 'ba')
  // Alone it is slow whatever is seen, and its turn comes last.
  assert.equal(accuse('b', 'ab'), 'ab')
  assert.equal(accuse('a', 'a'), 'a', 'what is seen to be free is slow no more')
  assert.equal(accuse('de', ''), 'de', 'and what was locked a moment ago is not')
  assert.equal(accuse('d', ''), 'ed', 'something else of it may be locked')
  assert.equal(accuse('fg', undefined), 'edfg', 'nobody can say')
  slow.acquit(new Set('edg'))
  assert.deepEqual([slow.list(), slow.size, slow.has('f')], [['f'], 1, true])
})
