import assert from 'node:assert/strict'
import test from 'node:test'
import type { KeyScope } from '../../src/accounts/desk.ts'
import type { Transaction } from '../../src/store/postgres/database.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { until } from '../support/waiting.ts'
import { clusterOfFile, openShared, type Shared, startReplica } from './cluster.ts'

const cluster = clusterOfFile()
const skip = withoutPostgres()
const rich = 10n ** 15n

/** A replica whose clock stands still until it is turned. */
async function startTurned(shared: Shared, wrap?: (database: Transaction) => Transaction) {
  let nowMs = 0
  const replica = await startReplica(shared, { clockMs: () => nowMs, ...(wrap && { wrap }) })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { ...replica, pass }
}

/** What the database has of an account, of all replicas. */
async function heldOf(
  { operator }: Awaited<ReturnType<typeof openShared>>,
  scope: string,
): Promise<bigint | undefined> {
  const rows = await operator.query('SELECT sum(held)::bigint AS held FROM triwire.shares WHERE scope = $1', [scope])
  return (rows[0] as { held: bigint | null }).held ?? undefined
}

test('X7: a release is sent with the next question, alone after two seconds, and at once if credit is short', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'releases')
  const replica = await startTurned(store.shared)
  const account = await store.createAccount(rich)
  await replica.take(account, 2, 10n)
  replica.release(account, 10n)
  await replica.take(account, 1, 1n)
  assert.equal(await heldOf(store, account), 11n)
  replica.release(account, 1n)
  replica.pass(1_999)
  // Another account's question does not take it along.
  await replica.take(await store.createAccount(rich), 1)
  assert.equal(await heldOf(store, account), 11n)
  replica.pass(1)
  await until(async () => (await heldOf(store, account)) === 10n)
  const short = await store.createAccount(100n)
  await replica.take(short, 2, 4n)
  replica.release(short, 4n)
  await until(async () => (await heldOf(store, short)) === 4n)
})

test('C5 X7: an owed debit is held for all replicas until it is in the database', { skip }, async () => {
  const store = await openShared(cluster(), 'owed')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const account = await store.createAccount(10n)
  await one.take(account, 1, 3n)
  // The debit is in the spool; its hold goes, what it owes stays.
  one.desk.take([
    { say: 'owe', accountId: account, keyId: undefined, amountNanos: 9n },
    { say: 'release', accountId: account, keyId: undefined, holdNanos: 3n },
  ])
  await until(async () => (await heldOf(store, account)) === 9n)
  assert.deepEqual(await other.take(account, 2), { admitted: 1, held: 1 })
  await store.operator.query('UPDATE triwire.balances SET balance = 1 WHERE account_id = $1', [account])
  one.desk.take([{ say: 'owe', accountId: account, keyId: undefined, amountNanos: -9n }])
  await until(async () => (await heldOf(store, account)) === 1n)
  assert.deepEqual(await other.take(account, 1), { held: 1 })
})

test('X7: a call has at most sixteen accounts, each lane has one call, and an account is in only one of them', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'lanes')
  const scopes: string[][] = []
  const underWay = new Set<string[]>()
  let most = 0
  const replica = await startTurned(store.shared, ({ query }) => ({
    async query(text, values, name) {
      if (!/admit/.test(text)) return query(text, values, name)
      const call = (values![3] as string).slice(1, -1).split(',')
      for (const other of underWay) assert.ok(new Set(other).isDisjointFrom(new Set(call)))
      scopes.push(call)
      underWay.add(call)
      most = Math.max(most, underWay.size)
      // Time enough for a call beside this one.
      replica.pass(30)
      return query(text, values, name).finally(() => underWay.delete(call))
    },
  }))
  const accounts = await Promise.all(Array.from({ length: 80 }, () => store.createAccount(rich)))
  await Promise.all(accounts.map((account) => replica.take(account, 3)))
  assert.deepEqual([most, Math.max(...scopes.map(({ length }) => length))], [2, 16])
  for (const call of scopes) assert.deepEqual(call, call.toSorted())
})

