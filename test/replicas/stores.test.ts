import assert from 'node:assert/strict'
import test from 'node:test'
import type { Admission, AdmissionRefusal, Admitted } from '../../src/accounts/admission.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import type { ServerStore } from '../../src/accounts/server-store.ts'
import { newRequestId } from '../../src/ids.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { createDebit } from '../store/fixtures.ts'
import { openOperator, openStore } from '../store/postgres/opened.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { until } from '../support/waiting.ts'
import { clusterOfFile, countOf } from './cluster.ts'

/*
 * The laws of several replicas again, through all that a server has of its store: the thread, the settlement, real debits.
 */

const cluster = clusterOfFile()
const skip = withoutPostgres()

/** Three servers of one database with an account each of them knows, and limits of 300 a minute. */
async function start(name: string, balanceNanos: bigint, requestsPerMinute = 300) {
  const url = cluster().createDatabase(name)
  const books = await openOperator(url)
  const { id } = await books.createAccount('one', balanceNanos)
  const { key } = await books.createKey('one')
  const servers = []
  for (let n = 0; n < 3; n++) {
    // Longer than a gateway's, so that a busy machine changes no verdict.
    const store = await openStore(url, { patienceMs: 20_000, settleDeadlineMs: 30_000 })
    // The first thread that started since its own beginning.
    const thread = store.workers[0]!
    const admission = store.openAdmission({
      requestsPerMinute: () => requestsPerMinute,
      isShedding: () => false,
      clockMs: () => performance.now(),
      nowMs: Date.now,
    })
    const apiKey = (await store.directory.findKey(digestKey(key)))!
    servers.push({ store, thread, admission, apiKey, ask: (holdNanos: bigint) => ask(admission, apiKey, holdNanos) })
  }
  const balance = async () => (await books.findAccount('one')).balanceNanos
  return { books, id, servers, balance }
}

async function ask(admission: Admission, key: Parameters<Admission['enter']>[0], holdNanos: bigint) {
  using entered = await enter(admission, key)
  return entered.ok ? entered.admit(holdNanos) : entered
}

/** A refusal has nothing to dispose of. */
async function enter(admission: Admission, key: Parameters<Admission['enter']>[0]) {
  const entered = await admission.enter(key)
  return entered.ok ? entered : { ...entered, [Symbol.dispose]: () => {} }
}

/** What pools of the servers know of an upstream account `p`. */
function steered(servers: readonly { store: ServerStore }[]) {
  const memories = servers.map(({ store }) => {
    const memory = createPoolMemory(() => performance.now())
    memory.healthOf('p')
    memory.group(['p', 'q'])
    memory.share(store.cooldowns!)
    return memory
  })
  return { memories, states: () => memories.map((memory) => memory.healthOf('p').state) }
}

const verdictsOf = (answers: readonly (Admitted | AdmissionRefusal)[]) =>
  countOf(answers.map((answer) => ({ verdict: answer.ok ? 'admitted' : answer.why })))

test('X7: three servers of one database admit exactly 300 of 1,000 concurrent requests, and know it then without asking', {
  skip,
}, async () => {
  const { servers, id } = await start('at_once', 10n ** 15n)
  const all = servers.flatMap(({ ask }, n) => Array.from({ length: n === 0 ? 334 : 333 }, () => ask(1_000n)))
  assert.deepEqual(verdictsOf(await Promise.all(all)), { admitted: 300, window: 700 })
  for (const { admission, apiKey } of servers) {
    const refused = await admission.enter(apiKey)
    assert.ok(!refused.ok && refused.why === 'window')
    assert.equal(admission.look(id)?.window?.left, 0)
  }
})

test('X7 C2: a thousand concurrent requests on three servers, each debited by its ledger, stay within the law of overdraft', {
  skip,
}, async () => {
  const hold = 420_000n
  // A debit of the fixtures costs half as much again as it holds.
  const costs = 630_000n
  const { servers, balance } = await start('overdraft', 10n * hold, 1_000_000)
  let admitted = 0n
  const one = async ({ store, apiKey, ask }: (typeof servers)[number]) => {
    const answer = await ask(hold)
    if (!answer.ok) return
    admitted++
    assert.equal(await store.ledger.debit(createDebit(newRequestId(), apiKey.account)), 'posted')
    answer.release()
  }
  // In waves, so that some ask while others settle.
  for (let wave = 0; wave < 10; wave++)
    await Promise.all(servers.flatMap((server) => Array.from({ length: 34 }, () => one(server))))
  const left = await balance()
  assert.equal(left, 10n * hold - admitted * costs)
  assert.ok(-left <= admitted * (costs - hold) + hold && left <= 0n, `${admitted} admitted, ${left} left`)
})

test('X7 F-P15: the holds of a server stay held by its next thread when one dies', { skip }, async () => {
  const { servers, books, id } = await start('thread', 10n)
  const [one, two] = servers
  const held = await Promise.all([one!.ask(4n), one!.ask(5n)])
  assert.deepEqual(verdictsOf(held), { admitted: 2 })
  await one!.thread.terminate()
  await until(async () => {
    const rows = await books.database.query('SELECT held FROM triwire.shares WHERE scope = $1 AND held = 9', [id])
    return rows.length === 2
  })
  // The lease of the first thread goes on beside the new one's for a while: nobody is let in on what is held.
  const answer = await two!.ask(1n)
  assert.ok(!answer.ok && answer.why === 'held')
  for (const admitted of held) if (admitted.ok) admitted.release()
  await until(async () => (await two!.ask(0n)).ok)
})

