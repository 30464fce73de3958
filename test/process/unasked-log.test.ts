import assert from 'node:assert/strict'
import test from 'node:test'
import { createUnaskedLog } from '../../src/process/telemetry.ts'

test('Y14 each upstream has a log line a minute, which counts the events before it; the metric counts every one', () => {
  let nowMs = 0
  const lines: unknown[] = []
  const { note, watch, families } = createUnaskedLog(
    (...line) => lines.push([nowMs, ...line]),
    () => nowMs,
  )
  watch(['a', 'quiet'])
  for (const [atMs, upstream] of [
    [0, 'a'],
    [1, 'b'],
    [2, 'a'],
    [59_999, 'a'],
    [60_000, 'a'],
    [119_999, 'a'],
    [200_000, 'a'],
    [300_000, 'a'],
  ] as const) {
    nowMs = atMs
    note(upstream, 'idle')
  }
  const line = (atMs: number, upstream: string, before?: number) => [
    atMs,
    'error',
    'upstream_unasked',
    { upstream, place: 'idle', ...(before !== undefined && { before }) },
  ]
  assert.deepEqual(lines, [line(0, 'a'), line(1, 'b'), line(60_000, 'a', 2), line(200_000, 'a', 1), line(300_000, 'a')])
  assert.deepEqual(
    families.map((family) => [...family.samples()]),
    [
      [
        { values: ['a'], value: 7 },
        { values: ['quiet'], value: 0 },
        { values: ['b'], value: 1 },
      ],
    ],
  )
  watch(['a'])
  assert.equal([...families[0]!.samples()][0]!.value, 7)
})
