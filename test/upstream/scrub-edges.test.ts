import assert from 'node:assert/strict'
import test from 'node:test'
import { scrub } from '../../src/upstream/scrub.ts'
import { nothing } from './scrub-context.ts'

const say = (text: string, modelId = 'sonnet-mini') => scrub(text, { modelId, upstreamModels: ['up-1'], ...nothing })

test('U3 a text of exactly 400 characters is relayed whole; a longer one is cut', () => {
  assert.equal(say(`${'ab '.repeat(133)}c`), `${'ab '.repeat(133)}c`)
  assert.equal(say(`${'ab '.repeat(133)}cd`), `${'ab '.repeat(133)}…`)
})

test('U3 the model id is recognised only if no word character touches either end', () => {
  // Before it a host name goes on, behind it a path.
  assert.equal(say('at eu.openai today', 'openai'), 'generic')
  assert.equal(say('at openai/v2 today', 'openai'), 'generic')
  assert.equal(say('about openai, today', 'openai'), 'about openai, today')
})

test('U3 the texts on both sides of the model id are not joined', () => {
  // Joined it would look like the path of a file.
  assert.equal(say('option C:mini\\ is not known', 'mini'), 'option C:mini\\ is not known')
})

test('U3 an over-long prompt without its numbers is reported without numbers', () => {
  assert.equal(say('openai: prompt is too long: 5 tokens'), 'prompt is too long')
  assert.equal(say('openai: prompt is too long > 5'), 'prompt is too long')
})

test('U11 a limited number of ids of a text is searched in the request, each once', () => {
  const ids = [1, 2, 3, 4].map((n) => `${n}f8fad5bd9cb469fa16570867728950e`)
  const asked: string[] = []
  const say = (...named: string[]) => {
    const isSent = (id: string) => asked.push(id) > 0
    return scrub(`no result for ${named.join(', ')}`, { ...nothing, modelId: 'm', upstreamModels: ['m'], isSent })
  }
  assert.equal(say(ids[0]!, ids[1]!, ids[2]!, ids[0]!), `no result for ${[...ids.slice(0, 3), ids[0]].join(', ')}`)
  assert.deepEqual(asked.splice(0), ids.slice(0, 3))
  assert.equal(say(...ids), 'generic')
  assert.deepEqual(asked, ids.slice(0, 3))
})

test('U3 the dated name of a feature is not taken for a key; other long words with digits are', () => {
  const told = 'Unexpected value fine-grained-tool-streaming-2025-05-14'
  assert.equal(say(told), told)
  assert.equal(say('Unexpected value fine-grained-tool-streaming-2025-05-1a'), 'generic')
  assert.equal(say('Unexpected value QWERTYUIOPASDFG1'), 'generic')
  assert.equal(say('Unexpected value QWERTYUIOPASDFGH'), 'Unexpected value QWERTYUIOPASDFGH')
})
