import { createHash } from 'node:crypto'
import { asObject } from '../bytes/json.ts'
import { type Model, type Prices, type Route, type WireName, wireNames } from '../catalog/model.ts'
import type { Profile } from '../catalog/profile.ts'
import { findProfileMistake, type ProfileSetting, resolveProfile } from '../catalog/profiles.ts'
import { snakeCase } from './document.ts'
import type { ModelEntry, ProfileMap, RouteEntry } from './schema.ts'

/** One model of the file, with every default filled in. */
export function readModel(entry: ModelEntry): Model {
  const prices = readPrices(entry.prices)
  const routes = readRoutes(entry)
  return {
    id: entry.id,
    wire: entry.wire,
    routes,
    ...routes[0]!.serving,
    outputTokensMax: entry.max_output_tokens,
    prices,
    priceVersion: hashPrices(prices),
    allowedFields: new Set(entry.allow),
    hostedTools: entry.hosted_tools,
  }
}

/** In the order of their priorities. What a route does not say of itself the model says for all. */
function readRoutes(entry: ModelEntry): Route[] {
  /** Those who are set up alike share one profile: by that a request is made once for all of them. */
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
    return {
      upstream: route.name,
      priority: route.priority,
      weight: route.weight,
      headers: readHeaders(route.headers),
      serving: {
        upstreamModel: route.upstream_model ?? entry.upstream_model ?? entry.id,
        profile,
        remoteMedia: entry.remote_media ?? profile.remoteMedia,
        storedFiles: entry.stored_files ?? profile.storedFiles,
      },
    }
  })
  return routes.sort((a, b) => a.priority - b.priority)
}

