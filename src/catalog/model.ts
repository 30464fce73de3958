import type { Calls, Usage } from '../inference/usage.ts'
import type { Profile } from './profile.ts'
import type { ModelWire } from './wire-names.ts'

/** Nano-credits per million tokens, one price for each kind of token (ruling C1). */
export type Rates = {
  inputNanos: bigint
  cacheReadNanos: bigint
  cacheWriteNanos: bigint
  /** For cache entries kept an hour. */
  cacheWrite1hNanos: bigint
  outputNanos: bigint
}

/** The prices by which an answer is billed (ruling C11). Most models have neither steps nor calls: then the keys are not there. */
export type Prices = Rates & {
  /** By rising `above`: the last one that the input exceeds prices the whole request. */
  steps?: readonly PriceStep[]
  /** Nano-credits for a call of a hosted tool, by its kind. */
  calls?: Readonly<Record<string, bigint>>
}

export type PriceStep = Rates & {
  /** Tokens of input, whether fresh, read from a cache or written to one. */
  above: number
}

/** Services that a list may price apart from the base (ruling Y17). `fast` on chat and responses, and the speed `fast`, are `priority`. */
export const tiers = ['flex', 'priority', 'ultrafast'] as const
export type Tier = (typeof tiers)[number]

/** One set of prices of a list, with all its factors applied. The ledger keeps it once, under its version. */
export type PriceSet = {
  prices: Prices
  /** Identifies the prices that a bill was made with; part of the ledger entry. */
  version: string
  /** The index of its row. */
  row: number
  /** Each null for the base. */
  band: string | null
  tier: Tier | null
  geo: string | null
  /** The factors in 10⁻⁹ that were applied, by what they are of; null where prices are written out. */
  times?: Readonly<Partial<Record<'band' | 'tier' | 'geo', bigint | null>>>
}

/** Hours of the week with prices of their own, by the clock of a zone. */
export type Band = {
  name: string
  zone: string
  /** The offset of the zone from UTC at a moment, in ms. */
  offsetAt: (ms: number) => number
  /** Whether windows begin on a weekday, Sunday first. */
  weekdays: readonly boolean[]
  /** Half-open, in ms from midnight. One that ends after 24 h crosses midnight, and belongs to the day on which it began. */
  windows: readonly { startMs: number; endMs: number }[]
  /** Dates on which no window begins, in days since 1970. */
  daysOff: ReadonlySet<number>
}

/** The prices of a list from one moment to the next row. */
export type PriceRow = {
  /** Unix milliseconds. The first row also holds before that. */
  fromMs: number
  bands: readonly Band[]
  /** All combinations: by band (first the base, then `bands` in order), then by `setKey`. */
  sets: readonly ReadonlyMap<string, PriceSet>[]
}

/** The prices of a model over time. Made when the configuration is read; see `price-list.ts`. */
export type PriceList = {
  /** By rising `fromMs`; at least one. */
  rows: readonly PriceRow[]
  /** The only set of a list without dates, bands, tiers and geographies. */
  only: PriceSet | undefined
  /** The moment that chooses row and band: of the request, or of the end of its answer. */
  counts: 'start' | 'end'
  /** Whether a set has prices of calls. */
  hasCalls: boolean
  /** Whether a set sells reads from a cache for less than fresh input. */
  hasCheaperReads: boolean
  /** Whether a set sells writes into a cache for more than fresh input. */
  hasDearerWrites: boolean
  /** The text that the ledger keeps of a list with bands, tiers or geographies, so that each choice can be made again. */
  kept: { text: string; digest: string } | undefined
  /** Prices of holds that were asked for, by `holdPrices`. */
  holds: Map<string, Prices>
}

/** A model as the upstream that serves it knows it. */
export type Serving = {
  /** The upstream's name for it. Never shown to a client. */
  upstreamModel: string
  profile: Profile
  /** The prices of the provider there, for costs (ruling C11); undefined: costs are not kept. Never shown to clients. */
  cost?: PriceList | undefined
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
  /** The name that clients use and that answers have; for an alias, the alias (ruling R14). */
  id: string
  /** The id of its entry, by which it is billed and remembered, whatever it was called. */
  entryId: string
  /** Its further names; each is an id of the list. */
  aliases: readonly string[]
  /** The one wire that all its upstreams speak. */
  wire: ModelWire
  /** The upstreams that serve it, in the order in which they are asked. The `Serving` of the model itself is that of the first. */
  routes: readonly Route[]
  outputTokensMax: number
  /** Tokens of input and output together; undefined if not configured. Never enforced (spec 8), but given to agents. */
  contextWindow: number | undefined
  prices: PriceList
  /** The same for accounts with a plan, by its name (ruling C11). */
  plans?: ReadonlyMap<string, PriceList>
  /** The model as accounts with a plan have it, which differs in its prices alone. Made with the catalog. */
  planned?: ReadonlyMap<string, Model>
  /** Tiers that accounts of its upstreams choose unasked, for holds. */
  expectedTiers: readonly Tier[]
  /** Fields and betas that raise the price, or choose another model, and may pass all the same (rulings C7, Y13); in lower case. */
  allowedFields: ReadonlySet<string>
  /** The key that is sent for the provider's prompt cache where the client sends none (ruling Y18). */
  implicitKey: ImplicitKey
  /** How requests that name no conversation find their account (ruling Y24): by what they have in common, or at random. */
  affinity: (typeof affinities)[number]
  /** Whether hosted tools pass on the model's own wire (spec 2.7) or are refused (ruling C7). */
  hostedTools: Passage
  /** Set for the name of a chain. All else is that of the first entry, but for the figures that agents are given. */
  chain?: Chain
}

