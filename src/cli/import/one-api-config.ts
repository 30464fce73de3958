import type { Budget } from '../../accounts/budget.ts'
import { formatCredits } from '../../accounts/credit.ts'
import type { ForeignImport } from '../../accounts/foreign-keys.ts'
import { modelsMax } from '../../accounts/key-bounds.ts'
import { digestKey, mayHoldKey } from '../../accounts/keys.ts'
import { isShownWhole } from '../../accounts/shown-text.ts'
import { asObject, parseObject } from '../../bytes/json.ts'
import { headerMistake } from '../../config/values.ts'
import { commandLine } from '../../programs/shells.ts'
import type { ImportedSetting } from './import-report.ts'
import { isTrue } from './litellm-dump.ts'
import { type KeysPlan, noteOfRates } from './litellm-keys.ts'
import type { OneApiRow, OneApiTables } from './one-api-tables.ts'

export type OneApiDialect = 'one-api' | 'new-api'

/**
 * A kind of channel. `provider` is LiteLLM's name. `version`, such as `/v1`, is appended to an address that has no
 * version. `base` is the default address, if it is not that of LiteLLM.
 */
type ChannelKind = readonly [provider: string, version?: string, base?: string]

const [openaiType, azureType, customType] = [1, 3, 8]

/** Channel types of both One API and New API (relay/channeltype/define.go, constant/channel.go, November 2026). */
const commonKinds: Readonly<Record<number, ChannelKind>> = {
  1: ['openai', '/v1'],
  3: ['azure'],
  8: ['openai', '/v1'],
  14: ['anthropic'],
  17: ['dashscope', '/compatible-mode/v1', 'https://dashscope.aliyuncs.com'],
  20: ['openrouter', '/v1'],
  24: ['gemini', '/v1beta/openai'],
  25: ['moonshot', '/v1', 'https://api.moonshot.cn'],
}

const kinds: Readonly<Record<OneApiDialect, Readonly<Record<number, ChannelKind>>>> = {
  'one-api': {
    ...commonKinds,
    28: ['mistral', '/v1'],
    29: ['groq', '/v1'],
    30: ['ollama'],
    32: ['openai', '/v1', 'https://api.stepfun.com'],
    36: ['deepseek', '/v1'],
    39: ['together_ai', '/v1'],
    40: ['volcengine', '/api/v3'],
    44: ['openai', '/v1', 'https://api.siliconflow.cn'],
  },
  'new-api': {
    ...commonKinds,
    4: ['ollama'],
    27: ['perplexity'],
    40: ['openai', '/v1', 'https://api.siliconflow.cn'],
    42: ['mistral', '/v1'],
    43: ['deepseek', '/v1'],
    45: ['volcengine', '/api/v3'],
    47: ['xinference', '/v1'],
    48: ['xai', '/v1'],
  },
}

/** Names that new-api has for the addresses of two subscriptions (`ChannelSpecialBases` in constant/channel.go). */
const codingPlans: Readonly<Record<string, string>> = {
  'kimi-coding-plan': 'https://api.kimi.com/coding/v1',
  'doubao-coding-plan': 'https://ark.cn-beijing.volces.com/api/coding/v3',
}

/** The channel from which an entry of our temporary `model_list` was made. */
export type ImportedChannel = { name: string; isWeighed: boolean }

/** Why fields of a channel are not carried over. A field is reported only if a channel has a value for it. */
const leftFields: Readonly<Record<string, string>> = {
  status_code_mapping: 'errors have the words of the gateway: docs/interface.md',
  param_override: 'triwire sends what the client wrote; `drops` of a profile takes fields away',
  system_prompt: 'triwire adds no words to a request',
  tag: 'requests are not routed by tags',
  proxy: 'set `proxy` of its upstream',
}

/** Prices of new-api that are not carried over, by the option that has them for each model. */
const leftPrices: Readonly<Record<string, string>> = {
  ModelPrice: 'price per call',
  'billing_setting.billing_mode': 'price by an expression',
}

