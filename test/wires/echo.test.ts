import assert from 'node:assert/strict'
import test from 'node:test'
import { echoOf } from '../../src/wires/responses/echo.ts'

test('T12 a response repeats the numbers of its request, but no cap that strictly typed clients could not parse', () => {
  const caps = ['max_output_tokens', 'max_tool_calls', 'top_logprobs'] as const
  for (const cap of caps) {
    const absent = echoOf({})[cap]
    assert.equal(absent, cap === 'top_logprobs' ? 0 : null)
    assert.equal(echoOf({ [cap]: 64_000 })[cap], 64_000)
    for (const other of [2 ** 53, 1e300, 0.5, '64', null])
      assert.equal(echoOf({ [cap]: other })[cap], absent, `${other}`)
  }
  for (const [name, usual] of Object.entries({ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0 })) {
    assert.equal(echoOf({ [name]: 0.25 })[name], 0.25)
    assert.equal(echoOf({ [name]: '0.25' })[name], usual)
  }
})
