import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import type { Books } from '../../src/accounts/books.ts'
import { openWebhooks } from '../../src/webhooks/webhooks.ts'
import { createAuthority } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { holdStore } from '../support/hold-store.ts'
import { type Received, startReceiver, startSecureReceiver } from '../support/receiver.ts'
import { until } from '../support/waiting.ts'

/* What operators are warned of (ruling X15), through a real gateway and to a receiver that is not always well. */

const secret = 'whsec_d2ViaG9vayBzZWNyZXQgMTIzNDU2Nzg5MA=='
const plain = 'a plain secret of hooks'

async function ask(gateway: TestGateway, key = gateway.key): Promise<number> {
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'Hello!' }], max_completion_tokens: 20 }
  const response = await gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}` })
  await response.text()
  return response.status
}

/** The time of the gateway stands still: what the store wrote a moment ago is due when it is past that. */
async function look(gateway: TestGateway, ms = 60_000): Promise<void> {
  gateway.advance(ms)
  await gateway.server.webhooks.look()
  await gateway.server.webhooks.look()
}

function start(webhooks: object[], more: Parameters<typeof startTestGateway>[0] = {}): Promise<TestGateway> {
  return startTestGateway({ ...more, config: { ...more.config, webhooks } })
}

function isSigned({ headers, text }: Received, key: Buffer): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`
  return headers['webhook-signature'] === `v1,${createHmac('sha256', key).update(signed).digest('base64')}`
}

test('X15 N-F4 messages go through the proxy of their webhook, and only its certificates are trusted', async () => {
  const name = 'hooks.corp.test'
  const authority = createAuthority()
  const [secure, open] = [await startSecureReceiver(authority.issue(name)), await startReceiver()]
  const proxy = await startEgressProxy({ [`${name}:443`]: secure.place, [name]: open.place })
  const way = { secret, below: '0.5', proxy: proxy.url }
  const gateway = await start(
    [
      { ...way, url: `https://${name}/hook`, ca_file: authority.caFile },
      { ...way, url: `http://${name}/hook` },
      { ...way, url: `https://${name}/other` },
    ],
    { credit: '0.5001' },
  )
  while (open.received.length === 0) {
    assert.equal(await ask(gateway), 200)
    await look(gateway)
  }
  const results = gateway.server.webhooks.list().map(({ last }) => last?.result)
  assert.deepEqual(results, ['ok', 'ok', 'unreachable'])
  assert.deepEqual([...new Set(proxy.asked)].sort(), [`CONNECT ${name}:443`, `POST http://${name}/hook`])
  assert.equal(secure.received.length, 1)
})

test('X15 credit below a threshold is sent once to each subscribed webhook, signed after Standard Webhooks, with names and amounts', async () => {
  const [one, other] = [await startReceiver(), await startReceiver()]
  const gateway = await start(
    [
      { url: `${one.url}?token=kept-to-itself`, secret, below: '0.5' },
      { url: other.url, secret: plain, events: ['ledger_unwritable', 'key_budget_80'] },
    ],
    { credit: '0.5001' },
  )
  while (one.received.length === 0) {
    assert.equal(await ask(gateway), 200)
    await look(gateway)
  }
  await ask(gateway)
  await look(gateway)
  assert.equal(one.received.length, 1)
  const [told] = one.received
  const account = gateway.store.listAccounts()[0]!
  assert.equal(told!.body.type, 'credit_low')
  assert.deepEqual(told!.body.data['account'], { id: account.id, name: 'tester' })
  assert.equal(told!.body.data['below'], '0.5')
  assert.match(String(told!.body.data['balance']), /^0\.49/)
  assert.ok(isSigned(told!, Buffer.from(secret.slice(6), 'base64')))
  assert.equal(Number(told!.headers['webhook-timestamp']), Math.floor((gateway.nowMs() - 60_000) / 1_000))
  assert.deepEqual(other.received, [])
})

