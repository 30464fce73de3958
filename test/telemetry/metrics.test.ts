import assert from 'node:assert/strict'
import { request } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { judgeScrape } from '../../src/admin/metrics.ts'
import { loadText } from '../../src/config/load.ts'
import { contain } from '../../src/gateway/record.ts'
import type { Log } from '../../src/log/log.ts'
import { openTelemetry } from '../../src/process/telemetry.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { head, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

const ask = { max_tokens: 20, messages: [{ role: 'user', content: 'canary-question' }] }
const allWires = [
  testModel('native-messages', 'messages'),
  testModel('native-chat', 'chat'),
  testModel('native-responses', 'responses'),
]

/** The value of each series, by its name with labels as they are written. */
async function scrape(gateway: TestGateway, headers: Record<string, string> = {}): Promise<Map<string, number>> {
  const response = await fetch(`${gateway.adminUrl}/metrics`, { headers })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const lines = (await response.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

const settled = (gateway: TestGateway) => until(() => gateway.unended() === 0, 'all requests are over')

test('X9 the cost of answers, and how they ended, is on the admin listener', async () => {
  const gateway = await startTestGateway({ models: allWires })
  for (const stream of [false, true]) {
    const response = await gateway.post('/v1/chat/completions', { ...ask, model: 'native-chat', stream })
    await response.text()
  }
  const translated = { ...ask, model: 'native-messages', frequency_penalty: 1 }
  await (await gateway.post('/v1/chat/completions', translated)).text()
  await (await gateway.post('/v1/messages', { ...ask, model: 'canary-no-such-model' })).text()
  await (await fetch(`${gateway.url}/v1/models`)).text()
  await settled(gateway)
  const series = await scrape(gateway)
  const found = (name: string) => series.get(name) ?? 0
  assert.equal(found('triwire_requests_total{wire="chat",model="native-chat",outcome="ok"}'), 2)
  assert.equal(found('triwire_requests_total{wire="chat",model="native-messages",outcome="ok"}'), 1)
  assert.equal(found('triwire_requests_total{wire="messages",model="",outcome="refused"}'), 1)
  assert.equal(found('triwire_requests_total{wire="",model="",outcome="ok"}'), 1)
  assert.equal(found('triwire_refusals_total{code="model_not_found",reason=""}'), 1)
  assert.equal(found('triwire_upstream_attempts_total{upstream="sim",result="ok"}'), 3)
  assert.equal(found('triwire_losses_total{pair="chat-to-messages",field="frequency_penalty"}'), 1)
  assert.equal(found('triwire_first_byte_seconds_count{wire="chat",model="native-chat"}'), 2)
  assert.equal(found('triwire_first_byte_seconds_bucket{wire="chat",model="native-chat",le="0.05"}'), 2)
  assert.equal(found('triwire_ledger_commit_seconds_count'), 3)
  assert.equal(found('triwire_ledger_writable'), 1)
  assert.equal(found('triwire_streams_active'), 0)
  assert.equal(found('triwire_model_upstreams_available{model="native-chat"}'), 1)
  const sum = (start: string) =>
    [...series].reduce((all, [name, value]) => all + (name.startsWith(start) ? value : 0), 0)
  const bills = [...gateway.store.listEntries({ limit: 100 })].flatMap((entry) => (entry.bill ? [entry] : []))
  assert.equal(bills.length, 3)
  const billed = bills.reduce((all, { amountNanos }) => all + Number(amountNanos), 0)
  assert.equal(Math.round(sum('triwire_credits_debited_total{') * 1e9), billed)
  const output = bills.reduce((all, { bill }) => all + bill!.usage.outputTokens, 0)
  const kinds = ['native-chat', 'native-messages'].map(
    (model) => `triwire_tokens_total{model="${model}",kind="output"}`,
  )
  assert.equal(found(kinds[0]!) + found(kinds[1]!), output)
  assert.doesNotMatch([...series.keys()].join(), /canary|tester|127\.0\.0\.1/)
})

test('Y14 each upstream has its count of surplus answers from the start and after a reload, so that an alert sees the first', async () => {
  const gateway = await startTestGateway()
  const counted = async (upstream: string) =>
    (await scrape(gateway)).get(`triwire_upstream_unasked_total{upstream="${upstream}"}`)
  assert.deepEqual([await counted('sim'), await counted('later')], [0, undefined])
  const accounts = [{ name: 'a', key: 'upstream-key-1' }]
  const base_url = gateway.simulator.url
  gateway.reload({ upstreams: { sim: { base_url, accounts }, later: { base_url, accounts } } })
  assert.deepEqual([await counted('sim'), await counted('later')], [0, 0])
})

test('U5 no series is named by a client, however many names it invents', async () => {
  const gateway = await startTestGateway()
  const before = (await scrape(gateway)).size
  for (let i = 0; i < 20; i++) {
    await (await gateway.post('/v1/messages', { ...ask, model: `canary-${i}`, [`canary_${i}`]: i })).text()
    await (await gateway.post(`/v1/nowhere-${i}`, {})).text()
  }
  await settled(gateway)
  const series = await scrape(gateway)
  assert.doesNotMatch([...series.keys()].join(), /canary|nowhere/i)
  assert.ok(series.size - before < 12, `${series.size - before} new series`)
})

test('X9 accounts have figures only if the configuration says so', async () => {
  const gateway = await startTestGateway({ credit: '7.5' })
  const name = 'triwire_account_balance_credits{account="tester"}'
  assert.equal((await scrape(gateway)).get(name), undefined)
  gateway.reload({ metrics: { accounts: true } })
  assert.equal((await scrape(gateway)).get(name), 7.5)
})

test('X9 R15 keys with a budget report the spent share, once for each line of rotations, if configured', async () => {
  const gateway = await startTestGateway({ config: { metrics: { keys: true } } })
  const { key, prefix } = gateway.store.createKey('tester', { label: 'ci', budget: { nanos: 1_000_000n, per: 'day' } })
  await gateway.untilKnown(key)
  const name = `triwire_key_budget_used_ratio{account="tester",key="ci (${prefix})"}`
  assert.equal((await scrape(gateway)).get(name), 0)
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 20 }
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await gateway.post('/v1/chat/completions', body, headers)).status, 200)
  await settled(gateway)
  const [entry] = gateway.store.listEntries({ limit: 1 })
  await until(async () => (await scrape(gateway)).get(name) === Number(entry!.amountNanos) / 1_000_000, 'it is counted')
  gateway.advance(86_400_000)
  assert.equal((await scrape(gateway)).get(name), 0, 'a new day has a new budget')
  gateway.reload({ metrics: { accounts: true } })
  assert.equal((await scrape(gateway)).get(name), undefined)
})

