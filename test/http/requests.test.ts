import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ config: { limits: { requests_per_minute: 100_000, failed_auth_per_minute: 20 } } })
})
after(() => gateway.close())

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }
type Wire = keyof typeof paths
const wires = ['messages', 'chat', 'responses'] as const
const user = [{ role: 'user', content: 'canary-request' }]
const good: Record<Wire, Record<string, unknown>> = {
  messages: { model: 'native-messages', max_tokens: 9, messages: user },
  chat: { model: 'native-chat', messages: user },
  responses: { model: 'native-responses', input: 'canary-request' },
}

/** Status, and code and param of an error. */
async function tell(path: string, body: unknown, headers: Record<string, string> = {}): Promise<string> {
  const response = await gateway.post(path, body, headers)
  const { error } = (await response.json()) as { error?: { code?: string; param?: string; message: string } }
  return [response.status, error?.code, error?.param].filter((part) => part !== undefined && part !== null).join(' ')
}

/** On the messages wire an error has no code and no param: its message names the field. */
async function tellMessage(body: unknown, headers: Record<string, string> = {}): Promise<string> {
  const response = await gateway.post('/v1/messages', body, headers)
  const { error } = (await response.json()) as { error?: { message: string } }
  return `${response.status} ${error?.message ?? ''}`
}