test('X15 R15 a budget is reported at four fifths and when spent, with the label of the key and when it renews', async () => {
  const receiver = await startReceiver()
  const gateway = await start([{ url: receiver.url, secret: plain }])
  const { key, id, prefix } = gateway.store.createKey('tester', { label: 'ci', budget: { nanos: 1n, per: 'month' } })
  await gateway.untilKnown(key)
  assert.equal(await ask(gateway, key), 200)
  await look(gateway)
  await until(() => receiver.received.length === 2, 'both are told')
  assert.deepEqual(receiver.received.map(({ body }) => body.type).toSorted(), ['key_budget_80', 'key_budget_spent'])
  const { untilMs } = gateway.store.findKeys(id)[0]!.spend!
  for (const told of receiver.received) {
    const { data } = told.body
    assert.deepEqual(data['key'], { id, prefix, label: 'ci' })
    assert.deepEqual([data['budget'], data['renews_at']], ['0.000000001/month', new Date(untilMs).toISOString()])
    assert.ok(isSigned(told, Buffer.from(plain)))
  }
})

test('X15 X7 events that no receiver wants are removed from the store of a single server after they were read', async () => {
  const receiver = await startReceiver()
  const gateway = await start([{ url: receiver.url, secret: plain, events: ['key_budget_80'] }])
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 1n, per: 'month' } })
  await gateway.untilKnown(key)
  assert.equal(await ask(gateway, key), 200)
  await look(gateway)
  await until(() => receiver.received.length === 1, 'what it wants is told')
  await gateway.server.webhooks.close()
  const db = new DatabaseSync(gateway.storePath)
  const left = db.prepare('SELECT id FROM outbox').all()
  db.close()
  assert.deepEqual(left, [])
})

test('X15 a receiver that refuses, drops or fails gets the same event with the same id again, until it returns 200', async () => {
  const receiver = await startReceiver(500, 403, 302, 'drop')
  const hanging = await startReceiver('drop')
  const gateway = await start(
    [
      { url: receiver.url, secret: plain, below: '99' },
      { url: hanging.url, secret: plain, below: '99' },
    ],
    { credit: '99' },
  )
  assert.equal(await ask(gateway), 200)
  for (let tries = 1; tries <= 5; tries++) {
    await look(gateway, 3_600_000)
    assert.equal(receiver.received.length, tries)
  }
  await look(gateway, 3_600_000)
  assert.equal(receiver.received.length, 5)
  // Who has had it is not told again for the sake of who has not.
  assert.equal(hanging.received.length, 2)
  const ids = new Set(receiver.received.map(({ headers, text }) => `${headers['webhook-id']} ${text}`))
  assert.equal(ids.size, 1)
  const stamps = new Set(receiver.received.map(({ headers }) => headers['webhook-timestamp']))
  assert.equal(stamps.size, 5)
  const lines = (await gateway.logLines()).filter(({ event }) => event === 'webhook_failed')
  assert.deepEqual(
    lines.filter(({ webhook }) => webhook === receiver.url).map(({ result }) => result),
    ['failed', 'refused', 'redirected', 'unreachable'],
  )
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  const counts = { ok: 2, failed: 1, refused: 1, redirected: 1, unreachable: 2, gone: 0, timeout: 0 }
  for (const [result, count] of Object.entries(counts))
    assert.ok(metrics.includes(`triwire_webhook_deliveries_total{result="${result}"} ${count}\n`), result)
})

test('X15 a store that cannot be asked for warnings is reported once, until it could be asked again', async () => {
  const { gateway } = (await start([{ url: 'http://127.0.0.1:1', secret: plain }])).server
  const told: unknown[] = []
  let isAway = true
  const webhooks = openWebhooks({
    ...{
      config: gateway.snapshots.current.config,
      gateway,
      isShared: false,
      clock: { news: undefined, text: undefined },
    },
    async books() {
      if (isAway) throw new Error('away')
      return { watch: async () => {}, takeWarnings: async () => [] } as unknown as Books
    },
    log: {
      access() {},
      pass() {},
      event: (_, event, fields) => void told.push([event, fields]),
      flush: async () => {},
    },
  })
  for (const spell of [1, 2]) {
    isAway = true
    for (let n = 0; n < 3; n++) await webhooks.look()
    assert.deepEqual(told, Array(spell).fill(['webhooks_silent', { error: 'away' }]))
    isAway = false
    await webhooks.look()
  }
  await webhooks.close()
})

