import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from '../translation/grammar.ts'

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
    body: { max_tokens: 100, messages: [{ role: 'user', content: question }] },
  },
  { wire: 'chat', path: '/v1/chat/completions', body: { messages: [{ role: 'user', content: question }] } },
  { wire: 'responses', path: '/v1/responses', body: { input: question } },
] as const

const checkStream = { messages: checkMessagesStream, chat: checkChatStream, responses: checkResponsesStream }

for (const { wire, path, body } of asked) {
  for (const modelWire of ['messages', 'chat', 'responses'] as const) {
    for (const stream of [false, true]) {
      const model = `native-${modelWire}`
      test(`spec 1.4 one ${wire} ${stream ? 'stream' : 'answer'} of a ${modelWire} model is one debit under its x-request-id`, async () => {
        const response = await gateway.post(path, { model, ...body, stream })
        const text = await response.text()
        assert.equal(response.status, 200, text)
        assert.match(text, /simulate/)
        assert.doesNotMatch(text, /up-messages|up-chat|up-responses/)
        // A native stream's head is the provider's: it may have counted a token already (ruling P2).
        const allowed = wire === modelWire ? ['output_tokens at the start'] : []
        const violations = stream ? checkStream[wire](text) : []
        assert.deepEqual(
          violations.filter((violation) => !allowed.includes(violation)),
          [],
        )
        const requestId = response.headers.get('x-request-id')!
        const line = await gateway.logOf(requestId)
        assert.equal(line['outcome'], 'ok')
        assert.equal(line['usage_source'], 'final')
        const entry = gateway.store.findEntry(requestId)
        assert.equal(entry?.bill?.model, model)
        assert.ok(entry!.amountNanos > 0n)
      })
    }
  }
}
