import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import fc from 'fast-check'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { createOperator } from '../../src/accounts/operators.ts'
import { createPerson } from '../../src/accounts/person-rules.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { describeExplanation } from '../../src/cli/explanation.ts'
import { explainDebit } from '../../src/live/explanation.ts'
import { describeTranslation } from '../../src/live/translation.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { runWarm } from '../cli/run.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { answers, asks, chunk, frames, paths, readAll } from '../support/native.ts'
import {
  type Answer,
  head,
  type RawUpstream,
  startRawUpstream,
  stream,
  whole,
  writeChunk,
} from '../support/raw-upstream.ts'
import { runsOf } from '../support/runs.ts'
import { until } from '../support/waiting.ts'

/*
 * Y23: chains over a whole gateway. Each entry of a chain has an upstream of its own, a wire of its own and a price of its own.
 */

const wires: readonly ClientWire[] = ['messages', 'chat', 'responses']
const priceOf = (at: number) => String(10 ** at)
const pricesOf = (at: number) => ({ input: priceOf(at), cache_read: priceOf(at), output: priceOf(at) })

type Setting = { gateway: TestGateway; upstreams: RawUpstream[]; ask(options?: Asked): Promise<Told> }
type Asked = { wire?: ClientWire; model?: string; isStream?: boolean; headers?: Record<string, string>; body?: object }
type Told = { status: number; text: string; headers: Headers; id: string }

/** A gateway with one upstream for each of three models, and chains of them. */
async function startChains(
  chains: Record<string, unknown>[],
  { accounts = 1, credit = '100', config = {} } = {},
): Promise<Setting> {
  const upstreams = [await startRawUpstream(), await startRawUpstream(), await startRawUpstream()]
  const named = upstreams.map(({ url }, at) => [
    `up${at}`,
    {
      base_url: url,
      accounts: Array.from({ length: accounts }, (_, one) => ({ name: `a${one}`, key: `upstream-key-${at}-${one}` })),
    },
  ])
  const models = wires.map((wire, at) => testModel(`m${at}`, wire, { upstream: `up${at}`, prices: pricesOf(at) }))
  const gateway = await startTestGateway({
    credit,
    models: [...models, ...chains],
    config: { upstreams: Object.fromEntries(named), ...config },
  })
  return { gateway, upstreams, ask }

  async function ask({
    wire = 'messages',
    model = 'coder',
    isStream = false,
    headers,
    body,
  }: Asked = {}): Promise<Told> {
    const asked = { ...asks[wire], ...body, model, ...(isStream && { stream: true }) }
    const response = await gateway.post(paths[wire], asked, headers)
    const { text } = await readAll(response)
    return { status: response.status, text, headers: response.headers, id: response.headers.get('x-request-id')! }
  }
}

const good = (at: number, isStream = false): Answer =>
  isStream ? stream(frames[wires[at]!]) : whole(answers[wires[at]!])
const refusal = (status: number, more: Record<string, string> = {}): Answer =>
  whole({ type: 'error', error: { type: 'x', message: 'no' } }, status, more)
const closed: Answer = (socket) => void socket.destroy()
const coder = { id: 'coder', chain: ['m0', 'm1', 'm2'] }

