import { loadText } from '../src/config/load.ts'
import type { CallRecord } from '../src/gateway/record.ts'
import { createMetrics } from '../src/telemetry/metrics.ts'
import { createGenAiFigures } from '../src/telemetry/otlp/gen-ai-figures.ts'
import { SpanQueue } from '../src/telemetry/otlp/otlp.ts'
import { createPlaces } from '../src/telemetry/otlp/places.ts'
import { keep, type SpanSource, spansOf } from '../src/telemetry/otlp/spans.ts'
import { readTraceparent } from '../src/telemetry/trace-context.ts'

/*
 * Measures the cost of recording: of one request when it is over, and of the later work on it. A streamed event costs
 * nothing, since nothing records it. `node bin/node.mjs bench/telemetry.bench.ts`
 */

const models = Array.from({ length: 20 }, (_, i) => `model-${i}`)
const wires = ['messages', 'chat', 'responses'] as const

const usage = {
  inputTokens: 1_200,
  cacheReadTokens: 30_000,
  cacheWriteTokens: 900,
  cacheWrite1hTokens: 0,
  outputTokens: 700,
  reasoningTokens: 300,
  estimated: false,
}

/** A translated request with an answer, and with parts that are expensive to record: a second attempt, losses, a doubt. */
function recordOf(i: number): CallRecord {
  const tried = { account: 'a', why: 'hashed' as const, startedMs: 1, endMs: 5_000 }
  return {
    id: `req_${i}`,
    startedMs: 1_795_000_000_000 + i,
    beganMs: i,
    method: 'POST',
    path: '/v1/messages',
    walk: 'infer',
    ip: '10.0.0.1',
    account: 'tester',
    accountId: 'acct_1',
    keyId: 'key_1',
    wire: wires[i % 3]!,
    modelWire: wires[(i + 1) % 3]!,
    model: models[i % 20]!,
    stream: true,
    status: 200,
    firstByteMs: 640,
    endMs: 5_000,
    upstream: 'first',
    attempts: 2,
    tries: [
      { ...tried, upstream: 'first', status: 429, cause: 'upstream_429' },
      { ...tried, upstream: 'second', status: 200, cause: undefined },
    ],
    usage,
    usageSource: 'final',
    costNanos: 12_345_678n,
    holdNanos: 20_000_000n,
    settled: 'posted',
    losses: [
      { field: 'top_k', what: 'dropped', why: 'the wire has no such field' },
      { field: 'cache_control', what: 'dropped', why: 'no other wire has it' },
    ],
    flags: ['cached_clamped'],
    outcome: 'ok',
  }
}

const records = Array.from({ length: 1_000 }, (_, i) => recordOf(i))
const metrics = createMetrics('bench')
measure('a request, counted', 200_000, (i) => metrics.note(records[i % 1_000]!))
const text = metrics.write()
measure(`a scrape of ${text.split('\n').length} lines`, 200, () => metrics.write())

const figures = createGenAiFigures(false)
measure('a request, counted for OTLP', 200_000, (i) => figures.note(records[i % 1_000]!))
let queue = openQueue()
measure('a request, kept for its spans', 200_000, (i) => {
  if (i % 10_000 === 0) queue = openQueue()
  queue.push(keep(records[i % 1_000]!))
})
measure('traceparent, read', 200_000, () => readTraceparent('00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'))
const config = loadText('', 'bench', {}, {})
const places = createPlaces(() => config)
const kept = records.map(keep)
measure('four spans, encoded, off the path', 5_000, (i) => JSON.stringify(spansOf(kept[i % 1_000]!, places)))
metrics.stop()

function openQueue() {
  return new SpanQueue<SpanSource>(
    10_000,
    () => {},
    () => {},
  )
}

/** CPU of the serving thread; the best of several rounds, since other work on the machine only adds to it. */
function measure(what: string, times: number, run: (i: number) => void) {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 10; round++) {
    const before = process.threadCpuUsage()
    for (let i = 0; i < times; i++) run(i)
    const { user, system } = process.threadCpuUsage(before)
    best = Math.min(best, (user + system) / times)
  }
  console.log(`${what.padEnd(40)} ${best.toFixed(3).padStart(10)} µs`)
}
