import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

let gateway: TestGateway
let secondKey: string
let otherKey: string
let suspended: string
before(async () => {
  gateway = await startTestGateway({ config: { trusted_proxies: ['127.0.0.0/8'] } })
  secondKey = gateway.store.createKey('tester').key
  gateway.store.createAccount('other', 10n ** 9n)
  otherKey = gateway.store.createKey('other').key
  gateway.store.createAccount('suspended', 10n ** 9n)
  suspended = gateway.store.createKey('suspended').key
  gateway.store.updateAccount('suspended', { state: 'suspended' })
  for (const key of [secondKey, otherKey, suspended]) await gateway.untilKnown(key)
})
after(() => gateway.close())

const count = '{"model":"native-messages","messages":[{"role":"user","content":"canary-auth"}]}'

/** A request that uses up no window: the token counter's. */
function ask(headers: Record<string, string>, path = '/v1/messages/count_tokens'): Promise<Response> {
  return fetch(gateway.url + path, { method: 'POST', headers, body: count })
}

async function status(key: string, from: string): Promise<number> {
  return (await ask({ 'x-api-key': key, 'x-forwarded-for': from })).status
}

async function times(count: number, ask: (i: number) => Promise<number>): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) statuses.push(await ask(i))
  return statuses
}

const tenThen429 = [...Array(10).fill(401), 429, 429]

test('R4 F-C44 the 11th failing request of a minute gets 429 with retry-after; a valid key passes; the window reopens', async () => {
  const from = '203.0.113.1'
  const bad = ['', 'sk-tri-bad', 'Bearer', gateway.key.slice(0, -1)]
  assert.deepEqual(await times(12, (i) => status(bad[i % 4]!, from)), tenThen429)
  const throttled = await ask({ 'x-api-key': 'sk-tri-bad', 'x-forwarded-for': from }, '/v1/chat/completions')
  const { error } = (await throttled.json()) as { error: object }
  const message =
    'Too many failed authentications from this address (rate limit): wait, then try again with a valid API key.'
  assert.deepEqual(error, { message, type: 'rate_limit_error', param: null, code: 'too_many_failed_auth' })
  const wait = Number(throttled.headers.get('retry-after'))
  assert.ok(wait >= 59 && wait <= 60, String(wait))
  assert.equal(throttled.headers.get('x-should-retry'), 'true')
  assert.equal(await status(gateway.key, from), 200)
  assert.equal(await status('sk-tri-bad', from), 429)
  gateway.advance(61_000)
  assert.deepEqual(await times(12, () => status('sk-tri-bad', from)), tenThen429)
})

test('R4 failures on every path that needs a key are counted together, over all addresses of a /64', async () => {
  const paths = ['/v1/messages', '/v1/chat/completions', '/v1/responses', '/v1/messages/count_tokens']
  const statuses = await times(12, async (i) => {
    const from = `2001:db8:0:7:${i.toString(16)}::${i}`
    return (await ask({ authorization: 'Bearer sk-tri-bad', 'x-forwarded-for': from }, paths[i % 4])).status
  })
  assert.deepEqual(statuses, tenThen429)
  assert.equal(await status('sk-tri-bad', '2001:db8:0:8::1'), 401)
})

test('R4 the part of x-forwarded-for that a client writes before a trusted proxy is not believed', async () => {
  assert.deepEqual(await times(12, (i) => status('sk-tri-bad', `198.51.100.${i}, 203.0.113.2`)), tenThen429)
  assert.deepEqual(await times(12, (i) => status('sk-tri-bad', `198.51.100.${i}, 203.0.113.3, 127.0.0.9`)), tenThen429)
})

test('R4 a port that a proxy adds to an address is not part of the address', async () => {
  for (const [one, other] of [
    ['203.0.113.30', '203.0.113.31'],
    ['[2001:db8:0:30::1]', '[2001:db8:0:31::1]'],
  ]) {
    assert.deepEqual(await times(12, (i) => status('sk-tri-bad', `${one}:${49_152 + i}`)), tenThen429)
    assert.equal(await status('sk-tri-bad', one!.replace(/[[\]]/g, '')), 429)
    assert.equal(await status('sk-tri-bad', `${other}:49152`), 401)
    assert.equal(await status('sk-tri-bad', other!), 401)
  }
})

test('R4 a client with an address like those of the proxies has its own address, and cannot choose another', async () => {
  assert.deepEqual(await times(12, (i) => status('sk-tri-bad', `127.8.8.${i}, 127.7.7.1`)), tenThen429)
  assert.equal(await status('sk-tri-bad', '127.7.7.2'), 401)
})