test('C5 X7 F-S13: a request that waits too long gets an unknown result; a later grant is held for no request', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'late')
  const answers = Promise.withResolvers<void>()
  let isHeldBack = true
  const wrap = ({ query }: Transaction): Transaction => ({
    async query(text, values, name) {
      const rows = await query(text, values, name)
      if (/admit/.test(text) && isHeldBack) await answers.promise
      return rows
    },
  })
  const replica = await startTurned(store.shared, wrap)
  const account = await store.createAccount(10n)
  const asked = replica.take(account, 2, 4n)
  await until(async () => (await heldOf(store, account)) === 8n)
  replica.pass(store.patienceMs)
  assert.deepEqual(await asked, { silent: 2 })
  isHeldBack = false
  answers.resolve()
  await until(async () => {
    replica.pass(2_000)
    return (await heldOf(store, account)) === 0n
  })
  // Their places stay used (ruling R1).
  assert.equal((await replica.ask(account, 1n)).figures?.window.taken, 3)
})

test('C5 X7: while the database is away questions wait, and continue when it returns; nothing is counted twice', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'away')
  let [isAway, tries] = [false, 0]
  const replica = await startReplica(store.shared, {
    clockMs: () => 0,
    wrap: ({ query }) => ({
      async query(text, values, name) {
        if (isAway && ++tries > 0) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' })
        return query(text, values, name)
      },
    }),
  })
  const account = await store.createAccount(3n)
  isAway = true
  const asked = replica.take(account, 5)
  // It has been tried, in vain, and that is told, but not each time.
  await until(() => tries >= 5)
  assert.deepEqual(replica.troubles, ['ECONNREFUSED'])
  isAway = false
  assert.deepEqual(await asked, { admitted: 3, held: 2 })
})

test('R1 X7: a hold refused for lack of credit returns its place, if its window is still open', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'back')
  const replica = await startReplica(store.shared)
  const account = await store.createAccount(10n)
  const [first, second] = [await replica.ask(account, 0n), await replica.ask(account, 0n)]
  await replica.ask(account, 10n)
  assert.equal((await replica.ask(account, 1n, { place: first.place! })).verdict, 'held')
  assert.equal(
    (await replica.ask(account, 1n, { place: { accountMs: second.place!.accountMs - 1, keyMs: undefined } })).verdict,
    'held',
  )
  const other = await startReplica(store.shared, { name: 'other' })
  await until(
    async () =>
      (await other.ask(account, 0n, { place: { accountMs: 0, keyMs: undefined } })).figures?.window.taken === 2,
  )
})

test('X7: a window opens with the first admitted request, by the database’s time, and ends a minute later', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'opens')
  const replica = await startReplica(store.shared)
  const account = await store.createAccount(0n)
  const refused = await replica.ask(account, 1n)
  assert.deepEqual([refused.verdict, refused.figures?.window], ['spent', { taken: 0, endsInMs: 0 }])
  await store.operator.query('UPDATE triwire.balances SET balance = 100 WHERE account_id = $1', [account])
  const { figures } = await replica.ask(account, 1n)
  assert.deepEqual(figures?.window, { taken: 1, endsInMs: 60_000 })
  const unknown = await replica.ask('acct_nobody000000000', 1n)
  assert.equal(unknown.verdict, 'spent')
})

test('X7: an account whose window ended starts another, also if the database’s clock was set back meanwhile', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'clock')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  for (const ms of [-61_000, 3_600_000]) {
    const account = await store.createAccount(rich)
    assert.deepEqual(await one.take(account, 300), { admitted: 300 })
    await store.operator.query('UPDATE triwire.shares SET window_ms = window_ms + $2 WHERE scope = $1', [account, ms])
    assert.deepEqual(await other.take(account, 300), { admitted: 300 })
    assert.deepEqual(await other.take(account, 1), { window: 1 })
  }
})

const key: KeyScope = { id: 'key_1', requestsPerMinute: 3, budgetNanos: undefined }

test('R15 X7: for a key with its own window both windows count as one, and a refusal by one uses no place of the other', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'keys')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const account = await store.createAccount(rich)
  const verdicts: string[] = []
  for (let n = 0; n < 5; n++) verdicts.push((await (n % 2 ? one : other).ask(account, 1n, { key })).verdict)
  assert.deepEqual(verdicts, ['admitted', 'admitted', 'admitted', 'key_window', 'key_window'])
  const { figures } = await other.ask(account, 1n)
  assert.equal(figures?.window.taken, 4)
  const full = await one.ask(account, 1n, { key: { ...key, requestsPerMinute: 9 }, requestsPerMinute: 4 })
  assert.deepEqual([full.verdict, full.figures?.key?.window?.taken], ['window', 3])
})

