import assert from 'node:assert/strict'
import test from 'node:test'
import type { Exchange } from '../../src/gateway/exchange.ts'
import { Pace, tellsLate, withoutLaterOutput } from '../../src/gateway/read-on.ts'
import type { UsageReport } from '../../src/inference/usage.ts'
import { listOf, modelOf, plainPrices } from '../native/models.ts'

/* The rules of C12 by themselves; test/gateway/read-on.test.ts has them at work. */

const words = { reasoningTokens: 0, answerTokens: 100 }

test('C12: without marks a model reasons until its first word; reasoning after the end of its answer is not billed', () => {
  const pace = new Pace(1_000)
  pace.note('speaking', 4_000)
  pace.note('speaking', 6_000)
  assert.equal(pace.hiddenTokens(words, true), 150)
  assert.equal(pace.hiddenTokens({ ...words, reasoningTokens: 20 }, true), 130)

  const marked = new Pace(0)
  marked.note('reasoning', 500)
  marked.end(2_500)
  for (const endMs of [3_500, 4_500]) marked.end(endMs)
  marked.note('speaking', 5_500)
  marked.note('speaking', 6_500)
  assert.equal(marked.hiddenTokens(words, true), 200)
})

test('C12: a model that has reported its input, or its cached part, has reported what is cheaper', () => {
  const model = modelOf('chat', { prices: listOf({ ...plainPrices, inputNanos: 10n, cacheReadNanos: 1n }) })
  const isLate = (report: UsageReport) => tellsLate(report, { mayHideReasoning: false } as Exchange, model)
  assert.deepEqual([isLate({}), isLate({ outputTokens: 3 })], [true, true])
  assert.deepEqual([isLate({ inputTokens: 3 }), isLate({ cacheReadTokens: 3 })], [false, false])
})

test('C11 C12: cached tokens may be cheaper in a step alone, and calls with a price are reported at the end', () => {
  const prices = plainPrices
  const [capped, open] = [true, false].map(
    (isOutputCapped) => ({ mayHideReasoning: false, bounds: { inputTokensMax: 1, isOutputCapped } }) as Exchange,
  ) as [Exchange, Exchange]
  const stepped = { ...prices, steps: [{ ...prices, above: 5, cacheReadNanos: 1n }] }
  assert.equal(tellsLate({}, capped, modelOf('chat', { prices: listOf(stepped) })), true)
  assert.equal(tellsLate({ inputTokens: 3 }, capped, modelOf('chat', { prices: listOf(stepped) })), false)
  const called = modelOf('chat', { prices: listOf({ ...prices, calls: { web_search: 1n } }) })
  assert.deepEqual(
    [tellsLate({ inputTokens: 3 }, open, called), tellsLate({ inputTokens: 3 }, capped, called)],
    [true, false],
  )
  assert.equal(tellsLate({ inputTokens: 3 }, open, modelOf('chat')), false)
})

test('C12: of a later report, output counts as evidence as far as it was shown to the client', () => {
  const later = { inputTokens: 9, cacheReadTokens: 4, outputTokens: 700, reasoningTokens: 300, isOutputPartial: true }
  const input = { inputTokens: 9, cacheReadTokens: 4 }
  assert.deepEqual(withoutLaterOutput(later, {}), input)
  assert.deepEqual(withoutLaterOutput(later, { outputTokens: 2 }), { ...input, outputTokens: 2 })
  const told = { outputTokens: 20, reasoningTokens: 5, isOutputPartial: true }
  assert.deepEqual(withoutLaterOutput(later, told), { ...input, ...told })
  assert.equal(later.outputTokens, 700)
})
