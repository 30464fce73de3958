import { asObject } from '../../bytes/json.ts'
import {
  aliasPlaces,
  firstFree,
  isId,
  type LitellmMaking,
  objectsOf,
  type SourceFields,
  wordOf,
} from './litellm-settings.ts'

/** The deployments that share a name and a wire. They become one model of our catalog. */
export type ImportGroup = { id: string; name: string; wire: string; entry: SourceFields }

type Fallback = { targets: readonly string[]; when: readonly string[] }

/** The causes for which LiteLLM's `fallbacks` ask the next model. */
const usual: readonly string[] = ['capacity', 'unavailable']

const chainMax = 4

/**
 * Makes chains of fallbacks. A chain gets the name that clients use, and its first model is renamed to `NAME-only`.
 * @returns all models, and for each further name of a model the name of that model
 */
export function withChains(
  made: LitellmMaking,
  groups: readonly ImportGroup[],
): { models: SourceFields[]; aliases: ReadonlyMap<string, string> } {
  const names = new Set(groups.flatMap(({ id, name }) => [id, name]))
  const fallbacks = findFallbacks(made, names)
  const aliases = findAliases(made, names)
  const byName = Map.groupBy(groups, ({ name }) => name)
  /** The ids of the models of each name. There is one model for each wire of the name. */
  const idsOf = new Map<string, string[]>()
  for (const [name, own] of byName) {
    const first = own.length > 1 || fallbacks.has(name) ? firstFree(`${name}-only`, names) : own[0]!.id
    idsOf.set(name, [first, ...own.slice(1).map(({ id }) => id)])
  }
  const models: SourceFields[] = []
  const chains: SourceFields[] = []
  for (const [name, own] of byName) {
    const { targets = [], when = usual } = fallbacks.get(name) ?? {}
    const isChain = own.length > 1 || targets.length > 0
    // The deployments of a name take over from each other, even if its fallbacks are only for long prompts.
    const causes = own.length > 1 ? [...new Set([...usual, ...when])] : when
    const also = [...aliases].filter(([, target]) => target === name).map(([alias]) => alias)
    const ids = idsOf.get(name)!
    for (const [at, { entry }] of own.entries())
      models.push({ id: ids[at], ...(!isChain && also.length > 0 && { also }), ...entry })
    if (!isChain) continue
    const chain = [...new Set([...ids, ...targets.flatMap((target) => idsOf.get(target) ?? [])])]
    const [whole, rest] = [chain.slice(0, chainMax), chain.slice(chainMax)]
    if (rest.length > 0) made.notes.add(`${name}: a chain has at most four models, so ${rest.join(', ')} is left out.`)
    for (const id of [name, ...also]) chains.push({ id, chain: whole, when: causes })
  }
  return { models: [...models, ...chains], aliases }
}

function findFallbacks(made: LitellmMaking, names: ReadonlySet<string>): Map<string, Fallback> {
  const found = new Map<string, Fallback>()
  const add = (name: string, targets: unknown, causes: readonly string[], path: string) => {
    const all = (Array.isArray(targets) ? targets : [targets]).map((one) => wordOf(asObject(one)?.['model'] ?? one))
    const wanted = all.filter((one) => one !== name)
    const known = wanted.filter((one) => names.has(one))
    if (!names.has(name)) return made.note(path, 'left', 'the model was left out, or is not in model_list')
    const there = found.get(name) ?? { targets: [], when: [] }
    const chain = [...new Set([...there.targets, ...known])]
    if (chain.length > 0) found.set(name, { targets: chain, when: [...new Set([...there.when, ...causes])] })
    if (all.length > 0 && wanted.length === 0)
      made.note(path, 'replaced', 'each deployment of the model is tried anyway')
    else if (known.length < wanted.length)
      made.note(
        path,
        'left',
        `${known.length > 0 ? 'in part: ' : ''}${wanted.filter((one) => !known.includes(one)).join(', ')} was left out, or is not in model_list`,
      )
    else if (chain.length >= chainMax) made.note(path, 'left', 'in part: a chain has at most four models')
    else made.note(path, 'carried', 'a chain')
  }
  const kinds = { fallbacks: usual, context_window_fallbacks: ['over_long'] }
  for (const section of ['router_settings', 'litellm_settings'])
    for (const [kind, causes] of Object.entries(kinds))
      for (const [at, entry] of objectsOf(asObject(made.source[section])?.[kind]).entries())
        for (const [name, targets] of Object.entries(entry))
          if (name !== '*') add(name, targets, causes, `${section}.${kind}[${at}].${name}`)
  for (const section of ['router_settings', 'litellm_settings']) {
    const own = asObject(made.source[section])
    const stars = objectsOf(own?.['fallbacks']).flatMap((entry, at) =>
      '*' in entry ? [{ targets: entry['*'], path: `${section}.fallbacks[${at}].*` }] : [],
    )
    const all =
      own?.['default_fallbacks'] === undefined
        ? stars
        : [...stars, { targets: own['default_fallbacks'], path: `${section}.default_fallbacks` }]
    for (const { targets, path } of all) {
      const before = new Set([...found].filter(([, { when }]) => when.includes('capacity')).map(([name]) => name))
      for (const name of names) if (!before.has(name)) add(name, targets, usual, path)
    }
  }
  return found
}

function findAliases(made: LitellmMaking, names: ReadonlySet<string>): Map<string, string> {
  const found = new Map<string, string>()
  for (const [section, key] of aliasPlaces)
    for (const [alias, target] of Object.entries(asObject(asObject(made.source[section])?.[key]) ?? {})) {
      const path = `${section}.${key}.${alias}`
      const name = wordOf(asObject(target)?.['model'] ?? target)
      const why = !isId(alias)
        ? 'it cannot be an id'
        : names.has(alias) || found.has(alias)
          ? 'a model has this name already'
          : names.has(name)
            ? ''
            : 'the model was left out, or is not in model_list'
      if (why === '') found.set(alias, name)
      made.note(path, why === '' ? 'carried' : 'left', why || 'also')
    }
  return found
}
