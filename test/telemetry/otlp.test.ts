import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import type { Config } from '../../src/config/config.ts'
import { createPlaces } from '../../src/telemetry/otlp/places.ts'
import { type Collector, startCollector } from '../support/collector.ts'
import { startTestGateway, type TestOptions, testModel } from '../support/gateway.ts'
import { answers, frames } from '../support/native.ts'
import { runPython, withoutPython } from '../support/python.ts'
import { startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { upstreamAt } from '../support/upstream.ts'
import { until } from '../support/waiting.ts'

const question = { max_tokens: 20, messages: [{ role: 'user', content: 'canary-question' }] }
const soon = { interval: 20, metrics_interval: 30 }
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const parentId = '00f067aa0ba902b7'

function startSending(collector: Collector, options: TestOptions = {}, telemetry: Record<string, unknown> = {}) {
  const otlp = { endpoint: collector.url, headers: { 'x-tenant': 'tenant-of-the-test' }, ...soon }
  return startTestGateway({ ...options, config: { telemetry: { otlp, ...telemetry }, ...options.config } })
}

test('the end of a translated answer is reported in the words of the conventions; a native one passes unread', async () => {
  const collector = await startCollector()
  const upstream = await startRawUpstream()
  const capped = { ...answers.messages, stop_reason: 'max_tokens' }
  upstream.play(stream(frames.messages), whole(capped), whole(answers.messages))
  const gateway = await startSending(collector, { upstreamUrl: upstream.url })
  const body = { ...question, model: 'native-messages' }
  await (await gateway.post('/v1/chat/completions', { ...body, stream: true })).text()
  await (await gateway.post('/v1/responses', { model: body.model, input: 'canary-question' })).text()
  await (await gateway.post('/v1/messages', body)).text()
  const spans = (await collector.untilSpans(9)).filter(({ name }) => name === 'chat native-messages')
  assert.deepEqual(
    spans.map(({ attributes }) => attributes['gen_ai.response.finish_reasons']),
    [['stop'], ['length'], undefined],
  )
})

test('a request becomes a server span, with a span for the model over all attempts, which has one for each attempt', async () => {
  const collector = await startCollector()
  const upstream = await startRawUpstream()
  upstream.play(whole({ error: { message: 'no' } }, 429), stream(frames.messages))
  const gateway = await startSending(collector, {
    models: [
      testModel('native-messages', 'messages', { upstream: [{ name: 'sim' }, { name: 'second', priority: 2 }] }),
    ],
    upstream: () => ({
      upstreams: {
        sim: { base_url: upstream.url, accounts: [{ name: 'a', key: 'provider-key-1' }] },
        second: { base_url: upstream.url, accounts: [{ name: 'b', key: 'provider-key-2' }] },
      },
    }),
  })
  const response = await gateway.post(
    '/v1/messages',
    { ...question, model: 'native-messages', stream: true },
    { traceparent: `00-${traceId}-${parentId}-01`, baggage: 'canary-baggage=1', 'x-session-id': 'canary-session' },
  )
  await response.text()
  const spans = await collector.untilSpans(4)
  assert.deepEqual(
    spans.map(({ name, kind, status }) => [name, kind, status?.code]),
    [
      ['POST /v1/messages', 2, undefined],
      ['chat native-messages', 3, undefined],
      ['POST', 3, 2],
      ['POST', 3, undefined],
    ],
  )
  const [server, chat, first, second] = spans as [
    (typeof spans)[0],
    (typeof spans)[0],
    (typeof spans)[0],
    (typeof spans)[0],
  ]
  assert.ok(spans.every((span) => span.traceId === traceId))
  assert.equal(server.parentSpanId, parentId)
  assert.equal(chat.parentSpanId, server.spanId)
  assert.deepEqual([first.parentSpanId, second.parentSpanId], [chat.spanId, chat.spanId])
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, 4)
  const requestId = response.headers.get('x-request-id')
  assert.deepEqual(server.attributes, {
    'http.request.method': 'POST',
    'http.route': '/v1/messages',
    'url.path': '/v1/messages',
    'http.response.status_code': 200,
    'triwire.request.id': requestId,
    'triwire.account.id': gateway.store.findAccount('tester').id,
    'triwire.key.id': gateway.store.listKeys('tester')[0]!.id,
    'triwire.wire.client': 'messages',
    'triwire.outcome': 'ok',
  })
  const port = Number(new URL(upstream.url).port)
  const [bill] = [...gateway.store.listEntries({ limit: 10 })].filter((entry) => entry.bill)
  const cost = Number(bill!.amountNanos) / 1e9
  const { 'triwire.hold': hold, ...told } = chat.attributes
  assert.ok((hold as number) > 0)
  assert.deepEqual(told, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'second',
    'gen_ai.request.model': 'native-messages',
    'gen_ai.request.stream': true,
    'gen_ai.request.max_tokens': 20,
    'gen_ai.response.model': 'up-messages',
    'gen_ai.response.time_to_first_chunk': 0,
    'gen_ai.usage.input_tokens': 9,
    'gen_ai.usage.cache_read.input_tokens': 4,
    'gen_ai.usage.cache_write.input_tokens': 0,
    'gen_ai.usage.output_tokens': 3,
    'gen_ai.usage.reasoning.output_tokens': 0,
    'server.address': '127.0.0.1',
    'server.port': port,
    'triwire.request.id': requestId,
    'triwire.wire.model': 'messages',
    'triwire.upstream': 'second',
    'triwire.attempts': 2,
    'triwire.outcome': 'ok',
    'triwire.cost': cost,
    'triwire.usage.source': 'final',
  })
  const where = { 'server.address': '127.0.0.1', 'server.port': port, 'http.request.method': 'POST' }
  assert.deepEqual(
    [first.attributes, second.attributes],
    [
      {
        ...where,
        'http.response.status_code': 429,
        'error.type': 'upstream_429',
        'triwire.upstream': 'sim',
        'triwire.upstream.account': 'a',
      },
      {
        ...where,
        'http.response.status_code': 200,
        'http.request.resend_count': 1,
        'triwire.upstream': 'second',
        'triwire.upstream.account': 'b',
      },
    ],
  )
  const [message] = collector.taken
  assert.equal(message!.headers['x-tenant'], 'tenant-of-the-test')
  assert.equal(message!.headers['content-type'], 'application/json')
  // Nobody upstream is told, unless the operator says so.
  assert.ok(
    upstream.requests.every(({ headers }) => headers.every(([name]) => name !== 'traceparent' && name !== 'baggage')),
  )
})

