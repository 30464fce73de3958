import assert from 'node:assert/strict'
import test from 'node:test'
import { type ProfileSetting, resolveProfile } from '../../src/catalog/profiles.ts'
import { Secret } from '../../src/config/config.ts'
import { GatewayError } from '../../src/errors.ts'
import type { CloudCredential, KeyFinder } from '../../src/upstream/live-key.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import { modelOf, routeOf } from '../native/models.ts'
import { answers, chunk, frames } from '../support/native.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

const json = new Map([['content-type', 'application/json']])
const sse = new Map([['content-type', 'text/event-stream']])

function accountsOf(...names: string[]) {
  return names.map((name) => ({ name, key: new Secret(`key-of-${name}`), isEnabled: true }))
}

/** Three accounts at `sim`, and one at `backup` that is asked when none of them can be. */
function withBackup(options: RigOptions = {}): RigOptions {
  const model = modelOf('chat')
  const routes = [routeOf(model), routeOf(model, { upstream: 'backup', priority: 2 })]
  return {
    accounts: accountsOf('a', 'b', 'c'),
    upstreams: [{ name: 'backup', accounts: accountsOf('z') }],
    ...options,
    model: { ...options.model, routes },
  }
}

function refuse(rig: Rig, status: number, headers: Record<string, string> = {}, body = '{}'): void {
  const { listener } = rig.sent.at(-1)!
  listener.onHead(status, 'application/json', new Map([...json, ...Object.entries(headers)]))
  listener.onData(Buffer.from(body))
  listener.onEnd()
}

function reset(rig: Rig): void {
  rig.sent.at(-1)!.listener.onError({ cause: 'upstream_reset', isReuseRace: false })
}

function answerWhole(rig: Rig, answer: unknown = answers.chat): void {
  const { listener } = rig.sent.at(-1)!
  listener.onHead(200, 'application/json', json)
  listener.onData(Buffer.from(JSON.stringify(answer)))
  listener.onEnd()
}

const say = (rig: Rig, text: string) => rig.sent.at(-1)!.listener.onData(Buffer.from(text))

function stream(rig: Rig): void {
  rig.sent.at(-1)!.listener.onHead(200, 'text/event-stream', sse)
}

const names = (rig: Rig) => rig.sent.map(({ target }) => `${target.upstream.name}/${target.account?.name}`)

function assertOver(rig: Rig): void {
  assert.ok(rig.end)
  assert.deepEqual([rig.released, rig.gateway.deliveries.size, rig.gateway.readers.count], [1, 0, 0])
}

const elsewhere: [what: string, fail: (rig: Rig) => void][] = [
  ...[401, 402, 403, 408, 409, 425, 429, 500, 502, 503, 504, 529].map((status): [string, (rig: Rig) => void] => [
    `status ${status}`,
    (rig) => refuse(rig, status),
  ]),
  ['a reset before the head', reset],
  ['no connection', (rig) => rig.sent.at(-1)!.listener.onError({ cause: 'upstream_connect', isReuseRace: false })],
  ['a failed TLS handshake', (rig) => rig.sent.at(-1)!.listener.onError({ cause: 'upstream_tls', isReuseRace: false })],
  ['an error body with 200', (rig) => answerWhole(rig, { error: { message: 'no', type: 'rate_limit_error' } })],
]
for (const [what, fail] of elsewhere) {
  test(`U1 ${what} leads to another account, and the client gets its answer`, async () => {
    const rig = startRig({ accounts: accountsOf('a', 'b') })
    fail(rig)
    assert.equal(rig.sent.length, 2)
    assert.equal(new Set(names(rig)).size, 2)
    answerWhole(rig)
    await rig.turn()
    assert.equal(rig.client.reply?.status, 200)
    assert.deepEqual([rig.debits.length, rig.record.attempts, rig.record.outcome], [1, 2, 'ok'])
    assert.equal(rig.debits[0]?.upstreamAccount, rig.sent[1]!.target.account?.name)
    assertOver(rig)
  })
}