test('R4 X7: ten failures of an address are unthrottled, over three servers', { skip }, async () => {
  const { servers } = await start('throttled', 10n)
  const limits = { failedAuthPerMinute: () => 10, clockMs: () => performance.now() }
  const throttles = servers.map(({ store }) => store.openThrottle(limits))
  const told = await Promise.all(Array.from({ length: 40 }, (_, n) => throttles[n % 3]!.fail('192.0.2.7')))
  assert.equal(told.filter(({ throttled }) => !throttled).length, 10)
})

test('U1 X7: a cooldown at one server reaches the others within moments', { skip }, async () => {
  const { servers } = await start('cooled', 10n)
  const heard: string[][] = [[], [], []]
  for (const [n, { store }] of servers.entries()) store.cooldowns!.onCooled(({ cause }) => heard[n]!.push(cause))
  const cooldown = { place: 'p', forMs: 30_000, cause: 'upstream_429', tell: 'capacity', cool: 'now' } as const
  servers[0]!.store.cooldowns!.cool(cooldown)
  await until(() => heard.every((causes) => causes[0] === 'upstream_429'))
})

test('X9 X7: an account disabled by an operator is disabled at all servers, also later ones, until they enable it', {
  skip,
}, async () => {
  const { servers } = await start('disabled', 10n)
  const { memories, states } = steered(servers)
  memories[0]!.steer('disable', 'p')
  await until(() => states().every((state) => state === 'disabled'))
  memories[1]!.steer('retry', 'p')
  memories[2]!.steer('enable', 'p')
  await until(() => states().every((state) => state === 'ready'))
  const cooldown = { place: 'p', forMs: 300_000, cause: 'upstream_401', tell: 'account', cool: 'now' } as const
  servers[0]!.store.cooldowns!.cool(cooldown)
  await until(() => states().every((state) => state === 'cooling'))
  memories[1]!.steer('retry', 'p')
  await until(() => states().every((state) => state === 'trial'))
})

test('X9 X7: an operator’s command during a database outage takes effect at all servers when the database is back', {
  skip,
}, async () => {
  const { servers } = await start('steered', 10n)
  const { memories, states } = steered(servers)
  for (const [steering, state] of [
    ['disable', 'disabled'],
    ['enable', 'ready'],
  ] as const) {
    cluster().stop()
    try {
      await until(
        () => servers.every(({ store }) => store.ledger.whyBlocked() !== undefined),
        'all servers miss the database',
      )
      memories[0]!.steer(steering, 'p')
    } finally {
      cluster().start()
    }
    await until(() => servers.every(({ store }) => store.ledger.whyBlocked() === undefined), 'the database is back')
    await until(() => states().every((one) => one === state), `all of them ${steering} it`)
  }
})

test('X9 X7: an operator’s command that cannot be written at first is written by a later heartbeat', {
  skip,
}, async () => {
  const url = cluster().createDatabase('beaten')
  const { database } = await openOperator(url)
  const stores = [await openStore(url, { patienceMs: 2_000 }), await openStore(url)]
  const { memories, states } = steered(stores.map((store) => ({ store })))
  const waiting = async () => {
    const rows = await database.query(
      `SELECT FROM pg_stat_activity WHERE application_name = 'triwire limits' AND wait_event_type = 'Lock'`,
    )
    return rows.length
  }
  await database.transact(async ({ query }) => {
    await query('LOCK TABLE triwire.cooldowns IN EXCLUSIVE MODE')
    memories[0]!.steer('disable', 'p')
    await until(async () => (await waiting()) === 1, 'it waits for the table')
    await until(async () => (await waiting()) === 0, 'it has given up')
  })
  await until(() => states().every((state) => state === 'disabled'), 'both have it disabled')
})

test('X9 X7: a server that starts keeps earlier disabled accounts, whenever it begins to listen to the others', {
  skip,
}, async () => {
  const url = cluster().createDatabase('restarted')
  const first = await openStore(url)
  steered([{ store: first }]).memories[0]!.steer('disable', 'p')
  const { database } = await openOperator(url)
  await until(async () => (await database.query('SELECT FROM triwire.cooldowns')).length === 1)
  const second = await openStore(url)
  await until(() => second.ledger.whyBlocked() === undefined)
  const { states } = steered([{ store: second }])
  await until(() => states()[0] === 'disabled')
})

/** What two servers call one account's service of a model, while its key is being changed. */
const places = ['old', 'new'].map((key) => JSON.stringify(['m', 'up', 'https://up.example', 'm', 'a', key]))

test('X9 X7: the last command about an account holds at servers that have another key for it, and after their starts', {
  skip,
}, async () => {
  const url = cluster().createDatabase('rekeyed')
  const stores = [await openStore(url), await openStore(url)]
  const open = (store: ServerStore, n: number) => {
    const memory = createPoolMemory(() => performance.now())
    memory.healthOf(places[n]!)
    memory.group([places[n]!])
    memory.share(store.cooldowns!)
    return { memory, state: () => memory.healthOf(places[n]!).state }
  }
  const servers = stores.map(open)
  const all = (state: string) => servers.every((server) => server.state() === state)
  servers[0]!.memory.steer('disable', places[0]!)
  await until(() => all('disabled'), 'both have it disabled')
  servers[1]!.memory.steer('enable', places[1]!)
  await until(() => all('ready'), 'both have it enabled')
  servers[0]!.memory.steer('disable', places[0]!)
  await until(() => all('disabled'), 'both have it disabled again')
  servers[0]!.memory.steer('enable', places[0]!)
  await until(() => all('ready'), 'both have it enabled again')
  const { database } = await openOperator(url)
  await until(async () => (await database.query('SELECT FROM triwire.cooldowns')).length === 0, 'no row is left')
})
