import assert from 'node:assert/strict'
import test from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { loadText } from '../../src/config/load.ts'
import { noteCost } from '../../src/inference/usage.ts'
import { verifyOptions } from '../store/fixtures.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers, asks, frames, type Native, named, paths, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'
import { inFrame, withService } from '../support/served.ts'

/*
 * What providers charge (issue 46, point 3): a list of the provider for a model or a route, and what answers report of the bill.
 * Operators see both, clients neither (rulings P10, X14).
 */

const prices = { input: '3', output: '15' }
const cost = { input: '1', output: '5', tiers: { priority: '2' } }

/** Bills as providers report them, each with its decimal text. */
const bills: [usage: Record<string, unknown>, text: string | undefined][] = [
  [{ cost_in_usd_ticks: 37_756_001 }, '0.0037756001'],
  [{ cost: 0.000_95 }, '0.00095'],
  [{ cost: { input_tokens_cost: 0.1, total_cost: 0.777 } }, '0.777'],
  [{ estimated_cost: 0.000_026_8 }, '0.0000268'],
  [{ cost: 'much' }, undefined],
  [{}, undefined],
]

async function start(config: Record<string, unknown> = {}): Promise<Native> {
  const models = clientWireNames.flatMap((wire) => [
    testModel(`plain-${wire}`, wire, { prices }),
    testModel(`cost-${wire}`, wire, { prices, cost }),
    testModel(`route-${wire}`, wire, { prices, cost, upstream: [{ name: 'sim', cost: { input: '2', output: '2' } }] }),
  ])
  const called = {
    prices: { ...prices, calls: { web_search: '0.01' } },
    cost: { ...cost, calls: { web_search: '0.004' } },
  }
  models.push(testModel('called-messages', 'messages', called))
  for (const wire of ['messages', 'responses'] as const)
    models.push(testModel(`given-${wire}`, wire, { ...called, prices }))
  return startNative({ models, config })
}

async function ask(
  native: Native,
  wire: ClientWire,
  model: string,
  said: object,
  isStream = false,
  asked: object = {},
) {
  const { gateway, upstream } = native
  const served = { usage: said as Record<string, string> }
  upstream.play(
    isStream ? stream(frames[wire].map((frame) => inFrame(frame, served))) : whole(withService(answers[wire], served)),
  )
  const answer = await native.ask(wire, { model: `${model}-${wire}`, stream: isStream, ...asked })
  assert.equal(answer.status, 200, answer.text)
  return { ...answer, entry: gateway.store.findEntry(answer.id)! }
}

