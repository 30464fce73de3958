import { parseCredits } from '../accounts/credit.ts'
import { asObject } from '../bytes/json.ts'
import { builtInScripts } from '../catalog/built-in-scripts.ts'
import { type Catalog, createCatalog, type Model, type Route, type Tier } from '../catalog/model.ts'
import { type Profile, setKeys } from '../catalog/profile.ts'
import { type ProfileSetting, resolveProfile } from '../catalog/profiles.ts'
import { foldName } from '../catalog/routing-fields.ts'
import { camelCase, snakeCase } from './document.ts'
import type { ProfileMap } from './fields.ts'
import { readPlans, readPriceList } from './price-list.ts'
import type { ConfigFile, ModelEntry, RouteEntry } from './schema.ts'

/** The parts of the file, besides the catalog, that decide prices. */
type PricedBy = Partial<Pick<ConfigFile, 'calendars' | 'upstreams' | 'plans'>>

/** Makes a model from an entry of the file, with all defaults. */
export function readModel(entry: ModelEntry, file: PricedBy = {}): Model {
  const routes = readRoutes(entry, file)
  return {
    id: entry.id,
    entryId: entry.id,
    aliases: entry.also,
    wire: entry.wire,
    routes,
    ...routes[0]!.serving,
    outputTokensMax: entry.max_output_tokens,
    contextWindow: entry.context_window,
    prices: readPriceList(entry.prices, file.calendars),
    plans: readPlans(entry, file),
    expectedTiers: expectedTiers(routes, file.upstreams),
    allowedFields: new Set(entry.allow.map(foldName)),
    hostedTools: entry.hosted_tools,
    implicitKey: entry.implicit_key,
    affinity: entry.affinity,
  }
}

function expectedTiers(routes: readonly Route[], upstreams: ConfigFile['upstreams'] = {}): Tier[] {
  const accounts = routes.flatMap(({ upstream }) => upstreams[upstream]?.accounts ?? [])
  return [...new Set(accounts.flatMap(({ expected_tiers: tiers = [] }) => tiers))]
}

/** Returns a model's routes (upstreams with settings) by priority. They inherit the model's settings. */
function readRoutes(entry: ModelEntry, { calendars }: PricedBy): Route[] {
  /** Routes with the same settings share a profile object, so that a request is encoded once for all of them. */
  const profiles = new Map<string, Profile>()
  const profileOf = (setting: string | ProfileMap | undefined): Profile => {
    const text = JSON.stringify(setting ?? null)
    const profile = profiles.get(text) ?? resolveProfile(entry.wire, readProfile(setting))
    profiles.set(text, profile)
    return profile
  }
  const listed = typeof entry.upstream === 'string' ? [entry.upstream] : entry.upstream
  const routes = listed.map((item): Route => {
    const route: RouteEntry = typeof item === 'string' ? { name: item, priority: 1, weight: 1, headers: {} } : item
    const profile = profileOf(route.profile ?? entry.profile)
    const cost = route.cost ?? entry.cost
    return {
      upstream: route.name,
      priority: route.priority,
      weight: route.weight,
      headers: readHeaders(route.headers),
      serving: {
        upstreamModel: route.upstream_model ?? entry.upstream_model ?? entry.id,
        profile,
        cost: cost && readPriceList(cost, calendars),
        remoteMedia: entry.remote_media ?? profile.remoteMedia,
        storedFiles: entry.stored_files ?? profile.storedFiles,
      },
    }
  })
  return routes.sort((a, b) => a.priority - b.priority)
}

/** Returns headers with names in lower case. */
export function readHeaders(headers: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/**
 * Returns the raw file with the keys of profile maps in snake_case. The file may also use the names of the code
 * (`maxField`) and two short forms (`replayThought: all`, `thinkTags: off`).
 */
export function spellProfiles(raw: Record<string, unknown>): Record<string, unknown> {
  const catalog = asObject(raw['catalog'])
  if (!catalog || !Array.isArray(catalog['models'])) return raw
  const models = catalog['models'].map((entry: unknown) => {
    const { upstream } = asObject(entry) ?? {}
    const spelled = spellProfileOf(entry)
    return Array.isArray(upstream) ? { ...(spelled as object), upstream: upstream.map(spellProfileOf) } : spelled
  })
  return { ...raw, catalog: { ...catalog, models } }
}

function spellProfileOf(entry: unknown): unknown {
  const profile = asObject(asObject(entry)?.['profile'])
  return profile ? { ...(entry as object), profile: spellProfile(profile) } : entry
}

function spellProfile(profile: Record<string, unknown>): Record<string, unknown> {
  const { required, ...spelled } = spellKeys(profile, snakeCase)
  const replay = spelled['replay_thought']
  if (typeof replay === 'string')
    spelled['replay_thought'] = { when: replay, ...(required !== undefined && { required }) }
  else if (required !== undefined) spelled['required'] = required
  if (spelled['think_tags'] === 'off') spelled['think_tags'] = false
  return spelled
}

/** Converts the keys of a map, and of the maps in it, by `spell`. */
function spellKeys(map: object, spell: (key: string) => string): Record<string, unknown> {
  const entries = Object.entries(map).map(([key, value]) => {
    const inner = asObject(value)
    return [spell(key), inner ? spellKeys(inner, spell) : value]
  })
  return Object.fromEntries(entries)
}

/** Converts a profile map to the form of the code: camelCase on two levels, and sets instead of some lists. */
export function readProfile(profile: string | ProfileMap | undefined): ProfileSetting | string | undefined {
  if (profile === undefined || typeof profile === 'string') return profile
  const setting: Record<string, unknown> = spellKeys(profile, camelCase)
  for (const key of setKeys) {
    if (setting[key]) setting[key] = new Set(setting[key] as string[])
  }
  for (const key of ['routingFields', 'routingContainers']) {
    if (setting[key]) setting[key] = (setting[key] as string[]).map(foldName)
  }
  if (setting['thinkTags'] === false) setting['thinkTags'] = undefined
  return setting as ProfileSetting
}

/** The models of a configuration without a catalog, so that a first run needs no provider account. */
export const builtInModels: readonly ModelEntry[] = builtInScripts.map(({ id, wire, upstreamModel }) => ({
  id,
  also: [],
  wire,
  upstream: 'simulator',
  upstream_model: upstreamModel,
  max_output_tokens: 8192,
  context_window: 128_000,
  // Prices like those of a real model, so that even a short answer makes a visible debit.
  prices: {
    input: parseCredits('3'),
    cache_read: parseCredits('0.3'),
    cache_write: parseCredits('3.75'),
    output: parseCredits('15'),
  },
  profile: 'simulator',
  allow: [],
  hosted_tools: 'pass',
  implicit_key: 'off',
  affinity: 'alike',
}))

/** Returns the catalog for a configuration without one. @param file the configuration, whose plans apply */
export function builtInCatalog(file: PricedBy): Catalog {
  const models = builtInModels.map((entry) => readModel(entry, file))
  return createCatalog(models, Date.UTC(2026, 10, 1) / 1000, 'triwire')
}
