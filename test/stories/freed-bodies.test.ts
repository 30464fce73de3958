import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { free } from '../../src/bytes/free.ts'
import type { BodyShare } from '../../src/gateway/bodies.ts'
import { HttpCall } from '../../src/http/http-call.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers, paths } from '../support/native.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'

/*
 * Memory outside of the heap is given back when its last reader is done, and not when the collector comes by (decision 49): what is
 * freed too early would be an empty body at an upstream, what is not is a collection for every few dozen requests.
 */

const content = 'canary-large '.repeat(20_000)
const messages = [{ role: 'user', content }]

test('a buffer with memory of its own is empty behind it; one that shares its memory, and a small one, are as they were', () => {
  const own = Buffer.from('x'.repeat(100_000))
  free(own)
  assert.equal(own.length, 0)
  const slab = Buffer.alloc(100_000, 'y')
  free(slab.subarray(1))
  free(slab.subarray(0, 50_000))
  const small = Buffer.from('z'.repeat(1_000))
  free(small)
  assert.deepEqual([slab.length, slab[99_999], small.length], [100_000, 0x79, 1_000])
})

const models = [
  testModel('renamed', 'chat'),
  testModel('alike', 'chat', { upstream_model: 'alike' }),
  testModel('translated', 'messages'),
  testModel('of-two', 'chat', {
    upstream: [
      { name: 'sim', priority: 1 },
      { name: 'other', priority: 2, profile: { extends: 'openai' } },
    ],
  }),
]

async function start(t: TestContext) {
  const upstream = await startRawUpstream()
  const at = { base_url: upstream.url, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  const gateway = await startTestGateway({ models, upstream: () => ({ upstreams: { sim: at, other: at } }) })
  t.after(() => gateway.close().finally(() => upstream.close()))
  return { upstream, ask: (model: string) => gateway.post(paths.chat, { model, messages }) }
}

test('P1 what a client sent is freed when what is sent on was made of it, and is sent on whole in every way', async (t) => {
  const { upstream, ask } = await start(t)
  const { readBody } = HttpCall.prototype
  const read: Buffer[] = []
  t.mock.method(HttpCall.prototype, 'readBody', async function (this: HttpCall, share: BodyShare) {
    const bytes = await readBody.call(this, share)
    read.push(bytes)
    return bytes
  })
  for (const [model, wire, isFreed] of [
    ['renamed', 'chat', true],
    ['alike', 'chat', false],
    ['translated', 'messages', true],
    ['of-two', 'chat', false],
  ] as const) {
    upstream.play(whole(answers[wire]))
    const response = await ask(model)
    assert.equal(response.status, 200, await response.text())
    assert.equal(read.at(-1)!.length === 0, isFreed, model)
    assert.ok(upstream.requests.at(-1)!.body.includes(content), model)
  }
})

test('U1 a large request is whole at the second upstream too, whose profile has it made anew', async (t) => {
  const { upstream, ask } = await start(t)
  upstream.play(whole({ error: { message: 'down' } }, 500), whole(answers.chat))
  const response = await ask('of-two')
  assert.equal(response.status, 200, await response.text())
  const asked = upstream.requests.map(({ body }) => body.includes(content))
  assert.deepEqual(asked, [true, true])
})
