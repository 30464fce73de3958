import assert from 'node:assert/strict'
import test from 'node:test'
import { resultOf } from '../../src/telemetry/attempt-results.ts'
import { writeExposition } from '../../src/telemetry/exposition.ts'
import type { FamilyFacts } from '../../src/telemetry/families.ts'
import { Counter, Histogram, Reading } from '../../src/telemetry/instruments.ts'

const facts = (more: Partial<FamilyFacts>): FamilyFacts => ({
  name: 'one',
  type: 'counter',
  labels: [],
  help: 'What it is.',
  ...more,
})

test('a scrape has each family once, its help and type before its series', () => {
  const counter = new Counter(facts({ labels: ['wire', 'model', 'outcome'] }))
  counter.add(1, 'chat', 'm', 'ok')
  counter.add(2, 'chat', 'm', 'ok')
  counter.add(0.5, 'chat', 'n')
  const gauge = new Reading(facts({ name: 'two', type: 'gauge', help: 'a\\b\nc' }), (set) => set(Number.NaN))
  assert.equal(
    writeExposition([counter, gauge]),
    [
      '# HELP one What it is.',
      '# TYPE one counter',
      'one{wire="chat",model="m",outcome="ok"} 3',
      'one{wire="chat",model="n",outcome=""} 0.5',
      '# HELP two a\\\\b\\nc',
      '# TYPE two gauge',
      'two NaN',
      '',
    ].join('\n'),
  )
})

test('buckets of a histogram count all values up to their end, including those of smaller buckets', () => {
  const histogram = new Histogram(facts({ type: 'histogram', labels: ['model'], bounds: [0.1, 1] }))
  for (const value of [0.1, 0.100_01, 1, 7]) histogram.observe(value, 'm')
  assert.deepEqual(writeExposition([histogram]).split('\n').slice(2), [
    'one_bucket{model="m",le="0.1"} 1',
    'one_bucket{model="m",le="1"} 3',
    'one_bucket{model="m",le="+Inf"} 4',
    'one_sum{model="m"} 8.20001',
    'one_count{model="m"} 4',
    '',
  ])
})

test('a metric without labels exists from the start, and a name may be any text', () => {
  assert.match(writeExposition([new Counter(facts({}))]), /^one 0$/m)
  const odd = new Counter(facts({ labels: ['account'] }))
  odd.add(1, 'a "b"\\\nc')
  assert.match(writeExposition([odd]), /^one\{account="a \\"b\\"\\\\\\nc"\} 1$/m)
})

test('a family with too many series counts the rest together', () => {
  const counter = new Counter(facts({ labels: ['model', 'flag'] }))
  for (let i = 0; i < 20_000; i++) counter.add(1, `m${i}`, 'f')
  const samples = [...counter.samples()]
  assert.equal(samples.length, 5_001)
  assert.deepEqual(samples.at(-1), { values: ['other', 'other'], value: 15_000 })
})

test('the series for the rest never has the name of another series', () => {
  const counter = new Counter(facts({ labels: ['model'] }))
  counter.add(1, 'other')
  for (let i = 0; i < 6_000; i++) counter.add(1, `m${i}`)
  const others = [...counter.samples()].filter(({ values }) => values[0] === 'other')
  assert.deepEqual(others, [{ values: ['other'], value: 1_002 }])
})

test('every cause has one of few results, whatever status an upstream invents', () => {
  const causes = Array.from({ length: 900 }, (_, i) => `upstream_${i + 100}`)
  const results = new Set(causes.map(resultOf))
  assert.deepEqual([...results].sort(), [
    ...['status_401', 'status_402', 'status_403', 'status_429', 'status_4xx', 'status_529', 'status_5xx'],
  ])
  assert.equal(resultOf('upstream_dns'), 'connect')
  assert.equal(resultOf('upstream_something_new'), 'protocol')
})

test('X9 each series of a replica has its name as its first label, whatever the name and the labels', () => {
  const told = new Counter(facts({ labels: ['model'] }))
  told.add(1, '{b}')
  const bare = new Reading(facts({ name: 'two', type: 'gauge' }), (set) => set(5))
  const spans = new Histogram(facts({ name: 'three', type: 'histogram', labels: ['wire'], bounds: [1] }))
  spans.observe(0.5, 'chat')
  const series = (replica?: string) =>
    writeExposition([told, bare, spans], replica)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
  assert.deepEqual(series('host "a" worker 2'), [
    'one{replica="host \\"a\\" worker 2",model="{b}"} 1',
    'two{replica="host \\"a\\" worker 2"} 5',
    'three_bucket{replica="host \\"a\\" worker 2",wire="chat",le="1"} 1',
    'three_bucket{replica="host \\"a\\" worker 2",wire="chat",le="+Inf"} 1',
    'three_sum{replica="host \\"a\\" worker 2",wire="chat"} 0.5',
    'three_count{replica="host \\"a\\" worker 2",wire="chat"} 1',
  ])
  assert.deepEqual(series().slice(0, 2), ['one{model="{b}"} 1', 'two 5'])
})