/**
 * Converts channels into a configuration of LiteLLM's form, with an entry for each model of each channel.
 * @returns the configuration, and for each entry the name of its channel and whether the channel has a weight
 */
export function modelListOf(
  { channels, options }: OneApiTables,
  dialect: OneApiDialect,
): { source: { model_list: object[] }; channelOf: ImportedChannel[]; settings: ImportedSetting[] } {
  const settings: ImportedSetting[] = []
  const list: object[] = []
  const channelOf: ImportedChannel[] = []
  const priorities = [...new Set(channels.map(({ priority }) => Number(priority ?? 0)))].sort((a, b) => b - a)
  const ratios = ratiosOf(options, dialect)
  const models = new Set<string>()
  /** Models whose prices come from ratios. */
  const rated = new Set<string>()
  for (const channel of channels) {
    const name = nameOf(channel)
    const leave = (why: string) => void settings.push({ setting: name, fate: 'left', why })
    const kind = kinds[dialect][Number(channel['type'])]
    const { on: keys, off } = keysOf(channel)
    if (!isOn(channel)) leave('it is switched off')
    else if (keys.length === 0) leave('each of its keys is switched off')
    else if (!kind) leave(`channels of type ${channel['type']} have no way here: add the model by hand`)
    else if (!addressOf(channel, kind, dialect, 'model')) leave('its address has no place here: add the model by hand')
    else {
      const { headers, left } = headersOf(channel)
      for (const [field, why] of [...leftOf(channel), ...left])
        settings.push({ setting: `${name}.${field}`, fate: 'left', why })
      if (off > 0) settings.push({ setting: `${name}, ${off} of its keys`, fate: 'left', why: 'they are switched off' })
      // The keys share the channel's weight. A weight of 0, the usual one, would mean no requests here.
      const weight = Math.max(1, Number(channel['weight']) || 0) / keys.length
      for (const model of wordsOf(channel['models'])) {
        const mapped = mappedName(channel, model, dialect)
        if (mapped === undefined) {
          const why = 'its model_mapping goes in a circle'
          settings.push({ setting: `${name}, model ${model}`, fate: 'left', why })
          continue
        }
        models.add(model)
        const sent = sentName(channel, mapped, dialect)
        const prices = ratios(model, mapped, kind[0], Number(channel['type']))
        if (Object.keys(prices).length > 0) rated.add(model)
        for (const key of keys) {
          list.push({
            model_name: model,
            // Presets and price files list the model with its dots.
            ...(sent !== mapped && { model_info: { base_model: mapped } }),
            litellm_params: {
              model: `${kind[0]}/${sent}`,
              // Without a key, the upstream would get the key in the usual variable of its kind.
              api_key: key || 'none',
              ...addressOf(channel, kind, dialect, mapped),
              weight,
              ...(priorities.length > 1 && { order: priorities.indexOf(Number(channel['priority'] ?? 0)) + 1 }),
              ...organizationOf(channel),
              ...(Object.keys(headers).length > 0 && { extra_headers: headers }),
              ...prices,
            },
          })
          channelOf.push({ name, isWeighed: Number(channel['weight']) > 0 })
        }
      }
    }
  }
  // Without this option, new-api uses ratios that are built into it. A model that the option lacks has the ratio 1.
  if (dialect === 'new-api' && optionOf(options, 'CacheRatio') === undefined)
    for (const model of rated)
      settings.push({
        setting: `model ${model}, its price of cache reads`,
        fate: 'left',
        why: 'the options have no CacheRatio: set `cache_read`, or cached input costs as much as other input',
      })
  for (const [option, what] of Object.entries(leftPrices)) {
    const ofModels = parseObject(textOf(optionOf(options, option))) ?? {}
    for (const model of dialect === 'new-api' ? models : [])
      if (ofModels[model] !== undefined && ofModels[model] !== 'ratio')
        settings.push({ setting: `model ${model}, its ${what}`, fate: 'left', why: 'prices are for tokens here' })
  }
  return { source: { model_list: list }, channelOf, settings }
}