test('R15 X7: for a key with a budget the account is checked first, then the key’s spending and holds, over all replicas', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'budgets')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const account = await store.createAccount(100n)
  const budgeted: KeyScope = { id: 'key_2', requestsPerMinute: undefined, budgetNanos: 10n }
  const untilMs = Date.now() + 3_600_000
  await store.operator.query(`INSERT INTO triwire.spends VALUES ('key_2', 5, $1, 4), ('key_3', 4, 5, 1000)`, [untilMs])
  assert.equal((await one.ask(account, 6n, { key: budgeted })).verdict, 'admitted')
  assert.equal((await other.ask(account, 1n, { key: budgeted })).verdict, 'budget_held')
  assert.equal((await other.ask(account, 1n)).verdict, 'admitted')
  one.desk.take([{ say: 'release', accountId: account, keyId: 'key_2', holdNanos: 6n }])
  // What is free of a budget is told with the next question, or after two seconds.
  await one.ask(account, 0n)
  assert.equal((await other.ask(account, 1n, { key: budgeted })).verdict, 'admitted')
  await store.operator.query(`UPDATE triwire.spends SET spent = 10 WHERE scope = 'key_2'`)
  const spent = await other.ask(account, 1n, { key: budgeted })
  assert.deepEqual([spent.verdict, spent.figures?.key?.budget?.renewsMs], ['budget_spent', untilMs])
  // What was spent in a window that is over is not spent now.
  assert.equal((await other.ask(account, 1n, { key: { ...budgeted, id: 'key_3' } })).verdict, 'admitted')
  await store.operator.query('UPDATE triwire.balances SET balance = 0 WHERE account_id = $1', [account])
  assert.equal((await other.ask(account, 1n, { key: budgeted })).verdict, 'spent')
})

test('C2 R15 X7: requests made while idle accounts are forgotten are held, and their places stay taken', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'forgotten')
  let meanwhile = () => {}
  const replica = await startReplica(store.shared, {
    wrap: ({ query }) => ({
      query(text, values, name) {
        const answer = query(text, values, name)
        if (/admit/.test(text)) meanwhile()
        return answer
      },
    }),
  })
  const account = await store.createAccount(100n)
  await replica.take(await store.createAccount(rich), 1)
  meanwhile = () => replica.desk.forgetIdle()
  const [first, second, third] = [
    await replica.ask(account, 60n, { key }),
    await replica.ask(account, 60n, { key }),
    await replica.ask(account, 60n, { key }),
  ]
  assert.deepEqual([first.verdict, second.verdict, third.verdict], ['admitted', 'admitted', 'held'])
  assert.equal(third.figures?.key?.window?.taken, 2)
  replica.release(account, 60n)
  await until(async () => (await heldOf(store, account)) === 60n)
})

test('C2 X7: an account is not forgotten while its figures are still to be sent, since they would replace a later hold', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'unsent')
  const replica = await startTurned(store.shared)
  const [account, other] = [await store.createAccount(rich), await store.createAccount(rich)]
  const owe = (accountId: string, amountNanos: bigint) =>
    replica.desk.take([{ say: 'owe', accountId, keyId: undefined, amountNanos }])
  await replica.take(other, 1)
  await replica.take(account, 1, 10n)
  replica.release(account, 10n)
  replica.pass(2_000)
  await until(async () => (await heldOf(store, account)) === 0n)
  // The window is over. A debit is owed, and posted soon after.
  replica.pass(60_000)
  owe(account, 2n)
  owe(account, -2n)
  replica.desk.forgetIdle()
  await replica.take(account, 1, 60n)
  owe(other, 2n)
  replica.pass(2_000)
  await until(async () => (await heldOf(store, other)) === 3n)
  assert.equal(await heldOf(store, account), 60n)
})

test('X7: a large report is sent in several calls; state that only the database has is removed with the last', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'much')
  const tells: unknown[] = []
  const replica = await startReplica(store.shared, {
    wrap: ({ query }) => ({
      query(text, values, name) {
        if (/tell/.test(text)) tells.push((values![5] as unknown[]).length)
        return query(text, values, name)
      },
    }),
  })
  const accounts = Array.from({ length: 4_500 }, (_, n) => `acct_${String(n).padStart(16, '0')}`)
  replica.desk.take(accounts.map((accountId) => ({ say: 'owe', accountId, keyId: undefined, amountNanos: 2n })))
  const count = async () => {
    const rows = await store.operator.query('SELECT count(*) AS n, sum(held)::bigint AS held FROM triwire.shares')
    return [rows[0]!['n'], rows[0]!['held']]
  }
  await until(async () => (await count())[0] === 4_500n)
  await store.operator.query('INSERT INTO triwire.shares VALUES ($1, $2, 0, 7, 0, 0)', [
    'acct_stray',
    replica.identity.id,
  ])
  tells.length = 0
  await replica.desk.tell(replica.identity)
  assert.deepEqual(
    [tells, await count()],
    [
      [2_000, 2_000, 500],
      [4_500n, 9_000n],
    ],
  )
  await store.emptyUnlogged()
  await until(async () => (await count())[1] === 9_000n)
})

