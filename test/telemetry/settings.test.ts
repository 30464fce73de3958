import assert from 'node:assert/strict'
import test from 'node:test'
import { loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { spellTelemetry } from '../../src/config/telemetry.ts'
import { SpanQueue } from '../../src/telemetry/otlp/otlp.ts'
import { newSpanId, newTraceId, readTraceparent, writeTraceparent } from '../../src/telemetry/trace-context.ts'

const read = (text: string, env: Record<string, string> = {}) => loadText(text, 'triwire.yaml', {}, env)
const file =
  'telemetry: { otlp: { endpoint: "https://collector.example:4318/base/", headers: { Authorization: "Api canary-secret" } } }'
const urls = ({ telemetry: { traces, metrics } }: ReturnType<typeof read>) => [traces?.url, metrics?.url]

test('no telemetry is sent unless an address is configured', () => {
  assert.deepEqual(urls(read('')), [undefined, undefined])
})

test('the file names a collector; its headers are secrets', () => {
  const config = read(file)
  assert.deepEqual(urls(config), [
    'https://collector.example:4318/base/v1/traces',
    'https://collector.example:4318/base/v1/metrics',
  ])
  assert.equal(config.telemetry.traces!.headers.get('authorization')!.reveal(), 'Api canary-secret')
  assert.doesNotMatch(JSON.stringify(config.telemetry), /canary/)
})

test("X4 OpenTelemetry's own variables take precedence over the file", () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other:4318',
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://figures/in',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-a=1,x-b=two%20words,b d=3,authorization=mine',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1500',
    OTEL_SERVICE_NAME: 'edge',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=lost',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_METRIC_EXPORT_INTERVAL: '200',
    OTEL_BSP_MAX_QUEUE_SIZE: '7',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
  }
  const config = read(file, env)
  assert.deepEqual(urls(config), ['http://other:4318/v1/traces', 'http://figures/in'])
  const { traces, spansEveryMs, metricsEveryMs, queueMax, sampleShare, resource } = config.telemetry
  assert.deepEqual(
    Array.from(traces!.headers, ([name, value]) => [name, value.reveal()]),
    [
      ['authorization', 'mine'],
      ['x-a', '1'],
      ['x-b', 'two words'],
    ],
  )
  assert.equal(traces!.timeoutMs, 1_500)
  assert.deepEqual([spansEveryMs, metricsEveryMs, queueMax, sampleShare], [100, 200, 7, 0.25])
  assert.deepEqual(
    [...resource],
    [
      ['deployment.environment.name', 'test'],
      ['service.name', 'edge'],
    ],
  )
  assert.deepEqual(urls(read(file, { ...env, OTEL_TRACES_EXPORTER: 'none' })), [undefined, 'http://figures/in'])
  assert.deepEqual(urls(read(file, { ...env, OTEL_SDK_DISABLED: 'true' })), [undefined, undefined])
  assert.equal(read(file, { ...env, OTEL_TRACES_SAMPLER_ARG: '' }).telemetry.sampleShare, 1)
})

test('an invalid variable does not prevent the start, and is reported without its value', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'canary://secret',
    OTEL_BSP_SCHEDULE_DELAY: 'canary',
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '7',
  }
  const config = read('', env)
  assert.deepEqual(urls(config), [undefined, undefined])
  assert.deepEqual(
    config.warnings.map(({ path }) => path),
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_BSP_SCHEDULE_DELAY', 'OTEL_TRACES_SAMPLER_ARG'],
  )
  assert.doesNotMatch(JSON.stringify(config.warnings), /canary/)
  const grpc = read(file, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://other:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' })
  assert.deepEqual(urls(grpc)[0], 'https://collector.example:4318/base/v1/traces')
  assert.match(grpc.warnings[0]!.message, /gRPC/)
  const remote = read('', { OTEL_TRACES_SAMPLER: 'parentbased_jaeger_remote' })
  assert.equal(remote.telemetry.sampleShare, 1)
  assert.match(remote.warnings[0]!.message, /OTEL_TRACES_SAMPLER is not used/)
})

test('mistakes in the file are refused', () => {
  for (const [text, words] of [
    ['telemetry: { otlp: { endpoint: collector } }', /must be an http/],
    ['telemetry: { otlp: { endpoint: "http://a:b@collector" } }', /must not carry credentials/],
    [
      'telemetry: { otlp: { endpoint: "http://collector", headers: { content-type: x } } }',
      /the gateway writes itself/,
    ],
    ['telemetry: { otlp: {} }', /endpoint/],
    ['metrics: { token: short }', /at least 16 characters/],
  ] as const) {
    assert.throws(
      () => read(text),
      (error: Error) => error instanceof ConfigError && words.test(error.message),
    )
  }
})

test('two settings that differ in a secret are not the same', () => {
  assert.equal(spellTelemetry(read(file).telemetry), spellTelemetry(read(file).telemetry))
  assert.notEqual(spellTelemetry(read(file).telemetry), spellTelemetry(read(file.replace('canary', 'other')).telemetry))
})

test('a traceparent is read as W3C defines it, and an invalid one starts a new trace', () => {
  const [trace, span] = ['4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7']
  assert.deepEqual(readTraceparent(`00-${trace}-${span}-01`), { traceId: trace, spanId: span, isSampled: true })
  assert.equal(readTraceparent(`00-${trace}-${span}-02`)!.isSampled, false)
  // A later version may have more behind it.
  assert.equal(readTraceparent(`cc-${trace}-${span}-01-what-the-future-brings`)!.traceId, trace)
  for (const none of [
    `00-${trace}-${span}-01-more`,
    `ff-${trace}-${span}-01`,
    `00-${trace.toUpperCase()}-${span}-01`,
    `00-${'0'.repeat(32)}-${span}-01`,
    `00-${trace}-${'0'.repeat(16)}-01`,
    `00-${trace}-${span}`,
    `01-${trace}-${span}-01-${'x'.repeat(200)}`,
    [`00-${trace}-${span}-01`],
  ])
    assert.equal(readTraceparent(none), undefined)
  const own = { traceId: newTraceId(), spanId: newSpanId(), isSampled: true }
  assert.deepEqual(readTraceparent(writeTraceparent(own)), own)
  assert.equal(new Set(Array.from({ length: 5_000 }, newSpanId)).size, 5_000)
})

test('a queue of spans never grows beyond its size, and reports when many wait', () => {
  let [hurried, dropped] = [0, 0]
  const queue = new SpanQueue<number>(
    3,
    () => void hurried++,
    (count) => {
      dropped += count
    },
  )
  for (let i = 0; i < 5; i++) queue.push(i)
  assert.deepEqual([queue.size, hurried, dropped], [3, 1, 2])
  assert.deepEqual(queue.take(2), [0, 1])
  queue.push(5)
  assert.deepEqual(queue.take(9), [2, 5])
})
