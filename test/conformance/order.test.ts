import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import type { Case, Reply } from '../../conformance/src/case.ts'
import { startModel } from '../../conformance/src/model.ts'
import { findDeviation, hasFailingModel, runCases } from '../../conformance/src/run.ts'
import type { Trace } from '../../conformance/src/verdict.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { untilStill } from '../support/waiting.ts'

const event = (data: object) => ({ data: data as never })

/** Replies of a model, and whether a gateway may leave the model alone for a while after them. */
const replies: [what: string, reply: Reply, fails: boolean][] = [
  ['an answer', { answer: { text: 'Hi' } }, false],
  ['a body', { json: { error: null } }, false],
  ['a stream', { events: [event({ a: 1 }), event({ b: 1 })] }, false],
  ['a pause', { events: [event({ a: 1 }), { pauseMs: 5 }, event({ b: 1 })] }, false],
  ['a refusal', { status: 400, json: {} }, true],
  ['a cut body', { json: {}, cutAfterBytes: 9 }, true],
  ['a cut stream', { events: [event({ a: 1 }), { cut: true }] }, true],
  ['a stream without an end', { events: [event({ a: 1 }), { hang: true }] }, true],
  ['an error event', { events: [event({ a: 1 }), event({ type: 'error', error: { type: 'x' } })] }, true],
  ['an error chunk', { events: [event({ a: 1 }), event({ error: { message: 'x' } })] }, true],
  ['a failed response', { events: [event({ a: 1 }), event({ type: 'response.failed' })] }, true],
  ['an empty stream', { events: [] }, true],
]

for (const [what, reply, fails] of replies) {
  test(`a model that sends ${what} ${fails ? 'runs after the others' : 'runs at its place'}`, () => {
    const one = {
      client: { chat: { steps: [{ request: {}, expect: { status: 200 } }] } },
      model: { chat: { exchanges: [{ reply }] } },
    }
    assert.equal(hasFailingModel(one as unknown as Case), fails)
  })
}

test('a case that expects a status other than 200 runs after the others', () => {
  const one = {
    client: { chat: { steps: [{ request: {}, expect: { status: { $oneOf: [500, 502] } } }] } },
    model: { chat: { exchanges: [{ reply: { json: {} } }] } },
  }
  assert.equal(hasFailingModel(one as unknown as Case), true)
})

test('one step that expects another status is enough', () => {
  const steps = [{ request: {} }, { request: {}, expect: { status: 429 } }]
  assert.equal(hasFailingModel({ client: { chat: { steps } } } as unknown as Case), true)
})

test('a step without expectations does not count as a failure of the model', () => {
  assert.equal(hasFailingModel({ client: { chat: { steps: [{ request: {} }] } } } as unknown as Case), false)
})

test('a deviation is declared for cases or a whole area, and for all pairs, some, or those of one wire', () => {
  const chatToMessages = { client: 'chat', model: 'messages' } as const
  for (const [cases, pairs, holds] of [
    [['a/b'], undefined, true],
    [['a/*'], undefined, true],
    [['c/*', 'a/b'], undefined, true],
    [['a'], undefined, false],
    [['a/bc'], undefined, false],
    [['a/b'], ['chat>messages'], true],
    [['a/b'], ['chat>*'], true],
    [['a/b'], ['*>messages'], true],
    [['a/b'], ['*>*'], true],
    [['a/b'], ['chat>chat', 'messages>messages'], false],
    [['a/b'], ['*>chat'], false],
    [['a/b'], ['responses>*'], false],
    [['a/b'], [], false],
  ] as [string[], string[] | undefined, boolean][]) {
    const declared = { cases, page: 'docs/x.md', says: 'It does.', ...(pairs && { pairs }) }
    assert.equal(findDeviation([declared], 'a/b', chatToMessages), holds ? declared : undefined, `${cases} ${pairs}`)
  }
})

test('results are in the order of case and pair, whatever order the runs had', async () => {
  const model = await startModel(0)
  atEnd(() => model.close())
  const origin = `http://127.0.0.1:${await listen(createServer((_, response) => response.end('{}')))}`
  const plain = (id: string, status: number) => ({
    id,
    area: 'answers',
    level: 'MUST',
    pairs: ['chat>responses', 'chat>chat'],
    client: { chat: { steps: [{ request: { body: {} }, expect: { status } }] } },
    model: { '*': { exchanges: [{ reply: { json: {} } }] } },
  })
  const ids = ['a/c', 'a/a', 'a/b-c', 'a/b', 'a/d']
  let reads = 0
  const cases = ids.map((id, i) => ({ ...plain(id, i % 2 ? 500 : 200), ...(i > 2 && { bill: { amount: 0 } }) }))
  const results = await runCases(cases as unknown as Case[], {
    // A run reads what was spent once before it, and twice the same after it.
    readSpent: async () => Math.floor((reads++ + 2) / 3),
    origin,
    key: 'k',
    model,
    features: [],
    deviations: [],
    lanes: 1,
    jobs: 1,
    names: () => ({ client: 'm', upstream: 'm' }),
  })
  assert.deepEqual(
    results.map(({ case: id, pair }) => `${id} ${pair}`),
    ids.toSorted().flatMap((id) => [`${id} chat>chat`, `${id} chat>responses`]),
    'each once, those with a bill too',
  )
})

