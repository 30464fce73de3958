import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { answers } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type Answer, type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'

/** A gateway whose one model is at `old`; `become` reloads it with the model at another upstream. */
type Reloadable = {
  gateway: TestGateway
  old: RawUpstream
  next: RawUpstream
  become(upstreams: Record<string, unknown>, upstream: string): void
}

const good = whole(answers.chat)
const body = { model: 'plain', messages: [{ role: 'user', content: 'Hi' }] }

async function startReloadable(t: TestContext): Promise<Reloadable> {
  const old = await startRawUpstream()
  const next = await startRawUpstream()
  const gateway = await startTestGateway({
    models: [testModel('plain', 'chat', { upstream: 'one', upstream_model: 'up-chat' })],
    config: { upstreams: { one: { base_url: old.url, accounts: [{ name: 'a', key: 'key-of-old' }] } } },
  })
  t.after(async () => {
    await gateway.close()
    await old.close()
    await next.close()
  })
  const folder = mkdtempSync(join(process.env['TRIWIRE_TEST_DIR'] ?? tmpdir(), 'reload-'))
  return {
    gateway,
    old,
    next,
    become(upstreams, upstream) {
      const models = [testModel('plain', 'chat', { upstream, upstream_model: 'up-chat' })]
      const path = join(folder, 'next.yaml')
      const file = {
        listen: '127.0.0.1:0',
        admin_listen: '127.0.0.1:0',
        store: gateway.storePath,
        catalog: { pinned: '2026-11-01', owner: 'triwire', models },
        upstreams,
      }
      writeFileSync(path, stringify(file), { mode: 0o600 })
      gateway.server.reload(loadConfig({ config: path }, {}, folder))
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

test('U14 H-F1 the retry of a request that a reload overtook goes to its own upstream with its own key', async (t) => {
  const { gateway, old, next, become } = await startReloadable(t)
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

test('U14 H-F2 an upstream that a reload took away serves the retry of the request it had, and nothing stops', async (t) => {
  const { gateway, old, next, become } = await startReloadable(t)
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

test('U14 an upstream that is gone with the reload and does not answer is its last request’s 502', async (t) => {
  const { gateway, old, next, become } = await startReloadable(t)
  const reload = () => become({ two: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'two')
  old.play(good, resetAfter(reload), (socket) => void socket.resetAndDestroy())
  await gateway.post('/v1/chat/completions', body)
  const response = await gateway.post('/v1/chat/completions', body)
  assert.equal(response.status, 502)
  assert.equal(next.requests.length, 0)
  await assertQuiet(gateway)
})

test('U14 the connections of what a reload took away close with their last request', async (t) => {
  const { gateway, old, next, become } = await startReloadable(t)
  let finish = () => {}
  old.play((socket, request) => {
    finish = () => void good(socket, request)
    become({ two: { base_url: next.url, accounts: [{ name: 'a', key: 'key-of-next' }] } }, 'two')
  })
  const answer = gateway.post('/v1/chat/completions', body)
  while (old.requests.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(old.closed, 0)
  finish()
  assert.equal((await answer).status, 200)
  while (old.closed < old.connections) await new Promise((resolve) => setImmediate(resolve))
})
