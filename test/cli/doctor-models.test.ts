import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import test from 'node:test'
import { builtInScripts } from '../../src/catalog/built-in-scripts.ts'
import { chooseModels } from '../../src/cli/doctor/choose-models.ts'
import { listen } from '../support/listen.ts'

async function choose(ids: readonly string[], named: readonly string[] = [], modelsMax = 10) {
  const server = createServer((_request, response) => response.end(JSON.stringify({ data: ids.map((id) => ({ id })) })))
  const origin = `http://127.0.0.1:${await listen(server)}`
  return chooseModels({ origin, key: 'sk', named, modelsMax, timeoutMs: 60_000 })
}

test('doctor asks the well-behaved models of the built-in catalog', async () => {
  const { models, skipped } = await choose(builtInScripts.map(({ id }) => id))
  assert.deepEqual(models, ['sim-messages', 'sim-chat', 'sim-responses'])
  assert.equal(skipped, 0)
})

test('doctor asks the first of a long list and says how many are left', async () => {
  assert.deepEqual(await choose(['a', 'b', 'c'], [], 2), { models: ['a', 'b'], skipped: 1, isPeer: true })
})

test('doctor asks each named model once, however many there are', async () => {
  assert.deepEqual(await choose(['a', 'b', 'c'], ['c', 'b', 'c'], 1), { models: ['c', 'b'], skipped: 0, isPeer: true })
})

test('doctor skips ids that would move the cursor of a terminal', async () => {
  assert.deepEqual((await choose(['a', 'b\u001b[2J'])).models, ['a'])
})

test('doctor without any model to ask says which option names one', async () => {
  await assert.rejects(choose([]), /lists no model \(status 200\)\. Check --base-url, or name one with --model/)
})

test('doctor waits no longer than --timeout for a server that is silent', async () => {
  const server = createServer(() => {})
  const origin = `http://127.0.0.1:${await listen(server)}`
  const asked = chooseModels({ origin, key: 'sk', named: [], modelsMax: 1, timeoutMs: 20 })
  await assert.rejects(asked, /cannot be reached: no whole answer within 0\.02 s: allow more with --timeout/)
})