test('Y23 if the first entry fails, the next one answers under its own id, at its own price, and visibly for everybody', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  const [first, second] = upstreams as [RawUpstream, RawUpstream]
  first.play(refusal(500))
  second.play(good(1))
  const told = await ask()
  assert.equal(told.status, 200, told.text)
  assert.match(told.text, /"model":"m1"/)
  assert.equal(told.headers.get('x-triwire-answered-by'), 'm1')
  assert.match(told.headers.get('access-control-expose-headers')!, /x-triwire-answered-by/)
  const { bill, amountNanos, details } = gateway.store.findEntry(told.id)!
  assert.deepEqual([bill!.model, bill!.modelWire, amountNanos], ['m1', 'chat', 120_000n])
  assert.deepEqual(details, { alias: 'coder', fellBackFrom: 'm0', fellBackCause: 'unavailable' })
  const { model, alias, fell_back: hops } = await gateway.logOf(told.id)
  assert.deepEqual([model, alias, hops], ['m1', 'coder', [{ from: 'm0', to: 'm1', cause: 'unavailable' }]])
  const explained = (await (await gateway.askAdmin(`/api/v1/requests/${told.id}/explain`)).json()) as Explanation
  assert.deepEqual(explained.fell_back, hops)
  assert.deepEqual(
    explained.attempts!.map((one) => [one.model, one.upstream]),
    [
      ['m0', 'up0'],
      ['m1', 'up1'],
    ],
  )
  const kept = explainDebit(gateway.store.findDebit(told.id)!)
  assert.deepEqual(
    [kept.alias, kept.fell_back],
    [explained.alias, explained.fell_back],
    'the ledger alone knows it too',
  )
  const metrics = await (await gateway.askAdmin('/metrics')).text()
  assert.match(metrics, /^triwire_fallbacks_total\{chain="coder",from="m0",to="m1",cause="unavailable"\} 1$/m)
  const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: { id: string }[] }
  assert.deepEqual(
    data.map(({ id }) => id),
    ['m0', 'm1', 'm2', 'coder'],
  )
  const { token } = gateway.store.change(createOperator('player', 'admin', gateway.nowMs() + 60_000, gateway.nowMs()))
  const played = await fetch(`${gateway.adminUrl}/api/v1/playground`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ account: 'tester', wire: 'messages', body: { ...asks.messages, model: 'coder' } }),
  })
  assert.deepEqual([played.status, played.headers.get('x-triwire-answered-by')], [200, 'm1'], await played.text())
  await gateway.close()
})

test('Y23 a first entry that answers is billed as itself, with the chain as its alias', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  upstreams[0]!.play(good(0))
  const told = await ask()
  assert.equal(told.headers.get('x-triwire-answered-by'), 'm0')
  assert.deepEqual(gateway.store.findEntry(told.id)!.details, { alias: 'coder' })
  const plain = await ask({ model: 'm0' })
  for (const [id, alias, hops] of [
    [told.id, 'coder', []],
    [plain.id, null, null],
  ] as const) {
    const kept = explainDebit(gateway.store.findDebit(id)!)
    assert.deepEqual([kept.alias, kept.fell_back, kept.moved], [alias, hops, null])
  }
  assert.equal(plain.headers.get('x-triwire-answered-by'), null)
  assert.equal(gateway.store.findEntry(plain.id)!.details, undefined)
  await gateway.close()
})

test('Y23 the hold is lowered with the first text, even if the head was sent long before it', async () => {
  const { gateway, upstreams } = await startChains([{ id: 'coder', chain: ['m0', 'm2'] }])
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 10_000_000_000n, per: undefined } })
  await gateway.untilKnown(key)
  const { bounds } = gateway.server.gateway.directory.findKnownKey(digestKey(key))!
  let socket!: Parameters<Answer>[0]
  upstreams[0]!.play(async (raw, request) => {
    socket = raw
    await stream(frames.messages.slice(0, 1), { end: false })(raw, request)
  })
  const headers = { authorization: `Bearer ${key}` }
  const asked = gateway.post(paths.messages, { ...asks.messages, model: 'coder', stream: true }, headers)
  await upstreams[0]!.untilHeard(1)
  gateway.advance(10_000)
  const response = await asked
  const before = bounds!.heldNanos
  for (const frame of frames.messages.slice(1, 4)) writeChunk(socket, frame)
  await until(() => bounds!.heldNanos * 99n < before)
  for (const frame of frames.messages.slice(4)) writeChunk(socket, frame)
  socket.write('0\r\n\r\n')
  assert.match((await readAll(response)).text, /message_stop/)
  await gateway.close()
})

test('Y23 an entry whose name at the upstream is its id gets this name on the same wire, and not that of the chain', async () => {
  for (const [at, wire] of wires.entries()) {
    const named = (id: string, on: number) =>
      testModel(id, wire, { upstream: `up${on}`, upstream_model: undefined, prices: pricesOf(0) })
    const chain = { id: 'own', chain: ['first', 'second'] }
    const { gateway, upstreams, ask } = await startChains([named('first', 0), named('second', 1), chain])
    upstreams[0]!.play(good(at), refusal(500))
    upstreams[1]!.play(good(at))
    for (const answeredBy of ['first', 'second']) {
      const told = await ask({ wire, model: 'own' })
      assert.equal(told.headers.get('x-triwire-answered-by'), answeredBy, told.text)
    }
    const sent = upstreams.map(({ requests }) => requests.map((request) => request.json()['model']))
    assert.deepEqual(sent, [['first', 'first'], ['second'], []])
    await gateway.close()
  }
})

