import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway()
})
after(() => gateway.close())

const off = 'remove /v1 from the end of the base URL'
const on = 'add /v1 at the end of the base URL'
const slash = 'remove the extra slash from the URL'
const front = 'remove the part before /v1 from the base URL'
const rows: [path: string, cure: string | undefined][] = [
  ['/v1/v1/messages', off],
  ['/v1/v1/messages/count_tokens', off],
  ['/v1/v1/chat/completions', off],
  ['/v1/v1/models', off],
  ['/chat/completions', on],
  ['/responses', on],
  ['/messages', on],
  ['/messages/count_tokens', on],
  ['/models', on],
  ['/v1/messages/', slash],
  ['//v1/messages', slash],
  ['/v1//chat/completions', slash],
  ['/api/v1/chat/completions', front],
  ['/openai/v1/responses', front],
  ['/v1/chat/completions/chat/completions', 'remove /chat/completions from the end of the base URL'],
  ['/v1/chat/completions/models', 'remove /chat/completions from the end of the base URL'],
  ['/v1/responses/responses', 'remove /responses from the end of the base URL'],
  ['/v1/messages/v1/messages', 'remove /v1/messages from the end of the base URL'],
  ['/v1/messages/v1/messages/count_tokens', 'remove /v1/messages from the end of the base URL'],
  ['/v1/responses/compact', undefined],
  ['/v1/embeddings', undefined],
  ['/v1', undefined],
  ['/', undefined],
]
for (const [path, cure] of rows) {
  test(`R3 the answer to a POST to ${path} names ${cure ?? 'what is served'}`, async () => {
    const response = await gateway.post(path, {})
    const { error } = (await response.json()) as { error: { message: string; code: string } }
    assert.deepEqual([response.status, error.code], [404, 'unknown_url'])
    const told =
      cure ??
      'use POST /v1/messages, /v1/messages/count_tokens, /v1/chat/completions or /v1/responses, or GET /v1/models'
    assert.equal(error.message, `Nothing is served at this path and method: ${told}.`)
  })
}
