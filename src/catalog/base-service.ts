import { type Model, type Tier, tiers } from './model.ts'
import { setAt } from './price-list.ts'
import type { ModelWire } from './wire-names.ts'

/**
 * The words for service at the base price, by the member of an answer or of its usage that has them (ruling Y17). Sources are
 * the vendors' pages on service tiers, fast mode and data residency, and the request fields of C7. `not_available` is the
 * geography of models that have no choice of one.
 */
const baseWords: Readonly<Record<string, readonly string[]>> = {
  service_tier: ['default', 'standard', 'on_demand', 'auto', 'standard_only', 'scale', 'reserved'],
  speed: ['standard'],
  inference_geo: ['global', 'default', 'not_available'],
}

/** The words for service at the base price that a request may send as `service_tier` to any model (ruling C7). */
export const freeTierWords: readonly string[] = ['auto', 'default', 'standard_only', 'standard']

/** Words for tiers that may have a price of their own; OpenAI renamed `priority` to `fast` on 30 July 2026. */
const tierWords: Readonly<Record<string, Tier>> = {
  ...{ flex: 'flex', priority: 'priority', fast: 'priority', ultrafast: 'ultrafast' },
}

/** The tier that a word names; null for the base, undefined for a word that is not known. */
export function tierOf(said: string): Tier | null | undefined {
  const word = said.trim().toLowerCase()
  if (word === '' || baseWords['service_tier']!.includes(word)) return null
  return Object.hasOwn(tierWords, word) ? tierWords[word] : undefined
}

/** Words of one wire that name capacity which was paid for before, and so cost nothing more. */
const prepaidWords: Partial<Record<ModelWire, readonly string[]>> = { messages: ['service_tier priority'] }

/** The header in which Gemini names the tier that served an answer (ai.google.dev/gemini-api/docs, November 2026). */
export const tierHeader = 'x-gemini-service-tier'

/** The words by which a request asks for a service, or an answer reports one, by their member. */
export type ServiceWords = Readonly<Record<string, string>>

/** The meaning of a word: the base (neither member is set), a tier, a geography, or something that is not known. */
type Served = { tier?: Tier; geo?: string; isUnknown?: true }

function readWord(member: string, said: string, wire: ModelWire): Served {
  const word = said.trim().toLowerCase()
  if (word === '' || baseWords[member]?.includes(word) || prepaidWords[wire]?.includes(`${member} ${word}`)) return {}
  if (member === 'inference_geo') return { geo: word }
  const tier = member === 'speed' && word !== 'fast' ? undefined : tierOf(word)
  return tier ? { tier } : { isUnknown: true }
}

/** The tier and the geography by which an answer is billed, and whether it names something without a price. */
type ServedFacts = { tier: Tier | undefined; geo: string | undefined; isUnpriced: boolean }

/**
 * Reads the service of an answer (ruling Y17). A word of the answer counts before the request's, by its member. What has no price
 * at this moment is billed at the base, and reported if the answer names it.
 * @param said by the answer
 * @param asked as it was sent to the model
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

/** Members that a wire has for its service. */
const wireMembers: Readonly<Record<ModelWire, readonly string[]>> = {
  chat: ['service_tier'],
  responses: ['service_tier'],
  messages: ['service_tier', 'speed', 'inference_geo'],
}

/** Whether a request may ask a model for a service, because its list has a price of that very word now (ruling C7). */
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

/** The tiers that a request asks for, as it is sent. */
export function askedTiers(asked: ServiceWords | undefined, wire: ModelWire): Tier[] {
  return Object.entries(asked ?? {}).flatMap(([member, word]) => readWord(member, word, wire).tier ?? [])
}

/** The field by which a request of a wire asks for a tier, and the word for each; undefined where the wire has none. */
const tierFields: Readonly<Record<ModelWire, { field: string; wordOf(tier: Tier, word: string): string | undefined }>> =
  {
    chat: { field: 'service_tier', wordOf: tierWordOf },
    responses: { field: 'service_tier', wordOf: tierWordOf },
    messages: { field: 'speed', wordOf: (tier) => (tier === 'priority' ? 'fast' : undefined) },
  }

/** The field by which clients of a wire ask for a tier. */
export function tierFieldOf(wire: ModelWire): string {
  return tierFields[wire].field
}

/** The name between the wires of the scalar that asks for a tier. */
export const tierScalar = 'service_tier'

/** The wires with one field have the same words for tiers. */
function tierWordOf(tier: Tier, word: string): string {
  return tierOf(word) === tier ? word : tier
}

/**
 * Spells the tier that a client of another wire asks for, if the list prices it now (ruling C7). Words for the base that pass on
 * one wire are sent as well where the list has tiers, since a project may have another default.
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
  // `fast` of the messages wire is a speed, and providers of the others may know the tier by its first name alone.
  const isSame = asked === field
  const free = isSame && freeTierWords.includes(word) ? word : undefined
  const said = tier === undefined ? free : wordOf(tier, isSame ? word : tier)
  return said === undefined ? undefined : { [field]: said }
}

/** The service of an answer in the words of a client's wire; each null where the answer has named nothing of the kind. */
export type RetoldService = {
  /** For chat and responses. */
  tier: string | null
  /** For messages. */
  speed: 'fast' | 'standard' | null
  capacity: 'standard' | null
  geo: string | null
}

/** Tells clients of other wires what an answer has said of its service (ruling Y17). @param wire of the model */
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