const nobody: [what: string, fail: (rig: Rig) => void, code: string][] = [
  ['F-U19 status 400', (rig) => refuse(rig, 400), 'invalid_request'],
  ['F-U19 status 422', (rig) => refuse(rig, 422), 'invalid_request'],
  ['F-U20 status 405', (rig) => refuse(rig, 405), 'upstream_error'],
  ['F-U29 a redirect', (rig) => refuse(rig, 302), 'upstream_error'],
  ['F-U7 no first byte', (rig) => rig.advance(600_000), 'upstream_error'],
  [
    'F-U7 a connection that stood, and whose path is lost',
    (rig) => rig.sent[0]!.listener.onError({ cause: 'upstream_silent', isReuseRace: false }),
    'upstream_error',
  ],
  [
    'F-U10 a head, and a body that breaks off',
    (rig) => {
      rig.sent[0]!.listener.onHead(200, 'application/json', json)
      reset(rig)
    },
    'upstream_error',
  ],
  ['F-U24 a body that is none', (rig) => answerWhole(rig, 'not an answer'), 'upstream_error'],
]
for (const [what, fail, code] of nobody) {
  test(`U1 ${what}: no other account is asked`, async () => {
    const rig = startRig({ accounts: accountsOf('a', 'b') })
    fail(rig)
    await rig.turn()
    assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code, rig.debits.length], [1, code, 0])
    assertOver(rig)
  })
}

const busy = chunk({ error: { message: 'no', type: 'overloaded_error' } })

test('U1 F-U26 after an error as first event another account is asked, also three seconds into an empty stream', async () => {
  for (const waitMs of [0, 3_000]) {
    const rig = startRig({ stream: true, accounts: accountsOf('a', 'b') })
    stream(rig)
    say(rig, frames.chat[0]!)
    rig.advance(waitMs)
    say(rig, busy)
    assert.equal(rig.sent.length, 2)
    stream(rig)
    for (const frame of frames.chat) say(rig, frame)
    rig.sent[1]!.listener.onEnd()
    await rig.turn()
    assert.ok(rig.client.isEnded)
    assert.equal(rig.client.text.match(/"role"/g)?.length, 1, 'nothing of the first beginning is shown')
    assert.deepEqual([rig.debits.length, rig.record.outcome], [1, 'ok'])
    assertOver(rig)
  }
})

test('U1 C4 a client that leaves while another account is asked pays nothing for the first attempt', async () => {
  const rig = startRig({ stream: true, accounts: accountsOf('a', 'b') })
  stream(rig)
  const role = { index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }
  say(rig, chunk({ choices: [role], usage: { prompt_tokens: 9, completion_tokens: 3 } }))
  say(rig, busy)
  assert.equal(rig.sent.length, 2)
  rig.client.leave()
  rig.advance(30_000)
  await rig.turn()
  const { usage, usageSource, outcome } = rig.debits[0]!
  assert.deepEqual([usageSource, usage.outputTokens, outcome], ['estimated', 0, 'client_abort'])
  assertOver(rig)
})

test('U1 after the first byte no other account is asked: an error event, and the end of the connection', async () => {
  for (const fail of [(rig: Rig) => say(rig, busy), reset]) {
    const rig = startRig({ stream: true, accounts: accountsOf('a', 'b') })
    stream(rig)
    for (const frame of frames.chat.slice(0, 2)) say(rig, frame)
    fail(rig)
    await rig.turn()
    assert.deepEqual([rig.sent.length, rig.debits.length, rig.record.outcome], [1, 1, 'upstream_cut'])
    assert.equal(rig.record.stopped, 'seen')
    assertOver(rig)
  }
})

test('U1 after its head was sent for a ping, a stream stays with its account', async () => {
  const rig = startRig({ stream: true, accounts: accountsOf('a', 'b') })
  stream(rig)
  say(rig, frames.chat[0]!)
  rig.advance(10_000)
  assert.ok(rig.client.isBegun)
  say(rig, busy)
  await rig.turn()
  assert.deepEqual([rig.sent.length, rig.debits.length], [1, 0])
  assertOver(rig)
})

