import { asObject } from '../../bytes/json.ts'
import { builtInPresets, type PresetModel, type PriceTexts } from '../../catalog/presets.ts'
import { keyMistake } from '../../config/values.ts'
import { calendarsOf } from '../catalog/presets-file.ts'
import { type ListedModel, readPriceFile, toDecimal } from '../catalog/price-files.ts'
import type { ImportedSetting } from './import-report.ts'
import { chatModes, litellmFates, litellmSections, otherModels } from './litellm-fates.ts'
import {
  type DeploymentTexts,
  type DeploymentWay,
  presetOfProvider,
  splitLitellmModel,
  waysOfDeployment,
} from './litellm-places.ts'

type SourceFields = Record<string, unknown>

/** A configuration of ours that was made of LiteLLM's. */
type ImportedConfig = {
  /** As it is written, in the words of the file. Without a model that can be carried it has no catalog. */
  config: SourceFields
  settings: readonly ImportedSetting[]
  /** Sentences about figures that were assumed. */
  notes: readonly string[]
  /** The models of each access group, by the names that clients use. */
  groups: ReadonlyMap<string, readonly string[]>
}

type LitellmOptions = {
  /** The day for `catalog.pinned`. */
  today: string
  /** Models of a published price file, for prices and limits that neither LiteLLM's file nor the presets have. */
  listed?: readonly ListedModel[]
  /** Whether models without a known price cost nothing. Otherwise they are left out, unless the server is the operator's own. */
  isUnpricedFree?: boolean
}

/** One entry of `model_list` that can be reached from here. */
type Deployment = {
  name: string
  path: string
  params: SourceFields
  info: SourceFields
  ways: readonly DeploymentWay[]
  provider: string | undefined
  /** The model's names in lists of figures, the best first. */
  figureNames: readonly string[]
}

/** Models of one name that speak one wire. */
type ImportGroup = { id: string; name: string; wire: string; entry: SourceFields }

/**
 * Makes a configuration of ours from LiteLLM's proxy configuration (docs.litellm.ai/docs/proxy/config_settings, November 2026).
 * Nothing is read but the value. Each setting of it is in the report, once.
 * @param value the parsed YAML
 * @throws Error if it is no configuration of LiteLLM's
 */
export function convertLitellm(value: unknown, options: LitellmOptions): ImportedConfig {
  const source = asObject(value)
  if (!source || !Array.isArray(source['model_list']))
    throw new Error('it has no `model_list`: name the file that LiteLLM is started with (litellm --config FILE)')
  return new Conversion(source, options).run()
}

class Conversion {
  readonly #source: SourceFields
  readonly #options: LitellmOptions
  readonly #report = new Map<string, ImportedSetting>()
  readonly #upstreams = new Map<string, { name: string; entry: SourceFields }>()
  readonly #calendars = new Set<string>()
  readonly #notes = new Set<string>()

  readonly #exactNames: ReadonlySet<unknown>

  constructor(source: SourceFields, options: LitellmOptions) {
    this.#source = source
    this.#options = options
    this.#exactNames = new Set(objectsOf(source['model_list']).map((entry) => entry['model_name']))
  }

