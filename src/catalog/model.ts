import type { Calls, Usage } from '../inference/usage.ts'
import type { Profile } from './profile.ts'
import type { ModelWire } from './wire-names.ts'

/** Nano-credits per million tokens, one price for each kind of token (ruling C1). */
export type Rates = {
  inputNanos: bigint
  cacheReadNanos: bigint
  cacheWriteNanos: bigint
  /** The price for cache entries that are kept for an hour. */
  cacheWrite1hNanos: bigint
  outputNanos: bigint
}

/** The prices by which an answer is billed (ruling C11). For most models, `steps` and `calls` are missing. */
export type Prices = Rates & {
  /**
   * Prices of large inputs, in rising order of `above`. A whole request gets the prices of the last step it exceeds.
   */
  steps?: readonly PriceStep[]
  /** Nano-credits for a call of a hosted tool, by its kind. */
  calls?: Readonly<Record<string, bigint>>
}

export type PriceStep = Rates & {
  /** The step applies if a request has more input tokens than this. Cache reads and cache writes count as input. */
  above: number
}

/**
 * Tiers of service for which a price list may have prices of their own (ruling Y17). The tier `fast` of chat and
 * responses, and the speed `fast` of messages, count as `priority`.
 */
export const tiers = ['flex', 'priority', 'ultrafast'] as const
export type Tier = (typeof tiers)[number]

/** One set of prices of a list, with all its factors applied. The ledger stores it once, under its version. */
export type PriceSet = {
  prices: Prices
  /** The name of these prices in bills and in ledger entries. */
  version: string
  /** The index of the row in the price list from which this set comes. */
  row: number
  /** The band, tier and geography to which the set applies. Null means the base. */
  band: string | null
  tier: Tier | null
  geo: string | null
  /** The factors that gave these prices, in units of 10⁻⁹. Null: the band, tier or geography has its own prices. */
  times?: Readonly<Partial<Record<'band' | 'tier' | 'geo', bigint | null>>>
}

/** Hours of the week with their own prices, by the clock of a zone. */
export type Band = {
  name: string
  zone: string
  /** The offset of the zone from UTC at a moment, in ms. */
  offsetAt: (ms: number) => number
  /** One value for each weekday, Sunday first: whether windows begin on that day. */
  weekdays: readonly boolean[]
  /**
   * The hours, in ms from midnight; `endMs` itself is outside of the window. A window that ends after 24 h belongs to
   * the day on which it began.
   */
  windows: readonly { startMs: number; endMs: number }[]
  /** Dates on which no window begins, in days since 1970. */
  daysOff: ReadonlySet<number>
}

/** The prices of a list from `fromMs` until the `fromMs` of the next row. */
export type PriceRow = {
  /** The first moment, in Unix milliseconds. The first row also applies before that moment. */
  fromMs: number
  bands: readonly Band[]
  /** The sets of prices: one map for the base, then one for each of `bands`. `setKey` makes the keys of a map. */
  sets: readonly ReadonlyMap<string, PriceSet>[]
}

/** The prices of a model over time. Made when the configuration is read; see `price-list.ts`. */
export type PriceList = {
  /** The rows, sorted by `fromMs`, the earliest first. There is at least one. */
  rows: readonly PriceRow[]
  /** The set of prices of a list without dates, bands, tiers and geographies. Undefined for all other lists. */
  only: PriceSet | undefined
  /** The moment at which a request's price row and band are chosen: its start, or the end of its answer. */
  counts: 'start' | 'end'
  /** Whether any set of prices has a price for calls of hosted tools. */
  hasCalls: boolean
  /** Whether any set of prices has a lower price for cache reads than for fresh input. */
  hasCheaperReads: boolean
  /** Whether any set of prices has a higher price for cache writes than for fresh input. */
  hasDearerWrites: boolean
  /**
   * The text of a price list that has bands, tiers or geographies. The ledger stores this text, so that a choice of
   * prices can be verified.
   */
  kept: { text: string; digest: string } | undefined
  /** The cached results of `holdPrices`, which fills this map. */
  holds: Map<string, Prices>
}

/** A model as one of its upstreams serves it. */
export type Serving = {
  /** The upstream's name for the model. Never shown to a client. */
  upstreamModel: string
  profile: Profile
  /**
   * The provider's prices at the upstream (ruling C11). If undefined, no costs are recorded. Clients never see these
   * prices.
   */
  cost?: PriceList | undefined
  /** Whether requests on the model's own wire may contain URLs of media, and ids of stored files (ruling U12). */
  remoteMedia: Passage
  storedFiles: Passage
}

