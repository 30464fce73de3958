import assert from 'node:assert/strict'
import test from 'node:test'
import type { ApiKey } from '../../src/accounts/account.ts'
import type { Entered } from '../../src/accounts/admission.ts'
import type { Model, Tier } from '../../src/catalog/model.ts'
import type { ProfileSetting } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { Config } from '../../src/config/config.ts'
import { takeHold } from '../../src/gateway/admit.ts'
import { type CheckedRequest, type Exchange, exchangeNatively } from '../../src/gateway/exchange.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { listOf, modelOf, plainPrices } from '../native/models.ts'
import { listFrom } from '../support/price-lists.ts'

const key = { account: { name: 'tester' } } as ApiKey

/** Takes the hold of a request. @returns what is held, in nano-credits */
async function heldFor(
  model: Model,
  exchange: Partial<Exchange>,
  holdOutputTokens: Config['billing']['holdOutputTokens'] = 1,
): Promise<bigint> {
  let heldNanos = 0n
  const entered = {
    admit: async (nanos: bigint) => {
      heldNanos = nanos
      return { ok: true, release() {} }
    },
  } as unknown as Entered
  const config = { billing: { holdOutputTokens } } as Config
  const asking = { exchange: exchange as Exchange, exchangeFor: undefined }
  await takeHold(config, key, entered, { model, asking }, {} as CallRecord, 0)
  return heldNanos
}

/** What is held for 100 input tokens at 2 and an output of at most the cap at 10 credits per million, in nano-credits. */
function held(holdOutputTokens: Config['billing']['holdOutputTokens'], outputTokensCap: number, choices = 1) {
  const prices = listOf({ ...plainPrices, inputNanos: 2_000_000_000n, outputNanos: 10_000_000_000n })
  return heldFor(
    modelOf('chat', { prices }),
    { outputTokensCap, choices, inputTokensEstimate: 100, cacheWrites: 'none' },
    holdOutputTokens,
  )
}

/** A request of the model's own wire, as it would be sent. */
function exchangeOf(wire: ClientWire, model: Model, text: string): Exchange {
  const body = new ClientBody(Buffer.from(text))
  const gateway = { nowMs: () => 0, sealer: { isOurs: () => false } }
  const call = { wire, requestId: 'r', header: () => undefined }
  return exchangeNatively({ gateway, call, model, body, at: 0, scopedKey: undefined } as unknown as CheckedRequest)
}

test('C2 a hold assumes the cap, and at most hold_output_tokens', async () => {
  assert.equal(await held(1_024, 50), 200_000n + 500_000n)
  assert.equal(await held(1_024, 128_000), 200_000n + 10_240_000n)
})

test('C2 C7 if several answers are asked for, each of them is held', async () => {
  assert.equal(await held(1_024, 8 * 128_000, 8), 200_000n + 8n * 10_240_000n)
  assert.equal(await held(1_024, 8 * 50, 8), 200_000n + 8n * 500_000n)
  assert.equal(await held('cap', 8 * 50, 8), 200_000n + 8n * 500_000n)
})

test('B19 C16 hold_output_tokens: cap holds the highest possible cost of the cap', async () => {
  assert.equal(await held('cap', 50), 200_000n + 500_000n)
  assert.equal(await held('cap', 128_000), 200_000n + 1_280_000_000n)
})

test('C11 a hold uses the step that its input reaches, and assumes one call if the provider may run tools', async () => {
  const base = plainPrices
  const prices = {
    ...base,
    inputNanos: 1_000_000n,
    outputNanos: 1_000_000n,
    steps: [{ ...base, above: 50, inputNanos: 2_000_000n, outputNanos: 2_000_000n }],
    calls: { web_search: 7_000n, file_search: 9_000n },
  }
  const hold = (inputTokensEstimate: number, isOutputCapped: boolean) => {
    const bounds = { inputTokensMax: 1, isOutputCapped }
    const exchange = { outputTokensCap: 100, choices: 1, inputTokensEstimate, bounds, cacheWrites: 'none' as const }
    return heldFor(modelOf('chat', { prices: listOf(prices) }), exchange, 1_024)
  }
  assert.deepEqual([await hold(50, true), await hold(51, true)], [150n, 302n])
  assert.deepEqual([await hold(50, false), await hold(51, false)], [9_150n, 9_302n])
})