/**
 * A name whose answers may come from several entries (ruling Y23). The first one answers. A further one does so only for a cause
 * that the operator declared. The entries have their own ids, prices and wires.
 */
export type Chain = {
  /** Two to four, in the order in which they are asked. */
  entries: readonly Model[]
  when: ReadonlySet<FallbackCause>
  /** How long a conversation that moved stays with the entry that answered it, in ms; undefined: for the life of its prompt cache there. */
  returnMs: number | undefined
}

/**
 * Why the next entry of a chain is asked. `capacity`: all places of the entry are full. `unavailable`: none can be reached or
 * works. `over_long`: the prompt is too long for it. `budget`: the budget of the key or its person would not bear it.
 */
export const fallbackCauses = ['capacity', 'unavailable', 'over_long', 'budget'] as const
export type FallbackCause = (typeof fallbackCauses)[number]

type Passage = 'pass' | 'refuse'

/** `account`: one key for all requests of a customer. `conversation`: one for each opening of a conversation of a customer. */
export const implicitKeys = ['off', 'account', 'conversation'] as const
type ImplicitKey = (typeof implicitKeys)[number]

export const affinities = ['alike', 'named'] as const

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

/** The most that a cold prompt cache cost a request, in nano-credits: its fresh input at the price of a cache read less. */
export function missNanos(prices: Prices, usage: Usage): bigint {
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const rates = ratesOf(prices, inputTokens + cacheReadTokens + cacheWriteTokens)
  const none = { ...usage, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0, outputTokens: 0 }
  const fresh = priceNanos(rates, none)
  const read = priceNanos(rates, { ...none, inputTokens: 0, cacheReadTokens: inputTokens })
  return fresh > read ? fresh - read : 0n
}

/** The cost of an answer, in nano-credits: one rounding, up, per request (rulings C1, C11). */
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

/** The prices of all of a request: those of the last step that its input exceeds (ruling C11). */
export function ratesOf(prices: Prices, inputTokens: number): Rates & { above?: number } {
  return prices.steps?.findLast(({ above }) => inputTokens > above) ?? prices
}

/** The dearest call that has a price: what a hold assumes of a request that may make some (ruling C11). */
export function dearestCallNanos({ calls = {} }: Prices): bigint {
  return Object.values(calls).reduce((most, nanos) => (nanos > most ? nanos : most), 0n)
}

/** The pinned list of models. Immutable: a reload makes another. */
export type Catalog = {
  /** By every id that a client may name; an alias has a model of its own, which differs in its `id` alone (ruling R14). */
  models: ReadonlyMap<string, Model>
  /** The models themselves, in their order. */
  entries: readonly Model[]
  /** The chains, in their order. */
  chains: readonly Model[]
  /** The body of GET /v1/models, made once, so that it is byte-identical between calls and restarts (spec 4.5). */
  listBody: string
}

function withPlans(model: Model): Model {
  if (!model.plans?.size) return Object.freeze(model)
  const planned = Array.from(model.plans, ([name, prices]) => [name, Object.freeze({ ...model, prices })] as const)
  return Object.freeze({ ...model, planned: new Map(planned) })
}

/** A chain as the file has it, by the ids of its entries. */
export type ChainOfIds = Omit<Chain, 'entries'> & { id: string; chain: readonly string[] }

/**
 * @param listed models and chains in the order of the list; a chain names models of it
 * @param pinnedSeconds Unix seconds of the day the catalog was pinned: `created` on every row (spec 2.9).
 */
export function createCatalog(listed: Iterable<Model | ChainOfIds>, pinnedSeconds: number, owner: string): Catalog {
  const byId = new Map<string, Model>()
  const entries: Model[] = []
  const all = [...listed]
  for (const model of all) {
    // The place in the order of the list is taken here, and the model follows below.
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

/** Agents are given figures that every entry bears. Plans are the entries' own: a chain has no price of its own. */
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