/** One upstream that serves a model. */
export type Route = {
  /** The upstream's name in the configuration. */
  upstream: string
  /** Upstreams with lower numbers are tried first. Higher numbers follow if no upstream before them can be used. */
  priority: number
  /** The upstream's share of the requests within one priority, whatever its number of accounts. */
  weight: number
  /** Headers for this model's requests to the upstream, in lower case. They win over the upstream's own headers. */
  headers: ReadonlyMap<string, string>
  serving: Serving
}

/** One entry of the catalog, checked and with every default filled in. It is frozen; a reload makes a new entry. */
export type Model = Serving & {
  /** The name for clients and in answers. Each alias has a model of its own, with the alias as `id` (ruling R14). */
  id: string
  /** The id of the model's entry. Requests are billed and logged by this id, whatever name the client used. */
  entryId: string
  /** The model's further names; each is listed as an id too. */
  aliases: readonly string[]
  /** The wire of the model. All upstreams of the model use this wire. */
  wire: ModelWire
  /** The upstreams that serve the model, in the order of trying. The model has the `Serving` members of `routes[0]`. */
  routes: readonly Route[]
  outputTokensMax: number
  /** The most tokens of input and output; undefined if not configured. Never enforced (spec 8), but given to agents. */
  contextWindow: number | undefined
  prices: PriceList
  /** The prices for accounts with a plan, by the name of the plan (ruling C11). */
  plans?: ReadonlyMap<string, PriceList>
  /** The model for accounts with a plan, by the name of the plan. It differs only in its prices. */
  planned?: ReadonlyMap<string, Model>
  /** Tiers that an upstream can choose without being asked. The credit set aside for a request covers their prices. */
  expectedTiers: readonly Tier[]
  /**
   * Fields and betas that are allowed although they raise the price or choose a model (rulings C7, Y13); in lower case.
   */
  allowedFields: ReadonlySet<string>
  /** If the client sends no key for the provider's prompt cache, this key is sent (ruling Y18). */
  implicitKey: ImplicitKey
  /**
   * How requests without a named conversation find their upstream account (ruling Y24): by similarity, or at random.
   */
  affinity: (typeof affinities)[number]
  /** Whether hosted tools are allowed on the model's own wire (spec 2.7) or refused (ruling C7). */
  hostedTools: Passage
  /**
   * Set if the id names a chain. The token limits then suit all models of the chain. All other members are those of its
   * first model.
   */
  chain?: Chain
}

/**
 * A fallback chain: a name whose answers may come from several entries (ruling Y23). The first entry answers. The next
 * entry is tried only for a cause that the operator declared. The entries have their own ids, prices and wires.
 */
export type Chain = {
  /** Two to four models, in the order in which they are tried. */
  entries: readonly Model[]
  when: ReadonlySet<FallbackCause>
  /** How long a conversation stays with a later entry of the chain, in ms. Undefined: the life of a prompt cache. */
  returnMs: number | undefined
}

/**
 * The causes for which the next entry of a chain is tried.
 *
 * - `capacity`: all upstream accounts of the entry are full.
 * - `unavailable`: none of its upstream accounts can be reached or works.
 * - `over_long`: the prompt is too long for the entry.
 * - `budget`: the budget of the key, or of its person, is too small for the entry.
 */
export const fallbackCauses = ['capacity', 'unavailable', 'over_long', 'budget'] as const
export type FallbackCause = (typeof fallbackCauses)[number]

type Passage = 'pass' | 'refuse'

/**
 * The kinds of cache keys that the gateway makes: none, one for each account, or one for each beginning of a
 * conversation of an account.
 */
export const implicitKeys = ['off', 'account', 'conversation'] as const
type ImplicitKey = (typeof implicitKeys)[number]

export const affinities = ['alike', 'named'] as const

/** Request fields that make a request cost more than the listed price of its tokens (ruling C7). */
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

/**
 * How much more a request cost, at most, because the provider did not have its prompt in the cache, in nano-credits.
 * This is the price of the fresh input, minus the price of the same input from a cache.
 */
export function missNanos(prices: Prices, usage: Usage): bigint {
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const rates = ratesOf(prices, inputTokens + cacheReadTokens + cacheWriteTokens)
  const none = { ...usage, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0, outputTokens: 0 }
  const fresh = priceNanos(rates, none)
  const read = priceNanos(rates, { ...none, inputTokens: 0, cacheReadTokens: inputTokens })
  return fresh > read ? fresh - read : 0n
}