test('X9 with a token configured, metrics require it, also on loopback; a reload changes it', async () => {
  const token = 'token-for-scrapes-0001'
  const gateway = await startTestGateway({ config: { metrics: { token } } })
  const ask = (headers: Record<string, string>) => fetch(`${gateway.adminUrl}/metrics`, { headers })
  for (const headers of [{}, { authorization: `Bearer ${token}x` }, { authorization: token }] as Record<
    string,
    string
  >[]) {
    const refused = await ask(headers)
    assert.equal(refused.status, 401)
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer')
    assert.equal(((await refused.json()) as { type: string }).type, 'urn:triwire:problem:unauthenticated')
  }
  assert.ok((await scrape(gateway, { authorization: `Bearer ${token}` })).size > 30)
  gateway.reload({ metrics: { token: 'token-for-scrapes-0002' } })
  assert.equal((await ask({ authorization: `Bearer ${token}` })).status, 401)
  assert.equal((await ask({ authorization: 'bearer token-for-scrapes-0002' })).status, 200)
})

test('X9 a page whose own name resolves to the listener’s address reads nothing; health accepts any name', async () => {
  const gateway = await startTestGateway()
  const { port } = new URL(gateway.adminUrl)
  const ask = (path: string, host: string) =>
    new Promise<number>((resolve) => {
      request({ host: '127.0.0.1', port, path, headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode!)
      }).end()
    })
  assert.equal(await ask('/metrics', 'evil.example'), 421)
  assert.equal(await ask('/metrics', `localhost:${port}`), 200)
  assert.equal(await ask('/healthz', 'evil.example'), 200)
})

