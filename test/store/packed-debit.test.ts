import assert from 'node:assert/strict'
import test from 'node:test'
import type { Debit, EntryDetails } from '../../src/accounts/ledger.ts'
import { packDebit, unpackDebit } from '../../src/store/serving/thread.ts'

/** The compiler asks for every field. No two values are the same. */
const debit: Required<Debit> = {
  requestId: 'req_1',
  accountId: 'acc_1',
  amountNanos: 1n,
  keyId: 'key_1',
  clientWire: 'messages',
  model: 'a-model',
  modelWire: 'chat',
  upstream: 'an-upstream',
  upstreamAccount: 'an-account',
  usage: {
    inputTokens: 2,
    cacheReadTokens: 3,
    cacheWriteTokens: 4,
    cacheWrite1hTokens: 5,
    outputTokens: 6,
    reasoningTokens: 7,
    estimated: true,
  },
  usageSource: 'estimated',
  pricedCalls: 8,
  calls: { web_search: 9 },
  priceVersion: 'v1',
  prices: { inputNanos: 10n, cacheReadNanos: 11n, cacheWriteNanos: 12n, cacheWrite1hNanos: 13n, outputNanos: 14n },
  outcome: 'ok',
  createdMs: 15,
  details: { list: 'a-digest', person: 'u-1', costNanos: 16n } satisfies EntryDetails,
  listText: 'a list',
  costPrices: { inputNanos: 17n, cacheReadNanos: 18n, cacheWriteNanos: 19n, cacheWrite1hNanos: 20n, outputNanos: 21n },
}

test('C3 a debit that goes to the store’s thread arrives with each of its fields', () => {
  assert.deepEqual(unpackDebit(structuredClone(packDebit(debit))), debit)
})
