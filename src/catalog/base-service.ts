import type { Tier } from './model.ts'
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

/**
 * Whether an answer was served by a tier, at a speed or in a geography that has a price of its own. No entry has such a
 * price.
 * @param service the words of the answer, by their member
 */
export function isUnpriced(service: Readonly<Record<string, string>>, wire: ModelWire): boolean {
  return Object.entries(service).some(([member, said]) => {
    const word = said.trim().toLowerCase()
    return word !== '' && !baseWords[member]?.includes(word) && !prepaidWords[wire]?.includes(`${member} ${word}`)
  })
}
