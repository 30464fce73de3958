import assert from 'node:assert/strict'
import test from 'node:test'
import { startSimulator } from '../../src/simulator/simulator.ts'
import { runWarm } from '../cli/run.ts'
import { readEvents } from '../operations/event-reader.ts'
import { openOperator } from '../store/postgres/opened.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { testModel } from '../support/gateway.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'
import { startReceiver } from '../support/receiver.ts'
import { startReplica } from '../support/replica.ts'
import { repeat, until } from '../support/waiting.ts'
import { clusterOfFile } from './cluster.ts'

/* What whole gateways that share a database tell, beside answers (rulings X7, X9). */

const skip = withoutPostgres()
const cluster = clusterOfFile()

/** @returns the status, when all of the answer has come */
async function ask(url: string, key: string, body: object): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.text()
  return response.status
}

/** Costs the account of the key something. */
const question = { model: 'large', messages: [{ role: 'user', content: 'Hello!' }], max_completion_tokens: 20 }

test('X15 X7 of three gateways that share a database one sends each warning, and another if that one is gone', {
  skip,
}, async () => {
  const url = cluster().createDatabase('hooks')
  const books = await openOperator(url)
  const { id } = await books.createAccount('payer', 10n ** 12n)
  const { key } = await books.createKey('payer', { label: 'ci', budget: { nanos: 1n, per: 'day' } })
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const receiver = await startReceiver(500)
  const models = [testModel('large', 'chat')]
  const webhooks = [{ url: receiver.url, secret: 'a secret of webhooks', below: '1000' }]
  const replicas = await Promise.all(
    [1, 2, 3].map((n) => startReplica(`r${n}`, url, simulator.url, { models, webhooks })),
  )
  const look = () => Promise.all(replicas.map(({ server }) => server.webhooks.look()))
  await look()
  await ask(replicas[0]!.url, key, question)
  await until(async () => (await look()) && receiver.received.length >= 3, 'all three warnings are told')
  // One was refused, and is tried again: soon, for a person who waits.
  await books.database.query('UPDATE triwire.outbox SET next_ms = 0')
  await until(async () => (await look()) && receiver.received.length >= 4, 'it is told again')
  await look()
  const told = receiver.received.map(({ headers, body }) => `${body.type} ${headers['webhook-id']}`)
  assert.deepEqual([...new Set(told)].map((one) => one.split(' ')[0]).toSorted(), [
    'credit_low',
    'key_budget_80',
    'key_budget_spent',
  ])
  assert.equal(told.filter((one) => one === told[0]).length, 2)
  const rows = await books.database.query('SELECT count(*) AS n FROM triwire.outbox')
  assert.equal(rows[0]!['n'], 0n)
  const low = receiver.received.find(({ body }) => body.type === 'credit_low')!
  assert.deepEqual(low.body.data['account'], { id, name: 'payer' })
})

test('X15 X7: during a change of the file, a server with the old one leaves events that it sends nowhere to one with the new', {
  skip,
}, async () => {
  const url = cluster().createDatabase('changed')
  const books = await openOperator(url)
  const { id } = await books.createAccount('payer', 10n ** 12n)
  const { key } = await books.createKey('payer')
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const receiver = await startReceiver()
  const start = async (name: string, below: string) => {
    const webhooks = [{ url: receiver.url, secret: 'a secret of webhooks', below }]
    const replica = await startReplica(name, url, simulator.url, { models: [testModel('large', 'chat')], webhooks })
    await replica.server.webhooks.look()
    return replica
  }
  const old = await start('old', '10')
  // It is gone again when the line is crossed that only its file has.
  await (await start('fresh', '1000')).server.webhooks.close()
  await ask(old.url, key, question)
  // Others of a line that nobody has: one as old as it is told, one a little younger.
  await books.database.query(
    `INSERT INTO triwire.outbox (id, event, data, at_ms, next_ms)
     SELECT 'of ' || h || ' h', 'credit_low', '{"account":"${id}","balance_nanos":"1","below_nanos":"2"}',
       triwire.now_ms() - 3600000 * h, 0 FROM unnest(ARRAY[23, 25]) h`,
  )
  const due = `SELECT id FROM triwire.outbox WHERE next_ms <= triwire.now_ms() + 1000`
  await until(async () => (await old.server.webhooks.look()) ?? (await books.database.query(due)).length === 0)
  const waiting = async () => {
    const rows = await books.database.query(
      `SELECT id, (next_ms - triwire.now_ms()) / 60000 AS minutes FROM triwire.outbox ORDER BY at_ms`,
    )
    return rows.map((row) => `${String(row['id']).split(':')[0]}, ${row['minutes']}`)
  }
  // What has waited for long is looked at rarely.
  assert.deepEqual(await waiting(), ['of 23 h, 172', 'credit_low, 0'])
  await old.server.webhooks.close()
  const fresh = await start('fresh', '1000')
  await books.database.query('UPDATE triwire.outbox SET next_ms = 0')
  await until(async () => (await fresh.server.webhooks.look()) ?? receiver.received.length > 0, 'it is told')
  assert.equal(receiver.received[0]!.body.data['below'], '1000')
  await until(async () => (await waiting()).length === 1, 'what was told is gone')
})

