import { asObject } from '../bytes/json.ts'
import { findProfileMistake, resolveProfile } from '../catalog/profiles.ts'
import { type ModelWire, modelWireNames, wirePlaces } from '../catalog/wire-names.ts'
import { chainMistakes } from './chains.ts'
import { formatPath } from './document.ts'
import { type ProfileMap, profileMap } from './fields.ts'
import { readProfile } from './models.ts'

/**
 * Finds mistakes that involve several keys: repeated ids, unknown or repeated upstreams, profiles of another wire. It
 * reads the raw file, so these mistakes are reported together with those of the schema.
 */
export function* modelMistakes(raw: unknown): Mistakes {
  const { catalog, upstreams } = raw as { catalog?: { models?: unknown }; upstreams?: object }
  const models = catalog?.models
  if (!Array.isArray(models)) return
  const names = Object.keys(upstreams ?? {})
  yield* repeatedIds(models)
  yield* chainMistakes(models)
  for (const [index, model] of models.entries()) {
    const path = ['catalog', 'models', index]
    const { upstream, upstream_model: upstreamName, wire, profile, id } = (model ?? {}) as Record<string, unknown>
    const isWire = modelWireNames.includes(wire as ModelWire)
    yield* figureMistakes(model, path)
    if (isWire) yield* implicitKeyMistakes(wire as ModelWire, asObject(model)!, path)
    if (typeof upstream === 'string') yield* upstreamMistakes(upstream, names, [...path, 'upstream'])
    if (isWire) yield* profileMistakes(wire as ModelWire, profile, [...path, 'profile'])
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
      if (isWire) yield* profileMistakes(wire as ModelWire, own, [...at, 'profile'])
    }
  }
}

type Mistakes = Iterable<{ path: PropertyKey[]; message: string }>

/** Finds repeated ids and aliases. Each must be unique, because it names one model in the list (ruling R14). */
function* repeatedIds(models: readonly unknown[]): Mistakes {
  const seen = new Map<string, string>()
  for (const [index, model] of models.entries()) {
    const id = asObject(model)?.['id']
    const first = seen.get(id as string)
    const path = ['catalog', 'models', index, 'id']
    if (first !== undefined) yield { path, message: `is also the id of ${first}; give each model its own` }
    else if (typeof id === 'string') seen.set(id, `catalog.models[${index}]`)
  }
  for (const [index, model] of models.entries()) {
    const also = asObject(model)?.['also']
    if (!Array.isArray(also)) continue
    for (const [place, id] of also.entries()) {
      const first = seen.get(id)
      const path = ['catalog', 'models', index, 'also', place]
      if (first !== undefined) yield { path, message: `is also the id of ${first}; name each id once` }
      else if (typeof id === 'string') seen.set(id, formatPath(path))
    }
  }
}

/** Finds a context window below the maximum output. */
function* figureMistakes(model: unknown, path: PropertyKey[]): Mistakes {
  const { max_output_tokens: output, context_window: window } = asObject(model) ?? {}
  if (typeof output === 'number' && typeof window === 'number' && window < output) {
    yield { path: [...path, 'context_window'], message: 'must be at least `max_output_tokens`, which is a part of it' }
  }
}

/** Finds an `implicit_key` that cannot be sent to the upstream. Customers would then share caches (ruling Y18). */
function* implicitKeyMistakes(wire: ModelWire, model: Record<string, unknown>, path: PropertyKey[]): Mistakes {
  const { implicit_key: key, upstream, profile } = model
  if (key !== 'account' && key !== 'conversation') return
  const at = [...path, 'implicit_key']
  if (!wirePlaces[wire].cacheKey) {
    yield { path: at, message: `cannot be sent: the ${wire} wire has no field for it; leave it out` }
    return
  }
  for (const route of Array.isArray(upstream) ? upstream : [undefined]) {
    const setting = (asObject(route)?.['profile'] ?? profile) as string | ProfileMap | undefined
    if (hasMistake(wire, setting)) continue
    const { accepts, drops } = resolveProfile(wire, readProfile(setting))
    if (accepts.has('prompt_cache_key') && !drops.has('prompt_cache_key')) continue
    const where = asObject(route)?.['name'] ? ` of upstream ${asObject(route)!['name']}` : ''
    const message = `cannot be sent: the profile${where} does not take prompt_cache_key; add it to \`accepts\` of the profile if the upstream takes it, else leave \`implicit_key\` out`
    yield { path: at, message }
  }
}

function hasMistake(wire: ModelWire, profile: unknown): boolean {
  const map = asObject(profile)
  if (map && !profileMap.safeParse(map).success) return true
  const name = typeof profile === 'string' ? profile : asObject(profile)?.['extends']
  return typeof name === 'string' && findProfileMistake(wire, name) !== undefined
}

function* upstreamMistakes(name: string, names: readonly string[], path: PropertyKey[]): Mistakes {
  if (names.includes(name)) return
  const known = names.length > 0 ? `: ${names.join(', ')}` : '; there is none yet'
  yield { path, message: `must name an entry of upstreams${known}` }
}

/** Finds a credential that is set both as the key and in `headers`. */
function* keyHeaderMistakes(keyHeader: unknown, headers: unknown, path: PropertyKey[]): Mistakes {
  for (const name of Object.keys(asObject(headers) ?? {})) {
    const isKey = typeof keyHeader === 'string' && name.toLowerCase() === keyHeader.toLowerCase()
    if (isKey) yield { path: [...path, name], message: 'is the `key_header` of its upstream; leave it out' }
  }
}

/** Finds upstreams listed twice for a model. A retry would use the same account again (ruling U1). */
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

function* profileMistakes(wire: ModelWire, profile: unknown, path: PropertyKey[]): Mistakes {
  const name = typeof profile === 'string' ? profile : asObject(profile)?.['extends']
  const mistake = typeof name === 'string' ? findProfileMistake(wire, name) : undefined
  if (mistake) yield { path: [...path, ...(name === profile ? [] : ['extends'])], message: mistake }
}