/** The cost of an answer, in nano-credits. It is rounded up, once per request (rulings C1, C11). */
export function priceNanos(prices: Prices, usage: Usage, calls?: Calls): bigint {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, cacheWrite1hTokens } = usage
  const rates = ratesOf(prices, inputTokens + cacheReadTokens + cacheWriteTokens)
  let sum = BigInt(inputTokens) * rates.inputNanos + BigInt(usage.outputTokens) * rates.outputNanos
  if (cacheReadTokens !== 0) sum += BigInt(cacheReadTokens) * rates.cacheReadNanos
  if (cacheWriteTokens !== 0 || cacheWrite1hTokens !== 0)
    sum +=
      BigInt(cacheWriteTokens - cacheWrite1hTokens) * rates.cacheWriteNanos +
      BigInt(cacheWrite1hTokens) * rates.cacheWrite1hNanos
  if (calls !== undefined) {
    for (const [kind, count] of Object.entries(calls)) {
      sum += BigInt(count) * (prices.calls?.[kind] ?? 0n) * tokensPerPrice
    }
  }
  return (sum + tokensPerPrice - 1n) / tokensPerPrice
}

/** Returns the rates of a whole request. They are the rates of the last step that its input exceeds (ruling C11). */
export function ratesOf(prices: Prices, inputTokens: number): Rates & { above?: number } {
  return prices.steps?.findLast(({ above }) => inputTokens > above) ?? prices
}

/** The price of the dearest call. The credit set aside for a request assumes this price for each call (ruling C11). */
export function dearestCallNanos({ calls = {} }: Prices): bigint {
  return Object.values(calls).reduce((most, nanos) => (nanos > most ? nanos : most), 0n)
}

/** The models that clients can name. A catalog never changes, because a reload makes another one. */
export type Catalog = {
  /** The models by every id that clients may name. An alias has its own model, with another `id` (ruling R14). */
  models: ReadonlyMap<string, Model>
  /** The models of the entries, in the order of the list; models of aliases are left out. */
  entries: readonly Model[]
  /** The chains, in their order. */
  chains: readonly Model[]
  /**
   * The body of GET /v1/models. It is made once, so that it is byte-identical between calls and restarts (spec 4.5).
   */
  listBody: string
}

function withPlans(model: Model): Model {
  if (!model.plans?.size) return Object.freeze(model)
  const planned = Array.from(model.plans, ([name, prices]) => [name, Object.freeze({ ...model, prices })] as const)
  return Object.freeze({ ...model, planned: new Map(planned) })
}

/** A chain as in the configuration file, with the ids of its models. */
export type ChainOfIds = Omit<Chain, 'entries'> & { id: string; chain: readonly string[] }

/**
 * Creates the catalog.
 * @param listed models and chains, in the order in which clients see them. A chain names models that are in `listed`
 * @param pinnedSeconds the day on which the catalog was pinned, in Unix seconds. Every row has it as `created` (2.9)
 */
export function createCatalog(listed: Iterable<Model | ChainOfIds>, pinnedSeconds: number, owner: string): Catalog {
  const byId = new Map<string, Model>()
  const entries: Model[] = []
  const all = [...listed]
  for (const model of all) {
    // This fixes the place of a chain's id in the list. The chain itself is set below.
    if ('entryId' in model) addModel(model)
    else byId.set(model.id, undefined!)
  }
  const chains = all.flatMap((one) => ('entryId' in one ? [] : openChain(one, byId)))
  for (const chain of chains) byId.set(chain.id, chain)
  const data = [...byId.keys()].map((id) => ({ id, object: 'model', created: pinnedSeconds, owned_by: owner }))
  return Object.freeze({ models: byId, entries, chains, listBody: JSON.stringify({ object: 'list', data }) })

  function addModel(model: Model): void {
    const entry = withPlans(model)
    entries.push(entry)
    byId.set(model.id, entry)
    for (const id of model.aliases) byId.set(id, withPlans({ ...model, id }))
  }
}

/**
 * Makes the model of a fallback chain. Its token limits are the smallest of all entries, so that they suit every entry.
 * Its other members are those of the first entry, without the models for plans.
 */
function openChain({ id, chain, when, returnMs }: ChainOfIds, models: ReadonlyMap<string, Model>): Model {
  const entries = chain.map((entry) => models.get(entry)!)
  const { planned: _, ...first } = entries[0]!
  const windows = entries.flatMap(({ contextWindow }) => contextWindow ?? [])
  return Object.freeze({
    ...first,
    id,
    outputTokensMax: Math.min(...entries.map(({ outputTokensMax }) => outputTokensMax)),
    contextWindow: windows.length === 0 ? undefined : Math.min(...windows),
    chain: Object.freeze({ entries, when, returnMs }),
  })
}
