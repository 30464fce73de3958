import assert from 'node:assert/strict'
import test from 'node:test'
import { StoreError } from '../../src/store/files/store-error.ts'
import { tell } from '../../src/store/postgres/admit.ts'
import type { Transaction } from '../../src/store/postgres/database.ts'
import { livingReplicas, register, sweep } from '../../src/store/postgres/replicas.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { until } from '../support/waiting.ts'
import { clusterOfFile, openShared, startReplica } from './cluster.ts'

const cluster = clusterOfFile()
const skip = withoutPostgres()
const rich = 10n ** 15n

type Row = Record<string, unknown>

test('X7: replicas register, are seen, and leave; a leaver’s holds are free at once, and its places stay taken', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'registered')
  const [one, two] = [
    await startReplica(store.shared, { name: 'one' }),
    await startReplica(store.shared, { name: 'two' }),
  ]
  const rows = () => store.operator.query('SELECT id, name, version, left_ms FROM triwire.replicas ORDER BY id')
  assert.deepEqual(await rows(), [
    { id: one.identity.id, name: 'one', version: '0.2.0', left_ms: null },
    { id: two.identity.id, name: 'two', version: '0.2.0', left_ms: null },
  ])
  const account = await store.createAccount(5n)
  assert.deepEqual(await one.take(account, 6), { admitted: 5, held: 1 })
  assert.deepEqual(await two.take(account, 1), { held: 1 })
  await one.stop()
  assert.deepEqual(await two.take(account, 1), { admitted: 1 })
  assert.equal((await two.ask(account, 0n)).figures?.window.taken, 7)
  const [left, living] = await rows()
  assert.deepEqual([typeof left!['left_ms'], living!['left_ms']], ['bigint', null])
})

test('T7: a replica with another seal key refuses to start while one lives, and prints the cure', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'seals')
  const first = await startReplica(store.shared, { name: 'first' })
  const other = () => startReplica(store.shared, { name: 'other', sealFingerprint: 'another' })
  await assert.rejects(other(), (error: Error) => {
    assert.ok(error instanceof StoreError)
    assert.match(error.message, /replica first has another seal_key: give all replicas the same one/)
    return true
  })
  await first.stop()
  await other()
})

test('X7 law 12: replicas with different configurations report it, and also when they agree again', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'configs')
  const one = await startReplica(store.shared, { name: 'one' })
  const two = await startReplica(store.shared, { name: 'two', configDigest: 'two' })
  await Promise.all([one.presence.sweep(), two.presence.sweep()])
  const { id } = one.identity
  assert.deepEqual([one.differing, two.differing], [[[`two (${two.identity.id}, 0.2.0)`]], [[`one (${id}, 0.2.0)`]]])
  two.presence.introduce({ configDigest: 'one' })
  // While a beat of its own is under way, which may still tell the old one, another does nothing.
  await until(async () => {
    await two.presence.beat()
    await Promise.all([one.presence.sweep(), two.presence.sweep()])
    return one.differing.length > 1 && two.differing.length > 1
  }, 'they agree again')
  assert.deepEqual([one.differing.slice(1), two.differing.slice(1)], [[[]], [[]]])
})

test('X7: a replica unseen for a minute is marked; its rows go when its windows end; it can return by itself', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'gone')
  const [frozen, living] = [
    await startReplica(store.shared, { name: 'frozen' }),
    await startReplica(store.shared, { name: 'living' }),
  ]
  const [young, old] = [await store.createAccount(rich), await store.createAccount(rich)]
  await frozen.take(young, 2)
  await frozen.take(old, 3)
  const { id } = frozen.identity
  const scopesOf = async (query: Transaction['query']) =>
    (await query('SELECT scope FROM triwire.shares WHERE replica = $1 ORDER BY scope', [id])).map(({ scope }) => scope)
  // Its time is turned back, since no test waits for a minute. All between two beats of its own: the next one brings it back.
  const [marks, left] = await store.operator.transact(async ({ query }) => {
    await query('UPDATE triwire.present SET seen_ms = seen_ms - 61000 WHERE replica = $1', [id])
    await query('UPDATE triwire.replicas SET seen_ms = seen_ms - 61000 WHERE id = $1', [id])
    await query('UPDATE triwire.shares SET window_ms = window_ms - 61000 WHERE replica = $1 AND scope = $2', [id, old])
    await query(`SELECT ${sweep.name}($1)`, [living.identity.id])
    return [await query('SELECT left_ms FROM triwire.replicas WHERE id = $1', [id]), await scopesOf(query)]
  })
  assert.equal(typeof (marks[0] as Row)['left_ms'], 'bigint')
  assert.deepEqual(left, [young])
  // The next beat finds that nobody knows of it, and tells all that it holds.
  await until(async () => (await store.operator.query(livingReplicas)).length === 2)
  await until(async () => (await scopesOf(store.operator.query)).length === 2)
  assert.equal((await living.ask(young, 0n)).figures?.window.taken, 3)
  assert.equal((await living.ask(young, 0n)).figures?.freeNanos, rich - 2n)
})