test('U1 three attempts are made and no fourth; the last goes to another priority', async () => {
  const rig = startRig(withBackup())
  refuse(rig, 500)
  refuse(rig, 500)
  refuse(rig, 500)
  await rig.turn()
  assert.equal(rig.sent.length, 3)
  assert.deepEqual(
    names(rig).map((name) => name.split('/')[0]),
    ['sim', 'sim', 'backup'],
  )
  assert.deepEqual([(rig.end!.error as GatewayError).code, rig.record.attempts], ['upstream_error', 3])
  assert.equal(rig.record.stopped, 'attempts')
  assertOver(rig)
})

test('U1 a race on the connection of a third attempt ends the request, because three attempts were made', async () => {
  const rig = startRig({ accounts: accountsOf('a', 'b', 'c', 'd') })
  reset(rig)
  reset(rig)
  rig.sent.at(-1)!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  await rig.turn()
  assert.deepEqual([rig.sent.length, rig.record.stopped], [3, 'attempts'])
  assertOver(rig)
})

const told: [statuses: number[], code: string][] = [
  [[429, 500, 401], 'rate_limit_exceeded'],
  [[500, 529, 500], 'rate_limit_exceeded'],
  [[401, 403, 402], 'no_upstream_account'],
  [[401, 500, 403], 'upstream_error'],
  [[500, 401, 401], 'upstream_error'],
  [[429, 401, 400], 'invalid_request'],
]
for (const [statuses, code] of told) {
  test(`U2 the result of ${statuses.join(', ')} is ${code}`, async () => {
    const rig = startRig(withBackup())
    for (const status of statuses) refuse(rig, status)
    await rig.turn()
    assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code], [3, code])
    assert.equal(rig.debits.length, 0)
    assertOver(rig)
  })
}

test('F-U16 R6 of several waits the shortest is returned, at most a minute', async () => {
  for (const [first, second, wait] of [
    ['7', '30', 7],
    ['30', '7', 7],
    ['99999999', '300', 60],
  ] as const) {
    const rig = startRig({ accounts: accountsOf('a', 'b') })
    refuse(rig, 429, { 'retry-after': first })
    refuse(rig, 429, { 'retry-after': second })
    await rig.turn()
    const error = rig.end!.error as GatewayError
    assert.deepEqual([error.code, error.retryAfterSeconds], ['rate_limit_exceeded', wait])
  }
})

test('F-U43 U2 if all accounts cool, none is asked: 429 with the known wait, or 503 for our accounts’ own faults', async () => {
  for (const [status, code, wait, cause] of [
    [429, 'rate_limit_exceeded', 20, 'no_capacity'],
    [401, 'no_upstream_account', undefined, 'no_upstream_account'],
  ] as const) {
    const memory = createPoolMemory(() => 0)
    const first = startRig({ memory })
    refuse(first, status, { 'retry-after': '20' })
    const rig = startRig({ memory })
    await rig.turn()
    const error = rig.end!.error as GatewayError
    assert.deepEqual([error.code, error.retryAfterSeconds, rig.record.cause], [code, wait, cause])
    assert.deepEqual([rig.sent.length, rig.debits.length], [0, 0])
    assertOver(rig)
  }
})

test('U2 a web page with 403, which the words of one request can cause, leaves the account to other requests', async () => {
  for (const [body, asked] of [
    ['\n<!DOCTYPE html><title>Attention Required!</title>', 1],
    ['{"error":{"message":"denied"}}', 0],
  ] as const) {
    const memory = createPoolMemory(() => 0)
    const first = startRig({ memory })
    refuse(first, 403, {}, body)
    await first.turn()
    assert.equal((first.end!.error as GatewayError).code, 'no_upstream_account')
    assert.equal(startRig({ memory }).sent.length, asked)
  }
})

test('F-U44 a failing upstream gets ten retries a minute beyond its tenth; then no request is repeated', async () => {
  const memory = createPoolMemory(() => 0)
  const failed = []
  for (let i = 0; i < 30; i++) {
    const rig = startRig({ memory, accounts: accountsOf('a', 'b', 'c', 'd', 'e', 'f') })
    while (!rig.end) {
      refuse(rig, 408)
      await rig.turn()
    }
    failed.push(rig.sent.length - 1)
    if (rig.sent.length === 1) assert.equal(rig.record.stopped, 'budget')
  }
  assert.ok(failed.includes(0))
  assert.equal(
    failed.reduce((sum, more) => sum + more),
    10,
  )
})