test('X7 issue 13: both gateways show which upstream accounts cool, and which gateway met the cause', {
  skip,
}, async () => {
  const url = cluster().createDatabase('told')
  const books = await openOperator(url)
  await books.createAccount('payer', 10n ** 12n)
  const { key } = await books.createKey('payer', {})
  const { token } = await books.createOperator('ann', 'viewer', Date.now() + 3_600_000)
  const upstream = await startRawUpstream()
  const models = [testModel('large', 'chat')]
  const [here, there] = await Promise.all(['here', 'there'].map((n) => startReplica(n, url, upstream.url, { models })))
  upstream.play(whole({ error: { message: 'no' } }, 429, { 'retry-after': '200' }))
  const refused = await ask(here!.url, key, { model: 'large', messages: [{ role: 'user', content: 'hi' }] })
  assert.equal(refused, 429)
  const tell = async ({ adminUrl }: { adminUrl: string }) => {
    const response = await fetch(`${adminUrl}/api/v1/upstreams`, { headers: { authorization: `Bearer ${token}` } })
    const { items } = (await response.json()) as { items: { state: string; cause: string; heard: boolean }[] }
    return items.flatMap(({ state, cause, heard }) => [state, cause, heard])
  }
  assert.deepEqual(await tell(here!), ['cooling', 'upstream_429', false])
  await until(async () => (await tell(there!))[0] === 'cooling', 'the other one was told')
  assert.deepEqual(await tell(there!), ['cooling', 'upstream_429', true])
  const status = async ({ adminUrl }: { adminUrl: string }) => {
    const response = await fetch(`${adminUrl}/api/v1/status`, { headers: { authorization: `Bearer ${token}` } })
    return ((await response.json()) as { heard: Record<string, string | null>[] }).heard
  }
  assert.deepEqual(await status(here!), [])
  const [heard, ...others] = await status(there!)
  const { until: untilTime, met_by: metBy, ...rest } = heard!
  assert.deepEqual([rest, others], [{ model: 'large', upstream: 'sim', account: 'a', cause: 'upstream_429' }, []])
  assert.match(metBy!, /^here \(\d+\)$/)
  const leftMs = Date.parse(untilTime!) - Date.now()
  assert.ok(leftMs > 0 && leftMs <= 200_000, untilTime!)
})

test('X9 issue 13: a person who reads figures at one gateway makes the others write their counts', {
  skip,
}, async () => {
  const url = cluster().createDatabase('figures')
  const books = await openOperator(url)
  await books.createAccount('payer', 10n ** 12n)
  const { key } = await books.createKey('payer', {})
  const { token } = await books.createOperator('ann', 'viewer', Date.now() + 3_600_000)
  const simulator = await startSimulator()
  atEnd(simulator.close)
  const models = [testModel('large', 'chat')]
  // For whom no time passes: they write nothing by themselves.
  const start = (name: string) => startReplica(name, url, simulator.url, { models }, () => 0)
  const [here, there] = await Promise.all([start('here'), start('there')])
  const refused = await ask(there.url, key, { model: 'none', messages: [] })
  assert.equal(refused, 404)
  const read = async () => {
    const response = await fetch(`${here.adminUrl}/api/v1/usage?bucket=all&measures=errors`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const body = await response.text()
    assert.equal(response.status, 200, body)
    return (JSON.parse(body) as { total: { errors: number[] } }).total.errors[0]
  }
  await until(async () => (await read()) === 1, 'the other one was asked')
})

const completion = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'up-chat' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}

