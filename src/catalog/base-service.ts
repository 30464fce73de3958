import { type Model, type Tier, tiers } from './model.ts'
import { setAt } from './price-list.ts'
import type { ModelWire } from './wire-names.ts'

/**
 * For each of these members of an answer or its usage: the values that mean the base price (ruling Y17). Sources are
 * the vendors' pages on service tiers, fast mode and data residency, and the request fields in ruling C7. Models without
 * a choice of geography report `not_available`.
 */
const baseWords: Readonly<Record<string, readonly string[]>> = {
  service_tier: ['default', 'standard', 'on_demand', 'auto', 'standard_only', 'scale', 'reserved'],
  speed: ['standard'],
  inference_geo: ['global', 'default', 'not_available'],
}

/** Values of `service_tier` that a request may send to any model, because they mean the base price (ruling C7). */
export const freeTierWords: readonly string[] = ['auto', 'default', 'standard_only', 'standard']

/** Words for tiers that may have their own price. OpenAI renamed `priority` to `fast` on 30 July 2026. */
const tierWords: Readonly<Record<string, Tier>> = {
  ...{ flex: 'flex', priority: 'priority', fast: 'priority', ultrafast: 'ultrafast' },
}

/** Returns the tier that a word names. Returns null for the base price, and undefined for an unknown word. */
export function tierOf(said: string): Tier | null | undefined {
  const word = said.trim().toLowerCase()
  if (word === '' || baseWords['service_tier']!.includes(word)) return null
  return Object.hasOwn(tierWords, word) ? tierWords[word] : undefined
}

/** Members and values that report capacity paid in advance. An answer with such a value has the base price. */
const prepaidWords: Partial<Record<ModelWire, readonly string[]>> = { messages: ['service_tier priority'] }

/** The header in which Gemini names the tier that served an answer (ai.google.dev/gemini-api/docs, November 2026). */
export const tierHeader = 'x-gemini-service-tier'

/** Words for the tier, speed and geography that a request asks for or an answer reports. The keys are member names. */
export type ServiceWords = Readonly<Record<string, string>>

/** The service that a vendor's word stands for. An empty object stands for the base price. */
type Served = { tier?: Tier; geo?: string; isUnknown?: true }

function readWord(member: string, said: string, wire: ModelWire): Served {
  const word = said.trim().toLowerCase()
  if (word === '' || baseWords[member]?.includes(word) || prepaidWords[wire]?.includes(`${member} ${word}`)) return {}
  if (member === 'inference_geo') return { geo: word }
  const tier = member === 'speed' && word !== 'fast' ? undefined : tierOf(word)
  return tier ? { tier } : { isUnknown: true }
}

/** The tier and geography by which an answer is billed. `isUnpriced`: the answer names a service without a price. */
type ServedFacts = { tier: Tier | undefined; geo: string | undefined; isUnpriced: boolean }

/**
 * Reads the tier, speed and geography that served an answer (ruling Y17). The word in the answer takes precedence over
 * the word in the request. A service without a price at this moment is billed at the base price. If the answer itself
 * names such a service, `isUnpriced` is set.
 * @param said the words of the answer
 * @param asked the words of the request, as it was sent to the model
 */
export function readService(
  said: ServiceWords | undefined,
  asked: ServiceWords | undefined,
  { prices, wire }: Pick<Model, 'prices' | 'wire'>,
  at: number,
): ServedFacts {
  const facts: ServedFacts = { tier: undefined, geo: undefined, isUnpriced: false }
  for (const member of new Set([...Object.keys(asked ?? {}), ...Object.keys(said ?? {})])) {
    const told = said?.[member]?.trim() ? said[member] : undefined
    const { tier, geo, isUnknown } = readWord(member, told ?? asked?.[member] ?? '', wire)
    const isPriced = tier ? setAt(prices, { at, tier }).tier === tier : setAt(prices, { at, geo }).geo === (geo ?? null)
    const isSecond = tier !== undefined && facts.tier !== undefined && facts.tier !== tier
    if (isUnknown || !isPriced || isSecond) {
      if (told !== undefined) facts.isUnpriced = true
    } else if (tier) facts.tier = tier
    else if (geo !== undefined) facts.geo = geo
  }
  return facts
}

