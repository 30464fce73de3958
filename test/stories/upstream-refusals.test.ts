import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'
import { type Native, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { stream, whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative({
    models: [
      testModel('native-messages', 'messages'),
      testModel('native-chat', 'chat', { profile: { account_faults: ['credit balance is too low'] } }),
      testModel('native-responses', 'responses'),
    ],
  })
})
after(() => native.close())

const said = 'temperature: range: 0..1'
const body = { error: { message: said, type: 'invalid_request_error' } }

/** Upstream status and body; status, code and message the client is told (ruling U2). */
const table: [string, number, string | object, number, string, string?][] = [
  ['F-U19 400', 400, body, 400, 'invalid_request', said],
  ['F-U19 422', 422, body, 422, 'invalid_request', said],
  [
    'F-U19 404 of the request',
    404,
    { error: { message: 'file_7 was not found' } },
    404,
    'invalid_request',
    'file_7 was not found',
  ],
  ['413 becomes 400', 413, body, 400, 'invalid_request', said],
  ['422 with a detail', 422, { detail: said }, 422, 'invalid_request', said],
  ['400 with a bare message', 400, { message: said }, 400, 'invalid_request', said],
  ['400 with an error text', 400, { error: said }, 400, 'invalid_request', said],
  ['U7 400 with its error in an array', 400, [body], 400, 'invalid_request', said],
  [
    'F-U47 400 that reveals',
    400,
    { error: { message: 'see https://x.example' } },
    400,
    'invalid_request',
    'The model rejected the request.',
  ],
  ['400 as HTML', 400, '<html>nginx</html>', 400, 'invalid_request', 'The model rejected the request.'],
  ['F-U20 404 of our path', 404, { error: { message: 'Not Found' } }, 502, 'upstream_error'],
  [
    'F-U20 404 of our model name',
    404,
    { error: { message: 'The model up-chat does not exist' } },
    502,
    'upstream_error',
  ],
  [
    'F-U20 404 of our model name without a word of what it is',
    404,
    { error: { message: 'up-chat is not served here' } },
    502,
    'upstream_error',
  ],
  ['F-U20 405', 405, body, 502, 'upstream_error'],
  ['F-U18 401', 401, body, 503, 'no_upstream_account'],
  ['F-U18 402', 402, body, 503, 'no_upstream_account'],
  ['F-U18 403', 403, body, 503, 'no_upstream_account'],
  ['F-U22 408', 408, body, 502, 'upstream_error'],
  ['F-U22 409', 409, body, 502, 'upstream_error'],
  ['F-U22 425', 425, body, 502, 'upstream_error'],
  ['F-U17 429', 429, body, 429, 'rate_limit_exceeded'],
  ['F-U21 529', 529, body, 429, 'rate_limit_exceeded'],
  ['F-U21 500', 500, body, 502, 'upstream_error'],
  ['F-U21 503', 503, body, 502, 'upstream_error'],
  ['F-U29 302', 302, '', 502, 'upstream_error'],
  ['418', 418, body, 502, 'upstream_error'],
]

const types: Record<number, string> = { 400: 'invalid_request_error', 404: 'not_found_error', 429: 'rate_limit_error' }

for (const [name, status, answer, told, code, message] of table) {
  test(`U2 an upstream's ${name} is returned as ${told} ${code}, once, and costs nothing`, async () => {
    // The row about the model's name has the chat model's.
    for (const wire of name.includes('model name') ? (['chat'] as const) : clientWireNames) {
      native.upstream.play(whole(answer, status, { location: 'http://127.0.0.1:1/', 'x-request-id': 'req_theirs' }))
      const { text, headers, id, ...got } = await native.ask(wire, { stream: wire === 'chat' })
      const { error } = JSON.parse(text)
      assert.equal(got.status, told)
      assert.equal(native.upstream.requests.length, 1)
      if (wire === 'messages') assert.equal(error.type, types[told] ?? 'api_error')
      else assert.equal(error.code, code)
      if (message) assert.equal(error.message, message)
      else assert.doesNotMatch(error.message, /temperature|up-|exist/i)
      assert.notEqual(id, 'req_theirs')
      assert.equal(headers.get('x-should-retry'), told < 500 && told !== 429 ? 'false' : 'true')
      assert.equal(headers.get('retry-after'), told === 429 ? '5' : null)
      assert.equal(native.gateway.store.findEntry(id), undefined)
    }
    await assertQuiet(native.gateway)
  })
}