test('C2 X7: a hold that its replica releases during another’s check is not free together with its debit', {
  skip,
}, async () => {
  const sleep = 'PERFORM pg_sleep(0.3);'
  const edits = ['FOR share IN', 'IF windows[i] <> began'].map((words) => [words, `${sleep} ${words}`] as const)
  const store = await openShared(cluster(), 'told_between', { edits })
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'other' }),
  ]
  const account = await store.createAccount(10n)
  assert.deepEqual(await one.take(account, 1, 10n), { admitted: 1 })
  const asked = other.take(account, 1, 10n)
  await until(async () => {
    const rows = await store.operator.query(`SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep'`)
    return rows.length > 0
  })
  await store.operator.query('UPDATE triwire.balances SET balance = 0 WHERE account_id = $1', [account])
  one.release(account, 10n)
  await one.desk.tell(one.identity)
  const verdicts = await asked
  assert.equal(verdicts['admitted'], undefined)
})

test('X7: a limit above the range of the database is no limit', { skip }, async () => {
  const store = await openShared(cluster(), 'limitless')
  const replica = await startReplica(store.shared)
  const account = await store.createAccount(rich)
  const { verdict } = await replica.ask(account, 1n, { requestsPerMinute: 10 ** 12 })
  assert.equal(verdict, 'admitted')
})

test('R15 C5 X7: an owed part of a budget is held for all replicas, also of a key that was not used yet', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'owed-budget')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const account = await store.createAccount(rich)
  const budgeted: KeyScope = { id: 'key_4', requestsPerMinute: undefined, budgetNanos: 10n }
  one.desk.take([{ say: 'owe', accountId: account, keyId: 'key_4', amountNanos: 10n }])
  await until(async () => (await heldOf(store, 'key_4')) === 10n)
  assert.equal((await other.ask(account, 1n, { key: budgeted })).verdict, 'budget_held')
  one.desk.take([{ say: 'owe', accountId: account, keyId: 'key_4', amountNanos: -10n }])
  await until(async () => (await heldOf(store, 'key_4')) === 0n)
  assert.equal((await other.ask(account, 1n, { key: budgeted })).verdict, 'admitted')
})

test('Y20 X7: a person’s limits over two keys are checked after the account and before the key, over all replicas', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'people')
  const [one, other] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const account = await store.createAccount(100n)
  const keys = ['key_1', 'key_2'].map((id): KeyScope => ({ id, requestsPerMinute: 2, budgetNanos: 50n }))
  const person: KeyScope = { id: 'per_1', requestsPerMinute: 3, budgetNanos: 10n }
  const untilMs = Date.now() + 3_600_000
  await store.operator.query(`INSERT INTO triwire.spends VALUES ('per_1', 5, $1, 4)`, [untilMs])
  const ask = async (replica: typeof one, holdNanos: bigint, key?: KeyScope) =>
    (await replica.ask(account, holdNanos, { person, ...(key && { key }) })).verdict
  assert.equal(await ask(one, 5n, keys[0]), 'admitted')
  assert.equal(await ask(other, 1n, keys[1]), 'admitted')
  assert.equal(await ask(other, 1n, keys[1]), 'person_budget_held')
  one.desk.take([{ say: 'release', accountId: account, keyId: 'key_1', personId: 'per_1', holdNanos: 5n }])
  await one.ask(account, 0n)
  assert.equal(await ask(other, 0n), 'admitted')
  assert.equal(await ask(one, 0n, keys[0]), 'person_window')
  await store.operator.query(`UPDATE triwire.spends SET spent = 10 WHERE scope = 'per_1'`)
  const spent = await other.ask(account, 1n, { person })
  assert.deepEqual([spent.verdict, spent.figures?.person?.budget?.renewsMs], ['person_budget_spent', untilMs])
  await store.operator.query('UPDATE triwire.balances SET balance = 0 WHERE account_id = $1', [account])
  assert.equal(await ask(other, 1n), 'spent')
  other.desk.take([{ say: 'owe', accountId: account, keyId: undefined, personId: 'per_1', amountNanos: 7n }])
  await until(async () => (await heldOf(store, 'per_1')) === 8n)
})
