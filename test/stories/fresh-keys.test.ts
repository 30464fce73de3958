import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { runWarm } from '../cli/run.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { closeQuietly } from '../support/quiet.ts'
import { raw } from '../support/raw.ts'
import { turn, until } from '../support/waiting.ts'

/*
 * Ruling R16: a key is valid from the moment the command that made it returns. The gateway looks at its store once an hour
 * here, so that only a request itself can make it look.
 */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ pollMs: 3_600_000, config: { trusted_proxies: ['127.0.0.0/8'] } })
})
after(() => closeQuietly(gateway))

const paths = ['/v1/messages', '/v1/chat/completions', '/v1/responses', '/v1/messages/count_tokens']
const messages = [{ role: 'user', content: 'canary-fresh' }]
const bodies = [
  { model: 'native-messages', max_tokens: 9, messages },
  { model: 'native-chat', messages },
  { model: 'native-responses', input: 'canary-fresh' },
  { model: 'native-messages', messages },
]

function ask(key: string, from: string, which = 3): Promise<Response> {
  const headers = { 'x-api-key': key, 'x-forwarded-for': from, 'content-type': 'application/json' }
  return fetch(gateway.url + paths[which], { method: 'POST', headers, body: JSON.stringify(bodies[which]) })
}

async function statusOf(asking: Promise<Response>): Promise<number> {
  const response = await asking
  await response.arrayBuffer()
  return response.status
}

async function statuses(count: number, asking: (i: number) => Promise<Response>): Promise<number[]> {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push(await statusOf(asking(i)))
  return all
}

test('R16 the first calls of 40 new keys, some of new accounts, are answered on every path', async () => {
  for (let i = 0; i < 40; i++) {
    const name = i % 2 ? 'tester' : gateway.store.createAccount(`fresh ${i}`, 10n ** 9n).name
    const { key } = gateway.store.createKey(name)
    assert.equal(await statusOf(ask(key, '203.0.113.1', i % 4)), 200, `key ${i}`)
  }
})

test('R16 a key from the command line works from the first request after the command has returned', async () => {
  const { key } = (await runWarm(['key', 'create', 'tester', '--store', gateway.storePath, '--json'])).json
  assert.equal(await statusOf(ask(key!, '203.0.113.2')), 200)
})

test('R16 forty first calls at once are all answered', async () => {
  // The counter is not among them: it takes two of an account at a time (R18).
  const keys = Array.from({ length: 40 }, () => gateway.store.createKey('tester').key)
  const answered = await Promise.all(keys.map((key, i) => statusOf(ask(key, '203.0.113.3', i % 3))))
  assert.deepEqual(new Set(answered), new Set([200]))
})

test('R16 R4 an unknown key gets 401 and counts as one failure; from the eleventh on it gets 429', async () => {
  const told = await statuses(12, () => ask(createKey().key, '203.0.113.4'))
  assert.deepEqual(told, [...Array(10).fill(401), 429, 429])
})

test('R16 an address that is throttled does not wait: the store is not asked for its keys', async () => {
  const from = '203.0.113.5'
  await statuses(10, () => ask('sk-tri-bad', from))
  const { key } = gateway.store.createKey('tester')
  assert.equal(await statusOf(ask(key, from)), 429)
  // Once somebody else has brought it into memory it passes there too.
  assert.equal(await statusOf(ask(key, '203.0.113.6')), 200)
  assert.equal(await statusOf(ask(key, from)), 200)
})

test('R16 C5 if the store does not respond, a key that is not in memory gets 500, and no failure is counted', async () => {
  const { directory } = gateway.server.gateway
  const { findKey } = directory
  directory.findKey = async () => {
    throw new StoreSilent('the store does not answer')
  }
  const from = '203.0.113.7'
  const { key } = gateway.store.createKey('tester')
  const response = await ask(key, from)
  const { error } = (await response.json()) as { error: { message: string } }
  assert.deepEqual([response.status, response.headers.get('x-should-retry')], [500, 'true'])
  assert.match(error.message, /cannot check API keys right now/)
  assert.deepEqual(new Set(await statuses(14, () => ask(key, from))), new Set([500]))
  // Keys that memory holds go on, and none of the fourteen was counted.
  assert.equal(await statusOf(ask(gateway.key, from)), 200)
  directory.findKey = findKey
  assert.equal(await statusOf(ask(createKey().key, from)), 401)
  assert.equal(await statusOf(ask(key, from)), 200)
})

