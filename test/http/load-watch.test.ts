import assert from 'node:assert/strict'
import test from 'node:test'
import { createLoadWatch } from '../../src/host/load-watch.ts'
import { startTestGateway } from '../support/gateway.ts'

test('F-P10 an event loop that is late by more than 200 ms for 5 s sheds, until it is in time again', () => {
  let now = 0
  let heapShare = 0.5
  let memoryShare = 0.5
  const ticks: (() => void)[] = []
  const watch = createLoadWatch(() => now, {
    readHeapShare: () => heapShare,
    readMemoryShare: () => memoryShare,
    every: (ms, tick) => {
      assert.equal(ms, 500)
      ticks.push(tick)
      return () => {}
    },
  })
  const pass = (ms: number, times = 1) => {
    for (let i = 0; i < times; i++) {
      now += ms
      ticks[0]!()
    }
  }
  pass(500, 20)
  assert.equal(watch.isShedding, false)
  pass(690, 20)
  assert.equal(watch.isShedding, false)
  pass(701, 8)
  assert.equal(watch.isShedding, false)
  pass(500)
  pass(701, 9)
  assert.equal(watch.isShedding, true)
  pass(500)
  assert.equal(watch.isShedding, false)
  heapShare = 0.86
  pass(500)
  assert.equal(watch.isShedding, true)
  heapShare = 0.84
  pass(500)
  assert.equal(watch.isShedding, false)
  memoryShare = 0.86
  pass(500)
  assert.equal(watch.isShedding, true, 'B10 what lies beside the heap counts too')
  memoryShare = 0.84
  pass(500)
  assert.equal(watch.isShedding, false)
})

test('R18 one late turn of the loop is strain, and the next timely one ends it', () => {
  let now = 0
  let turn = () => {}
  const watch = createLoadWatch(() => now, {
    readHeapShare: () => 0,
    readMemoryShare: () => 0,
    every: (_ms, tick) => {
      turn = tick
      return () => {}
    },
  })
  for (const [ms, isStrained] of [
    [549, false],
    [550, true],
    [500, false],
  ] as const) {
    now += ms
    turn()
    assert.deepEqual([watch.isStrained, watch.isShedding], [isStrained, false])
  }
})

test('F-P9 while the process sheds, new inference gets 429 with retry-after; a running stream and the models list go on', async () => {
  const gateway = await startTestGateway()
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'canary-shed' }] }
  const running = await gateway.post('/v1/chat/completions', { ...body, stream: true })
  gateway.server.gateway.isShedding = () => true
  const refused = await gateway.post('/v1/chat/completions', body)
  const { error } = (await refused.json()) as { error: { code: string } }
  assert.deepEqual([refused.status, error.code, refused.headers.get('retry-after')], [429, 'rate_limit_exceeded', '5'])
  assert.match(await running.text(), /data: \[DONE\]\n\n$/)
  assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 200)
  const count = { model: 'native-messages', messages: body.messages }
  const counted = await gateway.post('/v1/messages/count_tokens', count)
  assert.deepEqual([counted.status, counted.headers.get('retry-after')], [429, '1'])
  await gateway.close()
})