test('R4 F-C44 without a configured proxy x-forwarded-for has no effect', async () => {
  const plain = await startTestGateway()
  const failing = (i: number) => ({ 'x-api-key': 'sk-tri-bad', 'x-forwarded-for': `198.51.100.${i}` })
  const statuses = await times(12, async (i) => {
    return (await fetch(`${plain.url}/v1/messages`, { method: 'POST', headers: failing(i), body: '{}' })).status
  })
  await plain.close()
  assert.deepEqual(statuses, tenThen429)
})

test('R4 a suspended account, unknown paths and the models list do not count as failed authentications', async () => {
  const from = '203.0.113.4'
  const headers = { 'x-api-key': 'sk-tri-bad', 'x-forwarded-for': from }
  await times(15, () => status(suspended, from))
  await times(15, async () => (await ask(headers, '/v1/nowhere')).status)
  await times(15, async () => (await fetch(`${gateway.url}/v1/models`, { headers })).status)
  assert.deepEqual(await times(12, () => status('sk-tri-bad', from)), tenThen429)
})

test('R7 F-C19 of two credentials the first valid one counts; two bad ones are one failure', async () => {
  const from = '203.0.113.5'
  const both = async (bearer: string, xApiKey: string) => {
    const headers = { authorization: `Bearer ${bearer}`, 'x-api-key': xApiKey, 'x-forwarded-for': from }
    const response = await ask(headers)
    const line = await gateway.logOf(response.headers.get('x-request-id')!)
    return `${response.status} ${line['account'] ?? line['code']}`
  }
  assert.equal(await both(gateway.key, otherKey), '200 tester')
  assert.equal(await both(otherKey, gateway.key), '200 other')
  assert.equal(await both('sk-tri-bad', otherKey), '200 other')
  assert.equal(await both(otherKey, 'sk-tri-bad'), '200 other')
  assert.equal(await both(suspended, gateway.key), '401 suspended')
  assert.equal(await both(gateway.key, suspended), '200 tester')
  assert.deepEqual(await times(12, async () => Number((await both('sk-a', 'sk-b')).slice(0, 3))), tenThen429)
})

test('R7 spec 5 both headers work on every wire, in any spelling of Bearer', async () => {
  const from = { 'x-forwarded-for': '203.0.113.6' }
  for (const headers of [
    { authorization: `Bearer ${gateway.key}` },
    { Authorization: `bearer ${gateway.key}` },
    { authorization: `BEARER  ${gateway.key} ` },
    { 'X-Api-Key': gateway.key },
    { authorization: 'Basic YTpi', 'x-api-key': gateway.key },
  ] as Record<string, string>[]) {
    for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/responses', '/v1/messages/count_tokens']) {
      const response = await ask({ ...headers, ...from }, path)
      assert.notEqual(response.status, 401, JSON.stringify(Object.keys(headers)))
    }
  }
  assert.equal((await ask({ authorization: gateway.key, ...from })).status, 401)
})

test('R7 the same key sent twice in one header counts as one key', async () => {
  for (const line of [`x-api-key: ${gateway.key}`, `authorization: Bearer ${gateway.key}`]) {
    const head = `POST /v1/messages/count_tokens HTTP/1.1\r\nhost: x\r\n${line}\r\n${line}\r\ncontent-length: ${count.length}`
    const { answers } = await raw(gateway.url, `${head}\r\n\r\n${count}`, { answers: 1 })
    assert.equal(answers[0]!.status, 200)
  }
})

test('spec 8 F-C43 exactly 300 of 1,000 simultaneous requests are admitted, over two keys of an account, until the window reopens', async () => {
  gateway.advance(61_000)
  // No body is JSON: admitted requests are refused after the window, and cost nothing.
  const send = async (i: number) => {
    const key = i % 2 ? gateway.key : secondKey
    // Head and body in one piece: a client that is refused before its body is read must still read the answer.
    const lines = ['POST /v1/chat/completions HTTP/1.1', 'host: x', `x-api-key: ${key}`, 'content-length: 2', '', '[]']
    const { answers } = await raw(gateway.url, lines.join('\r\n'), { answers: 1 })
    return { status: answers[0]!.status, wait: answers[0]!.headers.get('retry-after') }
  }
  const answers = await Promise.all(Array.from({ length: 1_000 }, (_, i) => send(i)))
  assert.equal(answers.filter(({ status }) => status === 400).length, 300)
  const refused = answers.filter(({ status }) => status === 429)
  assert.equal(refused.length, 700)
  for (const { wait } of refused) assert.equal(wait, '60')
  assert.equal((await ask({ 'x-api-key': gateway.key })).status, 200)
  assert.notEqual((await ask({ 'x-api-key': otherKey }, '/v1/chat/completions')).status, 429)
  gateway.advance(50_000)
  assert.equal((await send(0)).status, 429)
  gateway.advance(10_000)
  assert.equal((await send(0)).status, 400)
})