  run(): ImportedConfig {
    const byName = Map.groupBy(this.#deployments(), ({ name }) => name)
    const groups = [...byName].flatMap(([name, deployments]) => this.#groupsOf(name, deployments))
    const models = this.#withChains(groups)
    const others = this.#sections()
    for (const setting of settingsOf(this.#source)) this.#settle(setting)
    const order = settingsOf(this.#source).map(({ path }) => path)
    const settings = order.flatMap((path) => this.#report.get(path) ?? [])
    const calendars = Object.entries(builtInPresets.calendars).filter(([name]) => this.#calendars.has(name))
    const config = {
      ...(models.length > 0 && { catalog: { pinned: this.#options.today, models } }),
      ...(calendars.length > 0 && { calendars: Object.fromEntries(calendars) }),
      ...(models.length > 0 && {
        upstreams: Object.fromEntries([...this.#upstreams.values()].map(({ name, entry }) => [name, entry])),
      }),
      ...others,
    }
    return { config, settings, notes: [...this.#notes], groups: this.#groups() }
  }

  #groups(): Map<string, string[]> {
    const groups = new Map<string, string[]>()
    for (const entry of objectsOf(this.#source['model_list'])) {
      const own = asObject(entry['model_info'])?.['access_groups']
      for (const group of Array.isArray(own) ? own : [])
        groups.set(wordOf(group), [...(groups.get(wordOf(group)) ?? []), wordOf(entry['model_name'])])
    }
    return groups
  }

  #note(setting: string, fate: ImportedSetting['fate'], why: string): void {
    if (!this.#report.has(setting)) this.#report.set(setting, { setting, fate, why })
  }

  /** Reports a setting that no other part has taken: by the tables, or as unknown. */
  #settle({ path, section, key }: SettingPlace): void {
    const fates = section === '' ? litellmSections : Object.hasOwn(litellmFates, section) ? litellmFates[section]! : {}
    const ofSection = Object.hasOwn(litellmSections, section) ? litellmSections[section] : undefined
    const fate = ofSection ?? (Object.hasOwn(fates, key) ? fates[key] : undefined)
    if (fate) this.#note(path, ...fate)
    else this.#note(path, 'left', 'is not known to the import')
  }

  #deployments(): Deployment[] {
    const credentials = new Map(
      objectsOf(this.#source['credential_list']).map((entry) => [
        entry['credential_name'],
        asObject(entry['credential_values']) ?? {},
      ]),
    )
    return objectsOf(this.#source['model_list']).flatMap((entry, index) => {
      const path = `model_list[${index}]`
      const own = asObject(entry['litellm_params']) ?? {}
      const params = { ...credentials.get(own['litellm_credential_name']), ...own }
      if (credentials.has(own['litellm_credential_name'])) {
        const at = [...credentials.keys()].indexOf(own['litellm_credential_name'])
        this.#note(`${path}.litellm_params.litellm_credential_name`, 'carried', 'the key of an upstream account')
        this.#note(`credential_list[${at}]`, 'carried', 'the key of an upstream account')
      }
      const info = asObject(entry['model_info']) ?? {}
      return this.#named(wordOf(entry['model_name']), path, params, info)
    })
  }

  #leave(one: Pick<Deployment, 'path' | 'params' | 'info'>, why: string): [] {
    for (const { path } of settingsOf({}, one)) this.#note(path, 'left', why)
    return []
  }

  /** Returns the deployments that an entry stands for: one, or all models that its `*` means. */
  #named(name: string, path: string, params: SourceFields, info: SourceFields): Deployment[] {
    const text: DeploymentTexts = (key) =>
      textOf(key === 'base_model' ? info[key] : (params[key] ?? params[sameAs[key] ?? '']))
    const full = wordOf(params['model'])
    const { provider, model } = splitLitellmModel(full, text('custom_llm_provider'), text('api_base') !== undefined)
    const leave = (why: string) => this.#leave({ path, params, info }, why)
    if (model === '') return leave('it names no model: set `litellm_params.model`')
    if (name === '' || !isId(name.replaceAll('*', 'x'))) return leave('its name cannot be an id')
    const mode = info['mode'] ?? params['mode']
    if (mode === undefined ? otherModels.test(`${full} ${name}`) : !chatModes.has(wordOf(mode)))
      return leave('no model that chats: triwire has no wire for it')
    const preset = presetOfProvider(provider)
    const stars = name.includes('*') || model.includes('*')
    if (stars && !preset) return leave('`*` stands for models that are not known here: write an entry for each model')
    if (name.includes('*') && !model.includes('*')) return leave('`*` in the name alone: write an entry for each name')
    // LiteLLM asks a model of the exact name before one of a pattern.
    const pairs = stars
      ? expand(name, model, preset!.models).filter((pair) => !this.#exactNames.has(pair.name))
      : [{ name, model }]
    if (pairs.length === 0) return leave('each model that it stands for has an entry of its own, or is not known here')
    return pairs.flatMap((pair) => {
      const ways = waysOfDeployment(provider, pair.model, text)
      if (typeof ways === 'string') return leave(ways)
      const names = [text('base_model'), stars ? undefined : full, `${provider}/${pair.model}`, pair.model]
      const known = names.filter((one) => one !== undefined)
      const figureNames = [...new Set([...known, makersName(known[0]!)])]
      return [{ ...pair, path, params, info, ways, provider, figureNames }]
    })
  }

  /** Makes the models of one name: one, or one for each wire if the deployments share none. */
  #groupsOf(name: string, deployments: readonly Deployment[]): ImportGroup[] {
    const wires = deployments[0]!.ways.map(({ wire }) => wire)
    const shared = wires.find((wire) => deployments.every(({ ways }) => ways.some((way) => way.wire === wire)))
    const byWire = Map.groupBy(deployments, ({ ways }) => shared ?? ways[0]!.wire)
    return [...byWire].flatMap(([wire, own]) => {
      const read = own.map((deployment) => {
        const way = deployment.ways.find((one) => one.wire === wire)!
        return { deployment, way, figures: this.#figuresOf(deployment, way) }
      })
      const dearest = dearestOf(read)
      if (dearest === undefined) {
        for (const { deployment } of read) this.#leave(deployment, unpriced)
        return []
      }
      for (const { deployment, figures } of read)
        if (!figures.prices)
          this.#notes.add(
            `${name}: the price of ${deployment.figureNames[0]} is not known; that of the other deployments is taken.`,
          )
      const priced = read
      const id = byWire.size === 1 || wire === wires[0] ? name : `${name}-${wire}`
      return [{ id, name, wire, entry: this.#entryOf(wire, priced, dearest) }]
    })
  }

  /** Returns limits and prices of a deployment. ImportPrices are undefined if none is known. */
  #figuresOf({ name, path, params, info, figureNames, provider }: Deployment, { isOwn }: DeploymentWay): ImportFigures {
    const preset = presetOfProvider(provider)
    const ofOwn = preset?.models.find(({ id }) => figureNames.includes(id))
    const known = ofOwn ?? figureNames.flatMap((one) => allModels.find(({ id }) => id === one) ?? [])[0]
    const listed = figureNames.flatMap(
      (one) => this.#options.listed?.find(({ id, provider: of }) => `${of}/${id}` === one || id === one) ?? [],
    )[0]
    const written = this.#writtenPrices(path, params, info)
    const lookedUp = written || isOwn ? undefined : (listed?.prices ?? known?.prices?.texts)
    const free = isOwn || this.#options.isUnpricedFree ? { input: '0', output: '0' } : undefined
    const prices = written ?? lookedUp ?? free
    if (lookedUp && !listed?.prices && !ofOwn)
      this.#notes.add(
        `${name}: its price at ${provider} is not known here; that of ${known!.id} at its maker is taken.`,
      )
    if (prices === free && !isOwn) this.#notes.add(`${name}: no price is known; it costs nothing.`)
    const outputs = [
      { path: `${path}.model_info.max_output_tokens`, value: info['max_output_tokens'] },
      { path: '', value: listed?.maxOutputTokens ?? known?.maxOutputTokens },
      { path: `${path}.litellm_params.max_tokens`, value: params['max_tokens'] },
      { path: `${path}.litellm_params.max_completion_tokens`, value: params['max_completion_tokens'] },
      { path: `${path}.model_info.max_tokens`, value: info['max_tokens'] },
    ].map((one) => ({ ...one, value: countOf(one.value) }))
    const output = outputs.find(({ value }) => value !== undefined)
    if (output?.path) this.#note(output.path, 'carried', 'max_output_tokens')
    if (!output) this.#notes.add(`${name}: its most output tokens are not known; ${usualOutput} are assumed.`)
    this.#note(`${path}.model_info.max_tokens`, 'replaced', 'max_output_tokens is known more exactly')
    const inputs = countOf(info['max_input_tokens'])
    if (inputs !== undefined) this.#note(`${path}.model_info.max_input_tokens`, 'carried', 'context_window')
    const window = inputs ?? listed?.contextWindow ?? known?.contextWindow
    const calls = lookedUp && !listed?.prices && ofOwn ? preset?.calls?.texts : undefined
    return {
      maxOutput: output?.value ?? usualOutput,
      window,
      prices: prices && calls ? withCalls(prices, calls) : prices,
    }
  }

  /** Reads prices by the token of a deployment. LiteLLM takes them in `litellm_params` and in `model_info`. */
  #writtenPrices(path: string, params: SourceFields, info: SourceFields): PriceTexts | undefined {
    const prices = Object.fromEntries(
      Object.entries({ ...info, ...params })
        .filter(([key]) => priceName.test(key))
        .map(([key, value]) => [key, typeof value === 'string' && value.trim() !== '' ? Number(value) : value]),
    )
    if (Object.keys(prices).length === 0) return undefined
    const [listed] = readPriceFile({ model: { litellm_provider: 'own', mode: 'chat', ...prices } }) ?? []
    const { input_cost_per_token: input, output_cost_per_token: output } = prices
    const isPair = [input, output].every((one) => typeof one === 'number' && Number.isFinite(one) && one >= 0)
    const pair = isPair ? { input: toDecimal(input as number, 6), output: toDecimal(output as number, 6) } : undefined
    const made = listed?.prices ?? pair
    for (const key of Object.keys(prices)) {
      const isTaken = made !== undefined && !listed?.leftOut.includes(key)
      for (const [section, own] of [
        ['litellm_params', params],
        ['model_info', info],
      ] as const)
        if (key in own)
          this.#note(
            `${path}.${section}.${key}`,
            isTaken ? 'carried' : 'left',
            isTaken ? 'prices, times 1,000,000' : 'prices have no place for it',
          )
    }
    return made
  }

  #entryOf(wire: string, priced: readonly DeploymentFigures[], dearest: ImportPrices): SourceFields {
    for (const { deployment, figures } of priced)
      if (figures.prices && costOf(figures.prices) !== costOf(dearest))
        this.#notes.add(`${deployment.name}: its deployments cost different prices; the dearest is taken for all.`)
    for (const name of calendarsOf(dearest as Parameters<typeof calendarsOf>[0])) this.#calendars.add(name)
    const routes = this.#routesOf(priced)
    const [first] = routes
    const isPlain = routes.length === 1 && first!.headers === undefined
    const profiles = new Set(priced.map(({ way }) => way.profile))
    const route = ({ name, model, weight, priority, headers, profile }: ImportRoute) => ({
      name,
      upstream_model: model,
      ...(profiles.size > 1 && { profile }),
      ...(priority !== 1 && { priority }),
      ...(weight !== 1 && { weight }),
      ...(headers && { headers }),
    })
    const maxOutput = Math.min(...priced.map(({ figures }) => figures.maxOutput))
    const windows = priced.flatMap(({ figures }) => figures.window ?? [])
    const window = windows.length > 0 ? Math.min(...windows) : undefined
    return {
      wire,
      ...(isPlain ? { upstream: first!.name, upstream_model: first!.model } : { upstream: routes.map(route) }),
      max_output_tokens: maxOutput,
      ...(window !== undefined && window >= maxOutput && { context_window: window }),
      profile: first!.profile,
      ...(!hasCallPrices(dearest) && { hosted_tools: 'refuse' }),
      prices: dearest,
    }
  }

  /** Makes the routes of a model. Deployments that differ in their key only become accounts of one upstream. */
  #routesOf(priced: readonly DeploymentFigures[]): ImportRoute[] {
    const weights = this.#weightsOf(priced.map(({ deployment }) => deployment))
    const places = new Map<
      string,
      { first: DeploymentFigures; accounts: SourceFields[]; weight: number; priority: number; headers?: SourceFields }
    >()
    for (const [at, one] of priced.entries()) {
      const { deployment, way } = one
      const { path, params } = deployment
      const carried = ['model_name', ...carriedParams.map((key) => `litellm_params.${key}`)]
      for (const key of carried) this.#note(`${path}.${key}`, 'carried', 'catalog.models and upstreams')
      for (const key of awsSecrets)
        if (params[key] === `os.environ/${key.toUpperCase()}`)
          this.#note(`${path}.litellm_params.${key}`, 'replaced', 'it is read from the same variable')
        else
          this.#note(
            `${path}.litellm_params.${key}`,
            'left',
            'put it into a profile of AWS, and name that: `aws.profile`',
          )
      const headers = this.#headersOf(deployment)
      const priority = (countOf(params['order']) ?? 0) || 1
      const weight = weights[at]!
      const place = JSON.stringify([way.upstream, way.model, headers, priority, way.profile])
      const there = places.get(place)
      const account = this.#accountOf(deployment, way)
      if (!there) places.set(place, { first: one, accounts: [account], weight, priority, ...(headers && { headers }) })
      else {
        there.weight += weight
        if (!there.accounts.some((other) => JSON.stringify(other) === JSON.stringify(account)))
          there.accounts.push(account)
      }
    }
    const least = places.size > 1 ? [...places.values()].map(({ weight }) => weight).reduce(commonDivisor) : 0
    const used = new Set<string>()
    return [...places.values()].map(({ first, accounts, weight, priority, headers }) => ({
      name: this.#upstreamOf(first, accounts, used),
      model: first.way.model,
      profile: first.way.profile,
      weight: places.size > 1 ? Math.min(1_000_000, weight / least) : 1,
      priority,
      headers,
    }))
  }

  /** LiteLLM spreads requests by `weight`, else by `rpm`, else by `tpm` (its simple-shuffle). */
  #weightsOf(deployments: readonly Deployment[]): number[] {
    if (deployments.length > 1)
      for (const key of ['weight', 'rpm', 'tpm']) {
        const values = deployments.map(({ params }) => countOf(params[key]))
        if (!values.every((value) => value !== undefined)) continue
        for (const { path } of deployments) this.#note(`${path}.litellm_params.${key}`, 'carried', 'weight of a route')
        return values
      }
    for (const { path } of deployments)
      this.#note(`${path}.litellm_params.weight`, 'replaced', 'each deployment has the same weight, or is the only one')
    return deployments.map(() => 1)
  }

  #headersOf({ path, params }: Deployment): SourceFields | undefined {
    const headers: SourceFields = {}
    const organization = textOf(params['organization'])
    if (organization !== undefined) headers['openai-organization'] = organization
    for (const key of ['extra_headers', 'headers'])
      for (const [name, value] of Object.entries(asObject(params[key]) ?? {})) {
        headers[name] = textOf(value)
        this.#note(`${path}.litellm_params.${key}`, 'carried', 'headers of a route')
      }
    return Object.keys(headers).length > 0 ? headers : undefined
  }

  #accountOf({ path }: Deployment, { account }: DeploymentWay): SourceFields {
    const { key } = account
    if (typeof key !== 'string' || /^\$\{/.test(key) || keyMistake(key) === undefined) return { ...account }
    this.#overrule(`${path}.litellm_params.api_key`, 'it cannot be a key: set the variable that stands there now')
    return { ...account, key: `\${${path.replace(/\W+/g, '_').toUpperCase()}KEY}` }
  }

  /**
   * Returns the name of the upstream with these accounts. It creates that upstream if it does not exist.
   * @param used pairs of upstream and model that routes of the same model have: none may have one twice
   */
  #upstreamOf({ deployment, way }: DeploymentFigures, accounts: readonly SourceFields[], used: Set<string>): string {
    let place = JSON.stringify([way.upstream, accounts])
    const find = () => this.#upstreams.get(place)?.name
    let there = find()
    for (; there !== undefined && used.has(`${there} ${way.model}`); there = find()) place += '+'
    if (there !== undefined) {
      used.add(`${there} ${way.model}`)
      return there
    }
    const base = (deployment.provider ?? 'upstream').replace(/[^\w-]/g, '-')
    const taken = new Set([...this.#upstreams.values()].map(({ name }) => name))
    const name = firstFree(base, taken)
    used.add(`${name} ${way.model}`)
    const named = accounts.map((account, at) => ({
      name: accounts.length === 1 ? 'main' : `key-${at + 1}`,
      ...account,
    }))
    this.#upstreams.set(place, { name, entry: { ...way.upstream, accounts: named } })
    return name
  }

  /** Makes chains of fallbacks. A chain takes the name that clients use, and its first model becomes `NAME-only`. */
  #withChains(groups: readonly ImportGroup[]): SourceFields[] {
    const names = new Set(groups.flatMap(({ id, name }) => [id, name]))
    const fallbacks = this.#fallbacks(names)
    const aliases = this.#aliases(names)
    const byName = Map.groupBy(groups, ({ name }) => name)
    const plain = new Map<string, string>()
    for (const [name, own] of byName)
      plain.set(name, own.length > 1 || fallbacks.has(name) ? firstFree(`${name}-only`, names) : own[0]!.id)
    const models: SourceFields[] = []
    const chains: SourceFields[] = []
    for (const [name, own] of byName) {
      const { targets = [], when } = fallbacks.get(name) ?? {}
      const isChain = own.length > 1 || targets.length > 0
      const also = [...aliases].filter(([, target]) => target === name).map(([alias]) => alias)
      const ids = own.map(({ id }, at) => (at === 0 ? plain.get(name)! : id))
      for (const [at, { entry }] of own.entries())
        models.push({ id: ids[at], ...(!isChain && also.length > 0 && { also }), ...entry })
      if (!isChain) continue
      const chain = [...new Set([...ids, ...targets.flatMap((target) => plain.get(target) ?? [])])].slice(0, 4)
      for (const id of [name, ...also]) chains.push({ id, chain, when: when ?? ['capacity', 'unavailable'] })
    }
    return [...models, ...chains]
  }

  #fallbacks(names: ReadonlySet<string>): Map<string, Fallback> {
    const found = new Map<string, Fallback>()
    const add = (name: string, targets: unknown, causes: readonly string[], path: string) => {
      const wanted = (Array.isArray(targets) ? targets : [targets]).map((one) =>
        wordOf(asObject(one)?.['model'] ?? one),
      )
      const known = wanted.filter((one) => names.has(one) && one !== name)
      if (!names.has(name)) return this.#note(path, 'left', 'the model was left out, or is not in model_list')
      const there = found.get(name) ?? { targets: [], when: [] }
      const all = [...new Set([...there.targets, ...known])]
      if (all.length > 0) found.set(name, { targets: all, when: [...new Set([...there.when, ...causes])] })
      if (known.length < wanted.length)
        this.#note(
          path,
          'left',
          `in part: ${wanted.filter((one) => !known.includes(one)).join(', ')} was left out, or is not in model_list`,
        )
      else if (all.length > 3) this.#note(path, 'left', 'in part: a chain has at most four models')
      else this.#note(path, 'carried', 'a chain')
    }
    const usual = ['capacity', 'unavailable']
    const kinds = { fallbacks: usual, context_window_fallbacks: ['over_long'] }
    for (const section of ['router_settings', 'litellm_settings'])
      for (const [kind, causes] of Object.entries(kinds))
        for (const [at, entry] of objectsOf(asObject(this.#source[section])?.[kind]).entries())
          for (const [name, targets] of Object.entries(entry))
            if (name !== '*') add(name, targets, causes, `${section}.${kind}[${at}].${name}`)
    for (const section of ['router_settings', 'litellm_settings']) {
      const own = asObject(this.#source[section])
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

  #aliases(names: ReadonlySet<string>): Map<string, string> {
    const found = new Map<string, string>()
    for (const [section, key] of aliasPlaces)
      for (const [alias, target] of Object.entries(asObject(asObject(this.#source[section])?.[key]) ?? {})) {
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
        this.#note(path, why === '' ? 'carried' : 'left', why || 'also')
      }
    return found
  }

  /** Settings outside of models that we have as well. */
  #sections(): SourceFields {
    const [router, module, general] = ['router_settings', 'litellm_settings', 'general_settings'].map(
      (section) => asObject(this.#source[section]) ?? {},
    ) as [SourceFields, SourceFields, SourceFields]
    const timeouts: SourceFields = {}
    const limits: SourceFields = {}
    const log: SourceFields = {}
    const times = [
      {
        path: 'litellm_settings.request_timeout',
        value: module['request_timeout'],
        keys: ['first_byte_json', 'first_byte_stream'],
      },
      { path: 'router_settings.timeout', value: router['timeout'], keys: ['first_byte_json', 'first_byte_stream'] },
      { path: 'router_settings.stream_timeout', value: router['stream_timeout'], keys: ['first_byte_stream'] },
    ]
    for (const { path, value, keys } of times) {
      const seconds = Number(wordOf(value))
      if (value === undefined || !(seconds > 0 && seconds <= 86_400)) continue
      for (const key of keys) timeouts[key] = `${Math.max(1, Math.round(seconds))}s`
      this.#note(path, 'carried', keys.map((key) => `timeouts.${key}`).join(', '))
    }
    const bytes = Number(wordOf(general['max_request_size_mb']))
    if (bytes > 0 && bytes <= 1024) {
      limits['body_bytes_max'] = Math.max(1024, Math.round(bytes * 1_048_576))
      this.#note('general_settings.max_request_size_mb', 'carried', 'limits.body_bytes_max')
    }
    if (typeof module['json_logs'] === 'boolean') {
      if (module['json_logs']) log['format'] = 'json'
      this.#note('litellm_settings.json_logs', 'carried', 'log.format')
    }
    const parts = { timeouts, limits, log }
    return Object.fromEntries(Object.entries(parts).filter(([, part]) => Object.keys(part).length > 0))
  }

  #overrule(setting: string, why: string): void {
    this.#report.set(setting, { setting, fate: 'left', why })
  }
}

type ImportFigures = { maxOutput: number; window: number | undefined; prices: ImportPrices | undefined }
type ImportPrices = PriceTexts | readonly PriceTexts[]
type DeploymentFigures = { deployment: Deployment; way: DeploymentWay; figures: ImportFigures }
type ImportRoute = {
  name: string
  model: string
  profile: string
  weight: number
  priority: number
  headers: SourceFields | undefined
}
type Fallback = { targets: readonly string[]; when: readonly string[] }

/** Other names of parameters of a deployment. */
const sameAs: Readonly<Record<string, string>> = {
  api_base: 'base_url',
  tenant_id: 'azure_tenant_id',
  client_id: 'azure_client_id',
  client_secret: 'azure_client_secret',
  vertex_project: 'vertex_ai_project',
  vertex_location: 'vertex_ai_location',
  vertex_credentials: 'vertex_ai_credentials',
}

/** Parameters that are carried by the place of a deployment. */
const carriedParams = [
  ...['model', 'custom_llm_provider', 'api_key', 'api_base', 'base_url', 'api_version', 'organization', 'order'],
  ...Object.entries(sameAs).flat(),
  ...['aws_region_name', 'aws_profile_name', 'aws_role_name', 'aws_session_name', 'aws_external_id'],
  'aws_bedrock_runtime_endpoint',
]

/** Credentials of AWS. Ours come from its variables, profiles and roles. */
const awsSecrets = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token']

const aliasPlaces = [
  ['router_settings', 'model_group_alias'],
  ['litellm_settings', 'model_alias_map'],
] as const

const priceName = /_cost(?:_|$)|pric/

type SettingPlace = { path: string; section: string; key: string }

/** Lists the settings of a file, each with the section that a table of fates has it in. @param one a single model instead */
function settingsOf(
  source: SourceFields,
  one?: { path: string; params: SourceFields; info: SourceFields },
): SettingPlace[] {
  if (one)
    return [
      { path: `${one.path}.model_name`, section: '', key: 'model_name' },
      ...Object.keys(one.params).map((key) => ({
        path: `${one.path}.litellm_params.${key}`,
        section: 'litellm_params',
        key,
      })),
      ...Object.keys(one.info).map((key) => ({ path: `${one.path}.model_info.${key}`, section: 'model_info', key })),
    ]
  return Object.entries(source).flatMap(([section, value]): SettingPlace[] => {
    if (section === 'model_list')
      return objectsOf(value).flatMap((entry, index) => {
        const path = `model_list[${index}]`
        const [params, info] = [asObject(entry['litellm_params']) ?? {}, asObject(entry['model_info']) ?? {}]
        const rest = Object.keys(entry).filter((key) => !['model_name', 'litellm_params', 'model_info'].includes(key))
        return [
          ...settingsOf(source, { path, params, info }),
          ...rest.map((key) => ({ path: `${path}.${key}`, section: 'litellm_params', key })),
        ]
      })
    if (section === 'credential_list')
      return objectsOf(value).map((_, at) => ({ path: `${section}[${at}]`, section: '', key: section }))
    const map = asObject(value)
    if (!map) return [{ path: section, section: '', key: section }]
    return Object.entries(map).flatMap(([key, inner]): SettingPlace[] => {
      const path = `${section}.${key}`
      if (/(^|_)fallbacks$/.test(key) && key !== 'default_fallbacks')
        return objectsOf(inner).flatMap((entry, at) =>
          Object.keys(entry).map((name) => ({ path: `${path}[${at}].${name}`, section, key })),
        )
      if (aliasPlaces.some(([of, name]) => of === section && name === key))
        return Object.keys(asObject(inner) ?? {}).map((alias) => ({ path: `${path}.${alias}`, section, key }))
      return [{ path, section, key }]
    })
  })
}

function objectsOf(value: unknown): SourceFields[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}

/** Returns a text as we write it: `os.environ/NAME` is `${NAME}`, and a `${` of the text itself is escaped. */
function textOf(value: unknown): string | undefined {
  if (typeof value !== 'string')
    return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
  const [, name] = /^os\.environ\/([A-Za-z_]\w*)$/.exec(value) ?? []
  return name === undefined ? value.replaceAll('${', '$${') : `\${${name}}`
}

/** Returns a text or a number as text; anything else is empty. */
function wordOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? number : undefined
}

/** Returns the models of a preset that a name with `*` means, with the names that clients have for them. */
function expand(name: string, model: string, known: readonly PresetModel[]): { name: string; model: string }[] {
  const [before = '', after = ''] = model.split('*')
  return known
    .filter(({ id }) => (model.includes('*') ? id.startsWith(before) && id.endsWith(after) : id === model))
    .map(({ id }) => ({ name: name.replace('*', id.slice(before.length, id.length - after.length)), model: id }))
}

function withCalls(prices: ImportPrices, calls: Readonly<Record<string, string>>): ImportPrices {
  const add = (row: PriceTexts): PriceTexts => ({ ...row, calls })
  return Array.isArray(prices) ? prices.map(add) : add(prices as PriceTexts)
}

function hasCallPrices(prices: ImportPrices): boolean {
  return [prices].flat().some(({ calls }) => calls !== undefined)
}

/** Compares prices: output and input together. */
function costOf(prices: ImportPrices): number {
  const [first] = [prices].flat()
  return Number(first!.output) + Number(first!.input)
}

function dearestOf(priced: readonly DeploymentFigures[]): ImportPrices | undefined {
  return priced
    .flatMap(({ figures }) => (figures.prices ? [figures.prices] : []))
    .reduce<ImportPrices | undefined>((most, one) => (most && costOf(most) >= costOf(one) ? most : one), undefined)
}

const allModels = Object.values(builtInPresets.presets).flatMap(({ models }) => models)

/** The most output tokens of a model of which nothing is known. */
const usualOutput = 8192

const unpriced =
  "no price is known: write input_cost_per_token and output_cost_per_token into its model_info, or name LiteLLM's price file with --prices"

/** Returns the name that a cloud's model has at its maker: `eu.anthropic.claude-x-v1:0` and `claude-x@default` are `claude-x`. */
function makersName(model: string): string {
  const bare = model.replace(/^.*\//, '').replace(/^(?:(?:us|eu|apac|global|jp|au)\.)?anthropic\./, '')
  return bare
    .replace(/-v\d+(?::\d+)?$/, '')
    .replace(/@(default|latest)$/, '')
    .replace('@', '-')
}

/** Whether a name can be an id of our catalog. */
function isId(name: string): boolean {
  return /^[^*\p{Cc}\p{Cf}]{1,256}$/u.test(name)
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

function firstFree(name: string, taken: ReadonlySet<string>): string {
  for (let at = 1; ; at += 1) {
    const one = at === 1 ? name : `${name}-${at}`
    if (!taken.has(one)) return one
  }
}