test('U1 a half-open account is released by every end of its trial', async () => {
  const ends: [what: string, end: (rig: Rig) => void][] = [
    ['a client that leaves', (rig) => rig.client.leave()],
    [
      'the settle window behind it',
      (rig) => {
        rig.client.leave()
        rig.advance(30_000)
      },
    ],
    ['the first byte that never comes', (rig) => rig.advance(600_000)],
    ['a drain', (rig) => [...rig.gateway.deliveries].forEach((one) => void one.shutDown())],
    ['a bug', (rig) => rig.sent[0]!.listener.onHead(undefined as never, undefined as never, undefined as never)],
    ['an answer', (rig) => answerWhole(rig)],
    ['the request’s own fault', (rig) => refuse(rig, 400)],
  ]
  for (const [what, end] of ends) {
    let nowMs = 0
    const memory = createPoolMemory(() => nowMs)
    const first = startRig({ memory })
    refuse(first, 429, { 'retry-after': '1' })
    nowMs = 1_000
    const trial = startRig({ memory })
    assert.equal(trial.sent.length, 1, what)
    const waiting = startRig({ memory })
    await waiting.turn()
    assert.equal(waiting.sent.length, 0, what)
    end(trial)
    if (!trial.end) await trial.turn()
    if (what !== 'a client that leaves') assert.ok(trial.end, what)
    const next = startRig({ memory })
    assert.equal(next.sent.length, what === 'a client that leaves' ? 0 : 1, what)
  }
})

const sealed = {
  input: [
    { role: 'user', content: 'Hi' },
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'sealed-1' },
    { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'x' },
    { type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed-2' },
  ],
}
const bodyOf = (rig: Rig, index: number) => JSON.parse(rig.sent[index]!.body.toString()) as { input: object[] }
const unsealed = sealed.input.filter((item) => !('encrypted_content' in item))

function ofResponses(options: RigOptions = {}): RigOptions {
  return { wire: 'responses', ask: sealed, accounts: accountsOf('a', 'b'), affinity: 'talk', ...options }
}

test('U13 a request that leaves its account is sent without items sealed by that account, and the loss is listed', async () => {
  const rig = startRig(ofResponses())
  assert.deepEqual(bodyOf(rig, 0).input, sealed.input)
  assert.equal(rig.record.losses, undefined)
  refuse(rig, 429)
  assert.deepEqual(bodyOf(rig, 1).input, unsealed)
  assert.deepEqual(rig.record.losses, [{ field: 'input', what: 'dropped', why: 'sealed by another provider account' }])
  answerWhole(rig, answers.responses)
  await rig.turn()
  assert.equal(rig.client.reply?.status, 200)
  assertOver(rig)
})

test('U13 an account that was already cooling counts too', () => {
  const memory = createPoolMemory(() => 0)
  const first = startRig(ofResponses({ memory }))
  answerWhole(first, answers.responses)
  const second = startRig(ofResponses({ memory }))
  refuse(second, 429)
  const third = startRig(ofResponses({ memory }))
  assert.notEqual(names(third)[0], names(first)[0])
  assert.deepEqual(bodyOf(third, 0).input, unsealed)
})

const unreadable =
  '{"error":{"message":"The encrypted content could not be verified.","code":"invalid_encrypted_content"}}'

test('U13 after invalid_encrypted_content the same account is asked once more, without sealed items', async () => {
  for (const accounts of [accountsOf('a'), accountsOf('a', 'b')]) {
    const rig = startRig(ofResponses({ accounts }))
    refuse(rig, 400, {}, unreadable)
    assert.equal(rig.sent.length, 2)
    assert.equal(names(rig)[0], names(rig)[1])
    assert.deepEqual(bodyOf(rig, 1).input, unsealed)
    refuse(rig, 400, {}, unreadable)
    await rig.turn()
    assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code], [2, 'invalid_request'])
    assertOver(rig)
  }
})

