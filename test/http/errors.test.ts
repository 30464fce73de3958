import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'

let gateway: TestGateway
let suspended: string
let poor: string
let limited: string
before(async () => {
  gateway = await startTestGateway({
    models: [
      testModel('native-messages', 'messages'),
      testModel('native-chat', 'chat'),
      testModel('native-responses', 'responses'),
      ...(['reject', 'overlong', 'missing', 'busy', 'unpaid', 'broken'] as const).flatMap((name) =>
        (['messages', 'chat', 'responses'] as const).map((wire) =>
          testModel(`${name}-${wire}`, wire, { upstream_model: `script:${name}` }),
        ),
      ),
    ],
    config: { limits: { failed_auth_per_minute: 1_000 } },
  })
  const text = (message: string) => ({ error: { message, type: 'invalid_request_error' } })
  gateway.simulator.script('reject', { status: 422, body: text('temperature: must be at most 2') })
  gateway.simulator.script('overlong', { status: 400, body: text('prompt is too long: 9 tokens > 8 maximum') })
  gateway.simulator.script('missing', { status: 404, body: text('The file you named was not found') })
  gateway.simulator.script('busy', { status: 429, retry_after: 7, body: text('slow down') })
  gateway.simulator.script('unpaid', { status: 401, body: text('bad key') })
  gateway.simulator.script('broken', { status: 500, body: text('oops') })
  suspended = addAccount('suspended', 5n)
  gateway.store.updateAccount('suspended', { state: 'suspended' })
  poor = addAccount('poor', 0n)
  limited = addAccount('limited', 5_000_000_000n)
  for (const key of [suspended, poor, limited]) await gateway.untilKnown(key)
})
after(() => gateway.close())

function addAccount(name: string, nanos: bigint): string {
  gateway.store.createAccount(name, nanos)
  return gateway.store.createKey(name).key
}

function ask(path: string, body: unknown, headers: Record<string, string> = {}, method = 'POST'): Promise<Response> {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  return fetch(gateway.url + path, { method, headers, ...(method === 'POST' ? { body: sent } : {}) })
}

const paths = { messages: '/v1/messages', chat: '/v1/chat/completions', responses: '/v1/responses' }
type Wire = keyof typeof paths
const wires = ['messages', 'chat', 'responses'] as const
const content = {
  messages: { max_tokens: 9, messages: [{ role: 'user', content: 'canary-error' }] },
  chat: { messages: [{ role: 'user', content: 'canary-error' }] },
  responses: { input: 'canary-error' },
}
const good = (wire: Wire) => ({ model: `native-${wire}`, ...content[wire] })
const messagesTypes = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [402, 'billing_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
])

type Row = {
  status: number
  type: string
  code: string
  param: string | null
  retry: 'true' | 'false'
  wires?: readonly Wire[]
  ask: (wire: Wire) => Promise<Response>
}

const withKey =
  (body: (wire: Wire) => unknown, headers: Record<string, string> = {}) =>
  (wire: Wire) =>
    ask(paths[wire], body(wire), { authorization: `Bearer ${gateway.key}`, ...headers })
const invalid = {
  status: 400,
  type: 'invalid_request_error',
  code: 'invalid_body',
  param: null,
  retry: 'false',
} as const
const native = (name: string) => withKey((wire) => ({ ...good(wire), model: `${name}-${wire}` }))