test('Y23 explain from the ledger has one step for two, and says so', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  upstreams[0]!.play(refusal(429))
  upstreams[1]!.play(refusal(500))
  upstreams[2]!.play(good(2))
  const kept = explainDebit(gateway.store.findDebit((await ask()).id)!)
  assert.deepEqual(kept.fell_back, [{ from: 'm0', to: 'm2', cause: 'capacity' }])
  assert.match(describeExplanation(kept), /^fell back +m0 to m2 \(capacity\); the ledger has no steps in between$/m)
  await gateway.close()
})

test('Y23 a plain id never falls back; a chain does not after a refusal by the model, a cut stream, or an undeclared cause', async () => {
  const { gateway, upstreams, ask } = await startChains([{ ...coder, when: ['capacity'] }])
  const [first, second] = upstreams as [RawUpstream, RawUpstream]
  second.play(good(1))
  first.play(refusal(500))
  assert.equal((await ask({ model: 'm0' })).status, 502)
  assert.equal((await ask()).status, 502, 'unavailable is not declared')
  first.play(refusal(400))
  assert.equal((await ask()).status, 400)
  first.play((socket) => {
    socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }))
    for (const frame of frames.messages.slice(0, 3)) writeChunk(socket, frame)
    socket.end()
  })
  assert.match((await ask({ isStream: true })).text, /event: error/)
  assert.equal(second.requests.length, 0)
  first.play(refusal(429))
  assert.equal((await ask()).status, 200, 'capacity is declared')
  await gateway.close()
})

test('Y23 U6 an entry that is silent to its time limit leads to the next one; one that falls silent after its head does not', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  const [first, second] = upstreams as [RawUpstream, RawUpstream]
  const askSilent = async (isStream: boolean, limitMs: number, play: Answer) => {
    first.play(play)
    second.play(good(1, isStream))
    // Each request is a conversation of its own, because a conversation that moved stays with its new entry.
    const asking = ask({ isStream, headers: { 'x-session-id': `${isStream} ${limitMs}` } })
    await first.untilHeard()
    gateway.advance(limitMs)
    return asking
  }
  for (const [isStream, limitMs] of [
    [true, 300_000],
    [false, 600_000],
  ] as const) {
    const told = await askSilent(isStream, limitMs, () => {})
    assert.equal(told.headers.get('x-triwire-answered-by'), 'm1', told.text)
    const { bill, details } = gateway.store.findEntry(told.id)!
    assert.deepEqual([bill!.model, details!.fellBackFrom, details!.fellBackCause], ['m1', 'm0', 'unavailable'])
  }
  const { status } = await askSilent(true, 120_000, stream([], { end: false }))
  assert.deepEqual([status, second.requests.length], [502, 0])
  await gateway.close()
})

test('Y23 if all entries fail, the client gets the error of the first one, with the shortest wait of all', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  upstreams[0]!.play(refusal(429, { 'retry-after': '40' }))
  upstreams[1]!.play(refusal(429, { 'retry-after': '7' }))
  upstreams[2]!.play(refusal(500))
  const told = await ask()
  assert.deepEqual([told.status, told.headers.get('retry-after')], [429, '7'])
  await gateway.close()
})

test('Y23 if the last entry fails after its head, the client gets the error of the first one too', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m0', 'm1'] }])
  const busy = { error: { message: 'no', type: 'overloaded_error' } }
  for (const isStream of [false, true]) {
    upstreams[0]!.play(refusal(500))
    upstreams[1]!.play(isStream ? stream([chunk(busy)]) : whole(busy))
    const { status, id } = await ask({ isStream })
    const { model, upstream, cause, attempts } = await gateway.logOf(id)
    assert.deepEqual([status, model, upstream, cause, attempts], [502, 'm0', 'up0', 'upstream_500', 2])
  }
  await gateway.close()
})

