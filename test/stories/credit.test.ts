import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import test from 'node:test'
import fc from 'fast-check'
import { priceNanos } from '../../src/catalog/model.ts'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { readLogLine } from '../../src/cli/access-log.ts'
import type { Status } from '../../src/operations/live-shapes.ts'
import { testModel } from '../support/gateway.ts'
import { holdStore } from '../support/hold-store.ts'
import { answerNanos, answers, asks, chunk, frames, paths, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

test('C1 an amount is the sum of tokens times price, rounded up once', () => {
  const nanos = fc.bigInt({ min: 0n, max: 10n ** 18n })
  const tokens = fc.nat(2 ** 31)
  fc.assert(
    fc.property(
      fc.array(nanos, { minLength: 5, maxLength: 5 }),
      fc.array(tokens, { minLength: 4, maxLength: 4 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      ([a, b, c, d, e], [input, read, written, output], part) => {
        const hour = Math.floor(written! * part)
        const prices = {
          inputNanos: a!,
          cacheReadNanos: b!,
          cacheWriteNanos: c!,
          cacheWrite1hNanos: d!,
          outputNanos: e!,
        }
        const amount = priceNanos(prices, {
          inputTokens: input!,
          cacheReadTokens: read!,
          cacheWriteTokens: written!,
          cacheWrite1hTokens: hour,
          outputTokens: output!,
          reasoningTokens: 0,
          estimated: false,
        })
        const exact =
          BigInt(input!) * a! +
          BigInt(read!) * b! +
          BigInt(written! - hour) * c! +
          BigInt(hour) * d! +
          BigInt(output!) * e!
        assert.ok(amount * 1_000_000n >= exact && amount * 1_000_000n < exact + 1_000_000n)
      },
    ),
  )
})

test('C1 one token of a price of one nano-credit per million costs one nano-credit', () => {
  const prices = { inputNanos: 1n, cacheReadNanos: 0n, cacheWriteNanos: 0n, cacheWrite1hNanos: 0n, outputNanos: 1n }
  const usage = {
    inputTokens: 1,
    cacheReadTokens: 9,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: 1,
    reasoningTokens: 0,
    estimated: false,
  }
  assert.equal(priceNanos(prices, usage), 1n)
})

test('C1 C3 an answer of each wire has its exact cost, with cached tokens at their own price, as JSON and as a stream', async () => {
  const native = await startNative()
  for (const wire of clientWireNames) {
    for (const isStream of [false, true]) {
      native.upstream.play(isStream ? stream(frames[wire]) : whole(answers[wire]))
      const { id } = await native.ask(wire, { stream: isStream })
      const entry = native.gateway.store.findEntry(id)!
      assert.deepEqual([entry.amountNanos, entry.bill!.usageSource], [answerNanos, 'final'])
    }
  }
  await native.close()
})

const dear = (id: string, prices: Record<string, string>) =>
  testModel(id, id === 'native-messages' ? 'messages' : 'chat', { prices })

test('C1 cache writes of an hour have their own price; a refusal is billed; an answer of cost 0 has an entry of 0', async () => {
  const native = await startNative({
    models: [
      dear('native-messages', { input: '1', cache_write: '2', cache_write_1h: '4', output: '0' }),
      dear('native-chat', { input: '0', output: '0' }),
    ],
  })
  const usage = {
    input_tokens: 1,
    cache_creation_input_tokens: 30,
    cache_read_input_tokens: 0,
    output_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  }
  native.upstream.play(whole({ ...answers.messages, content: [], stop_reason: 'refusal', usage }))
  const refused = await native.ask('messages')
  assert.equal(native.gateway.store.findEntry(refused.id)?.amountNanos, 101_000n)
  native.upstream.play(whole(answers.chat))
  const free = await native.ask('chat')
  assert.equal(native.gateway.store.findEntry(free.id)?.amountNanos, 0n)
  await native.close()
})

/** What an upstream reports, what of it is billed (input, cached, output; undefined: our estimate), and a flag. */
const reports: [string, Record<string, unknown>, (number | undefined)[], string | undefined][] = [
  ['negative', { prompt_tokens: -5, completion_tokens: 3 }, [undefined, 0, 3], 'usage_invalid'],
  ['fractional', { prompt_tokens: 9, completion_tokens: 3.5 }, [9, 0, undefined], 'usage_invalid'],
  ['a string', { prompt_tokens: '9', completion_tokens: 3 }, [undefined, 0, 3], 'usage_invalid'],
  ['1e300', { prompt_tokens: 1e300, completion_tokens: 3 }, [undefined, 0, 3], 'usage_invalid'],
  [
    'cached above input',
    { prompt_tokens: 9, completion_tokens: 3, prompt_tokens_details: { cached_tokens: 50 } },
    [0, 9, 3],
    'cached_clamped',
  ],
  ['a total above the sum', { prompt_tokens: 9, completion_tokens: 3, total_tokens: 19 }, [9, 0, 10], undefined],
  ['output above twice the cap', { prompt_tokens: 9, completion_tokens: 201 }, [9, 0, undefined], 'output_absurd'],
  ['output up to twice the cap', { prompt_tokens: 9, completion_tokens: 200 }, [9, 0, 200], undefined],
  ['nothing', {}, [undefined, 0, undefined], 'output_estimated'],
]

test('C6 F-U38 F-U40 F-U41 reported usage is checked for plausibility and never becomes a credit', async () => {
  const native = await startNative()
  for (const [name, usage, [input, cached, output], flag] of reports) {
    const tail = [chunk({ choices: [], usage }), 'data: [DONE]\n\n']
    for (const isStream of [false, true]) {
      native.upstream.play(isStream ? stream([...frames.chat.slice(0, 4), ...tail]) : whole({ ...answers.chat, usage }))
      const { id, text } = await native.ask('chat', { max_tokens: 100, stream: isStream })
      const { bill, amountNanos } = native.gateway.store.findEntry(id)!
      assert.ok(amountNanos > 0n, name)
      assert.ok(bill!.usage.inputTokens >= 0 && bill!.usage.outputTokens > 0, name)
      if (input !== undefined) assert.equal(bill!.usage.inputTokens, input, name)
      assert.equal(bill!.usage.cacheReadTokens, cached, name)
      if (output !== undefined) assert.equal(bill!.usage.outputTokens, output, name)
      assert.equal(bill!.usageSource, input === undefined || output === undefined ? 'estimated' : 'final', name)
      const flags = (await native.gateway.logOf(id))['flags'] as string[] | undefined
      assert.ok(flag === undefined ? !flags?.includes('usage_invalid') : flags?.includes(flag), `${name}: ${flags}`)
      assert.doesNotMatch(text, /"prompt_tokens":(-|"|1e)|"completion_tokens":3\.5/, name)
    }
  }
  await native.close()
})

test('C9 C13 the log and the ledger of a server agree on every request, and a change of either is detected', async () => {
  const native = await startNative({
    models: [testModel('native-messages', 'messages'), testModel('native-chat', 'chat')],
  })
  const { gateway, upstream } = native
  upstream.play(whole(answers.chat))
  const first = await native.ask('chat')
  // Asked on one wire, answered on another: C9 has both.
  const second = await native.ask('messages', { model: 'native-chat' })
  upstream.play(whole('no', 500))
  await native.ask('chat')
  await gateway.logOf(second.id)
  const { bill } = gateway.store.findEntry(second.id)!
  const [key] = gateway.store.listKeys()
  assert.deepEqual(
    [bill!.keyId, bill!.clientWire, bill!.model, bill!.modelWire, bill!.upstream, bill!.upstreamAccount],
    [key!.id, 'messages', 'native-chat', 'chat', 'sim', 'a'],
  )
  const lines = await gateway.logLines()
  const compare = (change: (line: Record<string, unknown>) => object) => {
    const log = lines.flatMap((line) => readLogLine(JSON.stringify(line.id === first.id ? change(line) : line)) ?? [])
    return gateway.store.verify({ priceNanos, log })
  }
  assert.deepEqual(
    compare((line) => line),
    [],
  )
  for (const [name, value] of Object.entries({
    account_id: 'acct_x',
    key_id: 'key_x',
    upstream: 'x',
    upstream_account: 'x',
  }))
    assert.equal(compare((line) => ({ ...line, [name]: value })).length, 1, name)
  const { usage } = lines.find(({ id }) => id === first.id) as { usage: Record<string, number> }
  for (const name of Object.keys(usage))
    assert.equal(compare((line) => ({ ...line, usage: { ...usage, [name]: 77_777 } })).length, 1, name)
  await native.close()
})

test('C4 cut_answers: waive posts an entry of 0 that says so', async () => {
  const native = await startNative({ config: { billing: { cut_answers: 'waive' } } })
  native.upstream.play(stream(frames.chat.slice(0, 2)))
  const { id } = await native.ask('chat', { stream: true })
  const { amountNanos, bill } = native.gateway.store.findEntry(id)!
  assert.deepEqual([amountNanos, bill!.usageSource, bill!.outcome], [0n, 'waived', 'upstream_cut'])
  await native.close()
})

test('C2 F-C47 200 concurrent requests on a small balance: the overdraft is at most the shortfall of the holds plus the last hold', async () => {
  const native = await startNative({ credit: '0.05' })
  const { upstream, gateway } = native
  // Each answer costs 0.0300 while its hold is about 0.0155: the bound is tested where holds fall short.
  const usage = { prompt_tokens: 9, completion_tokens: 2_000, total_tokens: 2_009 }
  // The upstream answers when the gateway has decided about all of them.
  let decided = 0
  upstream.play(async (socket, request) => {
    await until(() => decided + upstream.requests.length >= 200, 'all requests are refused or sent on')
    await whole({ ...answers.chat, usage })(socket, request)
  })
  const all = await Promise.all(Array.from({ length: 200 }, () => native.ask('chat').finally(() => decided++)))
  const served = all.filter(({ status }) => status === 200)
  const refused = all.filter(({ status }) => status === 402)
  assert.equal(served.length + refused.length, 200)
  // While credit is only held another try makes sense.
  assert.ok(refused.some(({ headers }) => headers.get('x-should-retry') === 'true'))
  await assertQuiet(gateway)
  const balance = gateway.ledger.balances.get(gateway.store.findAccount('tester').id)!
  const holdNanos = 15_360_000n + 3_000n * 40n
  const actual = served.map(({ id }) => gateway.store.findEntry(id)!.amountNanos)
  const shortfall = actual.reduce((sum, amount) => sum + (amount > 15_360_000n ? amount - 15_360_000n : 0n), 0n)
  assert.ok(-balance.balanceNanos <= shortfall + holdNanos, `${balance.balanceNanos}`)
  assert.ok(served.length >= 3 && served.length <= 5, `${served.length} were served`)
  assert.equal((await native.ask('chat')).status, 402)
  await native.close()
})

test('Y15 C11 a replica whose clock differs holds by the prices that the time of the store chooses', async () => {
  const prices = [
    { input: '2', output: '2' },
    { from: '2026-01-01T00:00:00Z', input: '1', output: '1' },
  ]
  const native = await startNative({ models: [testModel('native-chat', 'chat', { prices })] })
  const { gateway } = native.gateway.server
  const held: bigint[] = []
  native.upstream.play(async (socket, request) => {
    for (const { record } of gateway.deliveries) held.push(record.holdNanos!)
    await whole(answers.chat)(socket, request)
  })
  const sinceMs = native.gateway.nowMs() - Date.UTC(2026, 0)
  for (const aheadMs of [0, sinceMs + 1]) {
    gateway.aheadMs = () => aheadMs
    assert.equal((await native.ask('chat')).status, 200)
  }
  assert.equal(held[1], 2n * held[0]!)
  await native.close()
})

test('Y15 C7 a replica whose clock differs sends a tier on only if it has a price by the time of the store', async () => {
  const plain = { input: '1', output: '1' }
  const prices = [plain, { ...plain, from: '2026-01-01T00:00:00Z', tiers: { priority: '2' } }]
  const native = await startNative({ models: [testModel('native-chat', 'chat', { prices })] })
  const { gateway } = native.gateway.server
  native.upstream.play(whole(answers.chat))
  const sinceMs = native.gateway.nowMs() - Date.UTC(2026, 0)
  for (const aheadMs of [0, sinceMs + 1]) {
    gateway.aheadMs = () => aheadMs
    for (const wire of ['chat', 'responses'] as const)
      assert.equal((await native.ask(wire, { model: 'native-chat', service_tier: 'priority' })).status, 200)
  }
  const sent = native.upstream.requests.map((request) => request.json()['service_tier'])
  assert.deepEqual(sent, ['priority', 'priority', undefined, undefined])
  await native.close()
})

test('C2 an account without running requests and with a positive balance is admitted; F-C46 below zero the next request is not', async () => {
  const native = await startNative({ credit: '0.000000001' })
  native.upstream.play(stream(frames.chat))
  assert.equal((await native.ask('chat', { stream: true })).status, 200)
  const { status, headers } = await native.ask('chat')
  assert.deepEqual([status, headers.get('x-should-retry')], [402, 'false'])
  await native.close()
})

test('F-S1 a locked store: the answer waits for the settle deadline and is spooled; then requests get 500 until it is booked', async () => {
  const native = await startNative({ config: { timeouts: { settle_deadline: '200ms' } } })
  const { gateway } = native
  native.upstream.play(whole(answers.chat))
  const blocker = holdStore(gateway.storePath)
  const { status, id } = await native.ask('chat')
  assert.equal(status, 200)
  assert.equal((await native.ask('chat')).status, 500)
  assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 200)
  const counted = await gateway.post('/v1/messages/count_tokens', { ...asks.messages, max_tokens: undefined })
  assert.equal(counted.status, 200)
  blocker.exec('ROLLBACK')
  blocker.close()
  await until(() => gateway.ledger.ledger.backlog().blockedAccounts === 0)
  assert.equal(gateway.store.findEntry(id)?.amountNanos, answerNanos)
  assert.equal((await native.ask('chat')).status, 200)
  await native.close()
})

test('Y16 C5 an account with an overdue debit gets 500 before any model is asked; other accounts are answered, and probes are 200', async () => {
  const native = await startNative({ config: { timeouts: { settle_deadline: '200ms' } } })
  const { gateway, upstream } = native
  gateway.store.createAccount('second', 10_000_000_000n)
  const { key } = gateway.store.createKey('second')
  // Its token is made, and the key is known, before nobody can write.
  await gateway.askAdmin('/api/v1/me')
  upstream.play(whole(answers.chat))
  const askSecond = () => native.ask('chat', {}, { authorization: `Bearer ${key}` })
  assert.equal((await askSecond()).status, 200)
  const blocker = holdStore(gateway.storePath)
  const { status, id } = await native.ask('chat')
  assert.equal(status, 200)
  const refused = await native.ask('chat')
  assert.deepEqual(
    [refused.status, refused.headers.get('x-should-retry'), refused.headers.get('retry-after')],
    [500, 'true', null],
  )
  assert.equal((JSON.parse(refused.text) as { error: { code: string } }).error.code, 'internal_error')
  assert.equal(upstream.requests.length, 2)
  const ready = () => fetch(`${gateway.adminUrl}/readyz`).then(({ status }) => status)
  const seen = async () => ((await (await gateway.askAdmin('/api/v1/status')).json()) as Status).ledger
  assert.deepEqual([await ready(), (await seen()).writable, (await seen()).blocked_accounts], [200, true, 1])
  const other = await askSecond()
  assert.deepEqual([other.status, upstream.requests.length], [200, 3])
  assert.equal((await seen()).blocked_accounts, 2)
  blocker.exec('ROLLBACK')
  blocker.close()
  await until(() => gateway.ledger.ledger.backlog().blockedAccounts === 0)
  for (const requestId of [id, other.id]) assert.equal(gateway.store.findEntry(requestId)?.amountNanos, answerNanos)
  assert.equal((await native.ask('chat')).status, 200)
  await native.close()
})

test('B7 C3 C5 C13 if neither store nor spool can be written, no end of an answer is shown, and none is booked later', async () => {
  const native = await startNative({ config: { timeouts: { settle_deadline: '150ms' } } })
  const { gateway, upstream } = native
  mkdirSync(`${gateway.storePath}.spool`)
  const blocker = holdStore(gateway.storePath)
  // All three are answered together: who comes when the first has waited in vain is not let in.
  upstream.play(async (socket, request) => {
    await until(() => upstream.requests.length === 3, 'all three are let in')
    await (request.json()['stream'] ? stream(frames.messages) : whole(answers.chat))(socket, request)
  })
  const asked = [native.ask('messages', { stream: true }), native.ask('chat'), native.ask('chat')] as const
  const [streamed, ...wholes] = await Promise.all(asked)
  upstream.play(whole(answers.chat))
  assert.ok(streamed.isCut && streamed.text.includes('Hé ') && !streamed.text.includes('message_stop'))
  for (const { status, text, headers } of wholes) {
    assert.deepEqual([status, headers.get('x-should-retry')], [500, 'true'])
    assert.match(text, /internal_error/)
  }
  const before = upstream.requests.length
  assert.equal((await native.ask('chat')).status, 500)
  assert.equal(upstream.requests.length, before, 'refused before any upstream')
  for (const { id } of [streamed, ...wholes]) {
    const { outcome, cost } = await gateway.logOf(id)
    assert.deepEqual([outcome, cost], ['internal_error', undefined])
  }
  blocker.exec('ROLLBACK')
  blocker.close()
  let retried = ''
  // A commit that takes longer than 150 ms, as on a busy disk, is none for its client either.
  await until(async () => {
    const { status, id } = await native.ask('chat')
    retried = id
    return status === 200
  }, 'what is asked again is answered')
  assert.equal(gateway.store.findEntry(retried)?.amountNanos, answerNanos)
  const [total] = gateway.store.sumEntries({}, [])
  assert.deepEqual([total!.requests, total!.billedNanos], [1, answerNanos])
  await gateway.logOf(retried)
  const log = (await gateway.logLines()).flatMap((line) => readLogLine(JSON.stringify(line)) ?? [])
  assert.deepEqual(gateway.store.verify({ priceNanos, log }), [])
  await native.close()
})

test('F-C45 an account suspended during its stream: the stream ends normally, and the next request gets 401', async () => {
  const native = await startNative()
  let finish = () => {}
  native.upstream.play(async (socket, request) => {
    await stream(frames.chat.slice(0, 3), { end: false })(socket, request)
    finish = () =>
      socket.write(
        `${frames.chat
          .slice(3)
          .map((frame) => `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`)
          .join('')}0\r\n\r\n`,
      )
  })
  const response = await native.gateway.post(paths.chat, { ...asks.chat, stream: true })
  native.gateway.store.updateAccount('tester', { state: 'suspended' })
  const [account] = [...native.gateway.ledger.accounts.values()]
  await until(() => account!.state === 'suspended', 'the gateway knows that the account is suspended')
  finish()
  assert.match(await response.text(), /data: \[DONE\]\n\n$/)
  assert.equal((await native.ask('chat')).status, 401)
  await native.close()
})
