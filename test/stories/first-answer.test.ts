import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

const question = 'What is a canary-question-1?'

const asked = [
  {
    wire: 'messages',
    path: '/v1/messages',
    body: { model: 'native-messages', max_tokens: 100, messages: [{ role: 'user', content: question }] },
  },
  {
    wire: 'chat',
    path: '/v1/chat/completions',
    body: { model: 'native-chat', messages: [{ role: 'user', content: question }] },
  },
  { wire: 'responses', path: '/v1/responses', body: { model: 'native-responses', input: question } },
]

for (const { wire, path, body } of asked) {
  for (const stream of [false, true]) {
    test(`spec 1.4 one ${wire} ${stream ? 'stream' : 'answer'} is one debit under its x-request-id`, async () => {
      const response = await gateway.post(path, { ...body, stream })
      const text = await response.text()
      assert.equal(response.status, 200, text)
      assert.match(text, /simulate/)
      assert.doesNotMatch(text, /up-messages|up-chat|up-responses/)
      const requestId = response.headers.get('x-request-id')!
      const line = await gateway.logOf(requestId)
      assert.equal(line['outcome'], 'ok')
      const entry = gateway.store.findEntry(requestId)
      assert.equal(entry?.bill?.model, body.model)
      assert.ok(entry!.amountNanos > 0n)
    })
  }
}