test('X9 each gateway of a database answers operators for all: explain, requests, holds, events; it names one it cannot reach', {
  skip,
}, async () => {
  const url = cluster().createDatabase('views')
  const books = await openOperator(url)
  await books.createAccount('payer', 10n ** 12n)
  const { key } = await books.createKey('payer')
  const { token } = await books.createOperator('ann', 'viewer', Date.now() + 3_600_000)
  const upstream = await startRawUpstream()
  const gate = Promise.withResolvers<void>()
  upstream.play(async (socket, request) => {
    await gate.promise
    await whole(completion)(socket, request)
  })
  const replicas = await Promise.all(
    ['r1', 'r2'].map((name) => startReplica(name, url, upstream.url, { models: [testModel('large', 'chat')] })),
  )
  const [one, two] = replicas as [(typeof replicas)[0], (typeof replicas)[0]]
  const doors = () => books.database.query('SELECT door FROM triwire.replicas WHERE door IS NOT NULL')
  await until(async () => (await doors()).length === 2, 'both are registered')
  const headers = { authorization: `Bearer ${token}` }
  const read = async (adminUrl: string, path: string) => {
    const response = await fetch(`${adminUrl}/api/v1${path}`, { headers })
    const body = (await response.json()) as { items: Record<string, unknown>[] } & Record<string, unknown>
    return { status: response.status, unreached: response.headers.get('x-triwire-unreached'), body }
  }
  const watched = await Promise.all(replicas.map(({ adminUrl }) => readEvents(adminUrl, headers)))
  for (const { wait } of watched) await wait('tick', 2)
  const asking = ask(one.url, key, question)
  await until(() => upstream.requests.length === 1)
  const holds = async ({ adminUrl }: { adminUrl: string }) => (await read(adminUrl, '/accounts')).body.items[0]!['held']
  assert.notEqual(await holds(one), '0')
  assert.equal(await holds(two), await holds(one))
  gate.resolve()
  assert.equal(await asking, 200)
  for (const { wait } of watched) {
    const [finished] = await wait('request.finished')
    const id = finished!.data['request_id']
    for (const { adminUrl } of replicas) {
      const explained = await read(adminUrl, `/requests/${id}/explain`)
      assert.equal((explained.body['attempts'] as unknown[]).length, 1)
      const { body, unreached } = await read(adminUrl, '/requests')
      assert.deepEqual(
        [body.items.map(({ request_id, source }) => [request_id, source]), unreached],
        [[[id, 'memory']], null],
      )
    }
  }
  const all = (path: string, field: string) =>
    Promise.all(replicas.map(async ({ adminUrl }) => Date.parse((await read(adminUrl, path)).body[field] as string)))
  const latest = Math.max(...(await all('/status', 'started')))
  assert.deepEqual(await all('/requests', 'unbilled_since'), [latest, latest])
  await books.database.query(
    `INSERT INTO triwire.replicas (name, version, config_digest, seal_fingerprint, started_ms, seen_ms)
       VALUES ('r3é', '0', 'c', 's', 0, triwire.now_ms())`,
  )
  // It is seen for as long as the test looks at it. A heartbeat from the future would be none (SCA-13).
  const beat = "UPDATE triwire.replicas SET seen_ms = triwire.now_ms() WHERE name = 'r3é'"
  let isBeating = false
  repeat(() => {
    if (isBeating) return
    isBeating = true
    void books.database.query(beat).then(
      () => {
        isBeating = false
      },
      () => {},
    )
  })
  const missing = await read(two.adminUrl, '/requests/req_unknown/explain')
  assert.equal(missing.status, 404)
  assert.match(missing.body['detail'] as string, /These servers could not be asked: r3é \(3\)\.$/)
  assert.equal((await read(two.adminUrl, '/accounts')).unreached, 'r3? (3)')
  const command = ['requests', '--store', url, '--admin-listen', new URL(two.adminUrl).host]
  const env = {
    TRIWIRE_TOKEN: token,
    TRIWIRE_STATE_DIR: testFolder('command'),
    TRIWIRE_SEAL_KEY: Buffer.from('a seal key of thirty-two bytes..').toString('base64'),
  }
  const printed = await runWarm(command, { cwd: testFolder('command'), env })
  assert.equal(printed.code, 0, printed.stderr)
  assert.match(printed.stderr, /^note: these servers could not be asked: r3\? \(3\)$/m)
  const ticks = (await watched[0]!.wait('tick')).length
  await watched[0]!.wait('tick', ticks + 2)
  assert.deepEqual(watched[0]!.events.findLast(({ event }) => event === 'tick')!.data['unreached'], ['r3é (3)'])
})
