import { asObject } from '../../bytes/json.ts'
import { builtInPresets, type PresetModel } from '../../catalog/presets.ts'
import type { ImportedSetting } from './import-report.ts'
import { type ImportGroup, withChains } from './litellm-chains.ts'
import { chatModes, litellmFates, litellmPatterns, litellmSections, otherModels } from './litellm-fates.ts'
import { dearestOf, figuresOf } from './litellm-figures.ts'
import {
  type DeploymentTexts,
  presetOfProvider,
  responsesPrefix,
  splitLitellmModel,
  waysOfDeployment,
} from './litellm-places.ts'
import { entryOf, prioritiesOf, sameAs } from './litellm-routes.ts'
import { makeSections } from './litellm-sections.ts'
import {
  type Deployment,
  firstFree,
  isId,
  LitellmMaking,
  type LitellmOptions,
  objectsOf,
  type SettingPlace,
  type SourceFields,
  settingsOf,
  textOf,
  wordOf,
} from './litellm-settings.ts'

/** A configuration of triwire that was made from one of LiteLLM's. */
type ImportedConfig = {
  /** The members of our configuration file. The file gets no catalog if no model can be carried over. */
  config: SourceFields
  settings: readonly ImportedSetting[]
  /** Sentences about figures that were assumed. */
  notes: readonly string[]
  /** For each access group: its models, by the names that clients use. */
  groups: ReadonlyMap<string, readonly string[]>
  /** For each further name of a model that was carried over: the name of the model that clients use. */
  aliases: ReadonlyMap<string, string>
}

/**
 * Makes our configuration from LiteLLM's proxy configuration (docs.litellm.ai/docs/proxy/config_settings,
 * November 2026). Each setting is reported once. Neither files nor variables are read.
 * @param value the parsed YAML
 * @throws Error if the value is not a configuration of LiteLLM's
 */
export function convertLitellm(value: unknown, options: LitellmOptions): ImportedConfig {
  const source = asObject(value)
  if (!source || !Array.isArray(source['model_list']))
    throw new Error('it has no `model_list`: name the file that LiteLLM is started with (litellm --config FILE)')
  return run(new LitellmMaking(source, options))
}

function run(made: LitellmMaking): ImportedConfig {
  const byName = Map.groupBy(findDeployments(made), ({ name }) => name)
  const groups = [...byName].flatMap(([name, deployments]) => groupsOf(made, name, deployments))
  const { models, aliases } = withChains(made, groups)
  const others = makeSections(made)
  const upstreams = Object.fromEntries([...made.upstreams.values()].map(({ name, entry }) => [name, entry]))
  const parts = withVariables(made, { ...(models.length > 0 && { upstreams }), models })
  for (const setting of settingsOf(made.source)) settle(made, setting)
  const order = settingsOf(made.source).map(({ path }) => path)
  const settings = order.flatMap((path) => made.report.get(path) ?? [])
  const calendars = Object.entries(builtInPresets.calendars).filter(([name]) => made.calendars.has(name))
  const config = {
    ...(models.length > 0 && { catalog: { pinned: made.options.today, models: parts['models'] } }),
    ...(calendars.length > 0 && { calendars: Object.fromEntries(calendars) }),
    ...(models.length > 0 && { upstreams: parts['upstreams'] }),
    ...others,
  }
  return { config, settings, notes: [...made.notes], groups: findGroups(made), aliases }
}

/**
 * Replaces references to variables with the values of the variables. LiteLLM has these variables in its section
 * `environment_variables`.
 */
function withVariables(made: LitellmMaking, parts: SourceFields): SourceFields {
  const variables = asObject(made.source['environment_variables']) ?? {}
  return JSON.parse(JSON.stringify(parts), (_, value) => {
    if (typeof value !== 'string') return value
    return value.replace(/(?<!\$)\$\{(\w+)(?::-[^}]*)?\}/g, (whole, name: string) => {
      const text = Object.hasOwn(variables, name) ? textOf(variables[name]) : undefined
      if (text === undefined || !/^[\x21-\x7e]+$/.test(text)) return whole
      made.note(`environment_variables.${name}`, 'carried', 'where it is used')
      return text
    })
  })
}

function findGroups(made: LitellmMaking): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const entry of objectsOf(made.source['model_list'])) {
    const own = asObject(entry['model_info'])?.['access_groups']
    for (const group of Array.isArray(own) ? own : [])
      groups.set(wordOf(group), [...(groups.get(wordOf(group)) ?? []), wordOf(entry['model_name'])])
  }
  return groups
}

/**
 * Reports the fate of a setting that was not reported before. litellm-fates.ts lists the fates. A setting that is not
 * listed there is unknown, and is left out.
 */
function settle(made: LitellmMaking, { path, section, key }: SettingPlace): void {
  const fates = section === '' ? litellmSections : Object.hasOwn(litellmFates, section) ? litellmFates[section]! : {}
  const ofSection = Object.hasOwn(litellmSections, section) ? litellmSections[section] : undefined
  const known = Object.hasOwn(fates, key)
    ? fates[key]
    : litellmPatterns.find(([names]) => names.test(`${section}.${key}`))?.[1]
  const fate = known ?? ofSection
  if (fate) made.note(path, ...fate)
  else made.note(path, 'left', 'is not known to the import')
}

