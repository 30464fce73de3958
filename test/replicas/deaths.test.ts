import assert from 'node:assert/strict'
import test from 'node:test'
import { livingReplicas, otherReplicas } from '../../src/store/postgres/replicas.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { until } from '../support/waiting.ts'
import { startChild } from './child.ts'
import { clusterOfFile, openShared, startReplica, sumOf } from './cluster.ts'

const cluster = clusterOfFile()
const skip = withoutPostgres()
const hold = 1_000_000_000n

/** By the clock of the database, which is the one that counts. */
async function timeOf({ operator }: Awaited<ReturnType<typeof openShared>>): Promise<number> {
  return Number((await operator.query('SELECT triwire.now_ms() AS now'))[0]!['now'])
}

test('X7, C2: three processes, hours apart by their clocks, admit exactly 300 of 1,000 concurrent requests', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'processes')
  const hour = 3_600_000
  const replicas = await Promise.all([-hour, 0, hour].map((skew) => startChild(store.shared, `${skew}`, skew)))
  const account = await store.createAccount(10n ** 15n)
  const told = sumOf(await Promise.all(replicas.map((replica, n) => replica.take(account, n ? 333 : 334))))
  assert.deepEqual(told, { admitted: 300, window: 700 })
  const poor = await store.createAccount(10n * hold)
  const costs = { holdNanos: hold, costNanos: (3n * hold) / 2n }
  const spent = sumOf(await Promise.all(replicas.map((replica) => replica.spend(poor, 334, costs))))
  const admitted = BigInt(spent['admitted']!)
  assert.equal(await store.balanceOf(poor), 10n * hold - admitted * costs.costNanos)
  assert.ok(-(await store.balanceOf(poor)) <= admitted * (costs.costNanos - hold) + hold)
})

test('SCA-13 a heartbeat with a future time, from before the clock was set back, is ignored for holds, keys and a new seal', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'future')
  const [dying, living] = [
    await startChild(store.shared, 'dying'),
    await startReplica(store.shared, { name: 'living' }),
  ]
  const account = await store.createAccount(5n * hold)
  assert.deepEqual(await dying.take(account, 4, hold), { admitted: 4 })
  await dying.kill()
  const ahead = 'SET seen_ms = triwire.now_ms() + 3600000'
  const others = async () => (await store.operator.query(otherReplicas, [living.identity.id])).map(({ name }) => name)
  await until(async () => {
    // A beat that it sent with its last breath comes later.
    await store.operator.query(`UPDATE triwire.present ${ahead} WHERE replica = 1`)
    await store.operator.query(`UPDATE triwire.replicas ${ahead} WHERE id = 1`)
    return (await living.take(account, 1, hold))['admitted'] === 1
  }, 'what it held is free')
  assert.deepEqual(await others(), [], 'it does not live')
  assert.deepEqual(await living.take(account, 5, hold), { admitted: 4, held: 1 })
  // One that lives is there again with its next beat, and everything that it holds counts.
  const other = await startReplica(store.shared, { name: 'other' })
  await store.operator.query(`UPDATE triwire.present ${ahead}`)
  await store.operator.query(`UPDATE triwire.replicas ${ahead}`)
  await until(async () => {
    await living.presence.beat()
    const rows = await store.operator.query(livingReplicas)
    return rows.some(({ name }) => name === 'living')
  }, 'it is seen')
  assert.deepEqual(await other.take(account, 1, hold), { held: 1 })
})

test('X7: the holds of a killed replica are free when its lease ends, and not earlier', { skip }, async () => {
  const leaseMs = 4_000
  const store = await openShared(cluster(), 'killed', { leaseMs })
  const [dying, living] = [
    await startChild(store.shared, 'dying'),
    await startReplica(store.shared, { name: 'living' }),
  ]
  const account = await store.createAccount(5n * hold)
  assert.deepEqual(await dying.take(account, 8, hold), { admitted: 5, held: 3 })
  assert.deepEqual(await living.take(account, 1, hold), { held: 1 })
  await dying.kill()
  // A beat that it sent with its last breath counts too.
  await until(async () => {
    const sessions = `SELECT FROM pg_stat_activity WHERE application_name = 'triwire control' AND datname = current_database()`
    return (await store.operator.query(sessions)).length === 1
  }, 'its connections are closed')
  const [row] = await store.operator.query('SELECT max(seen_ms) AS seen FROM triwire.present WHERE replica = 1')
  const freeMs = Number((row as { seen: bigint }).seen) + leaseMs
  const nowMs = () => timeOf(store)
  let lastRefusedMs = 0
  for (;;) {
    const askedMs = await nowMs()
    const told = await living.take(account, 1, hold)
    if (told['admitted'] === 1) break
    lastRefusedMs = askedMs
    assert.deepEqual(told, { held: 1 })
  }
  assert.ok((await nowMs()) >= freeMs && lastRefusedMs < freeMs, 'by the time of the database')
  assert.deepEqual(await living.take(account, 9, hold), { admitted: 4, held: 5 })
  // The places that it took are taken all the same: 5 of its own, and 5 of the other.
  assert.deepEqual((await living.ask(account, hold)).figures?.window.taken, 10)
})

test('X7: a hard restart of PostgreSQL in the middle of a minute: 180 places are taken, 120 more run and never a 301st', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'restarted')
  const replicas = await Promise.all(['one', 'two', 'three'].map((name) => startChild(store.shared, name)))
  const account = await store.createAccount(10n ** 15n)
  const before = sumOf(await Promise.all(replicas.map((replica) => replica.take(account, 60))))
  assert.deepEqual(before, { admitted: 180 })
  cluster().stop('immediate')
  const meanwhile = Promise.all(replicas.map((replica) => replica.take(account, 200)))
  cluster().start()
  assert.deepEqual(sumOf(await meanwhile), { admitted: 120, window: 480 })
})

test('X7: tables emptied while one replica is dead: after the grace period the others continue with their own holds', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'emptied')
  const [dying, living] = [
    await startChild(store.shared, 'dying'),
    await startReplica(store.shared, { name: 'living' }),
  ]
  const account = await store.createAccount(5n * hold)
  assert.deepEqual(await living.take(account, 2, hold), { admitted: 2 })
  await dying.kill()
  // Its beat may tell anew before we hear that they are empty.
  const beganMs = await timeOf(store)
  await store.emptyUnlogged()
  assert.deepEqual(await living.take(account, 1, hold), { admitted: 1 })
  assert.ok((await timeOf(store)) - beganMs >= 3_000)
  assert.deepEqual(await living.take(account, 5, hold), { admitted: 2, held: 3 })
})
