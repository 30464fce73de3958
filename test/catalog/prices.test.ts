import assert from 'node:assert/strict'
import test from 'node:test'
import { formatCalls, parseCalls } from '../../src/accounts/calls.ts'
import { createCatalog, dearestCallNanos, type Prices, priceNanos } from '../../src/catalog/model.ts'
import { type PriceTexts, presets } from '../../src/catalog/presets.ts'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { hashPrices } from '../../src/config/price-list.ts'
import { type UsageReport, weighCalls } from '../../src/inference/usage.ts'
import { modelOf } from '../native/models.ts'
import { prices, usage } from '../store/fixtures.ts'

const micro = 1_000_000n

/** In nano-credits per million: a token costs what is written here, in thousandths of a nano-credit. */
const rates = (input: number, output: number) => ({
  inputNanos: BigInt(input) * micro,
  cacheReadNanos: BigInt(input) * micro,
  cacheWriteNanos: BigInt(input) * micro,
  cacheWrite1hNanos: BigInt(input) * micro,
  outputNanos: BigInt(output) * micro,
})

const stepped: Prices = {
  ...rates(1, 2),
  steps: [
    { above: 100, ...rates(10, 20) },
    { above: 200, ...rates(100, 200) },
  ],
}
const of = (inputTokens: number, cacheReadTokens: number, cacheWriteTokens: number, outputTokens = 0) => ({
  ...usage,
  inputTokens,
  cacheReadTokens,
  cacheWriteTokens,
  cacheWrite1hTokens: 0,
  outputTokens,
})

test('C11 the last step that fresh, read and written input together exceed sets the price of the whole request, output included', () => {
  assert.equal(priceNanos(stepped, of(100, 0, 0, 10)), 120n)
  assert.equal(priceNanos(stepped, of(40, 30, 31, 10)), 1_210n)
  assert.equal(priceNanos(stepped, of(1, 0, 200, 10)), 22_100n)
  assert.equal(priceNanos(stepped, of(0, 0, 0, 1_000)), 2_000n)
})

test('C11 a call costs its price, and a request is rounded once as a whole', () => {
  const called = { ...rates(1, 1), calls: { web_search: 10_000_000n, file_search: 2_500_000n } }
  const third = { ...called, inputNanos: 1n }
  assert.equal(priceNanos(called, of(3, 0, 0), { web_search: 2, file_search: 1 }), 22_500_003n)
  assert.equal(priceNanos(third, of(1, 0, 0), { web_search: 1 }), 10_000_001n)
  assert.equal(priceNanos(called, of(3, 0, 0), { unknown: 9 }), 3n)
  assert.deepEqual([dearestCallNanos(called), dearestCallNanos(prices)], [10_000_000n, 0n])
})

test('C11 a price version changes with a step, its place and a call; without them it stays the same', () => {
  assert.equal(hashPrices(prices), '65b95a2a6531')
  const all: Prices[] = [
    prices,
    stepped,
    { ...stepped, steps: stepped.steps!.slice(1) },
    { ...stepped, steps: [{ ...stepped.steps![0]!, above: 101 }, stepped.steps![1]!] },
    { ...prices, calls: { web_search: 1n } },
    { ...prices, calls: { web_search: 2n } },
    { ...prices, calls: { web_fetch: 1n } },
  ]
  const versions = all.map(hashPrices)
  assert.equal(new Set(versions).size, versions.length)
  const [a, b] = [
    { web_search: 1n, x: 2n },
    { x: 2n, web_search: 1n },
  ]
  assert.equal(hashPrices({ ...prices, calls: a }), hashPrices({ ...prices, calls: b }))
})

test('C11 C6 calls are billed by the final report, otherwise as they were seen, and never by an implausible count', () => {
  const bill = (report: UsageReport, isComplete: boolean) => {
    const { calls, flags } = weighCalls(report, isComplete, (kind) => kind !== 'free')
    return [calls, flags]
  }
  assert.deepEqual(bill({ calls: { web_search: 2 }, callsSeen: { web_search: 3 } }, true), [{ web_search: 2 }, []])
  assert.deepEqual(bill({ calls: { web_search: 1 }, callsSeen: { web_search: 3 } }, false), [{ web_search: 3 }, []])
  assert.deepEqual(bill({ calls: { web_search: 0 } }, true), [undefined, []])
  assert.deepEqual(bill({ callsSeen: { web_search: 3, free: 1 } }, true), [{ web_search: 3 }, []])
  for (const count of [1_001, Number.POSITIVE_INFINITY]) {
    assert.deepEqual(bill({ calls: { web_search: count }, callsSeen: { web_search: 1 } }, true), [
      { web_search: 1 },
      ['calls_absurd'],
    ])
  }
})

test('C11 calls have one text in any order, and are read back from it', () => {
  assert.equal(formatCalls({ web_search: 3, file_search: 1 }), 'file_search:1,web_search:3')
  assert.deepEqual(parseCalls('file_search:1,web_search:3'), { file_search: 1, web_search: 3 })
  assert.deepEqual([formatCalls(undefined), formatCalls({}), parseCalls(null)], [undefined, undefined, undefined])
})

test('R14 each alias is a row of the list after its model, and differs from the model only in its id', () => {
  const first = modelOf('chat', { id: 'a', aliases: ['a-1', 'a-2'] })
  const { models, entries, listBody } = createCatalog([first, modelOf('chat', { id: 'b' })], 7, 'me')
  const row = (id: string) => ({ id, object: 'model', created: 7, owned_by: 'me' })
  assert.deepEqual(JSON.parse(listBody), { object: 'list', data: ['a', 'a-1', 'a-2', 'b'].map(row) })
  assert.deepEqual(models.get('a-2'), { ...first, id: 'a-2' })
  assert.deepEqual(
    entries.map(({ id }) => id),
    ['a', 'b'],
  )
})

test('a preset has a profile of its wire, prices with a day and a source, and every kind in every step', () => {
  for (const [name, { wire, profile, reasoningProfile, fixedSamplingProfile, models }] of Object.entries(presets)) {
    for (const one of [profile, reasoningProfile, fixedSamplingProfile]) if (one) resolveProfile(wire, one)
    for (const model of models) {
      const what = `${name} ${model.id}`
      const { charges } = resolveProfile(wire, model.profile ?? profile)
      assert.ok(model.contextWindow >= model.maxOutputTokens, what)
      if (!model.prices) continue
      const { asOf, source } = model.prices
      const [texts] = [model.prices.texts].flat() as [PriceTexts]
      assert.match(asOf, /^2026-\d\d-\d\d$/, what)
      assert.match(source, /^https:\/\//, what)
      for (const kind of charges) {
        // Older models write no cache that has a price.
        const isCharged = kind !== 'calls' && (kind !== 'cache_write_12h' || texts.cache_write !== undefined)
        if (isCharged) assert.ok(texts[kind], `${what} ${kind}`)
      }
      const { steps = [], calls: _, bands: __, tiers: ___, geos: ____, ...base } = texts
      for (const { above, ...own } of steps)
        assert.deepEqual([above > 0, Object.keys(own).sort()], [true, Object.keys(base).sort()])
    }
  }
})
