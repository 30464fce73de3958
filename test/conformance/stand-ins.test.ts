import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Case, Json } from '../../conformance/src/case.ts'
import { loadCases, readCase } from '../../conformance/src/load-cases.ts'
import { bindingsSoFar, describe, findDifferences, judge, type Trace } from '../../conformance/src/verdict.ts'
import { type Badness, runStandIn } from './support/stand-in.ts'

const ids = [
  'answers/text-is-kept',
  'errors/messages-400-names-its-envelope',
  'errors/rate-limit-passes-on',
  'robustness/cut-stream-is-no-complete-stream',
  'streams/chat-usage-comes-in-a-chunk-without-choices',
  'streams/text-deltas-join-to-the-text',
  'tools/call-and-result-round-trip',
  'usage/cached-tokens-are-kept',
]
const cases = loadCases().filter(({ id }) => ids.includes(id))
const [first] = cases

test('a correct stand-in passes every case on its pairs', async () => {
  const results = await runStandIn(cases)
  assert.equal(cases.length, ids.length)
  const wrong = results.filter(({ verdict, pair }) => verdict !== (isSameWire(pair) ? 'pass' : 'unsupported'))
  assert.deepEqual(wrong, [])
  assert.equal(results.filter(({ verdict }) => verdict === 'pass').length, 19)
})

const isSameWire = (pair: string) => ['chat>chat', 'responses>responses', 'messages>messages'].includes(pair)

const swap = (text: string) => {
  const events = text.split(/(?<=\n\n)/)
  const at = Math.floor(events.length / 2) - 1
  return [...events.slice(0, at), events[at + 1], events[at], ...events.slice(at + 2)].join('')
}
const change = (from: RegExp, to: string) => (text: string) => text.replace(from, to)

