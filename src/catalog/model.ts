import type { Usage } from '../inference/usage.ts'
import type { Profile } from './profile.ts'

/** The dialects, by the names the code uses for them (ruling N1); what each of them is stands in its folder in `wires/`. */
export const wireNames = ['messages', 'chat', 'responses'] as const
export type WireName = (typeof wireNames)[number]

/** Nano-credits per million tokens, one price for each kind of token (ruling C1). */
export type Prices = {
  inputNanos: bigint
  cacheReadNanos: bigint
  cacheWriteNanos: bigint
  /** For cache entries kept an hour. */
  cacheWrite1hNanos: bigint
  outputNanos: bigint
}

/** One entry of the catalog, checked and with every default filled in. Frozen: a reload makes a new one. */
export type Model = {
  /** What clients name. */
  id: string
  /** The one wire its upstream speaks. */
  wire: WireName
  /** The name of the upstream in the configuration. */
  upstream: string
  /** What the upstream calls it. Never shown to a client. */
  upstreamModel: string
  outputTokensMax: number
  prices: Prices
  /** Identifies the prices a bill was made with; part of the ledger entry. */
  priceVersion: string
  profile: Profile
  /** Fields and betas that raise the price and may pass all the same (ruling C7). */
  allowedFields: ReadonlySet<string>
  /** Whether hosted tools pass on the model's own wire (spec 2.7) or are refused (ruling C7). */
  hostedTools: Passage
  /** The same for addresses of media that the provider would fetch, and for what it stores by an id (ruling U12). */
  remoteMedia: Passage
  storedFiles: Passage
}

export type Passage = 'pass' | 'refuse'

/** Fields of requests that cost beyond the price of their tokens (ruling C7). */
export const costFieldNames = [
  'service_tier',
  'speed',
  'inference_geo',
  'priority',
  'best_of',
  'n_predict',
  'chat_template',
] as const
export type CostField = (typeof costFieldNames)[number]

const tokensPerPrice = 1_000_000n

/** What an answer costs, in nano-credits: one rounding, up, per request (ruling C1). */
export function priceNanos(prices: Prices, usage: Usage): bigint {
  const sum =
    BigInt(usage.inputTokens) * prices.inputNanos +
    BigInt(usage.cacheReadTokens) * prices.cacheReadNanos +
    BigInt(usage.cacheWriteTokens - usage.cacheWrite1hTokens) * prices.cacheWriteNanos +
    BigInt(usage.cacheWrite1hTokens) * prices.cacheWrite1hNanos +
    BigInt(usage.outputTokens) * prices.outputNanos
  return (sum + tokensPerPrice - 1n) / tokensPerPrice
}