test('Y23 if all entries fail, the log line has model, upstream and cause of the entry whose error the client gets', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  const first = ['m0', 'messages', 'up0', 'upstream_529']
  for (const last of [refusal(500), closed]) {
    upstreams[0]!.play(refusal(529))
    upstreams[1]!.play(last)
    upstreams[2]!.play(last)
    const { id } = await ask()
    const { model, model_wire, upstream, cause, fell_back: hops } = await gateway.logOf(id)
    assert.deepEqual([model, model_wire, upstream, cause], first)
    assert.equal((hops as unknown[]).length, 2)
  }
  // The next entries have no account that is on, so only the first one is asked.
  const { pool, config } = gateway.server.gateway.snapshots.current
  for (const name of ['up1', 'up2'])
    pool.steer('disable', { upstream: name, account: undefined }, config.catalog.entries)
  const { model, model_wire, upstream, cause } = await gateway.logOf((await ask()).id)
  assert.deepEqual([model, model_wire, upstream, cause], first)
  await gateway.close()
})

test('Y23 if all entries fail, the log line and the metrics have the losses of the entry whose error the client gets', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m1', 'm0'] }])
  upstreams[0]!.play(refusal(500))
  upstreams[1]!.play(refusal(500))
  const { id } = await ask({ wire: 'chat', body: { seed: 7 } })
  const { model, model_wire, losses } = await gateway.logOf(id)
  assert.deepEqual([model, model_wire, losses], ['m1', 'chat', undefined])
  const plain = await ask({ wire: 'chat', model: 'm0', body: { seed: 7 } })
  assert.deepEqual((await gateway.logOf(plain.id))['losses'], ['seed'])
  const metrics = await (await gateway.askAdmin('/metrics')).text()
  assert.doesNotMatch(metrics, /^triwire_losses_total\{pair="chat-to-chat"/m)
  await gateway.close()
})

test('Y23 if all entries fail, the log line does not say that the conversation moved within another entry', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m0', 'm1'] }], { accounts: 2 })
  const headers = { 'x-session-id': 'talk' }
  upstreams[1]!.play(good(1))
  await ask({ model: 'm1', headers })
  for (const upstream of upstreams) upstream.play(refusal(500))
  const { id } = await ask({ headers })
  const { model, moved, attempts } = await gateway.logOf(id)
  assert.deepEqual([model, moved, attempts], ['m0', undefined, 4])
  await gateway.close()
})

test('Y23 the shortest wait is also sent if the error of the first entry is no 429', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  upstreams[0]!.play(refusal(500))
  upstreams[1]!.play(refusal(429, { 'retry-after': '40' }))
  upstreams[2]!.play(refusal(529, { 'retry-after': '7' }))
  const failed = await ask()
  assert.deepEqual([failed.status, failed.headers.get('retry-after')], [502, '7'])
  await gateway.close()
})

test('Y23 an entry that a request does not fit is skipped before any upstream is asked', async () => {
  const chain = { id: 'coder', chain: ['small', 'm1'] }
  const small = testModel('small', 'messages', {
    upstream: 'up0',
    max_output_tokens: 100,
    context_window: 120,
    prices: pricesOf(0),
  })
  const { gateway, upstreams, ask } = await startChains([small, chain])
  upstreams[0]!.play(good(0))
  upstreams[1]!.play(good(1))
  assert.equal((await ask()).headers.get('x-triwire-answered-by'), 'small')
  const long = { messages: [{ role: 'user', content: 'word '.repeat(300) }] }
  const told = await ask({ body: long })
  assert.equal(told.headers.get('x-triwire-answered-by'), 'm1')
  assert.equal(upstreams[0]!.requests.length, 1)
  assert.deepEqual(gateway.store.findEntry(told.id)!.details, {
    alias: 'coder',
    fellBackFrom: 'small',
    fellBackCause: 'fit',
  })
  await gateway.close()
})

test('Y23 a prompt that the first entry calls too long goes to the next one if the operator declared that cause', async () => {
  const { gateway, upstreams, ask } = await startChains([{ ...coder, when: ['over_long'] }])
  upstreams[0]!.play(
    whole(
      { type: 'error', error: { type: 'invalid_request_error', message: 'prompt is too long: 9 tokens > 8 maximum' } },
      400,
    ),
  )
  upstreams[1]!.play(good(1))
  assert.equal((await ask()).headers.get('x-triwire-answered-by'), 'm1')
  await gateway.close()
})