/** Whether a channel or a user is neither switched off nor deleted. */
function isOn({ status }: OneApiRow): boolean {
  return Number(status ?? 1) === 1
}

function nameOf({ id, name }: OneApiRow): string {
  return `channel ${name || id} (${id})`
}

/**
 * Returns the keys of a channel. If there are several, each is on its own line, and new-api has a state for each of
 * them (`GetNextEnabledKey` in model/channel.go).
 * @returns `on`: the keys in use; one empty key if the channel needs none. `off`: the number of keys switched off
 */
function keysOf({ key, channel_info: info }: OneApiRow): { on: string[]; off: number } {
  const states = asObject(objectOf(info)['multi_key_status_list']) ?? {}
  const lines = textOf(key).replace(/^\n+/, '').split('\n')
  const keys = lines.map((one, at) => ({ key: one.trim(), isOn: Number(states[at] ?? 1) === 1 }))
  const there = keys.filter((one) => one.key !== '')
  const on = there.flatMap((one) => (one.isOn ? one.key : []))
  return { on: there.length > 0 ? on : [''], off: there.length - on.length }
}

/** Returns the fields of a channel that have a value and are not carried over, and why. */
function leftOf(channel: OneApiRow): [field: string, why: string][] {
  const isSet = (value: unknown) => !['', '{}', '[]', '0', 'false', 'null'].includes(`${value ?? ''}`)
  // new-api keeps more settings of a channel in two columns of JSON (dto/channel_settings.go).
  const more = ['setting', 'settings'].flatMap((column) => Object.entries(objectOf(channel[column])))
  return [...Object.keys(leftFields).map((field) => [field, channel[field]] as const), ...more]
    .filter(([field, value]) => isSet(value) && !field.startsWith('upstream_model_update'))
    .map(([field]) => [field, leftFields[field] ?? 'triwire has no such setting'])
}

/** Returns the headers that new-api adds to requests of a channel, and which of them are left out and why. */
function headersOf({ header_override: override }: OneApiRow): {
  headers: Readonly<Record<string, string>>
  left: [field: string, why: string][]
} {
  const headers: Record<string, string> = {}
  const left: [string, string][] = []
  for (const [name, value] of Object.entries(objectOf(override))) {
    const text = textOf(value)
    const isOfClient = name === '*' || /^re(?:gex)?:/i.test(name) || text.includes('{client_header:')
    const why = isOfClient
      ? 'the gateway passes on only headers of clients that it knows'
      : text.includes('{api_key}')
        ? 'the gateway sends the key itself: `key_header` of the upstream names the header'
        : text.trim() === ''
          ? 'it holds no text'
          : headerMistake(name, text)
    if (why === undefined) headers[name] = text
    else left.push([`header_override.${name}`, why])
  }
  return { headers, left }
}

/** Returns OpenAI's organization. The column of the database and the member of JSON have different names. */
function organizationOf(channel: OneApiRow): { organization?: string } {
  const organization = textOf(channel['open_ai_organization']) || textOf(channel['openai_organization'])
  return organization === '' ? {} : { organization }
}

/**
 * Returns the name under which the provider knows a model. new-api follows a mapping to its end (`Resolve` in
 * pkg/modelmapping), and one-api takes one step. Undefined: the mapping goes in a circle, so new-api refuses the model.
 */
function mappedName({ model_mapping: written }: OneApiRow, model: string, dialect: OneApiDialect): string | undefined {
  const mapping = objectOf(written)
  const next = (name: string) => (Object.hasOwn(mapping, name) && textOf(mapping[name])) || name
  if (dialect === 'one-api') return next(model)
  const seen = new Set<string>()
  let name = model
  for (; next(name) !== name; name = next(name)) {
    if (seen.has(name)) return undefined
    seen.add(name)
  }
  return name
}