test('as many cases run at once as jobs and lanes allow, those with a bill alone, and those whose model fails last', async () => {
  const model = await startModel(0)
  atEnd(() => model.close())
  let [open, most] = [0, 0]
  const server = createServer((request, response) => {
    request.resume()
    most = Math.max(most, ++open)
    void untilStill(() => open).then(() => {
      open--
      response.end('{}')
    })
  })
  const origin = `http://127.0.0.1:${await listen(server)}`
  const made = (id: string, more: object = {}, status = 200) => ({
    id,
    client: { chat: { steps: [{ request: { body: {} }, expect: { status } }] } },
    ...more,
  })
  const names = new Set<string>()
  let reads = 0
  let order: string[] = []
  const run = async (jobs: number, lanes: number, cases: object[]) => {
    order = []
    most = 0
    await runCases(cases as Case[], {
      origin,
      key: 'k',
      model,
      features: [],
      deviations: [{ cases: cases.map((one) => (one as Case).id), page: 'x', says: 'x' }],
      lanes,
      jobs,
      names: (_, lane) => {
        names.add(`m-${lane}`)
        return { client: `m-${lane}`, upstream: 'm' }
      },
      // Each run reads once before it, and twice the same after it.
      readSpent: async () => Math.floor((reads++ + 2) / 3),
      onResult: ({ case: id }) => order.push(id),
    })
    return most
  }
  const five = Array.from({ length: 5 }, (_, at) => made(String(at)))
  assert.equal(await run(3, 2, five), 2)
  assert.deepEqual([...names].sort(), ['m-1', 'm-2'])
  assert.equal(await run(2, 3, five), 2)
  assert.deepEqual([...names].sort(), ['m-1', 'm-2', 'm-3'], 'the lane that has rested longest is next')
  await run(1, 1, [made('fails', {}, 500), made('late', { bill: { amount: {} } }), made('plain')])
  assert.deepEqual(order, ['plain', 'late', 'fails'])
  const bills = ['a', 'b', 'c'].map((id) => made(id, { bill: { amount: {} } }))
  assert.equal(await run(3, 3, bills), 1)
})

test('a failed case is tried again, unless it is declared, and each result has its reason and its own time', async () => {
  let asked = 0
  let statuses: number[] = []
  const server = createServer((_, response) => {
    response.writeHead(statuses[Math.min(asked++, statuses.length - 1)]!).end('{}')
  })
  const model = await startModel(0)
  atEnd(() => model.close())
  const origin = `http://127.0.0.1:${await listen(server)}`
  const one = { id: 'a/b', area: 'answers', level: 'MUST', title: 'A', pairs: ['chat>chat'] }
  const client = { chat: { steps: [{ request: { body: {} }, expect: { status: 200 } }] } }
  const run = async (answers: number[], more: object = {}, changes: object = {}) => {
    asked = 0
    statuses = answers
    const started = performance.now()
    const [result] = await runCases([{ ...one, client, ...changes } as unknown as Case], {
      origin,
      key: 'k',
      model,
      features: [],
      deviations: [],
      lanes: 1,
      jobs: 1,
      names: () => ({ client: 'm', upstream: 'm' }),
      ...more,
    })
    assert.ok(result!.ms >= 0 && result!.ms <= performance.now() - started + 1, `${result!.ms} ms`)
    return [result!.verdict, result!.note, result!.differences.length, asked]
  }
  assert.deepEqual(await run([200]), ['pass', undefined, 0, 1])
  assert.deepEqual(await run([500]), ['fail', undefined, 1, 2])
  const traced: number[] = []
  const onTrace = (_: Case, __: object, { steps }: Trace) => traced.push(...steps.map(({ status }) => status))
  assert.deepEqual(await run([500, 200], { onTrace }), ['flaky', 'a second try: pass', 1, 2])
  assert.deepEqual(traced, [500], 'a proof of the checkers sees the first try only')
  const deviations = [{ cases: ['a/b'], page: 'docs/x.md', says: 'It does.' }]
  assert.deepEqual(await run([500], { deviations }), ['deviation', 'It does. (docs/x.md)', 1, 1])
  assert.deepEqual(await run([200], { deviations }), ['pass', undefined, 0, 1])
  const absent = 'it needs files, which is not switched on'
  assert.deepEqual(await run([200], {}, { needs: ['files'] }), ['unsupported', absent, 0, 0])
  assert.deepEqual(await run([200], {}, { bill: { amount: 1 } }), ['unsupported', 'the bill cannot be read', 0, 0])
  assert.deepEqual(await run([200], { pairs: [] }), ['unsupported', 'the gateway has no such pair', 0, 0])
})