const rows: Record<string, Row> = {
  'spec 7.3 no JSON object': { ...invalid, ask: withKey(() => '[1]') },
  'spec 7.3 no model': { ...invalid, param: 'model', ask: withKey((wire) => content[wire]) },
  'spec 7.3 a model that is no string': {
    ...invalid,
    param: 'model',
    ask: withKey((wire) => ({ ...good(wire), model: 1 })),
  },
  'spec 7.3 no max_tokens': {
    ...invalid,
    param: 'max_tokens',
    wires: ['messages'],
    ask: withKey(() => ({ ...good('messages'), max_tokens: undefined })),
  },
  'spec 7.3 max_tokens not positive': {
    ...invalid,
    param: 'max_tokens',
    wires: ['messages'],
    ask: withKey(() => ({ ...good('messages'), max_tokens: 0 })),
  },
  'spec 7.3 a hosted tool on a model that is not native': {
    ...invalid,
    param: 'tools',
    wires: ['responses'],
    ask: withKey(() => ({ ...good('responses'), model: 'native-chat', tools: [{ type: 'web_search' }] })),
  },
  'spec 7.3, 4.1 a session id over 256 characters': {
    ...invalid,
    code: 'invalid_cache_key',
    param: 'x-session-id',
    ask: withKey(good, { 'x-session-id': 'k'.repeat(257) }),
  },
  'spec 7.3 a prompt_cache_key over 256 characters': {
    ...invalid,
    code: 'invalid_cache_key',
    param: 'prompt_cache_key',
    wires: ['chat', 'responses'],
    ask: withKey((wire) => ({ ...good(wire), prompt_cache_key: 'k'.repeat(257) })),
  },
  'spec 7.3 the model rejects with 400': { ...invalid, code: 'invalid_request', ask: native('overlong') },
  'spec 7.3 the model rejects with 404': { ...invalid, status: 404, code: 'invalid_request', ask: native('missing') },
  'spec 7.3 R12 the model rejects with 422': {
    ...invalid,
    status: 422,
    code: 'invalid_request',
    ask: native('reject'),
  },
  ...Object.fromEntries(
    Object.entries({ previous_response_id: 'resp_1', conversation: 'c', background: true }).map(([field, value]) => [
      `spec 7.3, 4.4 the field ${field}`,
      {
        ...invalid,
        code: 'unsupported_parameter',
        param: field,
        wires: ['responses'],
        ask: withKey(() => ({ ...good('responses'), [field]: value })),
      } satisfies Row,
    ]),
  ),
  'spec 7.3 T11 an item_reference': {
    ...invalid,
    code: 'unsupported_parameter',
    param: 'input',
    wires: ['responses'],
    ask: withKey(() => ({ ...good('responses'), input: [{ type: 'item_reference', id: 'msg_1' }] })),
  },
  'spec 7.3 no key': { ...invalid, status: 401, code: 'invalid_api_key', ask: (wire) => ask(paths[wire], good(wire)) },
  'spec 7.3 an unknown key': {
    ...invalid,
    status: 401,
    code: 'invalid_api_key',
    ask: (wire) => ask(paths[wire], good(wire), { authorization: 'Bearer sk-tri-unknown' }),
  },
  'spec 7.3 an account that is not active': {
    ...invalid,
    status: 401,
    code: 'account_suspended',
    ask: (wire) => ask(paths[wire], good(wire), { authorization: `Bearer ${suspended}` }),
  },
  'spec 7.3 no credit': {
    status: 402,
    type: 'insufficient_quota',
    code: 'insufficient_credits',
    param: null,
    retry: 'false',
    ask: (wire) => ask(paths[wire], good(wire), { authorization: `Bearer ${poor}` }),
  },
  'spec 7.3 R9 an unknown model': {
    ...invalid,
    status: 404,
    code: 'model_not_found',
    param: 'model',
    ask: withKey((wire) => ({ ...good(wire), model: 'canary-no-such-model' })),
  },
  'spec 7.3 R9 a model without a name': {
    ...invalid,
    status: 404,
    code: 'model_not_found',
    param: 'model',
    ask: withKey((wire) => ({ ...good(wire), model: '' })),
  },
  'spec 7.3 a body over 5 MB': {
    ...invalid,
    status: 413,
    code: 'request_too_large',
    ask: withKey(() => 'x'.repeat(5_242_881)),
  },
  'spec 7.3 no capacity of the model': {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    param: null,
    retry: 'true',
    ask: native('busy'),
  },
  'spec 7.3 U2 no account at the upstream': {
    status: 503,
    type: 'api_error',
    code: 'no_upstream_account',
    param: null,
    retry: 'true',
    ask: native('unpaid'),
  },
  "spec 7.3 the model's endpoint failed": {
    status: 502,
    type: 'api_error',
    code: 'upstream_error',
    param: null,
    retry: 'true',
    ask: native('broken'),
  },
}

for (const [title, row] of Object.entries(rows)) {
  test(`${title}: status, code and envelope (spec 7.1, 7.2, R5, R6, R8)`, async () => {
    const messages = new Set<string>()
    for (const wire of row.wires ?? wires) {
      const response = await row.ask(wire)
      messages.add(await checkError(response, wire, row))
    }
    assert.equal(messages.size, 1)
  })
}

test('R9 H-F5 an item_reference is refused in the same words whatever the model', async () => {
  const row = { ...invalid, code: 'unsupported_parameter', param: 'input' } as const
  const input = [{ type: 'item_reference', id: 'canary-id' }]
  const messages = new Set<string>()
  for (const model of wires) {
    const asked = withKey(() => ({ ...good('responses'), model: `native-${model}`, input }))
    messages.add(await checkError(await asked('responses'), 'responses', row))
  }
  assert.equal(messages.size, 1)
  assert.match([...messages][0]!, /store: false/)
})