/** Reads an object that a database keeps as text or as bytes. Anything else gives an empty object. */
function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  const text = value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : value
  return asObject(typeof text === 'string' ? parseObject(text) : text) ?? {}
}

/**
 * Returns the address of a channel, with the API version appended, as one-api and new-api do for each request.
 * Undefined: it is no address to which we could append a path.
 */
function addressOf(
  channel: OneApiRow,
  [, path = '', usual]: ChannelKind,
  dialect: OneApiDialect,
  model: string,
): { api_base?: string; api_version?: string } | undefined {
  const written = textOf(channel['base_url'])
  const base = (codingPlans[written] || written || usual || '').replace(/\/+$/, '')
  const type = Number(channel['type'])
  const isCloudflare = base.startsWith('https://gateway.ai.cloudflare.com/')
  if (base !== '' && !/^https?:\/\//i.test(base)) return undefined
  if (type === azureType) {
    if (isCloudflare) return undefined
    const version = textOf(objectOf(channel['config'])['api_version']) || textOf(channel['other'])
    return { ...(base && { api_base: base }), ...(version && { api_version: version }) }
  }
  if (base === '') return {}
  if (type === customType && dialect === 'new-api') {
    const [, root] = /^(.+)\/chat\/completions$/.exec(base.replaceAll('{model}', model)) ?? []
    return root === undefined ? undefined : { api_base: root }
  }
  const isWhole = /\/v\d\w*(\/openai)?$/.test(base) || (isCloudflare && type === openaiType)
  return { api_base: isWhole ? base : base + path }
}

/**
 * Returns the name of a model in the address or the body of a request. In the names of Azure's deployments, one-api
 * leaves out the dots. new-api does so in channels that are older than 10 May 2025 (`AzureNoRemoveDotTime`).
 */
function sentName({ type, created_time: createdSeconds }: OneApiRow, mapped: string, dialect: OneApiDialect): string {
  const isDotless = dialect === 'one-api' || Number(createdSeconds ?? 0) < Date.UTC(2025, 4, 10) / 1_000
  return Number(type) === azureType && isDotless ? mapped.replaceAll('.', '') : mapped
}

/**
 * Computes prices from ratios in the options. With a ratio of 1, a token takes 1 from the quota (`postConsumeQuota` in
 * relay/controller/helper.go). The options lack the ratios that are built into one-api. If one of a model's two ratios
 * is missing, the price comes from a preset or from `--prices`. In new-api, the ratios of the client's name count. In
 * one-api, those of the mapped name count. They may have the type of the channel, as in `gpt-x(3)`. If the mapped name
 * has no ratios, those of the client's name are taken.
 */
function ratiosOf(
  options: readonly OneApiRow[],
  dialect: OneApiDialect,
): (model: string, mapped: string, kind: string, type: number) => object {
  const of = (key: string) => parseObject(textOf(optionOf(options, key))) ?? {}
  const unit = unitOf(options)
  const [inputs, outputs] = [of('ModelRatio'), of('CompletionRatio')]
  const [reads, writes] = [of('CacheRatio'), of('CreateCacheRatio')]
  // `GetCreateCacheRatio` in setting/ratio_setting/cache_ratio.go
  const usualWrite = dialect === 'new-api' ? 1.25 : undefined
  return (model, mapped, kind, type) => {
    for (const name of dialect === 'new-api' ? [model] : [mapped, model]) {
      const ratioOf = (ratios: Readonly<Record<string, unknown>>) => ratios[`${name}(${type})`] ?? ratios[name]
      const [ratio, factor, read, write = usualWrite] = [inputs, outputs, reads, writes].map(ratioOf)
      if (typeof ratio !== 'number' || typeof factor !== 'number') continue
      const input = round(ratio / unit)
      return {
        input_cost_per_token: input,
        output_cost_per_token: round(input * factor),
        ...(typeof read === 'number' && { cache_read_input_token_cost: round(input * read) }),
        ...(typeof write === 'number' && {
          cache_creation_input_token_cost: round(input * write),
          // new-api charges 1.6 times as much for an hour (claudeCacheCreation1hMultiplier in relay/helper/price.go).
          ...(kind === 'anthropic' && { cache_creation_input_token_cost_above_1hr: round(input * write * 1.6) }),
        }),
      }
    }
    return {}
  }
}

/** Removes the rounding error of binary fractions. */
function round(price: number): number {
  return Number(price.toPrecision(12))
}

/** Plans accounts and keys. A user becomes an account with what is left of their quota, and a token becomes a key. */
export function planOneApiKeys(
  { tokens, users, channels, options }: OneApiTables,
  { dialect, nowMs }: { dialect: OneApiDialect; nowMs: number },
): KeysPlan {
  const settings: ImportedSetting[] = []
  const notes = new Set<string>()
  const unit = unitOf(options)
  // A quota can exceed the largest possible balance. It is then replaced by the largest balance.
  const nanosOf = (quota: unknown) => BigInt(Math.round(Math.min(Math.max(0, Number(quota) || 0) / unit, 9e9) * 1e9))
  const accounts = new Map<unknown, ForeignImport['accounts'][number]>()
  const groupOf = new Map(users.map(({ id, group }) => [id, textOf(group) || 'default']))
  const factors = objectOf(optionOf(options, 'GroupRatio'))
  // new-api has factors for users of one group with a token of another (`HandleGroupRatio` in relay/helper/price.go).
  const factorsOfUsers = objectOf(optionOf(options, 'GroupGroupRatio'))
  for (const user of users) {
    // new-api sets `deleted_at` of a deleted user, and one-api the status 3.
    if (user['deleted_at'] || Number(user['status']) === 3) continue
    const name = textOf(user['username']) || `user ${user['id']}`
    const creditNanos = nanosOf(user['quota'])
    accounts.set(user['id'], {
      ...{
        name: isShownWhole(name) ? name : `user ${user['id']}`,
        state: isOn(user) ? 'active' : 'suspended',
        bounds: {},
      },
      ...{ creditNanos, reference: `import:${dialect}:${user['id']}` },
    })
  }
  const groups = modelsByGroup(channels.filter(isOn))
  const keys: ForeignImport['keys'][number][] = []
  for (const token of tokens) {
    const setting = `token ${token['name'] || token['id']} (${token['id']})`
    const leave = (why: string) => void settings.push({ setting, fate: 'left', why })
    const account = accounts.get(token['user_id'])
    const secret = textOf(token['key']).trim().replace(/^sk-/, '')
    const endMs = Number(token['expired_time'] ?? -1) * 1_000
    if (token['deleted_at']) leave('it was deleted')
    else if (!account) leave('its user is not there, or was deleted')
    else if (secret === '') leave('it has no key')
    else if (Number.isNaN(endMs)) leave('its expired_time is no number')
    else if (endMs >= 0 && endMs <= nowMs) leave('it has expired')
    else if (![1, 4].includes(Number(token['status'] ?? 1))) leave('it is switched off or has expired')
    else {
      const isUnlimited = isTrue(token['unlimited_quota'])
      const left = nanosOf(token['remain_quota'])
      const budget: Budget | undefined = isUnlimited ? undefined : { nanos: left > 0n ? left : 1n, per: undefined }
      const own = ownModelsOf(token, dialect)
      const named = textOf(token['group'])
      const home = groupOf.get(token['user_id'])!
      // In new-api, a token of the group `auto` may use all groups of its user. Here it gets only the user's own group.
      const using = named && named !== 'auto' ? named : home
      const group = groups(using)
      const factor = asObject(factorsOfUsers[home])?.[using] ?? factors[using]
      const cure = 'declare a plan with this factor'
      if (typeof factor === 'number' && factor !== 1)
        notes.add(`user ${account.name}: their group ${using} pays ${factor} times the price: ${cure}`)
      const models = own?.filter((model) => group?.includes(model) ?? true) ?? group
      if (models && models.length > modelsMax)
        notes.add(`${setting}: a key names ${modelsMax} models, so the last ones are left out: use patterns`)
      if (textOf(token['subnet'] ?? token['allow_ips']).trim() !== '')
        settings.push({ setting: `${setting}, its addresses`, fate: 'left', why: 'a key is not bound to addresses' })
      const label = textOf(token['name']).trim()
      settings.push({
        setting,
        fate: 'carried',
        why: `account ${account.name}${budget ? `, budget ${formatCredits(budget.nanos)}` : ''}`,
      })
      const ownExpiresMs = endMs >= 0 ? endMs : undefined
      keys.push({
        ...{ digest: digestKey(`sk-${secret}`), prefix: `sk-...${secret.slice(-4)}`, account: account.name },
        ...{
          label: isShownWhole(label) && !mayHoldKey(label) ? label : undefined,
          externalId: undefined,
          ownExpiresMs,
        },
        expiresMs: ownExpiresMs,
        bounds: {
          ...(budget && { budget }),
          ...(models && { models: models.length > 0 ? models.slice(0, modelsMax) : ['none'] }),
        },
      })
    }
  }
  const used = new Set(keys.map(({ account }) => account))
  const idle = [...accounts.values()].filter(({ name, creditNanos }) => creditNanos > 0n && !used.has(name))
  if (idle.length > 0) {
    const rest = formatCredits(idle.reduce((sum, { creditNanos }) => sum + creditNanos, 0n))
    const why = `they have no token that works, so no account is made, and ${rest} credits are not booked`
    settings.push({ setting: `${idle.length} users with a quota`, fate: 'left', why })
  }
  const foreign = { origin: dialect, accounts: [...accounts.values()].filter(({ name }) => used.has(name)), keys }
  for (const { name, creditNanos } of foreign.accounts)
    if (creditNanos === 0n)
      notes.add(
        `the account ${name} has no credit, so its keys get 402: run ${commandLine('posix', ['triwire', 'account', 'credit', name])} 500 --reference TEXT`,
      )
  if (foreign.accounts.length > 0) notes.add(noteOfRates(foreign.accounts.map(({ name }) => name)))
  return { foreign, labels: {}, settings, notes: [...notes] }
}

/**
 * Returns the models of a token. Undefined: the token may use all models of its group. In new-api, a limit to no models
 * refuses all models.
 */
function ownModelsOf(token: OneApiRow, dialect: OneApiDialect): string[] | undefined {
  if (dialect === 'new-api') return isTrue(token['model_limits_enabled']) ? wordsOf(token['model_limits']) : undefined
  const models = wordsOf(token['models'])
  return models.length > 0 ? models : undefined
}

/** Returns the models of a group. Undefined: the group may use all. An empty list: the group has no channel. */
function modelsByGroup(channels: readonly OneApiRow[]): (group: string) => string[] | undefined {
  const all = new Set(channels.flatMap(({ models }) => wordsOf(models)))
  const groups = new Map<string, Set<string>>()
  for (const { group, models } of channels)
    for (const name of wordsOf(group ?? 'default'))
      groups.set(name, (groups.get(name) ?? new Set()).union(new Set(wordsOf(models))))
  return (group) => {
    const models = groups.get(group) ?? new Set()
    return models.size < all.size ? [...models] : undefined
  }
}

/** Returns the quota that becomes one credit. The usual number makes a credit one US dollar. */
function unitOf(options: readonly OneApiRow[]): number {
  return Number(optionOf(options, 'QuotaPerUnit')) || 500_000
}

function optionOf(options: readonly OneApiRow[], key: string): unknown {
  return asObject(options.find((row) => row['key'] === key))?.['value']
}

function wordsOf(value: unknown): string[] {
  return textOf(value)
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