test('R7 R16 a valid x-api-key beside an unknown Bearer key does not wait for the store', async () => {
  const { directory } = gateway.server.gateway
  const { findKey } = directory
  directory.findKey = async () => {
    throw new StoreSilent('the store does not answer')
  }
  const asking = fetch(gateway.url + paths[3], {
    method: 'POST',
    headers: { authorization: `Bearer ${createKey().key}`, 'x-api-key': gateway.key },
    body: JSON.stringify(bodies[3]),
  })
  const status = await statusOf(asking)
  directory.findKey = findKey
  assert.equal(status, 200)
})

test('R7 R16 two well-formed unknown keys count as one failure', async () => {
  const told = await statuses(12, () =>
    fetch(gateway.url + paths[3], {
      method: 'POST',
      headers: {
        authorization: `Bearer ${createKey().key}`,
        'x-api-key': createKey().key,
        'x-forwarded-for': '203.0.113.9',
      },
      body: JSON.stringify(bodies[3]),
    }),
  )
  assert.deepEqual(told, [...Array(10).fill(401), 429, 429])
})

test('R16 a client that leaves during the lookup of its key gets no answer and holds nothing', async () => {
  const { directory } = gateway.server.gateway
  const { findKey } = directory
  const { key } = gateway.store.createKey('tester')
  const looking = Promise.withResolvers<void>()
  const found = Promise.withResolvers<void>()
  directory.findKey = async (digest) => {
    looking.resolve()
    await found.promise
    return findKey(digest)
  }
  const leaving = new AbortController()
  const headers = { 'x-api-key': key }
  const asking = fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: JSON.stringify(bodies[1]),
    signal: leaving.signal,
  })
  await looking.promise
  leaving.abort()
  await assert.rejects(asking)
  const isGone = async () => (await gateway.logLines()).some((line) => line['outcome'] === 'client_abort')
  await until(() => gateway.unended() === 0)
  found.resolve()
  directory.findKey = findKey
  await until(isGone)
})

test('R18 the body of a client that leaves while it waits for its turn is not even read', async () => {
  const { turns } = gateway.server.gateway
  const { take } = turns
  const waiting = Promise.withResolvers<void>()
  const come = Promise.withResolvers<void>()
  turns.take = () => {
    waiting.resolve()
    return come.promise
  }
  const leaving = new AbortController()
  const asking = fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.key },
    body: JSON.stringify({ model: 'left alone', messages: [] }),
    signal: leaving.signal,
  })
  await waiting.promise
  leaving.abort()
  await assert.rejects(asking)
  await until(() => gateway.unended() === 0)
  turns.take = take
  come.resolve()
  await until(async () => {
    const line = (await gateway.logLines()).findLast(({ path }) => path === '/v1/chat/completions')
    assert.notEqual(line?.['code'], 'model_not_found')
    return line?.['outcome'] === 'client_abort'
  })
})

for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/messages/count_tokens']) {
  for (const isKey of [true, false]) {
    const status = isKey ? 400 : 401
    test(`R11 R16 invalid chunks that arrive during the lookup of a key get ${status} on ${path}`, async () => {
      const { directory } = gateway.server.gateway
      const { findKey } = directory
      const key = isKey ? gateway.store.createKey('tester').key : createKey().key
      const looking = Promise.withResolvers<void>()
      const found = Promise.withResolvers<void>()
      directory.findKey = async (digest) => {
        looking.resolve()
        await found.promise
        return findKey(digest)
      }
      const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: ${key}\r\nx-forwarded-for: 203.0.113.8\r\n`
      const asking = raw(gateway.url, `${head}transfer-encoding: chunked\r\n\r\n5g\r\nhello\r\n`)
      await looking.promise
      await turn()
      found.resolve()
      directory.findKey = findKey
      const { answers, isClosed } = await asking
      assert.deepEqual([answers.length, answers[0]?.status, isClosed], [1, status, true])
      assert.match(answers[0]!.body, isKey ? /not well-formed HTTP/ : /API key is not valid/)
    })
  }
}
