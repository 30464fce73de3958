import assert from 'node:assert/strict'
import type { Transaction } from '../../src/store/postgres/database.ts'
import type { Postgres } from '../support/postgres.ts'
import { turn } from '../support/waiting.ts'
import { type Edit, openShared, type Replica, startReplica, startReplicas, sumOf, type Verdicts } from './cluster.ts'

/*
 * What must hold of several replicas whatever happens. Each is tried on the functions as they are, and on copies of them
 * that are wrong: a law that takes a wrong one for right shows nothing (mutations.test.ts).
 *
 * That calls overlap is forced: the copy that is tried sleeps between reading and writing. Without that most of what can
 * go wrong does not, by luck.
 */

/** Between what a call reads and what it writes. */
export const overlap: Edit = ['-- All is read; what follows is judged by it.', 'PERFORM pg_sleep(0.003);']

export type Fault = {
  edits?: readonly Edit[]
  settings?: Record<string, string>
  patienceMs?: number
  /** What the database says of all its sessions that say nothing else. */
  defaults?: Record<string, string>
  releasesFirst?: boolean
}

export type Law = (cluster: Postgres, name: string, fault?: Fault) => Promise<void>

const rich = 10n ** 15n

/** 1,000 at once, and 40 rounds of a few: exactly 300 of them in a minute (spec 8). */
export const exactWindow: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await startReplicas(store.shared)
  const atOnce = await store.createAccount(rich)
  assert.deepEqual(await all(replicas, (replica, n) => replica.take(atOnce, n ? 333 : 334)), {
    admitted: 300,
    window: 700,
  })
  const inRounds = await store.createAccount(rich)
  const rounds: Verdicts[] = []
  for (let round = 0; round < 40; round++)
    rounds.push(await all(replicas, (replica, n) => replica.take(inRounds, (round * 7 + n * 3) % 17)))
  assert.equal(sumOf(rounds)['admitted'], 300)
}

const hold = 2_000_000_000n

/** A balance worth ten, 1,002 almost at once that cost what they hold, and half as much again (C2). */
export const boundedOverdraft: Law = async (cluster, name, { releasesFirst = false, ...fault } = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await startReplicas(store.shared)
  for (const costNanos of [hold, (3n * hold) / 2n]) {
    const account = await store.createAccount(10n * hold)
    const told = await all(replicas, (replica) =>
      replica.spend(account, 334, { holdNanos: hold, costNanos, releasesFirst }),
    )
    const balance = await store.balanceOf(account)
    const admitted = BigInt(told['admitted'] ?? 0)
    assert.equal(balance, 10n * hold - admitted * costNanos)
    const allowed = admitted * (costNanos - hold) + hold
    assert.ok(-balance <= allowed, `${-balance} is more than ${allowed}: ${JSON.stringify(told)}`)
    // The last hold is the only one beyond the balance, and here there is none.
    if (costNanos === hold) assert.equal(balance, 0n)
    assert.equal(told['silent'], undefined)
  }
}

/** Three hold 9 of 9, the tables are emptied, all ask: nobody is let in, whoever asks first. */
export const emptiedWhileHeld: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await startReplicas(store.shared)
  const account = await store.createAccount(9n * hold)
  assert.deepEqual(await all(replicas, (replica) => replica.take(account, 3, hold)), { admitted: 9 })
  await store.emptyUnlogged()
  assert.deepEqual(await replicas[0]!.take(account, 20, hold), { held: 20 })
  assert.deepEqual(await all(replicas, (replica) => replica.take(account, 20, hold)), { held: 60 })
}

/** The tables are emptied in the middle of a minute: the places that were taken stay taken. */
export const emptiedInWindow: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await startReplicas(store.shared)
  const account = await store.createAccount(rich)
  assert.deepEqual(await all(replicas, (replica) => replica.take(account, 60)), { admitted: 180 })
  await store.emptyUnlogged()
  assert.deepEqual(await all(replicas, (replica) => replica.take(account, 200)), { admitted: 120, window: 480 })
}

