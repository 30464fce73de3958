import assert from 'node:assert/strict'
import test from 'node:test'
import { readService, type ServiceWords } from '../../src/catalog/base-service.ts'
import { listFrom } from '../support/price-lists.ts'

const prices = listFrom('{ input: "1", output: "1", tiers: { flex: "0.5", priority: "2" }, geos: { us: "1.1" } }')

type Words = ServiceWords | undefined
const cases: [name: string, asked: Words, said: Words, tier: string | undefined, isUnpriced: boolean][] = [
  ['nothing', undefined, undefined, undefined, false],
  ['an asked tier that is not reported', { speed: 'fast' }, undefined, 'priority', false],
  ['an asked tier that is reported as blank', { speed: 'fast' }, { speed: ' ' }, 'priority', false],
  ['an asked tier, and the base in the answer', { speed: 'fast' }, { speed: 'standard' }, undefined, false],
  ['an asked tier, and an unknown word in the answer', { speed: 'fast' }, { speed: 'swift' }, undefined, true],
  ['a word of another member as a speed', undefined, { speed: 'priority' }, undefined, true],
  ['an asked tier without a price', { service_tier: 'ultrafast' }, undefined, undefined, false],
  [
    'a reported tier without a price',
    { speed: 'fast' },
    { speed: 'fast', service_tier: 'ultrafast' },
    'priority',
    true,
  ],
  ['two reported tiers', undefined, { speed: 'fast', service_tier: 'flex' }, 'priority', true],
  ['one tier, reported in two words', undefined, { speed: 'fast', service_tier: 'Fast' }, 'priority', false],
  ['capacity that was paid in advance', undefined, { service_tier: 'priority' }, undefined, false],
]

for (const [name, asked, said, tier, isUnpriced] of cases)
  test(`issue 46 law 15 the service by which an answer is billed: ${name}`, () => {
    const served = readService(said, asked, { prices, wire: 'messages' }, Date.now())
    assert.deepEqual([served.tier, served.isUnpriced], [tier, isUnpriced])
  })