test('Y23 the hold covers the dearest possible entry; if a budget is too small for one, another is chosen if that is declared', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m2', 'm0'], when: ['budget'] }])
  upstreams[0]!.play(good(0))
  upstreams[2]!.play(good(2))
  const dear = await ask({ wire: 'chat' })
  assert.equal(dear.headers.get('x-triwire-answered-by'), 'm2')
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 5_000_000n, per: undefined } })
  await gateway.untilKnown(key)
  const cheap = await ask({ wire: 'chat', headers: { authorization: `Bearer ${key}` } })
  assert.equal(cheap.headers.get('x-triwire-answered-by'), 'm0', cheap.text)
  assert.deepEqual(gateway.store.findEntry(cheap.id)!.details, {
    alias: 'coder',
    fellBackFrom: 'm2',
    fellBackCause: 'budget',
  })
  await gateway.close()
})

test('Y23 the hold is that of the dearest entry until one begins to answer; then it is that of this entry', async () => {
  const { gateway, upstreams } = await startChains([{ id: 'coder', chain: ['m0', 'm2'] }])
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 10_000_000_000n, per: undefined } })
  await gateway.untilKnown(key)
  const { bounds } = gateway.server.gateway.directory.findKnownKey(digestKey(key))!
  const heldByModel: bigint[] = []
  const told: string[] = []
  const look = async () => {
    heldByModel.push(bounds!.heldNanos)
    const { held } = (await (await gateway.askAdmin('/api/v1/accounts/tester')).json()) as { held: string }
    const metrics = await (await gateway.askAdmin('/metrics')).text()
    told.push(held, /^triwire_held_credits (.*)$/m.exec(metrics)![1]!)
  }
  upstreams[0]!.play(async (socket, request) => {
    await look()
    await stream(frames.messages.slice(0, 4), { end: false })(socket, request)
    await until(() => bounds!.heldNanos < heldByModel[0]!)
    await look()
    for (const frame of frames.messages.slice(4)) writeChunk(socket, frame)
    socket.write('0\r\n\r\n')
  })
  const headers = { authorization: `Bearer ${key}` }
  const response = await gateway.post(paths.messages, { ...asks.messages, model: 'coder', stream: true }, headers)
  await readAll(response)
  const [before, during] = heldByModel as [bigint, bigint]
  assert.deepEqual(
    told.map(Number),
    [before, before, during, during].map((nanos) => Number(nanos) / 1e9),
  )
  assert.ok(during > 0n && during * 99n < before && before < during * 101n, `${before} ${during}`)
  await until(() => bounds!.heldNanos === 0n)
  await gateway.close()
})

test('Y23 a conversation that moved stays with its new entry while the cache of it lives; then the first entry is tried again', async () => {
  const { gateway, upstreams, ask } = await startChains([{ ...coder, chain_return: '60s' }])
  const [first, second] = upstreams as [RawUpstream, RawUpstream]
  const named = { headers: { 'x-session-id': 'one' } }
  first.play(closed)
  second.play(good(1))
  assert.equal((await ask(named)).headers.get('x-triwire-answered-by'), 'm1')
  first.play(good(0))
  gateway.advance(30_000)
  const stayed = await ask(named)
  assert.equal(stayed.headers.get('x-triwire-answered-by'), 'm1')
  assert.deepEqual(gateway.store.findEntry(stayed.id)!.details, {
    alias: 'coder',
    fellBackFrom: 'm0',
    fellBackCause: 'unavailable',
  })
  assert.equal((await ask({ headers: { 'x-session-id': 'other' } })).headers.get('x-triwire-answered-by'), 'm0')
  gateway.advance(61_000)
  assert.equal((await ask(named)).headers.get('x-triwire-answered-by'), 'm0')
  await gateway.close()
})

test('CON-8 Y23 a model of a chain that always fails is shown as failing, though the chain answers; a chain is, if none does', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m0', 'm1'], chain_return: '0ms' }])
  upstreams[0]!.play(refusal(500))
  upstreams[1]!.play(good(1))
  const look = async () => {
    const read = async (path: string) =>
      ((await (await gateway.askAdmin(`/api/v1/${path}`)).json()) as { items: never[] }).items
    const models: { id: string; failing: boolean }[] = await read('models')
    const services: { model: string; failing: boolean }[] = await read('upstreams')
    const names = [...models, ...services.map(({ model, failing }) => ({ id: `service ${model}`, failing }))]
    return names.flatMap(({ id, failing }) => (failing ? [id] : []))
  }
  for (let at = 0; at < 5; at++) assert.equal((await ask()).status, 200)
  assert.deepEqual(await look(), ['m0', 'service m0'])
  upstreams[1]!.play(refusal(500))
  for (let at = 0; at < 5; at++) assert.equal((await ask()).status, 502)
  assert.deepEqual(await look(), ['m0', 'm1', 'coder', 'service m0', 'service m1'])
  await gateway.close()
})