/** The request fields with which each wire asks for a tier, a speed or a geography. */
const wireMembers: Readonly<Record<ModelWire, readonly string[]>> = {
  chat: ['service_tier'],
  responses: ['service_tier'],
  messages: ['service_tier', 'speed', 'inference_geo'],
}

/**
 * Whether a request may use this word, such as `flex` in `service_tier`. The model must have a price for it at the time
 * `at` (ruling C7).
 */
export function isPricedWord(
  member: string,
  word: unknown,
  model: Pick<Model, 'prices' | 'wire'>,
  at: number,
): boolean {
  if (model.prices.only || typeof word !== 'string' || !wireMembers[model.wire].includes(member)) return false
  const { tier, geo } = readService(undefined, { [member]: word }, model, at)
  return tier !== undefined || geo !== undefined
}

/** Returns the tiers that a request asks for. @param asked the words that are sent in the request */
export function askedTiers(asked: ServiceWords | undefined, wire: ModelWire): Tier[] {
  return Object.entries(asked ?? {}).flatMap(([member, word]) => readWord(member, word, wire).tier ?? [])
}

/**
 * The field with which a request of a wire asks for a tier. `wordOf` returns the wire's word for a tier, or undefined
 * if the wire has no word for it.
 */
const tierFields: Readonly<Record<ModelWire, { field: string; wordOf(tier: Tier, word: string): string | undefined }>> =
  {
    chat: { field: 'service_tier', wordOf: tierWordOf },
    responses: { field: 'service_tier', wordOf: tierWordOf },
    messages: { field: 'speed', wordOf: (tier) => (tier === 'priority' ? 'fast' : undefined) },
  }

/** The field in which a decoded request names the tier that it asks for. All wires use this field. */
export const tierScalar = 'service_tier'

/**
 * Returns the word for a tier on a wire with `service_tier`. All these wires use the same words, so the client's own
 * word is kept if it names the tier.
 */
function tierWordOf(tier: Tier, word: string): string {
  return tierOf(word) === tier ? word : tier
}

/**
 * Translates the tier that a client of another wire asks for. The tier is sent only if the model has a price for it now
 * (ruling C7). A word for the base price is sent too, if both wires have the same field and the model has prices of
 * tiers. Without the word, the provider could use another tier by default.
 * @returns the words to send, by their field; undefined if nothing is sent
 */
export function spellTier(
  word: string,
  from: ModelWire,
  { prices, wire }: Pick<Model, 'prices' | 'wire'>,
  at: number,
): ServiceWords | undefined {
  const [{ field: asked }, { field, wordOf }] = [tierFields[from], tierFields[wire]]
  const { tier, isUnknown } = readWord(asked, word, from)
  const isPriced = tiers.some((one) => (tier ?? one) === one && setAt(prices, { at, tier: one }).tier === one)
  if (isUnknown || !isPriced) return undefined
  // On the messages wire, `fast` is a speed. Other wires may know only the word `priority`, so they get `priority`.
  const isSame = asked === field
  const free = isSame && freeTierWords.includes(word) ? word : undefined
  const said = tier === undefined ? free : wordOf(tier, isSame ? word : tier)
  return said === undefined ? undefined : { [field]: said }
}

/**
 * The service that an answer reports, in the words of the clients' wires. A fact that the answer does not report is
 * null.
 */
export type RetoldService = {
  /** The tier, for clients of chat and responses. */
  tier: string | null
  /** This member and the next two are for messages. */
  speed: 'fast' | 'standard' | null
  capacity: 'standard' | null
  geo: string | null
}

/**
 * Translates the service (tier, speed, geography) that an answer reports into words of the other wires (ruling Y17).
 * @param wire the model's wire
 */
export function retellService(said: ServiceWords | undefined, wire: ModelWire): RetoldService {
  const { field } = tierFields[wire]
  const word = said?.[field] || undefined
  const { tier, isUnknown } = readWord(field, word ?? '', wire)
  const isBase = word !== undefined && tier === undefined && !isUnknown
  const speed = tier === 'priority' ? 'fast' : isBase ? 'standard' : null
  return {
    tier: word === undefined ? null : field === 'service_tier' ? word : (tier ?? (isBase ? 'default' : null)),
    speed,
    capacity: speed && 'standard',
    geo: said?.['inference_geo'] || null,
  }
}