/** A response that fails for it, in each form that an upstream with status 200 gives it. */
const failedResponse = {
  id: 'resp_1',
  object: 'response',
  status: 'failed',
  output: [],
  error: JSON.parse(unreadable).error,
}
const frameOf = (event: { type: string }) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
const begun = frameOf({
  type: 'response.created',
  ...{ response: { ...failedResponse, status: 'in_progress', error: null } },
})
const unreadableForms: [name: string, stream: boolean, body: string][] = [
  ['an error event', true, frameOf({ type: 'error', ...JSON.parse(unreadable) })],
  ['an error event behind the beginning', true, begun + frameOf({ type: 'error', ...JSON.parse(unreadable).error })],
  ['response.failed', true, begun + frameOf({ type: 'response.failed', ...{ response: failedResponse } })],
  ['a body with an error', false, unreadable],
]

function answerUnreadable(rig: Rig, stream: boolean, body: string): void {
  const { listener } = rig.sent.at(-1)!
  listener.onHead(200, stream ? 'text/event-stream' : 'application/json', new Map())
  listener.onData(Buffer.from(body))
  if (!stream) listener.onEnd()
}

for (const [name, stream, body] of unreadableForms) {
  for (const accounts of [accountsOf('a'), accountsOf('a', 'b')]) {
    test(`U13 invalid_encrypted_content with status 200 as ${name} leads to one more try without sealed items, at ${accounts.length}`, async () => {
      const rig = startRig(ofResponses({ accounts, stream }))
      answerUnreadable(rig, stream, body)
      assert.equal(rig.sent.length, 2)
      assert.equal(names(rig)[0], names(rig)[1])
      assert.deepEqual(bodyOf(rig, 1).input, unsealed)
      answerUnreadable(rig, stream, body)
      await rig.turn()
      assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code], [2, 'invalid_request'])
      assertOver(rig)
    })
  }
}

test('U13 a request of one account without sealed items is freed when its answer begins', async () => {
  for (const [input, isKept] of [
    [unsealed, false],
    [sealed.input, true],
  ] as const) {
    const rig = startRig(ofResponses({ accounts: accountsOf('a'), stream: true, ask: { input } }))
    const { listener, target } = rig.sent[0]!
    listener.onHead(200, 'text/event-stream', new Map())
    if (isKept) assert.ok(rig.exchange.bodyFor(target))
    else assert.throws(() => rig.exchange.bodyFor(target), /was released/)
    // With the first that is shown it goes in any case.
    listener.onData(
      Buffer.from(
        begun +
          frameOf({
            type: 'response.output_text.delta',
            ...{ delta: 'x', output_index: 0, content_index: 0, item_id: 'm' },
          }),
      ),
    )
    assert.ok(rig.client.isBegun)
    assert.throws(() => rig.exchange.bodyFor(target), /was released/)
    rig.client.leave()
  }
})

test('U13 after an answer without the sealed history, the next request is sent without it at once', () => {
  const memory = createPoolMemory(() => 0)
  const first = startRig(ofResponses({ memory }))
  refuse(first, 400, {}, unreadable)
  answerWhole(first, answers.responses)
  const second = startRig(ofResponses({ memory }))
  assert.equal(names(second)[0], names(first)[1])
  assert.deepEqual(bodyOf(second, 0).input, unsealed)
})

test('U13 a request without sealed items is refused unchanged, and is sent elsewhere with the same bytes', async () => {
  const rig = startRig(ofResponses({ ask: { input: unsealed } }))
  refuse(rig, 400, {}, unreadable)
  await rig.turn()
  assert.equal(rig.sent.length, 1)
  const moved = startRig(ofResponses({ ask: { input: unsealed } }))
  refuse(moved, 429)
  assert.equal(moved.record.losses, undefined)
  assert.deepEqual(moved.sent[1]!.body, moved.sent[0]!.body)
})

/** The second upstream serves the model with other quirks. */
function twoProfiles(own: ProfileSetting, ask: Record<string, unknown>): RigOptions {
  const model = modelOf('chat')
  const profile = resolveProfile('chat', own)
  const routes = [
    routeOf(model),
    routeOf({ ...model, profile, upstreamModel: 'theirs' }, { upstream: 'backup', priority: 2 }),
  ]
  return {
    client: 'messages',
    upstreams: [{ name: 'backup', accounts: accountsOf('z') }],
    isServedAlike: false,
    model: { profile: model.profile, routes },
    ask,
  }
}

