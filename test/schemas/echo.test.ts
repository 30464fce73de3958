import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'

/*
 * A translated response echoes what was asked (ruling T12). Whatever a client sends in these fields: it is refused, or
 * the echo is as the types of the wire say, which the gateway's tap looks after.
 */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({
    models: [testModel('other', 'chat', { upstream_model: 'sim' })],
    config: { limits: { requests_per_minute: 100_000 } },
  })
})
after(() => gateway.close())

const echoed = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'truncation',
  'user',
  'service_tier',
]
const values = [
  null,
  5,
  -1,
  1.5,
  1e17,
  '',
  'x',
  true,
  [],
  [5],
  [{}],
  [{ type: 'function', name: 'f' }],
  // Taken for a function.
  [{ name: 'f' }],
  [{ type: null, name: 'f', parameters: {} }],
  {},
  { x: 5 },
  { type: 5 },
  { format: 5 },
  { verbosity: 5 },
  { verbosity: 'low' },
  { format: { x: 1 } },
  { effort: 5 },
  { effort: 'low', summary: 5 },
]

for (const field of echoed) {
  test(`T12 ${field} is refused, or echoed as its type`, async () => {
    for (const value of values) {
      const response = await gateway.post('/v1/responses', { model: 'other', input: 'Hi', [field]: value })
      const text = await response.text()
      assert.ok([200, 400].includes(response.status), text)
      // At the end of the answer, which is now.
      await new Promise((resolve) => setImmediate(resolve))
      assert.deepEqual(gateway.takeViolations(), [], JSON.stringify({ [field]: value }))
    }
  })
}
