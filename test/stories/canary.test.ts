import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { startTestGateway } from '../support/gateway.ts'
import { paths } from '../support/native.ts'

/* Law 11 of issue 46 (spec 1.7): no byte of a client's headers or body is kept on any disk of ours. */

const canary = 'QzXjKvWbPhTy'

const bodies = {
  messages: {
    ...{ model: 'native-messages', max_tokens: 9, messages: [{ role: 'user', content: `say ${canary}` }] },
    metadata: { user_id: canary },
  },
  chat: {
    ...{ model: 'native-chat', user: canary, messages: [{ role: 'user', content: `say ${canary}` }] },
    prompt_cache_key: canary,
  },
  responses: {
    ...{ model: 'native-responses', instructions: canary, input: `say ${canary}` },
    ...{ prompt_cache_key: canary, safety_identifier: canary },
  },
}

/** Headers that clients send of themselves, and some that only look so. */
const headers = {
  'user-agent': canary,
  'x-request-note': canary,
  'idempotency-key': canary,
  'openai-organization': canary,
  'anthropic-beta': canary,
  referer: `https://example.com/${canary}`,
  cookie: `session=${canary}`,
  'session-id': canary,
  'x-claude-code-session-id': canary,
}

/** What happens to a request: served, or refused at one of its checks. */
const changes: [name: string, status: number, body: object, headers: Record<string, string>][] = [
  ['served', 200, {}, {}],
  ['streamed', 200, { stream: true }, {}],
  ['a field that is unknown, and lost', 200, { [canary]: canary }, {}],
  ['a model that is unknown', 404, { model: canary }, {}],
  ['a tier that is unknown', 200, { service_tier: canary }, {}],
  ['a field that is invalid', 400, { temperature: canary }, {}],
  ['a label that is not declared', 400, {}, { 'x-triwire-labels': `project=${canary}` }],
  ['a key that nobody has', 401, {}, { authorization: `Bearer sk-tri-${canary}` }],
]

test('issue 46 law 11 no file of the store, the spool or the log contains anything that a client sent in headers or body', async () => {
  const gateway = await startTestGateway({ config: { labels: { project: ['apollo'] } } })
  for (const wire of ['messages', 'chat', 'responses'] as const)
    for (const [name, status, body, more] of changes) {
      const response = await gateway.post(paths[wire], { ...bodies[wire], ...body }, { ...headers, ...more })
      assert.equal(response.status, status, `${wire}: ${name}: ${await response.text()}`)
      await gateway.logOf(response.headers.get('x-request-id')!)
    }
  const folder = dirname(gateway.storePath)
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    statSync(join(folder, path)).isFile(),
  )
  assert.ok(files.includes('access.log') && files.includes('triwire.db'), files.join())
  for (const path of files) assert.equal(readFileSync(join(folder, path), 'latin1').includes(canary), false, path)
})
