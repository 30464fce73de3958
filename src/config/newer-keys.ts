import { asObject } from '../bytes/json.ts'
import { spellProfiles } from './models.ts'
import type { OlderRelease } from './older-releases.ts'
import { parseDuration } from './values.ts'

/**
 * Keys and values that an older release refuses. In a path, `*` matches any name, and `[]` any item of a list.
 * `durations` are keys whose values the older release limits to `durationMaxMs`, without days.
 */
type Unknowns = {
  keys: readonly string[]
  profiles: RegExp
  events: RegExp
  durations: RegExp
  durationMaxMs: number
}

/**
 * Keys of a price row that the older release refuses. If prices are a list of rows, that release refuses the whole
 * list.
 */
const priceKeys = ['bands', 'counts', 'from', 'geos', 'tiers']
const profileKeys = [
  'cache_life',
  'cumulative',
  'envelope',
  'reasoning.forced_calls',
  'reasoning.json_answers',
  'tool_name_start',
]
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
      ...['ca_file', 'proxy'].map((key) => `webhooks[].${key}`),
    ],
    profiles:
      /^(anthropic-(bedrock|google|mantle)(-fixed-sampling)?|anthropic-.*always-thinking|moonshot-k3|qwen-thinking|xiaomi|zai)$/,
    events: /^(account_budget_|person_budget_|needs_changed$)/,
    durations: /^(timeouts\.\w+|billing\.read_on|telemetry\.otlp\.(metrics_)?interval|.*\.key_lifetime)$/,
    durationMaxMs: 24 * 3_600_000,
  },
}

/**
 * Finds keys and values that an older release refuses. If nested keys are refused, only the outermost key is returned.
 * @param value the parsed file
 * @returns paths such as `catalog.models[2].chain`
 */
export function findNewerKeys(release: OlderRelease, value: unknown): string[] {
  const { keys, profiles, events, durations, durationMaxMs } = unknowns[release]
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
    else if (isUnknown(path, part)) found.push(`${path}: ${part}`)
  }
  walk(spellProfiles(asObject(value) ?? {}), '')
  return found

  function isUnknown(path: string, value: unknown): boolean {
    if (durations.test(path)) return isNewDuration(value)
    if (typeof value !== 'string') return false
    if (/\.(profile|extends)$/.test(path)) return profiles.test(value)
    return /\.events\[\d+\]$/.test(path) && events.test(value)
  }

  function isNewDuration(value: unknown): boolean {
    if (typeof value === 'number') return value > durationMaxMs
    // A text with a variable is not read.
    if (typeof value !== 'string' || !/^[\d.]+[a-z]+$/.test(value)) return false
    return value.endsWith('d') || parseDuration(value) > durationMaxMs
  }
}