test('Y23 a ledger entry names the skipped entries and why, except those that failed later; none if the first one answers', async () => {
  const blind = testModel('blind', 'chat', { upstream: 'up1', profile: { images: false }, prices: pricesOf(1) })
  const chain = { id: 'coder', chain: ['m2', 'blind', 'm0'], when: ['budget', 'unavailable'] }
  const { gateway, upstreams, ask } = await startChains([blind, chain])
  const [last, , first] = upstreams as [RawUpstream, RawUpstream, RawUpstream]
  last.play(good(0))
  const { key } = gateway.store.createKey('tester', { budget: { nanos: 5_000_000n, per: undefined } })
  await gateway.untilKnown(key)
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const body = { messages: [{ role: 'user', content: [image] }] }
  const cheap = await ask({ headers: { authorization: `Bearer ${key}` }, body })
  assert.deepEqual(gateway.store.findEntry(cheap.id)!.details, {
    alias: 'coder',
    fellBackFrom: 'm2',
    fellBackCause: 'budget',
  })

  const named = { headers: { 'x-session-id': 'one' }, body }
  first.play(closed)
  assert.equal((await ask(named)).headers.get('x-triwire-answered-by'), 'm0')
  first.play(good(2))
  last.play(closed)
  const back = await ask(named)
  assert.equal(back.headers.get('x-triwire-answered-by'), 'm2', back.text)
  assert.deepEqual(gateway.store.findEntry(back.id)!.details, { alias: 'coder' })
  const { fell_back: hops } = await gateway.logOf(back.id)
  assert.deepEqual(hops, [
    { from: 'm2', to: 'm0', cause: 'unavailable' },
    { from: 'm0', to: 'm2', cause: 'unavailable' },
  ])
  await gateway.close()
})

test('Y23 an entry without a usable enabled account is skipped; the request is refused only if no other entry takes it', async () => {
  const profile = { images: false }
  const upstream = [{ name: 'up0' }, { name: 'up1', priority: 2, profile }]
  const half = testModel('half', 'chat', { upstream, prices: pricesOf(0) })
  const chains = [
    { id: 'first', chain: ['half', 'm2'] },
    { id: 'last', chain: ['m2', 'half'] },
    { id: 'both', chain: ['half', 'other'] },
  ]
  const other = testModel('other', 'chat', { upstream, prices: pricesOf(1) })
  const { gateway, upstreams, ask } = await startChains([half, other, ...chains])
  const { pool, config } = gateway.server.gateway.snapshots.current
  pool.steer('disable', { upstream: 'up0', account: undefined }, config.catalog.entries)
  upstreams[2]!.play(good(2))
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const body = { messages: [{ role: 'user', content: [image] }] }
  const told = await ask({ model: 'first', body })
  assert.equal(told.headers.get('x-triwire-answered-by'), 'm2', told.text)
  assert.deepEqual(gateway.store.findEntry(told.id)!.details, {
    alias: 'first',
    fellBackFrom: 'half',
    fellBackCause: 'fit',
  })
  assert.equal((await ask({ model: 'both', body })).status, 400)
  upstreams[2]!.play(refusal(429, { 'retry-after': '40' }))
  const full = await ask({ model: 'last', body })
  assert.deepEqual([full.status, full.headers.get('retry-after')], [429, '40'])
  assert.equal(upstreams[0]!.requests.length + upstreams[1]!.requests.length, 0)
  await gateway.close()
})

