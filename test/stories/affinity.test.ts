import assert from 'node:assert/strict'
import test from 'node:test'
import type { Explanation } from '../../src/operations/shapes.ts'
import type { ToldUsage } from '../../src/operations/usage-shape.ts'
import { filler, type Shape, shapes } from '../support/agent-shapes.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { answers, asks } from '../support/native.ts'
import { startRawUpstream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/*
 * What pools do to prompt caches (P6): tasks of real agents, by the lengths of what they say, over upstream accounts that
 * each have a prompt cache of their own, as at a provider.
 */

const conversations = 12

/** The bodies of one task on the chat wire, one a turn: each says again what was said before. */
function* turnsOf(shape: Shape, name: string) {
  const tools = shape.tools.map((size, index) => ({
    type: 'function',
    function: { name: `tool_${index}`, description: filler(size), parameters: { type: 'object', properties: {} } },
  }))
  // No two tasks begin alike: folder, day and user stand in the system prompt.
  const messages: object[] = [
    { role: 'system', content: `Working in ${name}. ${filler(shape.system)}` },
    { role: 'user', content: filler(shape.task) },
  ]
  for (const [turn, sizes] of [...shape.results, []].entries()) {
    yield { model: 'native-chat', messages: [...messages], tools }
    const calls = sizes.map((_, index) => `call_${turn}_${index}`)
    messages.push({
      role: 'assistant',
      content: null,
      tool_calls: calls.map((id, index) => ({
        id,
        type: 'function',
        function: { name: `tool_${index}`, arguments: '{}' },
      })),
    })
    for (const [index, id] of calls.entries()) {
      messages.push({ role: 'tool', tool_call_id: id, content: filler(sizes[index]!) })
    }
  }
}

/** @returns the cached share of all input tokens, in percent, when all tasks run side by side; by the ledger */
async function hitRate(accounts: number, isNamed: boolean): Promise<number> {
  const names = Array.from({ length: accounts }, (_, index) => ({ name: `a${index}`, key: `upstream-key-${index}` }))
  const sim = (url: string) => ({ upstreams: { sim: { base_url: url, accounts: names } } })
  const gateway = await startTestGateway({ upstream: sim, cools: true, promptCache: 'vendors' })
  const tasks = Array.from({ length: conversations }, (_, index) => {
    const shape = Object.values(shapes)[index % 3]!
    return { name: `task-${index}`, turns: turnsOf(shape, `/home/task-${index}`) }
  })
  for (let turn = 0; turn < 6; turn++) {
    for (const { name, turns } of tasks) {
      const { value } = turns.next()
      const response = await gateway.post('/v1/chat/completions', {
        ...value,
        ...(isNamed && { prompt_cache_key: name }),
      })
      assert.equal(response.status, 200)
      await response.arrayBuffer()
    }
  }
  const bills = [...gateway.store.listEntries({ limit: 1_000 })].flatMap(({ bill }) => bill ?? [])
  assert.equal(bills.length, 6 * conversations)
  const used = new Set(bills.map(({ upstreamAccount }) => upstreamAccount))
  // Where a conversation goes is drawn anew for each account of ours: twelve on one of eight is one run in a million.
  assert.ok(accounts === 1 || used.size > 1, `${used.size} of ${accounts} accounts were asked`)
  await gateway.close()
  const cached = bills.reduce((sum, { usage }) => sum + usage.cacheReadTokens, 0)
  const input = bills.reduce((sum, { usage }) => sum + usage.inputTokens + usage.cacheReadTokens, 0)
  return (100 * cached) / input
}

test('P6 Y24 the prompt cache stays warm over 8 accounts, for conversations with and without a name', async (t) => {
  const one = await hitRate(1, true)
  const eight = await hitRate(8, true)
  const [alone, unnamed] = [await hitRate(1, false), await hitRate(8, false)]
  const told = [one, eight, alone, unnamed].map((rate) => `${rate.toFixed(1)} %`)
  t.diagnostic(
    `named: one account ${told[0]}, 8 accounts ${told[1]}; without a name: one account ${told[2]}, 8 accounts ${told[3]}`,
  )
  assert.ok(one > 60 && Math.abs(one - eight) <= 2, `${told[0]} with one, ${told[1]} with eight`)
  assert.ok(unnamed >= 0.98 * alone, `${told[3]} without a name, ${told[2]} with one account`)
})

test('Y24 a conversation that leaves its account is marked as moved, with the reason and the highest possible cost, and counted', async () => {
  const upstream = await startRawUpstream()
  const accounts = ['a', 'b'].map((name) => ({ name, key: `upstream-key-${name}` }))
  const gateway = await startTestGateway({
    cools: true,
    upstream: () => ({ upstreams: { sim: { base_url: upstream.url, accounts } } }),
  })
  let failing: string | undefined
  upstream.play((socket, request) => {
    const isFailing = failing !== undefined && request.header('authorization')!.endsWith(failing)
    const refusal = whole({ error: { message: 'busy' } }, 429, { 'retry-after': '30' })
    return (isFailing ? refusal : whole(answers.chat))(socket, request)
  })
  const content = 'One of many. '.repeat(400)
  const ask = async () => {
    const body = {
      ...asks.chat,
      messages: [
        { role: 'system', content },
        { role: 'user', content: 'Hi' },
      ],
    }
    const response = await gateway.post('/v1/chat/completions', body)
    await response.arrayBuffer()
    const id = response.headers.get('x-request-id')!
    const { upstream_account: account, why, moved } = await gateway.logOf(id)
    const explained = (await (await gateway.askAdmin(`/api/v1/requests/${id}/explain`)).json()) as Explanation
    return { account, why, moved, explained: explained.moved }
  }
  const first = await ask()
  assert.deepEqual([first.why, first.moved, first.explained], ['alike', undefined, null])
  assert.deepEqual(await ask(), { ...first, why: 'bound' })
  failing = first.account as string
  const left = await ask()
  assert.notEqual(left.account, first.account)
  assert.deepEqual([left.why, left.moved, left.explained], ['diverted', 'failed', { why: 'failed', cost: '0.0000135' }])
  const away = await ask()
  assert.deepEqual([away.why, away.moved, away.account], ['diverted', 'cooling', left.account])
  const metrics = await (await gateway.askAdmin('/metrics')).text()
  const figures = metrics.split('\n').filter((line) => line.startsWith('triwire_moved_'))
  assert.deepEqual(figures, [
    'triwire_moved_requests_total{model="native-chat",reason="failed"} 1',
    'triwire_moved_requests_total{model="native-chat",reason="cooling"} 1',
    'triwire_moved_credits_total{model="native-chat"} 0.000027',
  ])
  // Reports sum them, with all requests beside them.
  const report = async (by: string) =>
    (await (
      await gateway.askAdmin(`/api/v1/usage?last=7d&bucket=all&by=${by}&measures=requests,moved_requests`)
    ).json()) as ToldUsage
  await until(async () => (await report('model')).total.moved_requests?.[0] === 2, 'the counts are written')
  const told = await report('upstream')
  assert.deepEqual([told.total.requests, told.total.moved_requests], [[4], [2]])
  assert.deepEqual(
    told.series.map(({ of, moved_requests: moved }) => [of.upstream, moved]),
    [['sim', [2]]],
  )
  await gateway.close()
})

/** An hour of tasks, four at once, in which a model is asked every 30 s. @returns shares in percent, and how often the first entry was asked */
async function playHour(model: string, isNamed: boolean) {
  const down = await startRawUpstream()
  down.play(whole({ error: { message: 'no' } }, 503))
  const accounts = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ name: `a${index}`, key: `upstream-key-${index}` }))
  const gateway = await startTestGateway({
    cools: true,
    models: [
      testModel('first', 'chat', { upstream: 'down' }),
      testModel('second', 'chat', { upstream: 'sim' }),
      { id: 'chain', chain: ['first', 'second'] },
    ],
    upstream: (url) => ({
      upstreams: {
        down: { base_url: down.url, accounts: accounts(2) },
        sim: { base_url: url, accounts: accounts(8) },
      },
    }),
  })
  let [asked, good] = [0, 0]
  for (let wave = 0; wave < 5; wave++) {
    const tasks = Array.from({ length: 4 }, (_, index) => {
      const name = `task-${wave}-${index}`
      return { name, turns: turnsOf(Object.values(shapes)[index % 3]!, `/home/${name}`) }
    })
    for (let turn = 0; turn < 6; turn++)
      for (const { name, turns } of tasks) {
        const named = isNamed && { prompt_cache_key: name }
        const response = await gateway.post('/v1/chat/completions', { ...turns.next().value, ...named, model })
        asked++
        if (response.status === 200 && (await response.text()).includes('"finish_reason"')) good++
        gateway.advance(30_000)
      }
  }
  const bills = [...gateway.store.listEntries({ limit: 1_000 })].flatMap(({ bill }) => bill ?? [])
  assert.ok(bills.every((bill) => bill.model === 'second'))
  const cached = bills.reduce((sum, { usage }) => sum + usage.cacheReadTokens, 0)
  const input = bills.reduce((sum, { usage }) => sum + usage.inputTokens + usage.cacheReadTokens, 0)
  await gateway.close()
  return { good: (100 * good) / asked, hits: (100 * cached) / input, tries: down.requests.length, asked }
}

for (const isNamed of [true, false])
  test(`48.3 Y23 a chain whose first entry is down for an hour answers 99 %, with 95 % of the cache hits that the second has natively, ${isNamed ? 'named' : 'unnamed'}`, async (t) => {
    const [native, chain] = [await playHour('second', isNamed), await playHour('chain', isNamed)]
    t.diagnostic(JSON.stringify({ native, chain }))
    assert.ok(native.hits > 50, `${native.hits}`)
    assert.ok(chain.good >= 99, `${chain.good} %`)
    assert.ok(chain.hits >= 0.95 * native.hits, `${chain.hits} % of ${native.hits} %`)
    // Conversations stay with the second entry, and the first one cools.
    assert.ok(chain.tries > 0 && chain.tries < chain.asked, `${chain.tries} tries`)
  })