test('C11 money.md 1 g: a hold prices input as cache writes, of the requested lifetime, if the request may write a cache', async () => {
  const prices = listOf({
    ...plainPrices,
    ...{ inputNanos: 1_000_000n, cacheReadNanos: 100_000n, cacheWriteNanos: 1_250_000n, cacheWrite1hNanos: 2_000_000n },
    outputNanos: 0n,
  })
  const hold = (wire: 'messages' | 'chat', body: string) => {
    const model = modelOf(wire, { prices })
    return heldFor(
      model,
      Object.assign(exchangeOf(wire, model, body), { outputTokensCap: 1, inputTokensEstimate: 100 }),
    )
  }
  assert.equal(await hold('messages', '{}'), 100n)
  assert.equal(await hold('messages', '{"cache_control":{"type":"ephemeral"}}'), 125n)
  assert.equal(await hold('messages', '{"cache_control":{"type":"ephemeral","ttl":"1h"}}'), 200n)
  assert.equal(await hold('messages', '{"text":"1h"}'), 100n)
  assert.equal(await hold('chat', '{}'), 125n)
  assert.equal(await hold('chat', '{"prompt_cache_options":{"ttl":"12h"}}'), 200n)
})

test('C11 T5 a hold prices input as cache writes if the gateway sets cache marks on the same wire, and only then', async () => {
  const prices = listFrom('{ input: "1", cache_write: "1.25", output: "0" }')
  const hold = async (profile: ProfileSetting, more: string) => {
    const model = { ...modelOf('messages', {}, profile), prices }
    const text = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"Hi"}]${more}}`
    const exchange = Object.assign(exchangeOf('messages', model, text), { inputTokensEstimate: 1_000_000 })
    return Number(await heldFor(model, exchange)) / 1e9
  }
  const tools = ',"tools":[{"name":"f","input_schema":{}}]'
  assert.equal(await hold({ autoCacheSameWire: true }, tools), 1.25)
  assert.equal(await hold({ autoCacheSameWire: true }, ''), 1)
  assert.equal(await hold({}, tools), 1)
})

test('C11 a hold is no smaller if the body writes its cache marks, or their lifetimes, with escapes', async () => {
  const prices = listFrom('{ input: "1", cache_write: "1.25", cache_write_1h: "2", output: "0" }')
  const hold = async (wire: ClientWire, mark: string) => {
    const part = `{"type":"text","text":"${'word '.repeat(400)}"${mark}}`
    const text = `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[${part}]}]}`
    const model = { ...modelOf(wire), prices, expectedTiers: [] }
    const exchange = exchangeOf(wire, model, text)
    return Number(await heldFor(model, exchange)) / exchange.inputTokensEstimate / 1_000
  }
  const marks = (word: string) => [word, word.replace('_', '\\u005f'), word.replace('c', '\\u0063')]
  for (const mark of marks('cache_control'))
    for (const ttl of ['1h', '\\u0031h', '1\\u0068', '\\u0031\\u0068'])
      assert.equal(await hold('messages', `,"${mark}":{"type":"ephemeral","ttl":"${ttl}"}`), 2, `${mark} ${ttl}`)
  for (const ttl of ['12h', '\\u00312h', '1\\u0032h']) assert.equal(await hold('chat', `,"x":{"ttl":"${ttl}"}`), 2, ttl)
  // Plain spellings, and the escapes of writers that make their JSON safe for HTML, are judged by the words.
  assert.equal(await hold('messages', ',"x":"\\u003cb\\u003e"'), 1)
  assert.equal(await hold('messages', ',"cache_control":{"type":"ephemeral","ttl":"5m"}'), 1.25)
})

test('Y17 a hold uses the dearest of the base, the requested tier, and those that accounts choose by themselves', async () => {
  const list = listFrom('{ input: "1", output: "0", tiers: { flex: "0.5", priority: "2", ultrafast: "6" } }')
  const hold = async (expectedTiers: Tier[], service: Record<string, string> | undefined) => {
    const exchange = {
      outputTokensCap: 1,
      choices: 1,
      inputTokensEstimate: 1_000_000,
      service,
      cacheWrites: 'none' as const,
    }
    return (await heldFor(modelOf('chat', { prices: list, expectedTiers }), exchange)) / 1_000_000_000n
  }
  assert.equal(await hold([], undefined), 1n)
  assert.equal(await hold([], { service_tier: 'flex' }), 1n)
  assert.equal(await hold([], { service_tier: 'fast' }), 2n)
  assert.equal(await hold(['priority'], undefined), 2n)
  assert.equal(await hold(['priority'], { service_tier: 'ultrafast' }), 6n)
  assert.equal(await hold(['priority'], { service_tier: 'flex' }), 2n)
})