test('U2 a 400 about our own balance counts as 402 and its text is not returned', async () => {
  native.upstream.play(whole({ error: { message: 'Your credit balance is too low to use this' } }, 400))
  const { status, text } = await native.ask('chat')
  assert.equal(status, 503)
  assert.doesNotMatch(text, /balance/)
})

test('F-U16 retry-after of an upstream reaches the client as 1 to 60 seconds', async () => {
  const later = new Date(native.gateway.nowMs() + 30_000).toUTCString()
  for (const [sent, told] of [
    ['7', /^7$/],
    ['-1', /^5$/],
    ['99999999', /^60$/],
    ['soon', /^5$/],
    [later, /^(29|30)$/],
  ] as const) {
    native.upstream.play(whole(body, 429, { 'retry-after': sent }))
    const { headers } = await native.ask('messages')
    assert.match(headers.get('retry-after')!, told)
  }
})

const faulty: [string, unknown, number][] = [
  ['overloaded_error', { type: 'overloaded_error', message: 'Overloaded' }, 429],
  ['rate_limit_exceeded', { code: 'rate_limit_exceeded', message: 'slow' }, 429],
  ['authentication_error', { type: 'authentication_error', message: 'bad key' }, 503],
  ['invalid_request_error', { type: 'invalid_request_error', message: said }, 400],
  ['content_filter', { code: 'content_filter', message: said }, 400],
  ['bio_policy', { code: 'bio_policy', message: said }, 400],
  ['invalid_image', { code: 'invalid_image', message: said }, 400],
  ['data_inspection_failed', { type: 'data_inspection_failed', message: said }, 400],
  ['DataInspectionFailed', { code: 'DataInspectionFailed', message: said }, 400],
  ['Content-Filter', { type: 'Content-Filter', message: said }, 400],
  ['a code and nothing else', 'content_filter', 400],
  ['a code and nothing else in capitals', 'ContentFilter', 400],
  ['a number as code', { code: 429, message: 'busy' }, 429],
  ['a number in a string as code', { code: '429', message: 'busy' }, 429],
  ['a code of one hundred and more', { code: '4000', message: 'oops' }, 502],
  ['server_error', { code: 'server_error', message: 'oops' }, 502],
  ['an unknown word', { type: 'strange', message: 'oops' }, 502],
]
for (const [name, error, told] of faulty) {
  test(`F-U25 F-U26 an error of ${name} with status 200, as body or first event, is an ordinary ${told}`, async () => {
    const frame = `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
    for (const wire of clientWireNames) {
      const answers = [
        { play: whole({ error }), ask: {} },
        { play: whole({ error }), ask: { stream: true } },
        { play: stream([frame]), ask: { stream: true } },
        { play: stream([': hello\n\n', frame]), ask: { stream: true } },
      ]
      for (const { play, ask } of answers) {
        native.upstream.play(play)
        const { status, id, text } = await native.ask(wire, ask)
        assert.equal(status, told, text)
        assert.equal(native.gateway.store.findEntry(id), undefined)
      }
    }
    await assertQuiet(native.gateway)
  })
}

test('BUG-12 F-U26 an error of a chat model without an envelope or an event name is an ordinary refusal', async () => {
  const rows: [object, number][] = [
    [{ code: 'content_filter', message: said }, 400],
    [{ code: 'DataInspectionFailed', message: said, request_id: 'x' }, 400],
    [{ object: 'error', code: 400, message: said, type: 'BadRequestError' }, 400],
    [{ code: 429, message: said }, 429],
    [{ code: '', message: said }, 502],
  ]
  for (const [error, told] of rows) {
    const frame = `data: ${JSON.stringify(error)}\n\n`
    for (const wire of clientWireNames) {
      for (const [play, ask] of [
        [whole(error), {}],
        [stream([frame]), { stream: true }],
      ] as const) {
        native.upstream.play(play)
        const { status, text } = await native.ask(wire, { model: 'native-chat', ...ask })
        assert.equal(status, told, text)
      }
    }
  }
  await assertQuiet(native.gateway)
})