/** Everything an error must be. @returns its message. */
async function checkError(response: Response, wire: Wire | 'none', row: Omit<Row, 'ask'>): Promise<string> {
  const text = await response.text()
  assert.equal(response.status, row.status, text)
  assert.doesNotMatch(text, /canary/)
  const id = response.headers.get('x-request-id') ?? ''
  assert.match(id, /^req_[0-9a-f]{12}7[0-9a-f]{19}$/)
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.equal(response.headers.get('access-control-allow-origin'), '*')
  assert.match(
    response.headers.get('access-control-expose-headers')!,
    /^x-request-id, request-id, retry-after, x-ratelimit-limit-/,
  )
  assert.equal(response.headers.get('x-should-retry'), row.retry)
  assert.equal(response.headers.get('www-authenticate'), row.status === 401 ? 'Bearer' : null, 'RFC 9110 15.5.2')
  const wait = response.headers.get('retry-after')
  if (row.status === 429)
    assert.ok(Number(wait) >= 1 && Number(wait) <= 60 && Number.isInteger(Number(wait)), String(wait))
  const error = JSON.parse(text) as { error: { message: string } }
  const { message } = error.error
  if (wire === 'messages') {
    assert.equal(response.headers.get('request-id'), id)
    const type = messagesTypes.get(row.status) ?? 'api_error'
    assert.deepEqual(error, { type: 'error', error: { type, message }, request_id: id })
  } else {
    assert.equal(response.headers.get('request-id'), null)
    assert.deepEqual(error, { error: { message, type: row.type, param: row.param, code: row.code } })
  }
  const line = await gateway.logOf(id)
  assert.deepEqual([line['status'], line['code']], [row.status, row.code])
  assert.equal(gateway.store.findEntry(id), undefined)
  return message
}

test('spec 7.3, 4.6 R3 an unrouted path or method has the chat envelope wherever it is', async () => {
  const unknown = { ...invalid, status: 404, code: 'unknown_url' } as const
  const cases = [
    ['POST', '/v1/embeddings'],
    ['POST', '/v1/messages/'],
    ['POST', '/v1/models'],
    ['GET', '/v1/messages'],
    ['GET', '/v1/messages/count_tokens'],
    ['GET', '/v1/chat/completions'],
    ['DELETE', '/v1/responses'],
    ['PUT', '/v1/messages'],
    ['GET', '/v1/models/'],
    ['GET', '/v1/models/native-chat'],
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/'],
    ['GET', '/healthz'],
    ['GET', '/metrics'],
    ['POST', '/V1/messages'],
    ['POST', '//v1/messages'],
    ['POST', '/v1/%6Dessages'],
  ] as const
  const messages = await Promise.all(
    cases.map(async ([method, path]) => checkError(await ask(path, {}, {}, method), 'none', unknown)),
  )
  // One text for all, but where a slash too many is all that is wrong (base-url.test.ts).
  assert.equal(new Set(messages).size, 2)
})

test('spec 7.3 over 300 requests in a minute: status, code and envelope', async () => {
  const headers = { authorization: `Bearer ${limited}` }
  const statuses = await Promise.all(
    Array.from({ length: 301 }, async () => (await ask('/v1/messages', {}, headers)).status),
  )
  assert.equal(statuses.filter((status) => status === 429).length, 1)
  const row = {
    status: 429,
    type: 'rate_limit_error',
    code: 'rate_limit_exceeded',
    param: null,
    retry: 'true',
  } as const
  for (const wire of wires) await checkError(await ask(paths[wire], good(wire), headers), wire, row)
})

test('spec 7.3 R6 the wait that an upstream asks for is passed on', async () => {
  assert.equal((await native('busy')('chat')).headers.get('retry-after'), '7')
})

test('spec 7.2, 7.3 an unhandled failure is 500 internal_error, with fixed words, and is logged in full', async () => {
  const { findKnownKey } = gateway.server.gateway.directory
  gateway.server.gateway.directory.findKnownKey = () => {
    throw new Error('this is a bug')
  }
  const row = { status: 500, type: 'api_error', code: 'internal_error', param: null, retry: 'true' } as const
  const messages = new Set<string>()
  for (const wire of wires) messages.add(await checkError(await withKey(good)(wire), wire, row))
  gateway.server.gateway.directory.findKnownKey = findKnownKey
  assert.equal(messages.size, 1)
  assert.equal((await withKey(good)('chat')).status, 200)
})

test('R17 a 404 names the listed ids that are near, and not the one that was requested', async () => {
  for (const path of [...Object.values(paths), '/v1/messages/count_tokens']) {
    const body = { ...good('messages'), input: 'Hi', model: 'Native-Chat-20260101' }
    const response = await ask(path, body, { authorization: `Bearer ${gateway.key}` })
    const text = await response.text()
    assert.match(text, /"No such model: GET \/v1\/models lists the available models\. Perhaps it is native-chat\."/)
    assert.doesNotMatch(text, /20260101/)
  }
})