test('Y23 C11 an account with a plan may use the whole chain, and pays by its plan whichever entry answers', async () => {
  const plans = { gold: { times: '0.5' } }
  const file = join(testFolder('plans'), 'plans.yaml')
  writeFileSync(file, JSON.stringify({ plans }))
  const { gateway, upstreams, ask } = await startChains([coder], { config: { plans } })
  const set = ['account', 'set', 'tester', '--plan', 'gold', '--store', gateway.storePath, '--config', file]
  assert.equal((await runWarm(set)).code, 0)
  await until(() => gateway.ledger.directory.findKnownKey(digestKey(gateway.key))?.account.plan === 'gold')
  const answered: [Deed, string, bigint][] = [
    ['answer', 'm0', 6_000n],
    ['broken', 'm1', 60_000n],
  ]
  upstreams[1]!.play(good(1))
  for (const [deed, model, amount] of answered) {
    upstreams[0]!.play(deeds[deed] ?? good(0))
    const { id, headers } = await ask()
    const { bill, amountNanos, details } = gateway.store.findEntry(id)!
    assert.equal(headers.get('x-triwire-answered-by'), model)
    assert.deepEqual([bill!.model, details!.alias, amountNanos], [model, 'coder', amount])
  }
  await gateway.close()
})

test('Y23 an idle connection that closes during the last attempt of an entry leads to the next entry', async () => {
  const { gateway, upstreams, ask } = await startChains([coder], { accounts: 3 })
  const [first, second, third] = upstreams as [RawUpstream, RawUpstream, RawUpstream]
  const headers = { 'x-session-id': 'one' }
  second.play(good(1))
  for (let i = 0; i < 3; i++) assert.equal((await ask({ model: 'm1', headers })).status, 200)
  const used = second.requests.map(({ connection }) => connection)
  first.play(refusal(500))
  second.play(closed)
  third.play(good(2))
  // A connection rests as long as its upstream took for an answer, on a busy machine half a second.
  gateway.advance(5_000)
  const told = await ask({ headers })
  assert.equal(told.headers.get('x-triwire-answered-by'), 'm2', told.text)
  assert.deepEqual([first.requests.length, second.requests.length], [3, 1])
  assert.ok(used.includes(second.requests[0]!.connection), 'a connection that was used before')
  await gateway.close()
})

test('Y23 Y20 the budget of a person chooses another entry as that of a key does, whichever is smaller', async () => {
  const { gateway, upstreams, ask } = await startChains([{ id: 'coder', chain: ['m2', 'm0'], when: ['budget'] }])
  upstreams[0]!.play(good(0))
  upstreams[2]!.play(good(2))
  const [little, much] = [5_000_000n, 50_000_000_000n].map((nanos) => ({ nanos, per: undefined }))
  const budgets = [
    [little, undefined, 'm0'],
    [little, much, 'm0'],
    [much, little, 'm0'],
    [much, undefined, 'm2'],
    [much, much, 'm2'],
  ] as const
  for (const [at, [ofPerson, ofKey, model]] of budgets.entries()) {
    const wishes = { name: `P${at}`, externalId: `u-${at}`, account: 'tester', budget: ofPerson! }
    gateway.store.change(createPerson(wishes, { nowMs: 1, calendar: createCalendar(utc) }))
    const { key } = gateway.store.createKey('tester', { person: `u-${at}`, ...(ofKey && { budget: ofKey }) })
    await gateway.untilKnown(key)
    const told = await ask({ wire: 'chat', headers: { authorization: `Bearer ${key}`, 'x-session-id': `s${at}` } })
    assert.equal(told.headers.get('x-triwire-answered-by'), model, `${at} ${told.text}`)
  }
  await gateway.close()
})

test('Y23 T9 translate shows the upstream request of a chain, whether the chain is named or not, and stores nothing of it', async () => {
  const { gateway } = await startChains([coder])
  const { config } = gateway.server.gateway.snapshots.current
  for (const wire of wires) {
    const bytes = Buffer.from(JSON.stringify({ ...asks[wire], model: 'coder' }))
    for (const headers of [new Map<string, string>(), new Map([['x-session-id', 'one']])]) {
      const told = await describeTranslation(config, wire, bytes, undefined, { headers })
      assert.deepEqual(told.ok && [told.model, told.to, told.upstream], ['m0', 'messages', 'up0'])
    }
  }
  await gateway.close()
})