test('C11 an entry has the cost by the list of its route, else of its model, at the tier that was used; clients see none', async () => {
  const native = await start()
  for (const wire of clientWireNames)
    for (const isStream of [false, true]) {
      // Nine tokens of input and three of output.
      const costs = { cost: 9_000n + 15_000n, route: 18_000n + 6_000n }
      for (const [model, nanos] of Object.entries(costs))
        for (const [said, reported] of bills) {
          const { text, entry } = await ask(native, wire, model, said, isStream)
          assert.equal(entry.amountNanos, 72_000n)
          const { costNanos, costReported, list } = entry.details!
          assert.deepEqual(
            [costNanos, costReported, list],
            [nanos, reported, undefined],
            `${wire} ${JSON.stringify(said)}`,
          )
          assert.ok(!/37756001|0\.777|0\.00095/.test(text), `${wire} ${isStream} ${text}`)
        }
    }
  const { entry } = await ask(native, 'chat', 'cost', {}, false, {})
  assert.equal(entry.details!.tier, undefined)
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('C11 a route has its own cost, also if it differs from the first route in nothing else', async () => {
  const first = { name: 'first', cost: { input: '1', output: '5' } }
  const second = { name: 'second', cost: { input: '2', output: '2' } }
  for (const [off, upstream, input, output] of [
    ['second', [first, second], 1n, 5n],
    ['first', [first, second], 2n, 2n],
    ['first', [first, 'second'], 4n, 1n],
  ] as const) {
    const upstreamOf = (base_url: string, name: string) => {
      return [name, { base_url, accounts: [{ name: 'main', key: `key-${name}`, enabled: name !== off }] }] as const
    }
    const gateway = await startTestGateway({
      models: [testModel('two-chat', 'chat', { prices, upstream, cost: { input: '4', output: '1' } })],
      upstream: (url) => ({
        upstreams: Object.fromEntries(['first', 'second'].map((name) => upstreamOf(url, name))),
      }),
    })
    const answer = await gateway.post(paths.chat, { ...asks.chat, model: 'two-chat' })
    await answer.text()
    const { bill, details } = gateway.store.findEntry(answer.headers.get('x-request-id')!)!
    const { inputTokens, outputTokens } = bill!.usage
    assert.equal(details!.costNanos, (BigInt(inputTokens) * input + BigInt(outputTokens) * output) * 1_000n)
  }
})

test('issue 46 C11 the cost is that of the tier that served, also where only the list of the cost has the tier', async () => {
  const native = await start()
  for (const [tier, factor] of [
    ['priority', 2n],
    ['flex', 1n],
    ['default', 1n],
  ] as const) {
    const served = { answer: { service_tier: tier } }
    native.upstream.play(whole(withService(answers.chat, served)))
    const { id } = await native.ask('chat', { model: 'cost-chat' })
    const entry = native.gateway.store.findEntry(id)!
    assert.deepEqual(
      [entry.amountNanos, entry.details!.costNanos, entry.details!.tier],
      [72_000n, 24_000n * factor, undefined],
    )
  }
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('issue 46 C4 an answer that is waived has the cost of its tokens all the same', async () => {
  const native = await start({ billing: { cut_answers: 'waive' } })
  native.upstream.play(stream(frames.messages.slice(0, -2)))
  const { id } = await native.ask('messages', { model: 'cost-messages', stream: true })
  const { amountNanos, bill, details } = native.gateway.store.findEntry(id)!
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = bill!.usage
  const allInput = inputTokens + cacheReadTokens + cacheWriteTokens
  assert.deepEqual([amountNanos, bill!.usageSource], [0n, 'waived'])
  assert.ok(allInput > 0)
  assert.equal(details!.costNanos, BigInt(allInput) * 1_000n + BigInt(outputTokens) * 5_000n)
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('issue 46 C11 the cost has the calls of hosted tools, at the price of its own list', async () => {
  const native = await start()
  const said = { server_tool_use: { web_search_requests: 2 } }
  const { entry } = await ask(native, 'messages', 'called', said)
  const [amountNanos, costNanos] = [72_000n + 2n * 10n ** 7n, 24_000n + 8n * 10n ** 6n]
  assert.deepEqual([entry.amountNanos, entry.details!.costNanos], [amountNanos, costNanos])
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('C11 the cost has the calls of hosted tools that the gateway gives away', async () => {
  const native = await start()
  const { entry } = await ask(native, 'messages', 'given', { server_tool_use: { web_search_requests: 2 } })
  assert.deepEqual([entry.amountNanos, entry.details!.costNanos], [72_000n, 24_000n + 8n * 10n ** 6n])
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('C11 the cost has calls that only blocks and items show, if only the list of the cost has their price', async () => {
  const native = await start()
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }
  const item = { id: 'ws_1', type: 'web_search_call', status: 'completed' }
  const [begun, ...rest] = frames.messages
  const shown: [ClientWire, ReturnType<typeof whole>][] = [
    ['messages', whole({ ...answers.messages, content: [search, ...(answers.messages['content'] as object[])] })],
    ['responses', whole({ ...answers.responses, output: [item, ...(answers.responses['output'] as object[])] })],
    [
      'messages',
      stream([
        begun!,
        named({ type: 'content_block_start', index: 0, content_block: { ...search, input: {} } }),
        named({ type: 'content_block_stop', index: 0 }),
        ...rest.map((frame) => frame.replaceAll('"index":0', '"index":1')),
      ]),
    ],
    [
      'responses',
      stream([
        frames.responses[0]!,
        named({ type: 'response.output_item.done', sequence_number: 1, output_index: 0, item }),
        ...frames.responses.slice(1).map((frame) => frame.replaceAll('"output_index":0', '"output_index":1')),
      ]),
    ],
  ]
  for (const [at, [wire, answer]] of shown.entries()) {
    native.upstream.play(answer)
    const { id } = await native.ask(wire, { model: `given-${wire}`, stream: at > 1 })
    const entry = native.gateway.store.findEntry(id)!
    assert.deepEqual([entry.amountNanos, entry.details!.costNanos], [72_000n, 24_000n + 4n * 10n ** 6n], `${at}`)
  }
  assert.deepEqual(native.gateway.store.verify(verifyOptions), [])
  await native.close()
})

test('issue 46 a cost reported in answers does not start ledger form 3 by itself; it is kept with ledger: { form: 3 }', async () => {
  for (const config of [{}, { ledger: { form: 3 } }]) {
    const native = await start(config)
    for (const wire of clientWireNames)
      for (const [said, reported] of bills) {
        const { entry } = await ask(native, wire, 'plain', said)
        const expected = 'ledger' in config && reported !== undefined ? { costReported: reported } : undefined
        assert.deepEqual(entry.details && JSON.parse(JSON.stringify(entry.details)), expected)
        assert.equal(entry.digest.slice(0, 2), expected ? '3:' : '1:')
      }
    await native.close()
  }
})

test('C11 a reported cost is a decimal text, and an implausible amount is left out', () => {
  const textOf = (usage: Record<string, unknown>) => noteCost({}, usage).costReported
  assert.deepEqual(
    [0, 1, 100, 1e-10, 0.1, 1_000_000].map((value) => textOf({ cost: value })),
    ['0', '1', '100', '0.0000000001', '0.1', '1000000'],
  )
  for (const value of [-1, 1e7, Number.NaN, null, '1', [], {}]) assert.equal(textOf({ cost: value }), undefined)
})

test('C11 errors of a cost list name its key', () => {
  const text = (cost: string) => `upstreams: { u: { base_url: http://127.0.0.1:9, accounts: [{ name: a, key: k }] } }
catalog: { pinned: 2026-11-01, models: [{ id: m, wire: chat, upstream: ${cost}, max_output_tokens: 9, prices: { input: "1", output: "1" } }] }
`
  const bands =
    '[{ name: a, zone: UTC, hours: "01:00-03:00", times: "2" }, { name: b, zone: UTC, hours: "02:00-04:00", times: "2" }]'
  const wrong = [
    [`u, cost: { input: "1", output: "1", bands: ${bands} }`, /catalog\.models\[0\]\.cost\.bands\[1\] overlaps/],
    [`[{ name: u, cost: { input: "1", output: "1", bands: ${bands} } }]`, /upstream\[0\]\.cost\.bands\[1\] overlaps/],
  ] as const
  for (const [cost, message] of wrong)
    assert.throws(
      () => loadText(text(cost), 'file', {}, {}),
      (error: { problems: { message: string }[] }) => {
        return error.problems.some((problem) => message.test(problem.message))
      },
    )
})
