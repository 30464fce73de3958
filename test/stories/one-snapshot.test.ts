import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { answers } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type Answer, type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/** A gateway whose one model is at `old`; `become` reloads it with the model at another upstream. */
type Reloadable = {
  gateway: TestGateway
  old: RawUpstream
  next: RawUpstream
  become(upstreams: Record<string, unknown>, upstream: string): void
}

const good = whole(answers.chat)
const body = { model: 'plain', messages: [{ role: 'user', content: 'Hi' }] }

async function startReloadable(): Promise<Reloadable> {
  const old = await startRawUpstream()
  const next = await startRawUpstream()
  const modelsAt = (upstream: string) => [testModel('plain', 'chat', { upstream, upstream_model: 'up-chat' })]
  const gateway = await startTestGateway({
    models: modelsAt('one'),
    config: { upstreams: { one: { base_url: old.url, accounts: [{ name: 'a', key: 'key-of-old' }] } } },
  })
  return {
    gateway,
    old,
    next,
    become(upstreams, upstream) {
      const catalog = { pinned: '2026-11-01', owner: 'triwire', models: modelsAt(upstream) }
      gateway.reload({ catalog, upstreams })
    },
  }
}

/** Answers once, so that the connection counts as reused; the next request reloads the gateway and resets it. */
function resetAfter(reload: () => void): Answer {
  return (socket) => {
    reload()
    setImmediate(() => socket.resetAndDestroy())
  }
}

const keysSeen = ({ requests }: RawUpstream) => requests.map((request) => request.header('authorization'))

test('U14 H-F1 the retry of a request during a reload goes to its own upstream with its own key', async () => {
  const { gateway, old, next, become } = await startReloadable()
  next.play(good)
  const reload = () => become({ one: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'one')
  old.play(good, resetAfter(reload), good)
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  assert.deepEqual(keysSeen(old), ['Bearer key-of-old', 'Bearer key-of-old', 'Bearer key-of-old'])
  assert.deepEqual(keysSeen(next), [])
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  assert.deepEqual(keysSeen(next), ['Bearer key-of-next'])
  await assertQuiet(gateway)
})

test('U14 H-F2 an upstream removed by a reload serves the retry of its running request, and no process stops', async () => {
  const { gateway, old, next, become } = await startReloadable()
  next.play(good)
  const reload = () => become({ two: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'two')
  old.play(good, resetAfter(reload), good)
  await gateway.post('/v1/chat/completions', body)
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  assert.equal(old.requests.length, 3)
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  assert.equal(next.requests.length, 1)
  await assertQuiet(gateway)
})

test('U14 a removed upstream that does not answer is a 502 for its last request', async () => {
  const { gateway, old, next, become } = await startReloadable()
  const reload = () => become({ two: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'two')
  old.play(good, resetAfter(reload), (socket) => void socket.resetAndDestroy())
  await gateway.post('/v1/chat/completions', body)
  const response = await gateway.post('/v1/chat/completions', body)
  assert.equal(response.status, 502)
  assert.equal(next.requests.length, 0)
  await assertQuiet(gateway)
})

test('U14 the connections to a removed upstream close with their last request', async () => {
  const { gateway, old, next, become } = await startReloadable()
  let finish = () => {}
  old.play((socket, request) => {
    finish = () => void good(socket, request)
    become({ two: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'two')
  })
  const answer = gateway.post('/v1/chat/completions', body)
  await until(() => old.requests.length > 0)
  assert.equal(old.closed, 0)
  finish()
  assert.equal((await answer).status, 200)
  await until(() => old.closed === old.connections)
})