function findDeployments(made: LitellmMaking): Deployment[] {
  const credentials = new Map(
    objectsOf(made.source['credential_list']).map((entry) => [
      entry['credential_name'],
      asObject(entry['credential_values']) ?? {},
    ]),
  )
  return objectsOf(made.source['model_list']).flatMap((entry, index) => {
    const path = `model_list[${index}]`
    const own = asObject(entry['litellm_params']) ?? {}
    const params = { ...credentials.get(own['litellm_credential_name']), ...own }
    if (credentials.has(own['litellm_credential_name'])) {
      const at = [...credentials.keys()].indexOf(own['litellm_credential_name'])
      made.note(`${path}.litellm_params.litellm_credential_name`, 'carried', 'the key of an upstream account')
      made.note(`credential_list[${at}]`, 'carried', 'the key of an upstream account')
    }
    const info = asObject(entry['model_info']) ?? {}
    return named(made, wordOf(entry['model_name']), path, params, info)
  })
}

/**
 * Returns the deployments that an entry stands for, usually one. If the entry's name contains `*`, each known model
 * that matches gives one deployment.
 */
function named(
  made: LitellmMaking,
  name: string,
  path: string,
  params: SourceFields,
  info: SourceFields,
): Deployment[] {
  const text: DeploymentTexts = (key) =>
    textOf(key === 'base_model' ? info[key] : (params[key] ?? params[sameAs[key] ?? '']))
  const full = wordOf(params['model'])
  const { provider, model } = splitLitellmModel(full, text('custom_llm_provider'), text('api_base') !== undefined)
  const leave = (why: string) => made.leave({ path, params, info }, why)
  if (model === '') return leave('it names no model: set `litellm_params.model`')
  if (name === '' || !isId(name.replaceAll('*', 'x'))) return leave('its name cannot be an id')
  const mode = info['mode'] ?? params['mode']
  if (mode === undefined ? otherModels.test(`${full} ${name}`) : !chatModes.has(wordOf(mode)))
    return leave('no model that chats: triwire has no wire for it')
  const preset = presetOfProvider(provider)
  const stars = name.includes('*') || model.includes('*')
  // In a cloud, the account's owner chooses the names of deployments, so presets cannot have these names.
  if (stars && (!preset || preset.ofCloud))
    return leave('`*` stands for models that are not known here: write an entry for each model')
  if (name.includes('*') && !model.includes('*')) return leave('`*` in the name alone: write an entry for each name')
  // An entry with the exact name has priority over a pattern, as in LiteLLM.
  const pairs = stars
    ? expand(name, model, preset!.models).filter((pair) => !made.exactNames.has(pair.name))
    : [{ name, model }]
  if (pairs.length === 0) return leave('each model that it stands for has an entry of its own, or is not known here')
  return pairs.flatMap((pair) => {
    const ways = waysOfDeployment(provider, pair.model, text)
    if (typeof ways === 'string') return leave(ways)
    const bare = pair.model.startsWith(responsesPrefix) ? pair.model.slice(responsesPrefix.length) : pair.model
    const names = [text('base_model'), stars ? undefined : full, `${provider}/${bare}`, bare]
    const known = names.filter((one) => one !== undefined)
    const figureNames = [...new Set([...known, makersName(known[0]!)])]
    return [{ ...pair, path, params, info, ways, provider, figureNames }]
  })
}

/**
 * Makes the models for one name. If all deployments share a wire, this is one model. Otherwise each wire has a model of
 * its own, and the model of the first deployment by `order` comes first.
 */
function groupsOf(made: LitellmMaking, name: string, written: readonly Deployment[]): ImportGroup[] {
  const priorities = new Map(prioritiesOf(written).map((priority, at) => [written[at]!, priority] as const))
  const deployments = written.toSorted((a, b) => priorities.get(a)! - priorities.get(b)!)
  const wires = deployments[0]!.ways.map(({ wire }) => wire)
  const shared = wires.find((wire) => deployments.every(({ ways }) => ways.some((way) => way.wire === wire)))
  const byWire = Map.groupBy(deployments, ({ ways }) => shared ?? ways[0]!.wire)
  return [...byWire].flatMap(([wire, own]) => {
    const read = own.map((deployment) => {
      const way = deployment.ways.find((one) => one.wire === wire)!
      return { deployment, way, figures: figuresOf(made, deployment, way) }
    })
    const dearest = dearestOf(read)
    if (dearest === undefined) {
      for (const { deployment } of read) made.leave(deployment, made.options.unpriced ?? unpriced)
      return []
    }
    for (const { deployment, figures } of read) {
      for (const note of figures.notes) made.notes.add(note)
      if (!figures.prices)
        made.notes.add(
          `${name}: the price of ${deployment.figureNames[0]} is not known; that of the other deployments is taken.`,
        )
    }
    const id = byWire.size === 1 || wire === wires[0] ? name : firstFree(`${name}-${wire}`, made.exactNames)
    return [{ id, name, wire, entry: entryOf(made, wire, read, dearest) }]
  })
}

/** Returns the models of a preset that match a name with `*`, each with the name that clients use. */
function expand(name: string, model: string, known: readonly PresetModel[]): { name: string; model: string }[] {
  const [before = '', after = ''] = model.split('*')
  return known
    .filter(({ id }) => (model.includes('*') ? id.startsWith(before) && id.endsWith(after) : id === model))
    .map(({ id }) => ({ name: name.replace('*', id.slice(before.length, id.length - after.length)), model: id }))
}

const unpriced =
  "no price is known: write input_cost_per_token and output_cost_per_token into its model_info, or name LiteLLM's price file with --prices"

/** Returns the maker's name of a cloud's model: `eu.anthropic.claude-x-v1:0` and `claude-x@default` are `claude-x`. */
function makersName(model: string): string {
  const bare = model.replace(/^.*\//, '').replace(/^(?:(?:us|eu|apac|global|jp|au)\.)?anthropic\./, '')
  return bare
    .replace(/-v\d+(?::\d+)?$/, '')
    .replace(/@(default|latest)$/, '')
    .replace('@', '-')
}
