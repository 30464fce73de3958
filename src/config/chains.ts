import { asObject } from '../bytes/json.ts'
import type { ChainOfIds } from '../catalog/model.ts'
import { rowInForce } from '../catalog/price-list.ts'
import type { ChainEntry, ConfigFile, ModelEntry } from './schema.ts'

/* Chains of the catalog. A chain lists models that are asked in turn until one answers (ruling Y23). */

type AtPath = { path: PropertyKey[]; message: string }

export function isChain(entry: ModelEntry | ChainEntry): entry is ChainEntry {
  return 'chain' in entry
}

/** Returns the models of a catalog without its chains, each with its index in the list. */
export function modelsOf(catalog: ConfigFile['catalog']): { entry: ModelEntry; index: number }[] {
  return (catalog?.models ?? []).flatMap((entry, index) => (isChain(entry) ? [] : { entry, index }))
}

export function readChain({ id, chain, when, chain_return: returnMs }: ChainEntry): ChainOfIds {
  return { id, chain, when: new Set(when), returnMs }
}

/** Finds chains that contain a chain, a model twice, or an unknown id. @param models the raw list of the file */
export function* chainMistakes(models: readonly unknown[]): Iterable<AtPath> {
  const entries = models.map((model) => asObject(model) ?? {})
  const ids = new Set(entries.filter((entry) => !('chain' in entry)).map(({ id }) => id))
  const chains = new Set(entries.filter((entry) => 'chain' in entry).map(({ id }) => id))
  const also = new Map(entries.flatMap(({ id, also }) => (Array.isArray(also) ? also : []).map((one) => [one, id])))
  for (const [index, { chain }] of entries.entries()) {
    if (!Array.isArray(chain)) continue
    for (const [place, id] of chain.entries()) {
      const path = ['catalog', 'models', index, 'chain', place]
      const first = chain.indexOf(id)
      if (typeof id !== 'string') continue
      if (first < place) yield { path, message: `is listed already, as chain[${first}]; name each model once` }
      else if (chains.has(id)) yield { path, message: 'is a chain: name its models here instead' }
      else if (also.has(id)) yield { path, message: `is a further name: write the id of its model, ${also.get(id)}` }
      else if (!ids.has(id)) yield { path, message: 'must be the id of a model of the catalog' }
    }
  }
}

/** Warns of chains whose later models cost much more or have a smaller window, and of chains with only one provider. */
export function warnOfChains({ catalog, upstreams }: ConfigFile): AtPath[] {
  const models = new Map(modelsOf(catalog).map(({ entry }) => [entry.id, entry]))
  return (catalog?.models ?? []).flatMap((entry, index) => {
    if (!isChain(entry)) return []
    const [first, ...further] = entry.chain.flatMap((id) => models.get(id) ?? [])
    if (first === undefined) return []
    const ofEntries = further.flatMap((model, at) =>
      warningsOf(first, model).map((message) => ({ path: ['catalog', 'models', index, 'chain', at + 1], message })),
    )
    const hosts = [first, ...further].map((model) => hostsOf(model, upstreams))
    const isShared = hosts.every((own) => own.size === 1 && hosts[0]!.has([...own][0]!))
    const shared = 'has models of one provider only: if it is down, none of them answers; add a model of another one'
    return isShared ? [...ofEntries, { path: ['catalog', 'models', index, 'chain'], message: shared }] : ofEntries
  })
}

function warningsOf(first: ModelEntry, model: ModelEntry): string[] {
  const [own, other] = [first, model].map(priceNow) as [BasePrices, BasePrices]
  const isDear = other.input > 2n * own.input || other.output > 2n * own.output
  const isNarrow = model.context_window !== undefined && model.context_window < (first.context_window ?? 0)
  return [
    ...(isDear ? [`costs more than twice what ${first.id} does: requests of the chain hold credit by its prices`] : []),
    ...(isNarrow ? [`has a smaller context window than ${first.id}: long conversations pass it over`] : []),
  ]
}

type BasePrices = { input: bigint; output: bigint }

/** Returns the row of a model's prices that applies now. */
function priceNow({ prices }: ModelEntry): BasePrices {
  return rowInForce([prices].flat(), Date.now(), ({ from = Number.NEGATIVE_INFINITY }) => from)
}

function hostsOf({ upstream }: ModelEntry, upstreams: ConfigFile['upstreams']): Set<string> {
  const names = [upstream].flat().map((route) => (typeof route === 'string' ? route : route.name))
  return new Set(names.flatMap((name) => (upstreams[name] ? new URL(upstreams[name].base_url).host : [])))
}
