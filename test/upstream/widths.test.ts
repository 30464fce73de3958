import assert from 'node:assert/strict'
import test from 'node:test'
import { cacheLifeMs } from '../../src/catalog/profile.ts'
import { Widths } from '../../src/upstream/widths.ts'
import { modelOf } from '../native/models.ts'

test('Y24 a preamble that began in the first minute keeps the accounts of its tools until a pause longer than the cache life', () => {
  const model = modelOf('chat')
  const lifeMs = cacheLifeMs(model.profile)
  for (const [pauseMs, name] of [
    [lifeMs, 'first'],
    [lifeMs + 1, 'second'],
  ] as const) {
    let nowMs = 0
    const widths = new Widths(() => nowMs)
    const ask = (preamble: string) =>
      widths.count(model, { opener: preamble, tools: 'tools', preamble, tokens: 9, isSmall: false }, 4)
    ask('first')
    assert.equal(ask('second').name, 'first')
    nowMs = pauseMs
    assert.equal(ask('second').name, name)
  }
})
