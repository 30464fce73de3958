import { priceNanos } from '../src/catalog/model.ts'
import { newRequestId } from '../src/ids.ts'

/** Nano-credits per million tokens. */
export const prices = {
  inputNanos: 3_000_000_000n,
  cacheReadNanos: 300_000_000n,
  cacheWriteNanos: 3_750_000_000n,
  cacheWrite1hNanos: 6_000_000_000n,
  outputNanos: 15_000_000_000n,
}
const usage = {
  inputTokens: 1_200,
  cacheReadTokens: 30_000,
  cacheWriteTokens: 400,
  cacheWrite1hTokens: 0,
  outputTokens: 512,
  reasoningTokens: 100,
  estimated: false,
}

/** The fields of a debit, except its account, for an agent's turn. */
export function billOf(keyId: string) {
  return {
    requestId: newRequestId(),
    model: 'some-model-large',
    amountNanos: priceNanos(prices, usage),
    usage,
    usageSource: 'final',
    priceVersion: 'v1',
    prices,
    outcome: 'ok',
    createdMs: Date.now(),
    keyId,
    clientWire: 'chat',
    modelWire: 'messages',
    upstream: 'some-upstream',
    upstreamAccount: 'some-upstream-one',
    pricedCalls: 0,
    calls: undefined,
  } as const
}