test('each target gets the request in its own profile and with its own name for the model', () => {
  const rig = startRig(twoProfiles({ maxField: 'max_tokens' }, { max_tokens: 77 }))
  refuse(rig, 429)
  const [first, second] = rig.sent.map(({ body }) => JSON.parse(body.toString()))
  assert.deepEqual([first.model, first.max_completion_tokens, first.max_tokens], ['up', 77, undefined])
  assert.deepEqual([second.model, second.max_completion_tokens, second.max_tokens], ['theirs', undefined, 77])
})

test('a target that cannot take the request is skipped, and the error is that of the other targets', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const ask = { messages: [{ role: 'user', content: [image] }] }
  const rig = startRig(twoProfiles({ images: false }, ask))
  refuse(rig, 429)
  await rig.turn()
  assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code], [1, 'rate_limit_exceeded'])
  assert.deepEqual(rig.bugs, [])
  assertOver(rig)
})

/** Keys whose first one, of the account `a`, is a credential of a cloud. */
function withCredential() {
  const cloud = { isRenewing: false, takesTime: true }
  const credential: CloudCredential = {
    headers: () => [],
    state: { source: undefined, identity: undefined, leftMs: undefined, aheadMs: undefined },
    get isRenewing() {
      return cloud.isRenewing
    },
    renew() {
      cloud.isRenewing = cloud.takesTime
    },
    identify: async () => '',
  }
  const key = { value: 'a key', version: 0, known: [], doubt() {} }
  const keyOf: KeyFinder = ({ name }) => (name === 'a' ? { ...key, credential } : key)
  return { cloud, keyOf }
}

test('clouds 5 a target that cannot take the request is not asked when the credential of another one is renewed', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const ask = { messages: [{ role: 'user', content: [image] }] }
  const { cloud, keyOf } = withCredential()
  const rig = startRig({ ...twoProfiles({ images: false }, ask), keyOf })
  refuse(rig, 401)
  assert.equal(rig.sent.length, 1)
  cloud.isRenewing = false
  rig.advance(250)
  assert.deepEqual(names(rig), ['sim/a', 'sim/a'])
  answerWhole(rig)
  await rig.turn()
  assert.deepEqual([rig.client.reply?.status, rig.bugs, rig.debits.length], [200, [], 1])
  assertOver(rig)
})

test('clouds 1.2 U1 after a signature with a right time, another account can still be asked for an error event', async () => {
  const { cloud, keyOf } = withCredential()
  cloud.takesTime = false
  const memory = createPoolMemory(() => 0)
  const rig = startRig({ stream: true, accounts: accountsOf('a', 'b'), affinity: talkOf('sim/a'), memory, keyOf })
  assert.deepEqual(names(rig), ['sim/a'])
  refuse(rig, 401)
  assert.deepEqual(names(rig), ['sim/a', 'sim/a'])
  stream(rig)
  say(rig, busy)
  assert.deepEqual(names(rig), ['sim/a', 'sim/a', 'sim/b'])
  stream(rig)
  for (const frame of frames.chat) say(rig, frame)
  rig.sent[2]!.listener.onEnd()
  await rig.turn()
  assert.deepEqual([rig.record.outcome, rig.debits.length], ['ok', 1])
  assertOver(rig)
})

test('U1 Y26 clouds 1.2 after the last attempt that is allowed, the error comes at once, without a wait for another', async () => {
  const { cloud, keyOf } = withCredential()
  const model = modelOf('chat')
  const routes = [routeOf(model), routeOf(model, { upstream: 'backup', priority: 2 })]
  const upstreams = [{ name: 'backup', accounts: accountsOf('a') }]
  const last = startRig({ accounts: accountsOf('b', 'c'), upstreams, model: { routes }, keyOf })
  refuse(last, 500)
  refuse(last, 500)
  assert.equal(names(last)[2], 'backup/a')
  refuse(last, 401)
  assert.ok(cloud.isRenewing, 'for later requests')
  await last.turn()
  assertOver(last)

  cloud.takesTime = false
  const only = startRig({ keyOf })
  only.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  refuse(only, 401)
  refuse(only, 429, { 'retry-after': '2' })
  await only.turn()
  const { code, retryAfterSeconds } = only.end!.error as GatewayError
  assert.deepEqual([only.sent.length, code, retryAfterSeconds], [3, 'rate_limit_exceeded', 2])
  assert.equal(only.record.stopped, 'attempts')
  assertOver(only)
})