test('X9 off loopback, metrics require a token', () => {
  const request = { method: 'GET', header: (name: string) => (name === 'host' ? 'localhost' : undefined) }
  const metrics = {
    contentType: '',
    write: async () => '',
    token: () => undefined as string | undefined,
    reportBug() {},
  }
  assert.equal(judgeScrape(request, { ...metrics, isLoopback: true }), undefined)
  assert.equal(judgeScrape(request, { ...metrics, isLoopback: false }), 'unauthenticated')
})

test('running streams, their holds, and cooling accounts are reported while they last', async () => {
  const upstream = await startRawUpstream()
  let refuse = () => {}
  upstream.play((socket, asked) => {
    refuse = () => void whole({ error: { message: 'no' } }, 401)(socket, asked)
  })
  const gateway = await startTestGateway({ upstreamUrl: upstream.url, cools: true })
  const running = gateway.post('/v1/chat/completions', { ...ask, model: 'native-chat', stream: true })
  await upstream.untilHeard()
  const during = await scrape(gateway)
  assert.equal(during.get('triwire_requests_active'), 1)
  assert.equal(during.get('triwire_streams_active'), 1)
  assert.ok(during.get('triwire_held_credits')! > 0)
  refuse()
  await (await running).text()
  await settled(gateway)
  const after = await scrape(gateway)
  assert.equal(after.get('triwire_requests_active'), 0)
  assert.equal(after.get('triwire_held_credits'), 0)
  assert.equal(after.get('triwire_upstream_attempts_total{upstream="sim",result="status_401"}'), 1)
  assert.equal(after.get('triwire_upstream_cooling{upstream="sim",cause="status_401"}'), 1)
  assert.equal(after.get('triwire_model_upstreams_available{model="native-chat"}'), 0)
  assert.equal(after.get('triwire_refusals_total{code="no_upstream_account",reason="status_401"}'), 1)
})

test('an attempt that was refused while its client left counts by its status, not as ok', async () => {
  const upstream = await startRawUpstream()
  upstream.play((socket) => void socket.write(head(429, { 'content-length': '100' })))
  const gateway = await startTestGateway({ models: allWires, upstreamUrl: upstream.url })
  const url = `${gateway.url}/v1/chat/completions`
  const asked = request(url, { method: 'POST', headers: { authorization: `Bearer ${gateway.key}` }, agent: false })
  asked.on('error', () => {})
  asked.end(JSON.stringify({ ...ask, model: 'native-chat' }))
  await upstream.untilHeard()
  asked.destroy()
  await until(() => gateway.begun() > 0 && gateway.unended() === 0, 'the request is over')
  const attempts = [...(await scrape(gateway))].filter(([name]) => name.startsWith('triwire_upstream_attempts_total'))
  assert.deepEqual(attempts, [['triwire_upstream_attempts_total{upstream="sim",result="status_429"}', 1]])
})

test('F-P7 a bug in counting is logged, and all listeners still get the record', async () => {
  const config = loadText('', 'triwire.yaml', {}, {})
  const telemetry = await openTelemetry(config, () => config, { event: () => {} } as unknown as Log)
  const bugs: (string | undefined)[] = []
  const heard: string[] = []
  const note = ({ id }: { id: string }) => void heard.push(id)
  const broken = { id: 'req_1', walk: 'infer', wire: 'chat', tries: 5 } as never
  for (const listen of contain((_, id) => void bugs.push(id), ...telemetry.listeners, note)) listen(broken)
  await telemetry.close()
  assert.deepEqual([bugs, heard], [['req_1'], ['req_1']])
})