test('X7: a replica unknown to the database, as after the promotion of a standby, registers as new with the same holds', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'promoted')
  const replica = await startReplica(store.shared, { name: 'one' })
  const account = await store.createAccount(10n)
  await replica.take(account, 4)
  await store.operator.query('DELETE FROM triwire.replicas')
  await store.emptyUnlogged()
  await until(async () => (await store.operator.query(livingReplicas)).length === 1)
  const other = await startReplica(store.shared, { name: 'other' })
  assert.deepEqual(await other.take(account, 10), { admitted: 6, held: 4 })
})

test('X7: a replica whose number a promoted standby gave to another registers as new, and both count', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'renumbered')
  const replica = await startReplica(store.shared, { name: 'one' })
  const account = await store.createAccount(10n)
  await replica.take(account, 4)
  // The standby lacks the registration, and another replica registers before the next beat of this one.
  const number = await store.operator.transact(async ({ query }) => {
    await query('TRUNCATE triwire.shares, triwire.present, triwire.epoch, triwire.replicas RESTART IDENTITY')
    await query('SELECT pg_sleep(0.002)')
    const [made] = await query(`SELECT ${register.name}('other', '0.2.0', 'one', 'one') AS made`)
    const [id, started] = (made!['made'] as string).split(',')
    await query(`SELECT ${tell.name}($1, $2, 1, 1, true, '{}', '{}', '{}', '{}')`, [id, started])
    return Number(id)
  })
  assert.equal(number, replica.identity.id)
  await until(async () => (await store.operator.query(livingReplicas)).length === 2)
  const shares = () => store.operator.query('SELECT replica, held FROM triwire.shares')
  await until(async () => (await shares()).length === 1)
  assert.deepEqual(await shares(), [{ replica: number + 1, held: 4n }])
})

test('X7: a replica asks nothing with a number that a promoted standby gave to another', { skip }, async () => {
  const store = await openShared(cluster(), 'borrowed')
  const replica = await startReplica(store.shared, { name: 'one' })
  const account = await store.createAccount(10n)
  await replica.take(account, 4)
  const { id } = replica.identity
  // Until its next beat the replica does not know that the number is another's by now.
  replica.presence.beat = async () => {}
  await store.operator.query('UPDATE triwire.replicas SET started_ms = started_ms + 1 WHERE id = $1', [id])
  await store.emptyUnlogged()
  await store.operator.query(
    `SELECT ${tell.name}($1, started_ms, 1, 1, true, '{}', '{}', '{}', '{}') FROM triwire.replicas WHERE id = $1`,
    [id],
  )
  let tries = 0
  const asked = replica.take(account, 1)
  await until(async () => {
    const rows = await store.operator.query('SELECT held FROM triwire.shares')
    assert.deepEqual(rows, [])
    return ++tries > 20
  })
  assert.deepEqual(await replica.stop().then(() => asked), { silent: 1 })
})

test('X7: state of idle accounts is removed from process and database; holds stay', { skip }, async () => {
  const store = await openShared(cluster(), 'idle')
  const replica = await startReplica(store.shared)
  const [idle, busy] = [await store.createAccount(rich), await store.createAccount(rich)]
  await replica.take(idle, 1, 0n)
  await replica.take(busy, 1, 7n)
  await store.operator.query('UPDATE triwire.shares SET window_ms = window_ms - 61000')
  await replica.presence.sweep()
  const rows = await store.operator.query('SELECT scope, held FROM triwire.shares')
  assert.deepEqual(rows, [{ scope: busy, held: 7n }])
})

test('R4 X7: rows left by an attack from many addresses are deleted in parts, each of them quickly', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'many')
  const replica = await startReplica(store.shared)
  const left = async () => Number((await store.operator.query('SELECT count(*) AS n FROM triwire.failures'))[0]!['n'])
  await store.operator.query(
    `INSERT INTO triwire.failures SELECT 'address ' || i, triwire.now_ms() - 61000, 3 FROM generate_series(1, 45000) i`,
  )
  await store.operator.query(`SELECT ${sweep.name}($1)`, [replica.identity.id])
  assert.equal(await left(), 25_000)
  await replica.presence.sweep()
  assert.equal(await left(), 0)
})

test('issue 13 X15: warnings without a server that has webhooks are deleted in time', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'untold')
  const replica = await startReplica(store.shared)
  await store.operator.query(
    `INSERT INTO triwire.outbox (id, event, data, at_ms, next_ms)
     SELECT 'due for ' || h || ' h', 'credit_low', '{}', triwire.now_ms() - 3600000 * h, triwire.now_ms() - 3600000 * h
     FROM unnest(ARRAY[0, 24, 47, 49, 500]) h`,
  )
  await store.operator.query(`SELECT ${sweep.name}($1)`, [replica.identity.id])
  const rows = await store.operator.query('SELECT id FROM triwire.outbox ORDER BY at_ms DESC')
  assert.deepEqual(rows, [{ id: 'due for 0 h' }, { id: 'due for 24 h' }, { id: 'due for 47 h' }])
})