/** A conversation whose home is this account of two. */
function talkOf(home: string): string {
  const talks = Array.from({ length: 20 }, (_, at) => `talk ${at}`)
  return talks.find((affinity) => {
    const rig = startRig({ accounts: accountsOf('a', 'b'), affinity })
    rig.client.leave()
    return names(rig)[0] === home
  })!
}

test('U13 U2 an error about sealed history is dropped once it is corrected: the refusal after it is returned', async () => {
  const rig = startRig(ofResponses())
  refuse(rig, 400, {}, unreadable)
  refuse(rig, 429, { 'retry-after': '9' })
  refuse(rig, 429, { 'retry-after': '8' })
  await rig.turn()
  const error = rig.end!.error as GatewayError
  assert.deepEqual([rig.sent.length, error.code, error.retryAfterSeconds], [3, 'rate_limit_exceeded', 8])
  assertOver(rig)
})

test('U2 a race does not count as an answer: the answer to the second try is returned', async () => {
  const rig = startRig()
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  refuse(rig, 401)
  await rig.turn()
  assert.deepEqual([rig.sent.length, (rig.end!.error as GatewayError).code], [2, 'no_upstream_account'])
  assertOver(rig)
})

test('U13 without a conversation key the last attempt omits sealed items, because no retry could correct a refusal', () => {
  const { affinity: _, ...nameless } = ofResponses({ accounts: accountsOf('a', 'b', 'c') })
  const rig = startRig(nameless)
  refuse(rig, 429)
  assert.deepEqual(bodyOf(rig, 1).input, sealed.input)
  refuse(rig, 429)
  assert.deepEqual(bodyOf(rig, 2).input, unsealed)
})

test('U13 a refusal seals nothing: a conversation whose diverted request was invalid keeps its home’s sealed items', () => {
  const memory = createPoolMemory(() => nowMs)
  let nowMs = 0
  answerWhole(startRigOf({ memory }), answers.responses)
  const away = startRigOf({ memory })
  refuse(away, 429)
  refuse(away, 400)
  nowMs = 10_000_000
  assert.deepEqual(bodyOf(startRigOf({ memory }), 0).input, sealed.input)

  function startRigOf(options: RigOptions): Rig {
    return startRig(ofResponses(options))
  }
})

test('U1 after an account was asked twice for a race, the other accounts can still be asked, also after an error event', async () => {
  const rig = startRig({ stream: true, accounts: accountsOf('a', 'b') })
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  stream(rig)
  say(rig, busy)
  assert.equal(rig.sent.length, 3)
  assert.notEqual(names(rig)[2], names(rig)[1])
  answerWhole(rig)
  await rig.turn()
  assertOver(rig)
})

test('T9 the listed losses are those of the request that was answered', async () => {
  const rig = startRig(twoProfiles({ accepts: new Set(['top_k']) }, { top_k: 5 }))
  const told = () => (rig.record.losses ?? []).map(({ field }) => field)
  rig.record.losses = rig.exchange.losses
  assert.deepEqual(told(), ['top_k'])
  refuse(rig, 429)
  assert.equal(JSON.parse(rig.sent[1]!.body.toString()).top_k, 5)
  assert.deepEqual(told(), [])
})

test('U2 the error of a target that cannot take the request does not replace that of accounts that cool', async () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const options = twoProfiles({ images: false }, { messages: [{ role: 'user', content: [image] }] })
  const memory = createPoolMemory(() => 0)
  const first = startRig({ ...options, memory })
  refuse(first, 429, { 'retry-after': '20' })
  const rig = startRig({ ...options, memory })
  await rig.turn()
  const error = rig.end!.error as GatewayError
  assert.deepEqual([error.code, error.retryAfterSeconds, rig.sent.length], ['rate_limit_exceeded', 20, 0])
  assertOver(rig)
  const off = startRig({ ...options, accounts: accountsOf('a').map((one) => ({ ...one, isEnabled: false })) })
  await off.turn()
  assert.deepEqual([(off.end!.error as GatewayError).status, off.sent.length], [400, 0])
  assertOver(off)
})