test('without traces a collector changes no trace header: an upstream gets its client’s, if configured', async () => {
  const file = 'telemetry: { propagate: true, otlp: { endpoint: "http://127.0.0.1:9" } }'
  const config = loadText(file, 'triwire.yaml', {}, { OTEL_TRACES_EXPORTER: 'none' })
  const telemetry = await openTelemetry(config, () => config, { event: () => {} } as unknown as Log)
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const passed = [traceparent, undefined].map((header) =>
    telemetry.tracing?.enter({ trace: telemetry.tracing.begin(header) } as never, {} as never),
  )
  await telemetry.close()
  assert.deepEqual(passed, [traceparent, undefined])
})

test('C5 Y16 a ledger that takes no debits is reported: blocked accounts, waiting and spooled debits, and since when', async () => {
  const gateway = await startTestGateway({ config: { timeouts: { settle_deadline: '200ms' } } })
  const blocker = new DatabaseSync(gateway.storePath)
  blocker.exec('BEGIN IMMEDIATE')
  await (await gateway.post('/v1/chat/completions', { ...ask, model: 'native-chat' })).text()
  const during = await scrape(gateway)
  assert.deepEqual([during.get('triwire_ledger_writable'), during.get('triwire_ledger_blocked_accounts')], [1, 1])
  assert.equal(during.get('triwire_ledger_spooled_debits'), 1)
  assert.equal(during.get('triwire_ledger_waiting_debits'), 0)
  assert.ok(during.get('triwire_ledger_oldest_debit_seconds')! >= 0.2)
  assert.equal(during.get('triwire_ledger_commit_seconds_count'), 0)
  await (await gateway.post('/v1/chat/completions', { ...ask, model: 'native-chat' })).text()
  await settled(gateway)
  const refused = 'triwire_refusals_total{code="internal_error",reason="ledger"}'
  assert.equal((await scrape(gateway)).get(refused), 1)
  blocker.exec('ROLLBACK')
  blocker.close()
  await until(() => gateway.ledger.ledger.backlog().blockedAccounts === 0)
  const after = await scrape(gateway)
  assert.deepEqual([after.get('triwire_ledger_writable'), after.get('triwire_ledger_blocked_accounts')], [1, 0])
  assert.equal(after.get('triwire_ledger_spooled_debits'), 0)
  assert.equal(after.get('triwire_ledger_oldest_debit_seconds'), 0)
  assert.equal(after.get('triwire_ledger_commit_seconds_count'), 1)
})

test('C2 R1 every refusal has the code that its client got, and our word for the reason', async () => {
  const gateway = await startTestGateway({ credit: '0.0000001', config: { limits: { requests_per_minute: 1 } } })
  const send = async (key: string) =>
    (
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}` },
        body: JSON.stringify({ ...ask, model: 'native-chat' }),
      })
    ).text()
  await send(gateway.key)
  await send(gateway.key)
  gateway.store.credit('tester', 1_000_000_000n, 'more')
  await until(() => gateway.ledger.balances.get(gateway.store.findAccount('tester').id)!.balanceNanos > 0n)
  await send(gateway.key)
  await send(gateway.key)
  await send('canary-no-key')
  await settled(gateway)
  const series = await scrape(gateway)
  const told = (code: string, reason: string) => series.get(`triwire_refusals_total{code="${code}",reason="${reason}"}`)
  assert.equal(told('insufficient_credits', 'spent'), 1)
  assert.equal(told('rate_limit_exceeded', 'window'), 2)
  assert.equal(told('invalid_api_key', ''), 1)
})
