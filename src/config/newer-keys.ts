import { asObject } from '../bytes/json.ts'

/** An older release whose configuration and store are known here. */
export const olderReleases = ['0.2'] as const

export type OlderRelease = (typeof olderReleases)[number]

/** Keys and values that a release refuses. In a path `*` stands for any name, and `[]` for any item of a list. */
type Unknowns = { keys: readonly string[]; profiles: RegExp; events: RegExp }

/** Keys of a map of prices. A list of rows by time is newer as a whole. */
const priceKeys = ['bands', 'counts', 'from', 'geos', 'tiers']
const profileKeys = ['cache_life', 'cumulative', 'envelope', 'reasoning.forced_calls']
const modelKeys = ['affinity', 'chain', 'chain_return', 'cost', 'prices[]', 'when', 'upstream[].cost']

const unknowns: Readonly<Record<OlderRelease, Unknowns>> = {
  '0.2': {
    keys: [
      ...['calendars', 'credits', 'explain_upstream_text', 'labels', 'ledger', 'own_pages', 'plans', 'sign_in'],
      ...modelKeys.map((key) => `catalog.models[].${key}`),
      ...priceKeys.map((key) => `catalog.models[].prices.${key}`),
      ...profileKeys.flatMap((key) => [
        `catalog.models[].profile.${key}`,
        `catalog.models[].upstream[].profile.${key}`,
      ]),
      ...['aws', 'azure', 'google', 'expected_tiers'].map((key) => `upstreams.*.accounts[].${key}`),
      ...['stream', 'whole'].map((key) => `upstreams.*.paths.*.${key}`),
    ],
    profiles: /^anthropic-(bedrock|google|mantle)$/,
    events: /^(account_budget_|person_budget_|needs_changed$)/,
  },
}

/**
 * Finds what an older release refuses in a configuration: the outermost keys that it does not know, and values.
 * @param value the parsed file @returns places such as `catalog.models[2].chain`
 */
export function findNewerKeys(release: OlderRelease, value: unknown): string[] {
  const { keys, profiles, events } = unknowns[release]
  const patterns = keys.map(
    (key) =>
      new RegExp(
        `^${key
          .replace(/[.[\]]/g, '\\$&')
          .replaceAll('*', '[^.[]+')
          .replaceAll('\\[\\]', '\\[\\d+\\]')}$`,
      ),
  )
  const found: string[] = []
  const walk = (part: unknown, path: string): void => {
    if (patterns.some((pattern) => pattern.test(path))) found.push(path)
    else if (Array.isArray(part)) for (const [at, one] of part.entries()) walk(one, `${path}[${at}]`)
    else if (asObject(part))
      for (const [key, one] of Object.entries(part as object)) walk(one, path === '' ? key : `${path}.${key}`)
    else if (typeof part === 'string') {
      const isUnknown = /\.(profile|extends)$/.test(path)
        ? profiles.test(part)
        : /\.events\[\d+\]$/.test(path) && events.test(part)
      if (isUnknown) found.push(`${path}: ${part}`)
    }
  }
  walk(value, '')
  return found
}