test('X15 X9 a message that failed waits no longer if another server of the store has taken it', async () => {
  const receiver = await startReceiver(503)
  const { gateway } = (await start([{ url: receiver.url, secret: plain }])).server
  let nowMs = gateway.nowMs()
  const data = { key: 'key_x', budget_nanos: '5', per: null, spent_nanos: '4' }
  const due = [{ id: 'key_budget_80:key_x:0:5', event: 'key_budget_80', data, atMs: nowMs, tries: undefined }]
  const webhooks = openWebhooks({
    config: gateway.snapshots.current.config,
    gateway: {
      ...{ snapshots: gateway.snapshots, ledger: gateway.ledger },
      ...{ clockMs: gateway.clockMs, nowMs: () => nowMs },
    },
    isShared: true,
    clock: { news: undefined, text: undefined },
    books: async () =>
      ({
        watch: async () => {},
        takeWarnings: async () => due.splice(0),
        settleWarning: async () => {},
        findKeys: async () => [],
      }) as unknown as Books,
    log: { access() {}, pass() {}, event() {}, flush: async () => {} },
  })
  const pending = () => webhooks.list().map((one) => [one.last?.result, one.pending])
  await webhooks.look()
  assert.deepEqual(pending(), [['failed', 1]])
  nowMs += 120_000
  assert.deepEqual(pending(), [['failed', 1]])
  nowMs += 10_000
  assert.deepEqual(pending(), [['failed', 0]])
  await webhooks.close()
})

test('X15 an event that could not be delivered for a day is dropped', async () => {
  const receiver = await startReceiver(...Array.from({ length: 9 }, () => 503))
  const gateway = await start([{ url: receiver.url, secret: plain, below: '99' }], { credit: '99' })
  await ask(gateway)
  await look(gateway)
  await look(gateway, 20 * 3_600_000)
  await look(gateway, 5 * 3_600_000)
  assert.equal(receiver.received.length, 3)
  await look(gateway, 5 * 3_600_000)
  assert.equal(receiver.received.length, 3)
  assert.ok(await gateway.logWith({ event: 'webhook_given_up', result: 'failed', tries: 3 }))
})

test('X15 a receiver that hangs delays the sender for no longer than its time limit', async () => {
  const receiver = await startReceiver()
  const silent = await startReceiver(...Array.from({ length: 9 }, () => 'silence' as const))
  const gateway = await start(
    [
      { url: silent.url, secret: plain, below: '99' },
      { url: receiver.url, secret: plain, below: '99' },
    ],
    {
      credit: '99',
      webhookMs: 200,
    },
  )
  await ask(gateway)
  // On a busy machine its time may be over before anybody was asked: then they are asked again.
  await until(async () => {
    await look(gateway, 3_600_000)
    return silent.received.length > 0 && receiver.received.length > 0
  }, 'both were told')
  assert.ok(await gateway.logWith({ event: 'webhook_failed', webhook: silent.url, result: 'timeout' }))
})

test('issue 13 X15: a receiver that hangs delays no other and no later event; what it missed is sent after a restart', async () => {
  const [silent, fine] = [await startReceiver('silence', 'silence', 'silence'), await startReceiver()]
  const gateway = await start(
    [
      { url: silent.url, secret: plain, below: '99' },
      { url: fine.url, secret: plain, below: '99' },
    ],
    // Longer than any test takes.
    { credit: '99', webhookMs: 600_000 },
  )
  const begin = () => {
    gateway.advance(60_000)
    void gateway.server.webhooks.look()
  }
  assert.equal(await ask(gateway), 200)
  begin()
  await until(() => silent.received.length === 1 && fine.received.length === 1, 'both are asked')
  const { key } = gateway.store.createKey('tester', { label: 'ci', budget: { nanos: 1n, per: 'month' } })
  await gateway.untilKnown(key)
  assert.equal(await ask(gateway, key), 200)
  begin()
  await until(() => fine.received.length === 3, 'who does not hang is told what came later')
  const events = ['credit_low', 'key_budget_80', 'key_budget_spent']
  assert.deepEqual(
    fine.received.map(({ body }) => body.type),
    events,
  )
  // Heard is not yet answered: what is cut before its answer was read would be told again.
  await until(() => gateway.server.webhooks.list()[1]!.told === 3, 'it has taken all three')
  // One after the other, and no second try while the first is under way.
  begin()
  await gateway.server.webhooks.close()
  assert.equal(silent.received.length, 1)
  const db = new DatabaseSync(gateway.storePath)
  const left = db.prepare('SELECT event, tries, next_ms FROM outbox ORDER BY at_ms, id').all()
  db.close()
  assert.deepEqual(
    left.map(({ event, tries }) => [event, (JSON.parse(tries as string) as { over: string[] }).over.length]),
    events.map((event) => [event, 1]),
  )
  for (const { next_ms: next } of left) assert.ok((next as number) <= gateway.nowMs())
})