/** Each wrong of a gateway, with a case that must notice it, and words of the first difference. */
const wrongs: [what: string, id: string, badness: Badness, says: RegExp][] = [
  [
    'changes the text of an answer',
    'answers/text-is-kept',
    { answers: change(/Grüße/g, 'Gruesse') },
    /text is "Gruesse/,
  ],
  ['loses the end of the text', 'answers/text-is-kept', { answers: change(/&amp;/g, '') }, /text is/],
  [
    'changes the text of the request',
    'answers/text-is-kept',
    { asks: change(/umlauts/, 'accents') },
    /asked.turns\[-1\].text/,
  ],
  [
    'changes the role',
    'answers/text-is-kept',
    { asks: change(/"role":"user"/, '"role":"assistant"') },
    /asked.turns\[-1\].role/,
  ],
  [
    'reports another stop reason',
    'answers/text-is-kept',
    { answers: change(/"stop"(?=})|"stop"(?=,)|end_turn|(?<="status":")completed(?=","error)/g, 'x') },
    /stop is|text is/,
  ],
  ['answers 200 instead of 429', 'errors/rate-limit-passes-on', { status: 200 }, /status is 200/],
  ['loses the error', 'errors/rate-limit-passes-on', { answers: () => '{}' }, /error.message is absent/],
  [
    'answers 500 instead of 400',
    'errors/messages-400-names-its-envelope',
    { instead: (to) => void to.writeHead(500).end() },
    /status is 500/,
  ],
  ['asks a model that it must not ask', 'errors/messages-400-names-its-envelope', { times: 1 }, /body.type is absent/],
  ['drops the tools', 'tools/call-and-result-round-trip', { asks: change(/"tools":/, '"x":') }, /asked.tools is \[\]/],
  [
    'drops the schema of a tool',
    'tools/call-and-result-round-trip',
    { asks: change(/"required":\["city"\]/g, '"r":1') },
    /parameters.required/,
  ],
  [
    'changes the id of a result',
    'tools/call-and-result-round-trip',
    { asks: change(/("tool_call_id"|"tool_use_id"|call_output","call_id"):"call_7Qx"/, '$1:"x"') },
    /the same as before for "sent"/,
  ],
  [
    'breaks the arguments',
    'tools/call-and-result-round-trip',
    { answers: change(/Bern/g, 'Genf') },
    /input.* exactly|input/,
  ],
  [
    'loses a call',
    'tools/call-and-result-round-trip',
    { answers: change(/"tool_calls"|"tool_use"|"function_call"/g, '"x"') },
    /calls|stop/,
  ],
  [
    'doubles the usage',
    'usage/cached-tokens-are-kept',
    { answers: change(/(_tokens":)(\d+)/g, '$12$2') },
    /usage.input/,
  ],
  [
    'drops the cached tokens',
    'usage/cached-tokens-are-kept',
    { answers: change(/"(cached_tokens|cache_read_input_tokens)"/g, '"x"') },
    /usage/,
  ],
  [
    'drops the chunk of usage',
    'streams/chat-usage-comes-in-a-chunk-without-choices',
    { answers: change(/data: [^\n]*"choices":\[\][^\n]*\n\n/, '') },
    /disorder|events\[-2\]/,
  ],
  [
    'puts the usage into the last chunk of content',
    'streams/chat-usage-comes-in-a-chunk-without-choices',
    { answers: change(/"choices":\[\]/, '"choices":[{"index":0,"delta":{}}]') },
    /choices/,
  ],
  [
    'changes the id within a stream',
    'streams/chat-usage-comes-in-a-chunk-without-choices',
    { answers: change(/chatcmpl-bothsides/, 'x') },
    /the id changes|the same/,
  ],
  [
    'doubles the end',
    'streams/chat-usage-comes-in-a-chunk-without-choices',
    { answers: (text) => `${text}data: [DONE]\n\n` },
    /comes after \[DONE\]/,
  ],
  [
    'loses an event',
    'streams/text-deltas-join-to-the-text',
    { answers: change(/(event: .*\n)?data: .*wo, th.*\n\n/, '') },
    /text|disorder/,
  ],
  [
    'doubles an event',
    'streams/text-deltas-join-to-the-text',
    { answers: change(/((?:event: .*\n)?data: .*wo, th.*\n\n)/, '$1$1') },
    /text|disorder/,
  ],
  ['swaps two events', 'streams/text-deltas-join-to-the-text', { answers: swap }, /text|disorder/],
  [
    'leaves the end out',
    'streams/text-deltas-join-to-the-text',
    {
      answers: change(
        /(event: (message_stop|response.completed)\n)?data: (\[DONE\]|{"type":"(message_stop|response.completed)".*)\n\n/,
        '',
      ),
    },
    /done is false|text/,
  ],
  [
    'sends no stream',
    'streams/text-deltas-join-to-the-text',
    { headers: { 'content-type': 'application/json' } },
    /headers.content-type/,
  ],
  [
    'asks the model for no stream',
    'streams/text-deltas-join-to-the-text',
    { asks: change(/"stream":true/, '"stream":false') },
    /headers.content-type|asked.stream/,
  ],
  [
    'breaks the JSON of an event',
    'streams/text-deltas-join-to-the-text',
    { answers: change(/data: {/, 'data: {{') },
    /an event is not a JSON object|text/,
  ],
  [
    'hides that the model broke off',
    'robustness/cut-stream-is-no-complete-stream',
    { hidesCuts: true },
    /stop is "end"|disorder/,
  ],
  [
    'drops what came before a break',
    'robustness/cut-stream-is-no-complete-stream',
    { answers: change(/Once upon/g, ''), hidesCuts: true },
    /text is|disorder/,
  ],
]

for (const [what, id, badness, says] of wrongs) {
  test(`a stand-in that ${what} fails`, async () => {
    const one = cases.find((entry) => entry.id === id)!
    const results = (await runStandIn([one], badness)).filter(({ pair }) => isSameWire(pair))
    for (const { verdict, pair, differences } of results) {
      assert.equal(verdict, 'fail', `${pair} ${verdict}`)
      assert.match(differences[0]!, says)
    }
    assert.ok(results.length > 0)
  })
}

test('a case that fails and then passes is flaky', async () => {
  const results = await runStandIn(
    [first!],
    { answers: (text) => text.replace('Grüße', ''), isFlaky: true },
    { jobs: 1, pairs: ['chat>chat'] },
  )
  const [result] = results.filter(({ pair }) => pair === 'chat>chat')
  assert.deepEqual([result?.verdict, result?.note], ['flaky', 'a second try: pass'])
})

const refuse =
  (status: number, message: string) => (response: { writeHead: (status: number) => { end(text: string): void } }) =>
    response.writeHead(status).end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null } }))
const withFields: Case = { ...first!, fields: ['messages', 'input'] }
const chatOnly = { pairs: ['chat>chat'] }

/** Answers without the model, with the verdict on a case that names its fields. */
const refusals: [status: number, message: string, verdict: string][] = [
  [400, 'messages cannot be carried', 'refused'],
  [422, 'messages cannot be carried', 'refused'],
  [400, 'something is wrong', 'fail'],
  [500, 'messages cannot be carried', 'fail'],
  [404, 'no such page', 'unsupported'],
  [405, 'no such method', 'unsupported'],
  [501, 'not implemented', 'unsupported'],
  [404, 'no such page for messages', 'refused'],
]

for (const [status, message, verdict] of refusals) {
  test(`a ${status} with the message "${message}" is ${verdict}`, async () => {
    const results = await runStandIn([withFields], { instead: refuse(status, message) as never }, chatOnly)
    assert.equal(results.find(({ pair }) => pair === 'chat>chat')?.verdict, verdict)
  })
}

test('a model that is asked on another wire than its pair’s is unsupported, with that wire in the note', async () => {
  const results = await runStandIn([first!], { path: () => '/v1/responses' }, chatOnly)
  const result = results.find(({ pair }) => pair === 'chat>chat')
  assert.deepEqual(
    [result?.verdict, result?.note],
    ['unsupported', 'the gateway asked this model on responses, not on chat'],
  )
})

test('a failure that the gateway’s documentation names is a declared deviation, on the pairs that it names', async () => {
  const broken: Badness = { answers: (text) => text.replace('Grüße', '') }
  const declared = (cases: string[], pairs?: string[]) =>
    runStandIn([first!], broken, {
      deviations: [{ cases, page: 'docs/x.md', says: 'It drops greetings.', ...(pairs && { pairs }) }],
    })
  const verdicts = async (cases: string[], pairs?: string[]) =>
    (await declared(cases, pairs)).filter(({ pair }) => isSameWire(pair)).map(({ verdict }) => verdict)
  assert.deepEqual(await verdicts(['answers/text-is-kept']), ['deviation', 'deviation', 'deviation'])
  assert.deepEqual(await verdicts(['answers/*'], ['chat>*']), ['deviation', 'fail', 'fail'])
  assert.deepEqual(await verdicts(['answers/*'], ['*>messages']), ['fail', 'deviation', 'fail'])
  assert.deepEqual(await verdicts(['answer/*', 'answers/text']), ['fail', 'fail', 'fail'])
  const [result] = await declared(['answers/*'])
  assert.equal(result?.note, 'It drops greetings. (docs/x.md)')
})

test('an answer that does not arrive within the time limit is late, and fails', async () => {
  const one = { ...first!, timeLimitMs: 150 }
  const [result] = await runStandIn([one], { instead: () => {} }, chatOnly)
  assert.equal(result?.verdict, 'fail')
  assert.match(result?.differences.join(' ') ?? '', /ended is "late"/)
})

test('a bill is read after the case, and compared to a billionth', async () => {
  const bill = loadCases().find(({ id }) => id === 'money/cached-tokens-have-their-price')!
  const spend = async (amount: number) => {
    let calls = 0
    const readSpent = async () => (calls++ === 0 ? 5 : 5 + amount)
    // What is declared has no second try, whose bill would begin at another sum.
    const deviations = [{ cases: [bill.id], page: 'x', says: 'x' }]
    return (await runStandIn([bill], {}, { ...chatOnly, readSpent, deviations })).find(
      ({ pair }) => pair === 'chat>chat',
    )
  }
  assert.equal((await spend(0.00126))?.verdict, 'pass')
  const wrong = await spend(0.00252)
  assert.deepEqual(
    [wrong?.verdict, wrong?.differences],
    ['deviation', ['bill: amount is 0.00252; expected 0.00126 to a billionth']],
  )
  const [unread] = await runStandIn([bill], {}, chatOnly)
  assert.deepEqual([unread?.verdict, unread?.note], ['unsupported', 'the bill cannot be read'])
  const [unset] = await runStandIn([bill], {}, { ...chatOnly, features: [] })
  assert.equal(unset?.note, 'it needs prices, which is not switched on')
})

/** A case as JSON, with parts that the kept ones do not have. */
const made = (members: object) =>
  readCase(
    'robustness/made.json',
    JSON.stringify({
      title: 'A case that this test has made',
      level: 'MAY',
      clause: { source: 'x', url: 'https://example.com', day: '2026-11-20', says: 'x' },
      ...members,
    }),
  )
const ask = { ask: { text: 'Hi', stream: true } }

test('a client that leaves sees its part, and the model sees that it left', async () => {
  const hello = {
    data: { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { content: 'Hello' } }] },
  }
  const one = (left: boolean) =>
    made({
      client: {
        chat: { steps: [{ request: { ...ask, leaveAfter: { events: 1 } }, expect: { ended: 'left', text: 'Hello' } }] },
      },
      model: { chat: { exchanges: [{ expect: { left }, reply: { events: [hello, { hang: true }] } }] } },
    })
  const run = async (left: boolean, keepsAsking: boolean) =>
    (await runStandIn([one(left)], { keepsAsking }, chatOnly))[0]?.verdict
  assert.equal(await run(true, false), 'pass')
  assert.equal(await run(false, false), 'fail')
  assert.equal(await run(false, true), 'pass')
  assert.equal(await run(true, true), 'fail')
})

test('exchanges are played in order, the last one repeatedly, and all of them must be requested', async () => {
  const step = (text: string) => ({ request: { ask: { text: 'Hi' } }, expect: { text } })
  const exchanges = [{ reply: { answer: { text: 'one' } } }, { reply: { answer: { text: 'two' } } }]
  const one = (steps: object[], more: object = {}) =>
    made({ client: { chat: { steps } }, model: { chat: { exchanges, ...more } } })
  const run = async (entry: Case) => (await runStandIn([entry], {}, chatOnly))[0]
  assert.equal((await run(one([step('one'), step('two'), step('two')])))?.verdict, 'pass')
  assert.match((await run(one([step('one')])))?.differences[0] ?? '', /requests is 1; expected at least 2/)
  assert.match(
    (await run(one([step('one'), step('two'), step('two')], { asked: 2 })))?.differences[0] ?? '',
    /requests is 3; expected 2/,
  )
})

test('a later request that needs a missing value ends the case with the name of that value', async () => {
  const use = {
    request: { body: { model: '$model', messages: [{ role: 'user', content: { $use: 'id' } }] } },
    expect: { status: 200 },
  }
  const one = made({
    client: { chat: { steps: [{ ...use, expect: {} }, use] } },
    model: { chat: { exchanges: [{ reply: { answer: {} } }] } },
  })
  const [result] = await runStandIn([one], {}, chatOnly)
  assert.match(result?.differences[0] ?? '', /nothing was seen for .*id.*, which a later request needs/)
})

test('replies in bytes arrive as they are: raw, base64, cut after bytes, with a status and headers', async () => {
  const reply = async (script: object, expect: object) =>
    (
      await runStandIn(
        [
          made({
            client: { chat: { steps: [{ request: { ask: {} }, expect }] } },
            model: { chat: { exchanges: [{ reply: script }] } },
          }),
        ],
        {},
        chatOnly,
      )
    )[0]
  const bytes = { raw: '{"a":1}', status: 201 }
  assert.equal((await reply(bytes, { status: 201, body: { $equals: { a: 1 } }, ended: 'complete' }))?.verdict, 'pass')
  assert.equal((await reply({ base64: 'eyJhIjoxfQ==' }, { 'body.a': 1 }))?.verdict, 'pass')
  assert.equal((await reply({ raw: '{"a":1}', splitBytes: 1, pauseMs: 1 }, { 'body.a': 1 }))?.verdict, 'pass')
  assert.equal((await reply({ raw: '{"a":1}', cutAfterBytes: 4 }, { ended: 'cut' }))?.verdict, 'pass')
  assert.equal(
    (
      await reply(
        { raw: 'x', headers: { 'content-type': 'text/plain' } },
        { 'headers.content-type': 'text/plain', raw: 'x' },
      )
    )?.verdict,
    'pass',
  )
})

test('a path that is not served is noted with its status', async () => {
  const results = await runStandIn([first!], { instead: refuse(405, 'no') as never }, chatOnly)
  const result = results.find(({ pair }) => pair === 'chat>chat')
  assert.equal(result?.note, 'status 405: the gateway does not serve this')
})

test('an explicit refusal is noted with its status and field', async () => {
  const results = await runStandIn([withFields], { instead: refuse(422, 'input cannot be carried') as never }, chatOnly)
  assert.equal(results.find(({ pair }) => pair === 'chat>chat')?.note, 'status 422 names input')
})

test('a case that expects a 404 fails at a wrong 404, and is not unsupported', async () => {
  const one = made({
    client: { chat: { steps: [{ request: { ask: {} }, expect: { status: 404, 'error.code': 'model_not_found' } }] } },
  })
  const [result] = await runStandIn([one], { instead: refuse(404, 'no such model') as never }, chatOnly)
  assert.equal(result?.verdict, 'fail')
})

test('a later request may use what the model received', async () => {
  const ask = (content: object | string) => ({ body: { model: '$model', messages: [{ role: 'user', content }] } })
  const steps = [{ request: ask('first words') }, { request: ask({ $use: 'words' }), expect: { status: 200 } }]
  const sent = { expect: { 'asked.turns[0].text': { $same: 'words' } }, reply: { answer: { text: 'a' } } }
  const one = made({ client: { chat: { steps } }, model: { chat: { exchanges: [sent, sent] } } })
  const [result] = await runStandIn([one], {}, chatOnly)
  assert.deepEqual([result?.verdict, result?.differences], ['pass', []])
})

test('a bill is judged only if the case has one and it was read', () => {
  const pair = { client: 'chat', model: 'chat' } as const
  const names = { client: 'm', upstream: 'm' }
  const bare = made({ client: { chat: { steps: [{ request: { ask: {} } }] } }, bill: { amount: { $atMost: 1 } } })
  const find = (one: Case, bill?: number) =>
    findDifferences(one, pair, { steps: [], asked: [], ...(bill === undefined ? {} : { bill }) }, names)
  const { bill: _, ...free } = bare
  assert.deepEqual([find(bare), find(bare, 1), find(free, 5)], [[], [], []])
  assert.equal(find(bare, 2)[0]?.side, 'bill')
})

test('a difference is one line, and a long value is cut in it', () => {
  const difference = { side: 'client', path: 'text', expected: '"b"', actual: 'a'.repeat(300) }
  assert.equal(describe(difference), `client: text is "${'a'.repeat(199)}…; expected "b"`)
  assert.equal(
    describe({ ...difference, actual: 'a'.repeat(198) }),
    `client: text is "${'a'.repeat(198)}"; expected "b"`,
  )
  assert.equal(describe({ ...difference, actual: undefined }), 'client: text is absent; expected "b"')
})

const chatPair = { client: 'chat', model: 'chat' } as const
const ownNames = { client: 'outer', upstream: 'inner' }
const seen = (members: object) => ({ status: 200, ended: 'complete', ...members })
const client = (...expects: (object | undefined)[]) => ({
  chat: { steps: expects.map((expect) => ({ request: {}, ...(expect && { expect }) })) },
})
const refused = (status: number, error: object | undefined) => seen({ status, error })
const failed = [{ side: 'client, step 1', path: 'status', expected: '200', actual: 400 }]
const wants = { client: client({ status: 200 }), fields: ['top_k', 'user'] }

/** Runs of a case, with the verdict on each. */
const verdicts: [what: string, one: object, trace: object, verdict: object][] = [
  ['that passes', wants, { steps: [seen({})] }, { verdict: 'pass', differences: [] }],
  [
    'whose model was asked on another wire',
    wants,
    { steps: [seen({})], wrongWire: 'messages' },
    { verdict: 'unsupported', differences: [], note: 'the gateway asked this model on messages, not on chat' },
  ],
  [
    'that is refused with the message of a field',
    wants,
    { steps: [refused(400, { message: 'no user here' })] },
    { verdict: 'refused', differences: [], note: 'status 400 names user' },
  ],
  [
    'that is refused with the param of a field',
    wants,
    { steps: [refused(499, { param: 'top_k' })] },
    { verdict: 'refused', differences: [], note: 'status 499 names top_k' },
  ],
  [
    'whose error names no field',
    wants,
    { steps: [refused(400, { code: 'user', type: 'user' })] },
    { verdict: 'fail', differences: failed },
  ],
  ['without an error', wants, { steps: [refused(400, undefined)] }, { verdict: 'fail', differences: failed }],
  [
    'that is refused in its second step',
    { ...wants, client: client({ status: 200 }, { status: 200 }) },
    { steps: [seen({ status: 500, error: { message: 'user' } }), refused(404, { message: 'user' })] },
    { verdict: 'refused', differences: [], note: 'status 404 names user' },
  ],
  [
    'whose fields are none',
    { client: client({ status: 200 }) },
    { steps: [refused(400, { message: 'user' })] },
    { verdict: 'fail', differences: failed },
  ],
  [
    'on a path that is not served',
    wants,
    { steps: [seen({ status: 501 })] },
    { verdict: 'unsupported', differences: [], note: 'status 501: the gateway does not serve this' },
  ],
  [
    'that expects such a status',
    { client: client({ status: { $oneOf: [400, 404] }, text: 'a' }) },
    { steps: [seen({ status: 404 })] },
    {
      verdict: 'fail',
      differences: [{ side: 'client, step 1', path: 'text', expected: '"a"', actual: undefined }],
    },
  ],
  [
    'that expects such a status of another step',
    { client: client({ text: 'a' }, { status: 404 }) },
    { steps: [seen({ status: 404 })] },
    {
      verdict: 'fail',
      differences: [{ side: 'client, step 1', path: 'text', expected: '"a"', actual: undefined }],
    },
  ],
  [
    'without expectations, on a path that is not served',
    { client: client(undefined), model: { '*': { exchanges: [{ reply: {} }] } } },
    { steps: [seen({ status: 404 })] },
    { verdict: 'unsupported', differences: [], note: 'status 404: the gateway does not serve this' },
  ],
  [
    'that expects no status, of all wires',
    { client: { '*': client({ text: 'a' }).chat } },
    { steps: [seen({ status: 405 })] },
    { verdict: 'unsupported', differences: [], note: 'status 405: the gateway does not serve this' },
  ],
  [
    'whose model was asked before such a status',
    { client: client({ status: 200 }), model: { '*': { exchanges: [{ reply: {} }] } } },
    { steps: [seen({ status: 404 })], asked: [{}] },
    {
      verdict: 'fail',
      differences: [{ side: 'client, step 1', path: 'status', expected: '200', actual: 404 }],
    },
  ],
]
for (const [what, one, trace, verdict] of verdicts) {
  test(`a run ${what} is judged`, () =>
    assert.deepEqual(judge(one as Case, chatPair, { asked: [], ...trace } as unknown as Trace, ownNames), verdict))
}

const absent = { $absent: true }
const model = (...expects: (object | undefined)[]) => ({
  '*': { exchanges: expects.map((expect) => ({ reply: {}, ...(expect && { expect }) })) },
})

/** Runs of a case, with all of their differences as they are said. */
const differing: [what: string, one: object, trace: object, said: string[]][] = [
  ['steps without expectations', { client: client(undefined) }, { steps: [seen({})], asked: [] }, []],
  [
    'an answer that is late, or out of order',
    { client: client({ text: absent }, undefined, { ended: 'late', disorder: 'x' }) },
    { steps: ['late', 'complete', 'late'].map((ended) => ({ ended, disorder: 'x' })), asked: [] },
    [
      'client, step 1: disorder is "x"; expected absent',
      'client, step 1: ended is "late"; expected not "late"',
      'client, step 2: disorder is "x"; expected absent',
    ],
  ],
  [
    'a client that left, in a stream out of order',
    { client: client({ text: 'a' }) },
    { steps: [{ ended: 'left', disorder: 'x' }], asked: [] },
    ['client, step 1: text is absent; expected "a"'],
  ],
  [
    'names of the model on both sides, and a value on both',
    {
      client: client({ model: '$model', id: { $same: 'x' } }, { id: { $same: 'x' } }),
      model: model({ model: '$model', id: { $same: 'x' } }, undefined),
    },
    {
      steps: [seen({ model: 'outer', id: 'a' }), seen({ id: 'b' })],
      asked: [{ model: 'outer', id: 'a' }, {}, {}],
    },
    [
      'model, request 1: model is "outer"; expected "inner"',
      'client, step 2: id is "b"; expected the same as before for "x": "a"',
    ],
  ],
  [
    'a step that was not asked, and its fault',
    { client: client({ text: 'a' }, { text: 'b' }) },
    { steps: [seen({ text: 'a' })], asked: [], fault: 'why' },
    ['client: steps is "why"; expected each to be asked'],
  ],
  [
    'a model that was asked too often, too rarely, or although there is none',
    { client: client(undefined) },
    { steps: [], asked: [{}] },
    ['model: requests is 1; expected 0'],
  ],
  [
    'a model of the pair’s wire that was asked too rarely',
    { client: client(undefined), model: { ...model(undefined), chat: model(undefined, undefined)['*'] } },
    { steps: [], asked: [{}] },
    ['model: requests is 1; expected at least 2'],
  ],
  [
    'a bill by a number and by a matcher',
    { client: client(undefined), bill: { amount: 0.3 } },
    { steps: [], asked: [], bill: 0.3000001 },
    ['bill: amount is 0.3000001; expected 0.3 to a billionth'],
  ],
  [
    'a bill that is near',
    { client: client(undefined), bill: { amount: 0.3 } },
    { steps: [], asked: [], bill: 0.1 + 0.2 },
    [],
  ],
]
for (const [what, one, trace, said] of differing) {
  test(`the differences of ${what} are listed`, () =>
    assert.deepEqual(findDifferences(one as Case, chatPair, trace as never, ownNames).map(describe), said))
}

test('what both sides have shown so far is bound for a later request', () => {
  const one = {
    client: client({ id: { $same: 'a' }, model: { $same: 'm' } }, undefined, { id: { $same: 'c' } }),
    model: model({ 'list[0]': { $same: 'b' } }),
  }
  const trace = { steps: [seen({ id: 1, model: 'x' }), seen({ id: 2 })], asked: [{ list: [3] }, { list: [4] }] }
  const bindings = bindingsSoFar(one as unknown as Case, chatPair, trace as never, ownNames)
  assert.deepEqual([...bindings] as [string, Json][], [
    ['a', 1],
    ['m', 'x'],
    ['b', 3],
  ])
  const { model: _, ...alone } = one
  assert.equal(bindingsSoFar(alone as unknown as Case, chatPair, trace as never, ownNames).size, 2)
})