test('U1 a skipped target uses none of its upstream’s retry budget', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const rig = startRig(twoProfiles({ images: false }, { messages: [{ role: 'user', content: [image] }] }))
  refuse(rig, 429)
  const { pool, config } = rig.snapshot
  const rows = pool.list(config.catalog.models.values())
  assert.deepEqual(
    rows.map(({ upstream, retriesLeft }) => [upstream, retriesLeft]),
    [
      ['sim', 10],
      ['backup', 10],
    ],
  )
})

test('F-U16 an account that asks for more than a minute cools for that time, up to five', () => {
  for (const [asked, waitMs] of [
    ['200', 200_000],
    ['99999999', 300_000],
  ] as const) {
    const memory = createPoolMemory(() => 0)
    const rig = startRig({ memory })
    refuse(rig, 429, { 'retry-after': asked })
    const { pool, config } = rig.snapshot
    assert.equal(pool.list(config.catalog.models.values())[0]?.waitMs, waitMs)
  }
})

test('U2 an upstream without credentials that refuses the gateway is 503, like an account with a wrong key', async () => {
  for (const status of [401, 403]) {
    const rig = startRig({ accounts: [] })
    refuse(rig, status)
    await rig.turn()
    const { error } = rig.end!
    assert.ok(error instanceof GatewayError, `${error}`)
    assert.deepEqual([error.code, rig.record.cause], ['no_upstream_account', `upstream_${status}`])
    assertOver(rig)
  }
})

const endings: [what: string, play: (rig: Rig) => void, told: [status: number | undefined, cause?: string][]][] = [
  ['an answer', (rig) => answerWhole(rig), [[200, undefined]]],
  [
    'a reset behind another',
    (rig) => {
      reset(rig)
      reset(rig)
    },
    [
      [undefined, 'upstream_reset'],
      [undefined, 'upstream_reset'],
    ],
  ],
  [
    'a race on its connection',
    (rig) => {
      rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
      answerWhole(rig)
    },
    [[undefined, 'upstream_reset'], [200]],
  ],
  ['silence', (rig) => rig.advance(600_000), [[undefined, 'upstream_ttfb_timeout']]],
  ['a wrong name of ours', (rig) => refuse(rig, 404, {}, unknownModel), [[404, 'upstream_model_not_found']]],
  ['a drain', (rig) => [...rig.gateway.deliveries].forEach((one) => void one.shutDown()), [[undefined, 'shutdown']]],
  [
    'a client that leaves while it is refused',
    (rig) => {
      rig.sent[0]!.listener.onHead(503, 'application/json', json)
      rig.client.leave()
    },
    [[503, 'upstream_503']],
  ],
  [
    'a client that leaves, and an upstream that tells nothing until the window is over',
    (rig) => {
      rig.client.leave()
      rig.advance(30_000)
    },
    [[undefined]],
  ],
]
const unknownModel = JSON.stringify({ error: { message: 'no', type: 'x', code: 'model_not_found' } })
for (const [what, play, told] of endings) {
  test(`U1 the record has every attempt, each with an end: ${what}`, async () => {
    const rig = startRig({ accounts: accountsOf('a', 'b') })
    rig.advance(7)
    play(rig)
    await rig.turn()
    const { tries = [], attempts, upstreamAccount } = rig.record
    assert.deepEqual(
      tries.map(({ status, cause }) => [status, cause]),
      told.map(([status, cause]) => [status, cause]),
    )
    assert.deepEqual([tries.length, tries.at(-1)?.account], [attempts, upstreamAccount])
    assert.ok(tries.every(({ endMs, startedMs }) => endMs! >= startedMs))
    assert.ok(tries[0]!.endMs! >= tries[0]!.startedMs + 7)
    assertOver(rig)
  })
}
