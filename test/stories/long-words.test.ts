import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestGateway } from '../support/gateway.ts'

test('B1, U11: a client makes the built-in simulator repeat 30,000 characters, and no other request waits for it', async () => {
  const gateway = await startTestGateway()
  const ask = (id: string) =>
    gateway.post('/v1/chat/completions', {
      model: 'native-chat',
      messages: [
        { role: 'user', content: 'x' },
        { role: 'tool', tool_call_id: id, content: 'y' },
      ],
    })
  await (await ask('a')).text()
  const before = process.threadCpuUsage().user
  const response = await ask('a-'.repeat(15_000))
  const { error } = (await response.json()) as { error: { message: string } }
  // It took 5 seconds; client, gateway and simulator together take milliseconds.
  assert.ok(process.threadCpuUsage().user - before < 1_000_000)
  assert.equal(response.status, 400)
  assert.match(error.message, /^messages\[1\]: the tool message for "(a-)+…$/)
  assert.equal(error.message.length, 400)
  await gateway.close()
})