test('U5 no content, header or conversation id of a request or an answer is in a span', async () => {
  const collector = await startCollector()
  const gateway = await startSending(collector)
  const headers = { 'x-session-id': 'canary-session', 'user-agent': 'canary-agent', cookie: 'canary-cookie' }
  const body = {
    ...question,
    model: 'native-chat',
    user: 'canary-user',
    prompt_cache_key: 'canary-cache',
    canary_field: 1,
  }
  await (await gateway.post('/v1/chat/completions', body, headers)).text()
  await (await gateway.post('/v1/nowhere-path?nowhere=1', body, headers)).text()
  await (await gateway.post('/v1/messages', { ...question, model: 'canary-model' }, headers)).text()
  await collector.untilSpans(5)
  assert.doesNotMatch(
    collector.taken.map(({ body }) => body).join(),
    /canary|nowhere|sk-tri|Bearer|127\.0\.0\.1:\d+\/v1/,
  )
  // A path that is not served is a client's own word.
  assert.deepEqual(
    collector.spans().map(({ name }) => name),
    ['POST /v1/chat/completions', 'chat native-chat', 'POST', 'POST', 'POST /v1/messages'],
  )
})

test('an upstream gets the trace and the number of the attempt if the configuration says so', async () => {
  const collector = await startCollector()
  const upstream = await startRawUpstream()
  upstream.play(whole(answers.chat))
  const gateway = await startSending(collector, { upstreamUrl: upstream.url }, { propagate: true })
  const ask = (headers: Record<string, string>) =>
    gateway.post('/v1/chat/completions', { ...question, model: 'native-chat' }, headers).then((one) => one.text())
  await ask({ traceparent: `00-${traceId}-${parentId}-01` })
  const [, , attempt] = await collector.untilSpans(3)
  assert.equal(upstream.requests[0]!.header('traceparent'), `00-${traceId}-${attempt!.spanId}-01`)
  // Without a caller's the trace begins here; what is none is as good as none.
  await ask({ traceparent: `00-${'0'.repeat(32)}-${parentId}-01` })
  const spans = await collector.untilSpans(6)
  assert.notEqual(spans[3]!.traceId, traceId)
  assert.equal(upstream.requests[1]!.header('traceparent'), `00-${spans[3]!.traceId}-${spans[5]!.spanId}-01`)
  // A caller who does not record has its word kept.
  await ask({ traceparent: `00-${traceId}-${parentId}-00` })
  assert.match(upstream.requests[2]!.header('traceparent')!, new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
  await ask({})
  assert.equal((await collector.untilSpans(9)).length, 9)
})

test('without a collector an upstream gets its client’s trace unchanged, if configured', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole(answers.chat))
  const gateway = await startTestGateway({ upstreamUrl: upstream.url, config: { telemetry: { propagate: true } } })
  const traceparent = `00-${traceId}-${parentId}-01`
  for (const headers of [{ traceparent }, { traceparent: 'canary' }, {}] as Record<string, string>[])
    await (await gateway.post('/v1/chat/completions', { ...question, model: 'native-chat' }, headers)).text()
  assert.deepEqual(
    upstream.requests.map((request) => request.header('traceparent')),
    [traceparent, undefined, undefined],
  )
})