/** By names in lower case. */
export function readHeaders(headers: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** The defaults of ruling C1. */
export function readPrices(prices: ModelEntry['prices']): Prices {
  const cacheWriteNanos = prices.cache_write ?? prices.input
  return {
    inputNanos: prices.input,
    cacheReadNanos: prices.cache_read ?? prices.input,
    cacheWriteNanos,
    cacheWrite1hNanos: prices.cache_write_1h ?? cacheWriteNanos,
    outputNanos: prices.output,
  }
}

/** Twelve hex digits that change when a price does. */
export function hashPrices(prices: Prices): string {
  const amounts = [
    prices.inputNanos,
    prices.cacheReadNanos,
    prices.cacheWriteNanos,
    prices.cacheWrite1hNanos,
    prices.outputNanos,
  ]
  return createHash('sha256').update(amounts.join(' ')).digest('hex').slice(0, 12)
}

/**
 * What only shows across keys: ids given twice, upstreams that are not there or twice, profiles of another wire. Reads
 * the file as it is written, so that these are told together with what the schema finds.
 */
export function* modelMistakes(raw: unknown): Mistakes {
  const { catalog, upstreams } = raw as { catalog?: { models?: unknown }; upstreams?: object }
  const models = catalog?.models
  if (!Array.isArray(models)) return
  const names = Object.keys(upstreams ?? {})
  const seen = new Map<unknown, number>()
  for (const [index, model] of models.entries()) {
    const path = ['catalog', 'models', index]
    const { id, upstream, upstream_model: upstreamName, wire, profile } = (model ?? {}) as Record<string, unknown>
    const isWire = wireNames.includes(wire as WireName)
    const first = seen.get(id)
    if (typeof id === 'string' && first !== undefined) {
      yield { path: [...path, 'id'], message: `is also the id of catalog.models[${first}]; give each model its own` }
    }
    if (first === undefined) seen.set(id, index)
    if (typeof upstream === 'string') yield* upstreamMistakes(upstream, names, [...path, 'upstream'])
    if (isWire) yield* profileMistakes(wire as WireName, profile, [...path, 'profile'])
    if (!Array.isArray(upstream)) continue
    yield* repeatedRoutes(upstream, upstreamName ?? id, [...path, 'upstream'])
    for (const [place, route] of upstream.entries()) {
      const at = [...path, 'upstream', place]
      if (typeof route === 'string') yield* upstreamMistakes(route, names, at)
      const { name, profile: own, headers } = asObject(route) ?? {}
      if (typeof name === 'string') {
        yield* upstreamMistakes(name, names, [...at, 'name'])
        yield* keyHeaderMistakes(asObject(asObject(upstreams)?.[name])?.['key_header'], headers, [...at, 'headers'])
      }
      if (isWire) yield* profileMistakes(wire as WireName, own, [...at, 'profile'])
    }
  }
}

type Mistakes = Iterable<{ path: PropertyKey[]; message: string }>

function* upstreamMistakes(name: string, names: readonly string[], path: PropertyKey[]): Mistakes {
  if (names.includes(name)) return
  const known = names.length > 0 ? `: ${names.join(', ')}` : '; there is none yet'
  yield { path, message: `must name an entry of upstreams${known}` }
}

/** A credential that is there twice is the wrong one half of the time. */
function* keyHeaderMistakes(keyHeader: unknown, headers: unknown, path: PropertyKey[]): Mistakes {
  for (const name of Object.keys(asObject(headers) ?? {})) {
    const isKey = typeof keyHeader === 'string' && name.toLowerCase() === keyHeader.toLowerCase()
    if (isKey) yield { path: [...path, name], message: 'is the `key_header` of its upstream; leave it out' }
  }
}

/** An account that is in the pool twice would be asked again as if it were another (ruling U1). */
function* repeatedRoutes(routes: readonly unknown[], upstreamName: unknown, path: PropertyKey[]): Mistakes {
  const seen = new Map<string, number>()
  for (const [place, route] of routes.entries()) {
    const { name, upstream_model: own = upstreamName } = asObject(route) ?? { name: route }
    const served = JSON.stringify([name, own])
    const first = seen.get(served)
    if (first === undefined) seen.set(served, place)
    else {
      const message = `is listed already, as upstream[${first}]; name it once, or give each its own \`upstream_model\``
      yield { path: [...path, place, ...(name === route ? [] : ['name'])], message }
    }
  }
}

function* profileMistakes(wire: WireName, profile: unknown, path: PropertyKey[]): Mistakes {
  const name = typeof profile === 'string' ? profile : asObject(profile)?.['extends']
  const mistake = typeof name === 'string' ? findProfileMistake(wire, name) : undefined
  if (mistake) yield { path: [...path, ...(name === profile ? [] : ['extends'])], message: mistake }
}

/**
 * The raw file with the keys of profile maps in snake_case: a profile may be written in the words of the code and of the
 * translation rules too (`maxField`), and its two short forms in long (`replayThought: all`, `thinkTags: off`).
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
  const { required, ...spelled } = snakeKeys(profile)
  const replay = spelled['replay_thought']
  if (typeof replay === 'string')
    spelled['replay_thought'] = { when: replay, ...(required !== undefined && { required }) }
  else if (required !== undefined) spelled['required'] = required
  if (spelled['think_tags'] === 'off') spelled['think_tags'] = false
  return spelled
}

function snakeKeys(map: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(map).map(([key, value]) => {
    const inner = asObject(value)
    return [snakeCase(key), inner ? snakeKeys(inner) : value]
  })
  return Object.fromEntries(entries)
}

/** The map of the file in the words of the code: snake_case to camelCase, two levels deep; lists that are sets. */
export function readProfile(profile: string | ProfileMap | undefined): ProfileSetting | string | undefined {
  if (profile === undefined || typeof profile === 'string') return profile
  const setting: Record<string, unknown> = camelKeys(profile)
  for (const key of ['drops', 'accepts', 'toolChoice']) {
    if (setting[key]) setting[key] = new Set(setting[key] as string[])
  }
  if (setting['thinkTags'] === false) setting['thinkTags'] = undefined
  return setting as ProfileSetting
}

function camelKeys(map: object): Record<string, unknown> {
  const entries = Object.entries(map).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    typeof value === 'object' && value !== null && !Array.isArray(value) ? camelKeys(value) : value,
  ])
  return Object.fromEntries(entries)
}