test('X15 a model without a healthy upstream account is reported once an incident, however often it is tried meanwhile', async () => {
  const [receiver, model] = [await startReceiver(), await startReceiver(...Array.from({ length: 99 }, () => 401))]
  const gateway = await start([{ url: receiver.url, secret: plain, events: ['upstream_down'] }], {
    // Its account is refused there.
    upstreamUrl: model.url,
    cools: true,
  })
  for (let n = 0; n < 5; n++) await ask(gateway)
  await look(gateway, 0)
  await look(gateway, 0)
  const [told, ...rest] = receiver.received
  assert.deepEqual([told?.body.type, rest.length], ['upstream_down', 0])
  assert.equal(told!.body.data['model'], 'native-chat')
  const [upstream] = told!.body.data['upstreams'] as Record<string, unknown>[]
  assert.deepEqual([upstream!['upstream'], upstream!['account'], upstream!['state']], ['sim', 'a', 'cooling'])
  // It is tried again, and fails: the incident goes on.
  await look(gateway, 3_600_000)
  for (let n = 0; n < 5; n++) await ask(gateway)
  await look(gateway, 0)
  assert.equal(receiver.received.length, 1)
})

test('X15 C5 a store that cannot be written is reported once an incident, by the process that sees it, and at the next incident again', async () => {
  const receiver = await startReceiver()
  const gateway = await start([{ url: receiver.url, secret: plain, events: ['ledger_unwritable'] }], {
    config: { timeouts: { settle_deadline: 100 } },
  })
  const { webhooks } = gateway.server
  const isWritable = () => gateway.ledger.ledger.backlog().blockedAccounts === 0
  for (const incident of [1, 2]) {
    const holder = holdStore(gateway.storePath)
    await ask(gateway)
    await until(() => !isWritable(), 'a debit waits for too long')
    // Whoever looks for warnings in the store waits for it: what this process has seen is told before.
    const looking = webhooks.look()
    await until(() => receiver.received.length === incident, 'it is told')
    assert.equal(await ask(gateway), 500)
    holder.exec('ROLLBACK')
    holder.close()
    await looking
    await until(isWritable, 'the store can be written again')
    await look(gateway, 0)
  }
  const [first, second, ...rest] = receiver.received
  assert.equal(rest.length, 0)
  for (const { body } of [first!, second!]) {
    assert.equal(body.type, 'ledger_unwritable')
    const { queued, spooled, all, accounts } = body.data as Record<string, unknown>
    assert.ok(Number(queued) + Number(spooled) >= 1, JSON.stringify(body.data))
    assert.deepEqual([all, accounts], [false, 1])
  }
  assert.notEqual(first!.headers['webhook-id'], second!.headers['webhook-id'])
})

test('X15 U5 operators see what became of webhooks; page and log have no secret, query, or secret part of a path', async () => {
  const receiver = await startReceiver(500)
  const gateway = await start(
    [{ url: `${receiver.url}/t/hidden-in-path?token=hidden-in-query`, secret, below: '99' }],
    { credit: '99' },
  )
  const list = async () => ((await (await gateway.askAdmin('/api/v1/webhooks')).json()) as { items: object[] }).items
  const told = { url: `${receiver.url}/t/hid…`, below: '99' }
  const events = [
    'credit_low',
    'key_budget_80',
    'key_budget_spent',
    'account_budget_80',
    'account_budget_spent',
    'person_budget_80',
    'person_budget_spent',
    'upstream_down',
    'ledger_unwritable',
    'clock_wrong',
  ]
  assert.deepEqual(await list(), [{ ...told, events, last: null, pending: 0, told: 0, failed: 0, last_failure: null }])
  await ask(gateway)
  await look(gateway)
  type Row = { last: { result: string }; pending: number; told: number; failed: number; last_failure: object }
  const [failed] = (await list()) as Row[]
  assert.deepEqual([failed!.last.result, failed!.pending, failed!.told, failed!.failed], ['failed', 1, 0, 1])
  await look(gateway)
  const [fine] = (await list()) as Row[]
  assert.deepEqual([fine!.last.result, fine!.pending, fine!.told, fine!.failed], ['ok', 0, 1, 1])
  assert.deepEqual(fine!.last_failure, failed!.last)
  assert.doesNotMatch(JSON.stringify([await list(), await gateway.logLines()]), /hidden-in|whsec_/)
})
