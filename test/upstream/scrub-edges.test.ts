import assert from 'node:assert/strict'
import test from 'node:test'
import { scrub } from '../../src/upstream/scrub.ts'

const say = (text: string, modelId = 'sonnet-mini') =>
  scrub(text, { modelId, upstreamModel: 'up-1', generic: 'generic' })

test('U3 a text of exactly 400 characters is relayed whole, one more is cut', () => {
  assert.equal(say(`${'ab '.repeat(133)}c`), `${'ab '.repeat(133)}c`)
  assert.equal(say(`${'ab '.repeat(133)}cd`), `${'ab '.repeat(133)}…`)
})

test('U3 the model id counts only where both its ends are free', () => {
  // Before it a host name goes on, behind it a path.
  assert.equal(say('at eu.openai today', 'openai'), 'generic')
  assert.equal(say('at openai/v2 today', 'openai'), 'generic')
  assert.equal(say('about openai, today', 'openai'), 'about openai, today')
})

test('U3 what stands on both sides of the model id is not joined', () => {
  // Joined it would look like the path of a file.
  assert.equal(say('option C:mini\\ is not known', 'mini'), 'option C:mini\\ is not known')
})

test('U3 an over-long prompt without its numbers is told without any', () => {
  assert.equal(say('openai: prompt is too long: 5 tokens'), 'prompt is too long')
})
