import assert from 'node:assert/strict'
import test from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import type { Explanation } from '../../src/operations/shapes.ts'
import { testModel } from '../support/gateway.ts'
import { answers, asks, frames, paths, readAll, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

const nickOf = (wire: ClientWire) => `nick-${wire}`
const rates = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }
const above = { input: '30', cache_read: '3', cache_write: '37.5', output: '150' }
const aliased = clientWireNames.map((wire) =>
  testModel(`native-${wire}`, wire, { also: [nickOf(wire), `other-${wire}`] }),
)
const priced = testModel('priced', 'messages', {
  prices: { ...rates, steps: [{ above: 8, ...above }], calls: { web_search: '0.01', code_execution: '1' } },
})
/** Where a step begins just above what the answer reads: 9 tokens of input, of them 4 from a cache. */
const level = testModel('level', 'messages', { prices: { ...rates, steps: [{ above: 9, ...above }] } })

test('R14 an alias is listed, answered under its own id on every wire, and billed, logged and explained as its model', async () => {
  const native = await startNative({ models: aliased })
  const { gateway, upstream } = native
  const listed = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: Record<string, unknown>[] }
  assert.deepEqual(
    listed.data.slice(0, 3).map(({ id }) => id),
    ['native-messages', 'nick-messages', 'other-messages'],
  )
  for (const row of listed.data) assert.deepEqual(Object.keys(row), ['id', 'object', 'created', 'owned_by'])
  const told = async (client: ClientWire, model: ClientWire, isStream: boolean) => {
    upstream.play(isStream ? stream(frames[model]) : whole(answers[model]))
    const response = await gateway.post(paths[client], { ...asks[client], model: nickOf(model), stream: isStream })
    const { text } = await readAll(response)
    assert.equal(response.status, 200, text)
    assert.match(text, new RegExp(`"model": ?"${nickOf(model)}"`))
    assert.doesNotMatch(text, /native-|up-chat|up-messages|up-responses/)
    assert.equal(upstream.requests.at(-1)!.json()['model'], `up-${model}`)
    return response.headers.get('x-request-id')!
  }
  for (const wire of clientWireNames) await told(wire, wire, true)
  const id = await told('messages', 'chat', true)
  for (const wire of clientWireNames) await told(wire, wire, false)
  await told('responses', 'messages', false)

  assert.equal(gateway.store.findEntry(id)!.bill!.model, 'native-chat')
  const { model, alias } = await gateway.logOf(id)
  assert.deepEqual([model, alias], ['native-chat', 'nick-chat'])
  const explained = (await (await gateway.askAdmin(`/api/v1/requests/${id}/explain`)).json()) as Explanation
  assert.deepEqual([explained.model, explained.alias], ['native-chat', 'nick-chat'])

  const unknown = await gateway.post(paths.chat, { ...asks.chat, model: 'nick-chatt' })
  assert.equal(unknown.status, 404)
  assert.match(await unknown.text(), /nick-chat/)
  await native.close()
})

test('R14 a conversation stays with its account whichever name its model has, and a cooldown of an account holds for all names', async () => {
  const native = await startNative({ models: aliased, cools: true })
  const { gateway, upstream } = native
  upstream.play(whole({ error: { message: 'busy' } }, 429, { 'retry-after': '30' }))
  assert.equal((await native.ask('chat')).status, 429)
  const asked = upstream.requests.length
  assert.equal((await native.ask('chat', { model: nickOf('chat') })).status, 429)
  assert.equal(upstream.requests.length, asked)
  const { items } = (await (await gateway.askAdmin(`/api/v1/upstreams`)).json()) as {
    items: { model: string }[]
  }
  assert.deepEqual(
    items.map(({ model }) => model),
    ['native-chat', 'native-messages', 'native-responses'],
  )
  await native.close()
})

test('C11 a step prices the whole request, calls are billed at their price, and the sum can be computed again from the ledger', async () => {
  const native = await startNative({ models: [priced, level] })
  const { gateway, upstream } = native
  const usage = { ...(answers.messages['usage'] as object), server_tool_use: { web_search_requests: 2 } }
  upstream.play(whole({ ...answers.messages, usage }))
  const { id, status } = await native.ask('messages', { model: 'priced' })
  assert.equal(status, 200)
  const flat = await native.ask('messages', { model: 'level' })
  await until(() => gateway.store.findEntry(flat.id), 'the second debit')
  // 5 fresh, 4 cached and 3 output tokens at the prices above 8; two searches.
  const entry = gateway.store.findEntry(id)!
  assert.equal(entry.amountNanos, 612_000n + 20_000_000n)
  assert.deepEqual([entry.bill!.pricedCalls, entry.bill!.calls], [2, { web_search: 2 }])
  assert.equal(gateway.store.findEntry(flat.id)!.amountNanos, 61_200n)
  const explained = (await (await gateway.askAdmin(`/api/v1/requests/${id}/explain`)).json()) as Explanation
  assert.deepEqual(explained.usage!.calls, { web_search: 2 })
  assert.deepEqual(explained.price!.calls, { web_search: '0.01', code_execution: '1' })
  assert.deepEqual(explained.price!.steps![0]!.output, '150')
  assert.deepEqual((await gateway.logOf(id))['calls'], { web_search: 2 })
  await native.close()
})
