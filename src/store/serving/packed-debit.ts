import type { Debit } from '../../accounts/ledger.ts'

export type PackedDebit = ReturnType<typeof packDebit>

/**
 * Packs a debit into an array, to send it between threads. Copying the names of its fields would cost both threads
 * together 1 µs more.
 */
export function packDebit(d: Debit) {
  const { usage: u } = d
  // biome-ignore format: a field in each line would be a page
  return [
    d.requestId, d.accountId, d.amountNanos, d.keyId, d.clientWire, d.model, d.modelWire, d.upstream, d.upstreamAccount,
    u.inputTokens, u.cacheReadTokens, u.cacheWriteTokens, u.cacheWrite1hTokens, u.outputTokens, u.reasoningTokens, u.estimated,
    d.usageSource, d.pricedCalls, d.calls, d.priceVersion, d.prices, d.outcome, d.createdMs, d.details, d.listText, d.costPrices,
  ] as const
}

/**
 * Unpacks a debit. The compiler checks the type of each position, and a test checks that none is missing or swapped.
 */
export function unpackDebit(p: PackedDebit): Debit {
  // biome-ignore format: a field in each line would be a page
  return {
    requestId: p[0], accountId: p[1], amountNanos: p[2], keyId: p[3], clientWire: p[4], model: p[5], modelWire: p[6],
    upstream: p[7], upstreamAccount: p[8],
    usage: {
      inputTokens: p[9], cacheReadTokens: p[10], cacheWriteTokens: p[11], cacheWrite1hTokens: p[12], outputTokens: p[13],
      reasoningTokens: p[14], estimated: p[15],
    },
    usageSource: p[16], pricedCalls: p[17], calls: p[18], priceVersion: p[19], prices: p[20], outcome: p[21], createdMs: p[22],
    details: p[23], listText: p[24], costPrices: p[25],
  }
}
