import type { Usage } from '../inference/usage.ts'
import type { Profile } from './profile.ts'

/** The dialects, by the names the code uses for them (ruling N1); what each of them is stands in its folder in `wires/`. */
export const wireNames = ['messages', 'chat', 'responses'] as const
export type WireName = (typeof wireNames)[number]

/**
 * Where each of them is served, by us and by upstreams (spec 1.2). Behind a base URL that has a path of its own the vendor's
 * SDKs of one wire say the version themselves, and those of the others expect it in the base (ruling P8).
 */
export const wirePlaces: Readonly<Record<WireName, { path: string; keepsVersion: boolean }>> = {
  messages: { path: '/v1/messages', keepsVersion: true },
  chat: { path: '/v1/chat/completions', keepsVersion: false },
  responses: { path: '/v1/responses', keepsVersion: false },
}

/** Nano-credits per million tokens, one price for each kind of token (ruling C1). */
export type Prices = {
  inputNanos: bigint
  cacheReadNanos: bigint
  cacheWriteNanos: bigint
  /** For cache entries kept an hour. */
  cacheWrite1hNanos: bigint
  outputNanos: bigint
}

/** What a model is to the upstream that serves it. */
export type Serving = {
  /** What the upstream calls it. Never shown to a client. */
  upstreamModel: string
  profile: Profile
  /** Whether addresses of media that the provider would fetch pass on the model's own wire, and ids of what it stores (ruling U12). */
  remoteMedia: Passage
  storedFiles: Passage
}

/** One upstream that serves a model. */
export type Route = {
  /** Its name in the configuration. */
  upstream: string
  /** Lower ones are asked first; the others when nobody there can be. */
  priority: number
  /** Its share of the requests within one priority, whatever number of accounts it has. */
  weight: number
  /** Sent with this model's requests there, names in lower case; they win over the upstream's own. */
  headers: ReadonlyMap<string, string>
  serving: Serving
}

/** One entry of the catalog, checked and with every default filled in. Frozen: a reload makes a new one. */
export type Model = Serving & {
  /** What clients name. */
  id: string
  /** The one wire that all its upstreams speak. */
  wire: WireName
  /** Who serves it, the first to be asked first; what the model itself says of its serving is the first one's. */
  routes: readonly Route[]
  outputTokensMax: number
  prices: Prices
  /** Identifies the prices a bill was made with; part of the ledger entry. */
  priceVersion: string
  /** Fields and betas that raise the price and may pass all the same (ruling C7). */
  allowedFields: ReadonlySet<string>
  /** Whether hosted tools pass on the model's own wire (spec 2.7) or are refused (ruling C7). */
  hostedTools: Passage
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