test('R8 F-C50 a preflight on any path is 204 with the headers it asks for, without a key', async () => {
  for (const path of [...Object.values(paths), '/v1/messages/count_tokens', '/v1/models', '/v1/nowhere', '/']) {
    const asked = 'authorization, x-api-key, X-Odd~Header, msgwire-beta'
    const response = await fetch(gateway.url + path, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://a.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    })
    assert.equal(response.status, 204)
    assert.equal(response.headers.get('access-control-allow-origin'), '*')
    assert.equal(response.headers.get('access-control-allow-headers'), asked)
    assert.equal(response.headers.get('access-control-allow-methods'), 'POST')
    assert.match(response.headers.get('x-request-id') ?? '', /^req_/)
  }
})

test('R8 the answer to a preflight without a method and headers lists everything that clients send', async () => {
  const response = await fetch(`${gateway.url}/v1/messages`, {
    method: 'OPTIONS',
    headers: { origin: 'https://a.example' },
  })
  const { headers } = response
  assert.equal(headers.get('access-control-allow-methods'), 'GET, POST, OPTIONS')
  const names = 'authorization, content-type, x-api-key, x-triwire-labels'
  assert.equal(headers.get('access-control-allow-headers'), names)
})

test('spec 4.5, 2.9 the models list needs no key, ignores its query and is the same bytes over restarts', async () => {
  const read = async (url: string, headers: Record<string, string> = {}) => {
    const response = await fetch(url, { headers, redirect: 'error' })
    assert.equal(response.status, 200)
    assert.match(response.headers.get('x-request-id') ?? '', /^req_/)
    return response.text()
  }
  const first = await read(`${gateway.url}/v1/models`)
  const list = JSON.parse(first) as { object: string; data: Record<string, unknown>[] }
  assert.equal(list.object, 'list')
  assert.deepEqual(
    list.data.map(({ id }) => id),
    ['native-messages', 'native-chat', 'native-responses'],
  )
  for (const row of list.data) {
    assert.deepEqual(row, { id: row['id'], object: 'model', created: 1_793_491_200, owned_by: 'triwire' })
  }
  const other = await startTestGateway()
  assert.equal(await read(`${other.url}/v1/models?limit=1`, { 'x-api-key': 'sk-tri-bad' }), first)
  await other.close()
})

test('R3 HEAD of the models list has its headers and no body', async () => {
  const { answers } = await raw(gateway.url, 'HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
  assert.equal(answers[0]!.status, 200)
  assert.ok(Number(answers[0]!.headers.get('content-length')) > 100)
  assert.equal(answers[0]!.body, '')
})

test('spec 2.2 R3 query strings are ignored on every path', async () => {
  for (const wire of wires) assert.equal(await tell(`${paths[wire]}?beta=true&model=x`, good[wire]), '200')
})

test('R7 accept and content type have no effect; the body decides', async () => {
  for (const wire of wires) {
    const odd = await gateway.post(paths[wire], good[wire], {
      accept: 'text/event-stream',
      'content-type': 'text/plain',
    })
    assert.equal(odd.headers.get('content-type'), 'application/json')
    const streamed = await gateway.post(paths[wire], { ...good[wire], stream: true }, { accept: 'application/json' })
    assert.equal(streamed.headers.get('content-type'), 'text/event-stream; charset=utf-8')
    await Promise.all([odd.text(), streamed.text()])
  }
})

test('R8 answers of a model carry the same headers as errors: id, CORS, no-store', async () => {
  const ids = new Set<string>()
  for (const wire of wires) {
    for (const stream of [false, true]) {
      const { headers, ...response } = await gateway.post(
        paths[wire],
        { ...good[wire], stream },
        { 'x-request-id': 'req_mine' },
      )
      const id = headers.get('x-request-id') ?? ''
      assert.match(id, /^req_[0-9a-f]{32}$/)
      ids.add(id)
      assert.equal(headers.get('request-id'), wire === 'messages' ? id : null)
      assert.equal(headers.get('access-control-allow-origin'), '*')
      assert.match(headers.get('cache-control') ?? '', /no-store/)
      void response
    }
  }
  assert.equal(ids.size, 6)
})

test('P6 spec 8 F-C42 a conversation key of 256 characters is accepted, one of 257 is not; characters are code points', async () => {
  for (const wire of wires) {
    const path = paths[wire]
    assert.equal(await tell(path, good[wire], { 'x-session-id': 'k'.repeat(256) }), '200')
    const long = wire === 'messages' ? '400' : '400 invalid_cache_key x-session-id'
    assert.equal(await tell(path, good[wire], { 'x-session-id': 'k'.repeat(257) }), long)
    const key = (prompt_cache_key: unknown) => tell(path, { ...good[wire], prompt_cache_key })
    const refused = wire === 'messages' ? '200' : '400 invalid_cache_key prompt_cache_key'
    assert.deepEqual([await key('k'.repeat(256)), await key('😀'.repeat(256)), await key(null)], ['200', '200', '200'])
    assert.deepEqual([await key('k'.repeat(257)), await key('😀'.repeat(257))], [refused, refused])
    assert.equal(await key(7), wire === 'messages' ? '200' : '400 invalid_body prompt_cache_key')
    assert.equal(
      await tell(path, good[wire], { 'x-claude-code-session-id': 'k'.repeat(999), 'session-id': 'k'.repeat(999) }),
      '200',
    )
  }
  const count = { model: 'native-messages', messages: user }
  assert.equal(await tell('/v1/messages/count_tokens', count, { 'x-session-id': 'k'.repeat(257) }), '400')
  assert.equal(await tell('/v1/messages/count_tokens', count, { 'x-session-id': 'k'.repeat(256) }), '200')
})

test('P6 R2 a header in UTF-8 is counted in its characters, not in its bytes', async () => {
  const body = JSON.stringify(good.chat)
  const ask = async (characters: number) => {
    const session = Buffer.from('😀'.repeat(characters)).toString('latin1')
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\nx-session-id: ${session}`
    return (await raw(gateway.url, `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`, { answers: 1 }))
      .answers[0]!.status
  }
  assert.deepEqual([await ask(256), await ask(257)], [200, 400])
})

test('spec 4.2 count_tokens is an estimate: no debit, no window, no model, the messages envelope', async () => {
  const before = gateway.simulator.requests.length
  const limited = await startTestGateway({ config: { limits: { requests_per_minute: 1 } }, credit: '0' })
  const count = { model: 'native-messages', messages: user, system: 'be brief', tools: [] }
  const counts = new Set<number>()
  for (let i = 0; i < 5; i++) {
    const response = await limited.post('/v1/messages/count_tokens', count)
    assert.equal(response.status, 200)
    const answer = (await response.json()) as { input_tokens: number }
    assert.deepEqual(Object.keys(answer), ['input_tokens'])
    counts.add(answer.input_tokens)
    assert.equal(limited.store.findEntry(response.headers.get('x-request-id')!), undefined)
  }
  assert.equal(counts.size, 1)
  const unknown = await limited.post('/v1/messages/count_tokens', { ...count, model: 'none' })
  const { error } = (await unknown.json()) as { error: { type: string } }
  assert.deepEqual([unknown.status, error.type], [404, 'not_found_error'])
  for (const field of ['messages', 'system', 'tools']) {
    assert.equal((await limited.post('/v1/messages/count_tokens', { ...count, [field]: 7 })).status, 400)
  }
  assert.equal(limited.simulator.requests.length, 0)
  await limited.close()
  assert.equal(gateway.simulator.requests.length, before)
})

const badCaps = [-1, 0, 0.5, '100', true, [], {}, -0]
const badFlags = ['true', 1, 0, [], {}]

test('R10 F-C40 a checked field of a wrong type is 400 and named, on every wire; null counts as absent', async () => {
  const before = gateway.simulator.requests.length
  const refuse = async (wire: Wire, field: string, value: unknown) => {
    const body = { ...good[wire], [field]: value }
    const shown = `${wire} ${field} ${JSON.stringify(value)}`
    if (wire !== 'messages') assert.equal(await tell(paths[wire], body), `400 invalid_body ${field}`, shown)
    else assert.match(await tellMessage(body), new RegExp(`^400 The field ${field} `), shown)
  }
  for (const value of badCaps) {
    await refuse('messages', 'max_tokens', value)
    await refuse('chat', 'max_tokens', value)
    await refuse('chat', 'max_completion_tokens', value)
    await refuse('responses', 'max_output_tokens', value)
  }
  for (const wire of wires) {
    for (const value of badFlags) await refuse(wire, 'stream', value)
    for (const value of [7, true, {}, null]) await refuse(wire, wire === 'responses' ? 'input' : 'messages', value)
    for (const value of [7, null, [], {}, true]) await refuse(wire, 'model', value)
  }
  await refuse('messages', 'messages', 'text')
  await refuse('chat', 'messages', 'text')
  await refuse('responses', 'background', 'yes')
  const text = await tell(paths.chat, `{"model":"native-chat","messages":[],"max_tokens":1e400}`)
  assert.equal(text, '400 invalid_body max_tokens')
  assert.equal(gateway.simulator.requests.length, before)
  const nulls = {
    stream: null,
    max_completion_tokens: null,
    max_output_tokens: null,
    prompt_cache_key: null,
    background: null,
  }
  const stateless = { previous_response_id: null, conversation: null }
  for (const wire of wires)
    assert.equal(await tell(paths[wire], { ...good[wire], ...nulls, ...stateless }), '200', wire)
  for (const cap of [1e308, 2 ** 53 + 2, 1.0]) {
    assert.equal(await tell(paths.chat, { ...good.chat, max_tokens: cap }), '200')
  }
  const { max_tokens } = gateway.simulator.requests.at(-2)!.json as { max_tokens: number }
  assert.equal(max_tokens, 8192)
})

test('Y12 F-C37 a duplicate member is refused by its decoded name, case-sensitively, on every path and pair, and costs nothing', async () => {
  const before = gateway.simulator.requests.length
  const balance = gateway.store.findAccount('tester')!.balanceNanos
  const told = async (path: string, body: string) => {
    const response = await gateway.post(path, body)
    const { error } = (await response.json()) as { error?: { message: string; type: string } }
    return `${response.status} ${error?.message ?? ''}`
  }
  const says = (name: string) => `400 The field ${name} occurs twice in the request body: send it once.`
  const asked = [
    ...wires.map((wire) => [paths[wire], good[wire]] as const),
    [`${paths.messages}/count_tokens`, good.messages] as const,
  ]
  const more = [
    ['"model":"none"', 'model'],
    ['"mod\\u0065l":"none"', 'model'],
    ['"x":1,"y":{"x":1},"x":null', 'x'],
    ['"__proto__":1,"__pr\\u006fto__":2', '__proto__'],
  ] as const
  for (const [path, body] of asked) {
    for (const model of wires.map((wire) => `native-${wire}`)) {
      const text = JSON.stringify({ ...body, model })
      for (const [members, name] of more)
        assert.equal(await told(path, text.replace(/\}$/, `,${members}}`)), says(name), path)
    }
  }
  const ask = (members: string) => JSON.stringify(good.chat).replace(/\}$/, `,${members}}`)
  assert.equal(await told(paths.chat, ask(`"${'k'.repeat(99)}":1,"${'k'.repeat(99)}":2`)), says('k'.repeat(64)))
  assert.equal(await tell(paths.chat, ask('"x":1,"x":2')), '400 invalid_body x')
  assert.equal(gateway.simulator.requests.length, before)
  assert.equal(gateway.store.findAccount('tester')!.balanceNanos, balance)
  assert.equal(await tell(paths.chat, ask('"X":1,"x":2,"y":{"a":1,"a":2}')), '200')
})

test('F-C36 names of the object prototype are data: unknown as models, passed on as keys', async () => {
  for (const model of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    assert.equal(await tell(paths.chat, { ...good.chat, model }), '404 model_not_found model')
  }
  const extra = '"__proto__":{"stream":true,"max_tokens":-1},"constructor":{"prototype":{"x":1}},"toString":1'
  const response = await gateway.post(paths.chat, `{${extra},${JSON.stringify(good.chat).slice(1)}`)
  assert.deepEqual([response.status, response.headers.get('content-type')], [200, 'application/json'])
  await response.text()
  assert.ok(gateway.simulator.requests.at(-1)!.body.startsWith(`{${extra},`))
})

test('F-C34, F-C35 hostile bodies of 5 MB are refused and nothing is billed', async () => {
  const before = gateway.simulator.requests.length
  const size = 5_242_880
  const bodies = {
    'deep arrays': '['.repeat(2_600_000),
    'deep arrays in an object': `{"model":${'['.repeat(2_600_000)}`,
    'deep objects': '{"a":'.repeat(870_000),
    'many keys': `{${Array.from({ length: 400_000 }, (_, i) => `"k${i}":1`).join()}}`,
    'many empty objects': `{"a":[${'{},'.repeat(1_700_000)}{}]}`,
    'many numbers': `{"a":[${'1,'.repeat(2_600_000)}1]}`,
    'one open string': `{"a":"${'x'.repeat(size - 10)}`,
    'escapes without an end': `{"a":"${'\\\\'.repeat(size / 2 - 10)}`,
  }
  for (const [name, body] of Object.entries(bodies)) {
    assert.ok(body.length <= size, name)
    assert.match(await tell(paths.chat, body), /^400 invalid_body$/, name)
  }
  assert.equal(gateway.simulator.requests.length, before)
})

test('F-C32, F-C33 a body that is not a JSON object is 400 in fixed words on every path that reads a body', async () => {
  const bodies = [
    '',
    'null',
    '[]',
    '"x"',
    '1',
    'true',
    '{"a":1,}',
    "{'a':1}",
    '{"a":NaN}',
    '{"a":1}\u0000',
    '\ufeff{}',
    '{/**/}',
  ]
  for (const path of [...Object.values(paths), '/v1/messages/count_tokens']) {
    for (const body of bodies) {
      const response = await gateway.post(path, body)
      const { error } = (await response.json()) as { error: { message: string } }
      assert.equal(response.status, 400)
      assert.match(
        error.message,
        /^The request body is not (a JSON object|valid JSON|valid UTF-8): send one JSON object in UTF-8\.$/,
      )
    }
  }
})

test('X2 health and readiness are served only on the second listener, which serves nothing of the first', async () => {
  const ask = async (path: string, method = 'GET') => {
    const response = await fetch(gateway.adminUrl + path, { method })
    return `${response.status} ${((await response.json().catch(() => ({}))) as { status?: string }).status ?? ''}`
  }
  assert.equal(await ask('/healthz'), '200 ok')
  assert.equal(await ask('/readyz?x=1'), '200 ready')
  assert.equal(await ask('/healthz', 'POST'), '404 not_found')
  assert.equal(await ask('/v1/models'), '404 not_found')
  assert.equal(await ask('/v1/messages', 'POST'), '404 not_found')
  assert.equal((await fetch(`${gateway.adminUrl}/readyz`, { method: 'HEAD' })).status, 200)
  for (const path of ['/healthz', '/readyz', '/metrics']) assert.equal((await fetch(gateway.url + path)).status, 404)
})