test('Y23 Y24 in a chain, requests without a name are also spread over the accounts of an entry that is configured so', async () => {
  const entries = wires.map((wire, at) =>
    testModel(`e${at}`, wire, { upstream: `up${at}`, prices: pricesOf(0), affinity: at === 0 ? 'named' : 'alike' }),
  )
  const chains = [
    { id: 'spread', chain: ['e0', 'e1'] },
    { id: 'alike', chain: ['e1', 'e0'] },
  ]
  const { gateway, upstreams, ask } = await startChains([...entries, ...chains], { accounts: 4 })
  upstreams[0]!.play(good(0))
  upstreams[1]!.play(good(1))
  for (const model of ['spread', 'alike']) for (let i = 0; i < 24; i++) assert.equal((await ask({ model })).status, 200)
  const accounts = upstreams.map(
    ({ requests }) =>
      new Set(requests.map((request) => request.header('x-api-key') ?? request.header('authorization'))).size,
  )
  assert.ok(accounts[0]! > 1 && accounts[1] === 1, `${accounts}`)
  await gateway.close()
})

test('Y23 R15 a key needs access to the chain alone, and cannot name the entries in it', async () => {
  const { gateway, upstreams, ask } = await startChains([coder])
  upstreams[0]!.play(refusal(500))
  upstreams[1]!.play(good(1))
  const { key } = gateway.store.createKey('tester', { models: ['coder'] })
  const headers = { authorization: `Bearer ${key}` }
  assert.equal((await ask({ headers })).status, 200)
  assert.equal((await ask({ headers, model: 'm1' })).status, 404)
  await gateway.close()
})

/** What an upstream does with each request, and whether a chain may go on after it. */
const deeds = {
  answer: undefined,
  full: refusal(429),
  overloaded: refusal(529),
  broken: refusal(500),
  unpaid: refusal(402),
  lost: closed,
  faulty: refusal(400),
  garbage: whole('no json' as never),
} as const
type Deed = keyof typeof deeds
const goesOn: readonly Deed[] = ['full', 'overloaded', 'broken', 'unpaid', 'lost']

test('Y23 random chains, failures and wires lead to one answer and one bill, of the model that is named', async () => {
  const chains = [
    { id: 'c01', chain: ['m0', 'm1'] },
    { id: 'c210', chain: ['m2', 'm1', 'm0'] },
    { id: 'c12', chain: ['m1', 'm2'] },
  ]
  const { gateway, upstreams, ask } = await startChains(chains, { accounts: 2 })
  const deed = fc.constantFrom(...(Object.keys(deeds) as Deed[]))
  const rounds = fc.record({
    chain: fc.constantFrom(...chains),
    wire: fc.constantFrom(...wires),
    isStream: fc.boolean(),
    deeds: fc.tuple(deed, deed, deed),
  })
  await fc.assert(
    fc.asyncProperty(rounds, async ({ chain, wire, isStream, deeds: chosen }) => {
      // The accounts are well again, and so are budgets of retries.
      gateway.advance(600_000)
      for (const [at, upstream] of upstreams.entries()) {
        upstream.requests.length = 0
        upstream.play(deeds[chosen[at]!] ?? good(at, isStream))
      }
      const entries = chain.chain.map((id) => Number(id.slice(1)))
      const answering = entries.find(
        (at, place) =>
          entries.slice(0, place).every((before) => goesOn.includes(chosen[before]!)) && !goesOn.includes(chosen[at]!),
      )
      const told = await ask({ wire, model: chain.id, isStream })
      const entry = gateway.store.findEntry(told.id)
      const attempts = upstreams.reduce((sum, { requests }) => sum + requests.length, 0)
      assert.ok(attempts <= 3 + chain.chain.length - 1, `${attempts} attempts`)
      for (const { requests } of upstreams) assert.ok(requests.length <= 3)
      if (answering === undefined || chosen[answering] !== 'answer') {
        assert.ok(told.status >= 400, told.text)
        assert.equal(entry, undefined)
        return
      }
      assert.equal(told.status, 200, told.text)
      assert.equal(told.headers.get('x-triwire-answered-by'), `m${answering}`)
      assert.match(told.text, new RegExp(`"model": ?"m${answering}"`))
      assert.equal(entry!.bill!.model, `m${answering}`)
      assert.equal(entry!.amountNanos, 12n * 1_000n * 10n ** BigInt(answering))
      const { flags, hold } = await gateway.logOf(told.id)
      assert.deepEqual([flags, hold], [undefined, undefined])
      const later = entries.slice(entries.indexOf(answering) + 1)
      for (const at of later) assert.equal(upstreams[at]!.requests.length, 0)
    }),
    { numRuns: runsOf(60) },
  )
  await gateway.close()
})