/** The connection is lost when the server has committed, again and again: what is tried anew counts once. */
export const lostAnswers: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await startReplicas(store.shared, { wrap: losing(2) })
  const account = await store.createAccount(rich)
  const rounds: Verdicts[] = []
  for (let round = 0; round < 12; round++) rounds.push(await all(replicas, (replica) => replica.take(account, 10)))
  assert.deepEqual(sumOf(rounds), { admitted: 300, window: 60 })
  const held = await store.createAccount(4n * hold)
  const first = await all(replicas, (replica) => replica.take(held, 2, hold))
  assert.deepEqual(first, { admitted: 4, held: 2 })
}

/** A call whose client gave it up reaches the server behind its successors. */
export const lateCall: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const late = Promise.withResolvers<() => Promise<unknown>>()
  const [one, other] = [
    await startReplica(store.shared, { name: 'late', wrap: delaying(late.resolve) }),
    await startReplica(store.shared, { name: 'other' }),
  ]
  const account = await store.createAccount(rich)
  assert.deepEqual(await one.take(account, 10), { admitted: 10 })
  assert.deepEqual(await one.take(account, 100), { admitted: 100 })
  await (await late.promise)().catch(() => {})
  assert.deepEqual(await other.take(account, 300), { admitted: 190, window: 110 })
}

/** Calls of many accounts each, which all replicas ask for: none waits for another that waits for it. */
export const noDeadlock: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const failures: string[] = []
  const replicas = await startReplicas(store.shared, { wrap: (database) => noting(database, failures) })
  const accounts = await Promise.all(Array.from({ length: 12 }, () => store.createAccount(rich)))
  for (let round = 0; round < 10 && failures.length === 0; round++) {
    await all(replicas, async (replica, n) => {
      const order = n === 1 ? accounts.toReversed() : accounts
      return sumOf(await Promise.all(order.map((account) => replica.take(account, 1))))
    })
  }
  assert.deepEqual(failures, [])
}

/** Whatever the clock of the machine of each says, a minute is a minute of the database. */
export const oneClock: Law = async (cluster, name, fault = {}) => {
  const store = await open(cluster, name, fault)
  const replicas = await Promise.all(
    [-1, 0, 1].map((hours) =>
      startReplica(store.shared, { name: `${hours} h`, clockMs: () => performance.now() + hours * 3_600_000 }),
    ),
  )
  const account = await store.createAccount(rich)
  const told: Verdicts[] = []
  for (let round = 0; round < 2; round++) for (const replica of replicas) told.push(await replica.take(account, 100))
  assert.deepEqual(sumOf(told), { admitted: 300, window: 300 })
}

function open(cluster: Postgres, name: string, { edits = [], releasesFirst: _, ...more }: Fault) {
  return openShared(cluster, name, { edits: [overlap, ...edits], ...more })
}

async function all(replicas: readonly Replica[], ask: (replica: Replica, n: number) => Promise<Verdicts>) {
  return sumOf(await Promise.all(replicas.map(ask)))
}

/** Of so many questions one is answered and its answer lost. */
function losing(every: number): (database: Transaction) => Transaction {
  return ({ query }) => {
    let asked = 0
    return {
      async query(text, values, name) {
        const rows = await query(text, values, name)
        if (/admit/.test(text) && ++asked % every === 0) throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
        return rows
      },
    }
  }
}

/** The first question is kept back, and its asker told that the connection is lost. */
function delaying(keep: (send: () => Promise<unknown>) => void): (database: Transaction) => Transaction {
  return ({ query }) => {
    let isFirst = true
    return {
      async query(text, values, name) {
        if (!isFirst || !/admit/.test(text)) return query(text, values, name)
        isFirst = false
        keep(() => query(text, values, name))
        await turn()
        throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
      },
    }
  }
}

function noting({ query }: Transaction, failures: string[]): Transaction {
  return {
    query: (text, values, name) =>
      query(text, values, name).catch((error: Error & { code?: string }) => {
        failures.push(`${error.code} ${error.message}`)
        throw error
      }),
  }
}