test('metrics of the conventions count operations, and our own metrics are sent with them', async () => {
  const collector = await startCollector()
  const gateway = await startSending(collector, {}, { genai: 'compat' })
  const ask = async (model: string) => (await gateway.post('/v1/chat/completions', { ...question, model })).text()
  await ask('native-chat')
  await ask('native-messages')
  const seen = (name: string) => collector.metrics().get(name)
  await until(() => seen('gen_ai.client.operation.duration')?.points.length === 2, 'both operations are told')
  await until(() => seen('triwire_requests')?.points.length === 2, 'both requests are told')
  const points = seen('gen_ai.client.inference.usage.output_tokens')!.points
  assert.deepEqual(
    points.map(({ attributes }) => attributes),
    ['chat', 'messages'].map((wire) => ({
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'sim',
      'gen_ai.request.model': `native-${wire}`,
      'gen_ai.response.model': `up-${wire}`,
      'server.address': '127.0.0.1',
      'server.port': Number(new URL(gateway.simulator.url).port),
      'gen_ai.token.modality': 'unknown',
    })),
  )
  const billed = [...gateway.store.listEntries({ limit: 10 })].flatMap(({ bill }) => bill?.usage.outputTokens ?? [])
  assert.deepEqual(points.map(({ value }) => value).sort(), billed.sort())
  assert.equal(seen('gen_ai.client.operation.duration')!.unit, 's')
  assert.equal(seen('gen_ai.client.inference.operation.input_tokens')!.unit, '{token}')
  assert.equal(seen('gen_ai.client.operation.duration')!.points[0]!.count, '1')
  assert.deepEqual(
    seen('gen_ai.client.token.usage')!.points.map(({ attributes }) => attributes['gen_ai.token.type']),
    ['input', 'output', 'input', 'output'],
  )
  assert.equal(seen('triwire_ledger_writable')!.points[0]!.value, 1)
})

test('data that a collector rejects are dropped and counted; requests never wait; a collector that returns gets later data', async () => {
  const collector = await startCollector()
  collector.status = 400
  const gateway = await startSending(collector)
  const ask = async () => (await gateway.post('/v1/chat/completions', { ...question, model: 'native-chat' })).text()
  const figure = async (name: string) => {
    const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
    return Number(new RegExp(`^${name}\\{signal="traces"\\} (\\d+)$`, 'm').exec(text)?.[1])
  }
  assert.equal(await figure('triwire_telemetry_dropped_total'), 0)
  await ask()
  await until(async () => (await figure('triwire_telemetry_dropped_total')) === 1, 'it is counted')
  assert.equal((await gateway.logWith({ event: 'telemetry_lost' }))['why'], 'status 400')
  collector.status = 200
  await ask()
  await collector.untilSpans(3)
  await until(
    async () => (await figure('triwire_telemetry_exported_total')) === 1,
    'its answer has come, and is counted',
  )
  // One that is overloaded gets the same once more.
  collector.status = 503
  const asked = collector.asked
  await ask()
  await until(() => collector.asked > asked + 2, 'it was tried again')
  collector.status = 200
  await collector.untilSpans(6)
})

test('a collector that never answers delays nothing, not even the shutdown', async () => {
  const collector = await startCollector()
  collector.status = 0
  const gateway = await startSending(collector)
  for (let i = 0; i < 5; i++)
    assert.equal((await gateway.post('/v1/chat/completions', { ...question, model: 'native-chat' })).status, 200)
  await until(() => collector.asked > 0, 'it is asked')
  const beganMs = performance.now()
  await gateway.close()
  assert.ok(performance.now() - beganMs < 10_000)
})

