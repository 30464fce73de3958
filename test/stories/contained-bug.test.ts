import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { UpstreamListener } from '../../src/upstream/target.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { assertQuiet } from '../support/quiet.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

/** An upstream side that breaks its contract, which is what a bug of ours looks like to a delivery. */
function breakUpstreams(play: (listener: UpstreamListener) => void): () => void {
  const { upstreams } = gateway.server.gateway.snapshots.current
  const whole = upstreams.send
  upstreams.send = (_target, _request, listener) => {
    queueMicrotask(() => play(listener))
    return { abort() {}, pause() {}, resume() {}, isSent: () => false, wasWritten: () => true }
  }
  return () => {
    upstreams.send = whole
  }
}

const body = { model: 'native-chat', messages: [{ role: 'user', content: 'Hello' }] }

test('F-P7 a bug in one request is a logged 500 for that request, and the next one is served', async () => {
  const mend = breakUpstreams((listener) => listener.onHead(200, 'application/json', undefined as never))
  const response = await gateway.post('/v1/chat/completions', body)
  mend()
  assert.equal(response.status, 500)
  const { error } = (await response.json()) as { error: { code: string; message: string } }
  assert.equal(error.code, 'internal_error')
  assert.doesNotMatch(error.message, /undefined|TypeError/)
  const line = await gateway.logOf(response.headers.get('x-request-id')!)
  assert.equal(line['outcome'], 'internal_error')
  assert.equal((await gateway.post('/v1/chat/completions', body)).status, 200)
  await assertQuiet(gateway)
})

test('F-P7 a bug in a started stream cuts that stream, and its evidence is billed', async () => {
  let goWrong = () => {}
  const mend = breakUpstreams((listener) => {
    listener.onHead(200, 'text/event-stream', new Map())
    const choices = [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }]
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'up-chat' }
    const chunk = `data: ${JSON.stringify({ ...head, choices })}\n\n`
    listener.onData(Buffer.from(chunk))
    goWrong = () => listener.onData(undefined as never)
  })
  const response = await gateway.post('/v1/chat/completions', { ...body, stream: true })
  goWrong()
  await assert.rejects(response.text())
  mend()
  const id = response.headers.get('x-request-id')!
  assert.equal((await gateway.logOf(id))['outcome'], 'internal_error')
  assert.ok(gateway.store.findEntry(id)!.amountNanos > 0n)
  await assertQuiet(gateway)
})
