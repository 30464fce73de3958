import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { openRaw, raw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

/*
 * Ruling R1 by pairs: of two mistakes in one request, the earlier one in the order of checks is reported.
 */

let gateway: TestGateway
const keys: Record<string, string> = {}
before(async () => {
  gateway = await startTestGateway({ config: { limits: { requests_per_minute: 1, failed_auth_per_minute: 1 } } })
  for (const [name, nanos] of Object.entries({ suspended: 0n, poor: 0n, spent: 10n ** 9n, fresh: 10n ** 9n })) {
    gateway.store.createAccount(name, nanos)
    keys[name] = gateway.store.createKey(name).key
  }
  gateway.store.updateAccount('suspended', { state: 'suspended' })
  for (const key of Object.values(keys)) await gateway.untilKnown(key)
})
after(() => gateway.close())

type Asked = { length?: number; path?: string; key?: string | undefined; session?: string; body?: string }

const good = '{"model":"native-chat","messages":[]}'

/** Status and code of what comes back, over a raw socket, for the declared length may be a lie. */
async function tell({ length, path = '/v1/chat/completions', key, session, body = good }: Asked): Promise<string> {
  const head = [`POST ${path} HTTP/1.1`, 'host: x', 'connection: close', `content-length: ${length ?? body.length}`]
  if (key) head.push(`authorization: Bearer ${key}`)
  if (session) head.push(`x-session-id: ${session}`)
  const { answers } = await raw(gateway.url, `${head.join('\r\n')}\r\n\r\n${body}`, { answers: 1 })
  const { error } = JSON.parse(answers[0]!.body) as { error?: { code: string } }
  return `${answers[0]!.status}${error ? ` ${error.code}` : ''}`
}

/** In the order of ruling R1. Each adds one fault to a request; what cannot be wrong together is one field. */
const faults: { told: string; fault: Asked }[] = [
  { told: '413 request_too_large', fault: { length: 5_242_881 } },
  { told: '404 unknown_url', fault: { path: '/v1/embeddings' } },
  { told: '401 invalid_api_key', fault: { key: 'sk-tri-bad' } },
  { told: '401 account_suspended', fault: { key: 'suspended' } },
  { told: '402 insufficient_credits', fault: { key: 'poor' } },
  { told: '429 rate_limit_exceeded', fault: { key: 'spent' } },
  { told: '400 invalid_body', fault: { body: '[]' } },
  { told: '400 invalid_body', fault: { body: '{"model":7,"prompt_cache_key":7,"messages":7}' } },
  { told: '404 model_not_found', fault: { body: '{"model":"none","messages":7,"prompt_cache_key":7}' } },
  { told: '400 invalid_cache_key', fault: { session: 'k'.repeat(257) } },
  { told: '400 invalid_body', fault: { body: '{"model":"native-chat","messages":7}' } },
]

for (const [i, first] of faults.entries()) {
  for (const second of faults.slice(i)) {
    const fields = new Set(Object.keys(first.fault))
    if (first !== second && Object.keys(second.fault).some((field) => fields.has(field))) continue
    const wrong = first === second ? first.told : `${first.told} before ${second.told}`
    test(`R1 ${wrong}: ${JSON.stringify({ ...second.fault, ...first.fault }).slice(0, 60)}`, async () => {
      // Windows of one request and one failure: new ones, used up beforehand if the fault is a full window.
      gateway.advance(61_000)
      const asked = { key: 'fresh', ...second.fault, ...first.fault }
      if (asked.key === 'spent') await tell({ key: keys['spent'], body: '{}' })
      assert.equal(await tell({ ...asked, key: keys[asked.key] ?? asked.key }), first.told)
      assert.equal(gateway.simulator.requests.length, 0)
    })
  }
}

test('R1 a body that is too large and not JSON is refused as too large', async () => {
  gateway.advance(61_000)
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${keys['fresh']}\r\n`
  const chunk = `${(5_242_881).toString(16)}\r\n${'x'.repeat(5_242_881)}\r\n0\r\n\r\n`
  const { answers } = await raw(gateway.url, `${head}transfer-encoding: chunked\r\n\r\n${chunk}`, { answers: 1 })
  assert.equal(answers[0]!.status, 413)
})

test('R1, R4 a throttled failure is reported before everything that is checked after the credential', async () => {
  gateway.advance(61_000)
  assert.equal(await tell({ key: 'sk-tri-bad', body: '[]' }), '401 invalid_api_key')
  assert.equal(await tell({ key: 'sk-tri-bad', body: '[]' }), '429 too_many_failed_auth')
  assert.equal(await tell({ key: 'sk-tri-bad', path: '/nowhere' }), '404 unknown_url')
})

test('R1 spec 8 a refusal for credit leaves the window as it was, a refusal of the body uses it', async () => {
  gateway.advance(61_000)
  for (let i = 0; i < 3; i++) assert.equal(await tell({ key: keys['poor'] }), '402 insufficient_credits')
  assert.equal(await tell({ key: keys['fresh'], body: '[]' }), '400 invalid_body')
  assert.equal(await tell({ key: keys['fresh'], body: '[]' }), '429 rate_limit_exceeded')
})

test('R1 C2 a 402 at the hold returns the place in the window and says to try again', async () => {
  gateway.advance(61_000)
  const balance = gateway.ledger.balances.get(gateway.store.findAccount('fresh').id)!
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${keys['fresh']}\r\n`
  // Another request takes all credit while this one's body is on its way.
  const chunks = ['{"model":"native-chat",', '"messages":[{"role":"user","content":"canary-hold"}]}']
  const [before, after] = chunks.map((text) => `${text.length.toString(16)}\r\n${text}\r\n`)
  const connection = await openRaw(gateway.url)
  const begun = gateway.begun()
  connection.write(`${head}transfer-encoding: chunked\r\n\r\n${before}`)
  await until(() => gateway.begun() > begun)
  balance.heldNanos += balance.balanceNanos
  connection.write(`${after}0\r\n\r\n`)
  const { answers } = await connection.read()
  balance.heldNanos = 0n
  assert.deepEqual([answers[0]!.status, answers[0]!.headers.get('x-should-retry')], [402, 'true'])
  assert.equal(gateway.simulator.requests.length, 0)
  const body = '{"model":"native-chat","messages":[{"role":"user","content":"canary-hold"}]}'
  assert.equal(await tell({ key: keys['fresh'], body }), '200')
})