test('a server that ends while metrics are sent again sends its last metrics too', async () => {
  const collector = await startCollector()
  collector.status = 503
  const gateway = await startSending(collector)
  await until(() => collector.asked > 0, 'metrics are sent')
  await (await gateway.post('/v1/chat/completions', { ...question, model: 'native-chat' })).text()
  collector.status = 200
  await gateway.close()
  assert.equal(collector.metrics().get('gen_ai.client.operation.duration')?.points[0]?.count, '1')
})

test('exported data match OpenTelemetry’s own protocol definitions', {
  skip: withoutPython('opentelemetry.proto.collector.trace.v1.trace_service_pb2', 'opentelemetry-proto'),
}, async () => {
  const collector = await startCollector()
  const gateway = await startSending(collector, {}, { genai: 'compat', propagate: true })
  const ask = (path: string, body: object) => gateway.post(path, body).then((one) => one.text())
  await ask('/v1/chat/completions', { ...question, model: 'native-messages', stream: true, frequency_penalty: 1 })
  await ask('/v1/messages', { ...question, model: 'nothing' })
  await collector.untilSpans(4)
  await until(() => collector.metrics().get('gen_ai.client.operation.duration'), 'an operation is told')
  const lines = collector.taken.map(({ path, body }) => JSON.stringify([path, body]))
  const read = runPython(join(import.meta.dirname, 'decode-otlp.py'), lines).map((line) => JSON.parse(line))
  const told = (path: string) => read.filter((one) => one.path === path).flatMap((one) => one.told)
  assert.deepEqual(
    told('/v1/traces')
      .map(({ name, kind }) => `${name} ${kind}`)
      .sort(),
    ['POST /v1/chat/completions 2', 'POST /v1/messages 2', 'POST 3', 'chat native-messages 3'],
  )
  const kinds = new Map(told('/v1/metrics').map(({ name, kind, unit }) => [name, `${kind} ${unit}`]))
  assert.deepEqual([...kinds].filter(([name]) => name.startsWith('gen_ai.')).sort(), [
    ['gen_ai.client.inference.operation.input_tokens', 'histogram {token}'],
    ['gen_ai.client.inference.operation.output_tokens', 'histogram {token}'],
    ['gen_ai.client.inference.usage.cache_read.input_tokens', 'sum {token}'],
    ['gen_ai.client.inference.usage.cache_write.input_tokens', 'sum {token}'],
    ['gen_ai.client.inference.usage.input_tokens', 'sum {token}'],
    ['gen_ai.client.inference.usage.output_tokens', 'sum {token}'],
    ['gen_ai.client.inference.usage.reasoning.output_tokens', 'sum {token}'],
    ['gen_ai.client.operation.duration', 'histogram s'],
    ['gen_ai.client.operation.time_to_first_chunk', 'histogram s'],
    ['gen_ai.client.token.usage', 'histogram {token}'],
  ])
  assert.equal(kinds.get('triwire_request_duration_seconds'), 'histogram ')
  assert.equal(kinds.get('process_resident_memory_bytes'), 'gauge ')
})

test('a provider has the name of the conventions at each of its hosts, and the name of the upstream at all others', () => {
  const hosts = {
    'api.anthropic.com': 'anthropic',
    'eu.api.openai.com': 'openai',
    'resource.openai.azure.com': 'azure.ai.openai',
    'resource.services.ai.azure.com': 'azure.ai.inference',
    'bedrock-runtime.us-east-1.amazonaws.com': 'aws.bedrock',
    'vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com': 'aws.bedrock',
    'bedrock-runtime.cn-north-1.amazonaws.com.cn': 'aws.bedrock',
    'bedrock-runtime.eusc-de-east-1.amazonaws.eu': 'aws.bedrock',
    'bedrock-mantle.us-east-1.api.aws': 'aws.bedrock',
    'bedrock-runtime-fips.us-east-1.api.aws': 'aws.bedrock',
    'aws-external-anthropic.us-east-1.api.aws': 'here',
    'generativelanguage.googleapis.com': 'gcp.gemini',
    'aiplatform.googleapis.com': 'gcp.vertex_ai',
    'us-central1-aiplatform.googleapis.com': 'gcp.vertex_ai',
    'aiplatform.eu.rep.googleapis.com': 'gcp.vertex_ai',
    'api.x.ai': 'x_ai',
    'myapi.x.ai': 'here',
    'api.x.ai.example': 'here',
  }
  const named = Object.keys(hosts).map((host) => {
    const config = { upstreams: new Map([['here', upstreamAt(`https://${host}/v1`)]]) } as unknown as Config
    return [host, createPlaces(() => config).upstream('here')?.provider]
  })
  assert.deepEqual(Object.fromEntries(named), hosts)
})
