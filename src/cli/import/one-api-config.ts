import type { Budget } from '../../accounts/budget.ts'
import { formatCredits } from '../../accounts/credit.ts'
import type { ForeignImport } from '../../accounts/foreign-keys.ts'
import { modelsMax } from '../../accounts/key-bounds.ts'
import { digestKey, mayHoldKey } from '../../accounts/keys.ts'
import { isShownWhole } from '../../accounts/shown-text.ts'
import { asObject, parseObject } from '../../bytes/json.ts'
import { commandLine } from '../../programs/shells.ts'
import type { ImportedSetting } from './import-report.ts'
import { isTrue } from './litellm-dump.ts'
import { type KeysPlan, noteOfRates } from './litellm-keys.ts'
import type { OneApiRow, OneApiTables } from './one-api-tables.ts'

export type OneApiDialect = 'one-api' | 'new-api'

/**
 * A kind of channel. `provider` is LiteLLM's name. `version`, such as `/v1`, is appended to an address that has no
 * version. `base` is the default address.
 */
type ChannelKind = readonly [provider: string, version?: string, base?: string]

/** Channel types of both One API and New API (relay/channeltype/define.go, constant/channel.go, November 2026). */
const commonKinds: Readonly<Record<number, ChannelKind>> = {
  1: ['openai', '/v1'],
  3: ['azure'],
  8: ['openai', '/v1'],
  14: ['anthropic'],
  17: ['dashscope', '/compatible-mode/v1'],
  20: ['openrouter', '/v1'],
  24: ['gemini', '/v1beta/openai'],
  25: ['moonshot', '/v1'],
}

const kinds: Readonly<Record<OneApiDialect, Readonly<Record<number, ChannelKind>>>> = {
  'one-api': {
    ...commonKinds,
    28: ['mistral', '/v1'],
    29: ['groq', '/v1'],
    30: ['ollama'],
    32: ['openai', '/v1', 'https://api.stepfun.com'],
    36: ['deepseek'],
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
    43: ['deepseek'],
    45: ['volcengine', '/api/v3'],
    47: ['xinference', '/v1'],
    48: ['xai', '/v1'],
  },
}

/** Why fields of a channel are not carried over. A field is reported only if a channel has a value for it. */
const leftFields: Readonly<Record<string, string>> = {
  status_code_mapping: 'errors have the words of the gateway: docs/interface.md',
  param_override: 'triwire sends what the client wrote; `drops` of a profile takes fields away',
  system_prompt: 'triwire adds no words to a request',
  tag: 'requests are not routed by tags',
}

/**
 * Converts channels into a configuration of LiteLLM's form, with an entry for each model of each channel.
 * @returns the configuration, and the channel's name for each entry
 */
export function modelListOf(
  { channels, options }: OneApiTables,
  dialect: OneApiDialect,
): { source: { model_list: object[] }; channelOf: string[]; settings: ImportedSetting[] } {
  const settings: ImportedSetting[] = []
  const list: object[] = []
  const channelOf: string[] = []
  const priorities = [...new Set(channels.map(({ priority }) => Number(priority ?? 0)))].sort((a, b) => b - a)
  const ratios = ratiosOf(options)
  for (const channel of channels) {
    const name = nameOf(channel)
    const leave = (why: string) => void settings.push({ setting: name, fate: 'left', why })
    const kind = kinds[dialect][Number(channel['type'])]
    if (Number(channel['status'] ?? 1) !== 1) leave('it is switched off')
    else if (!kind) leave(`channels of type ${channel['type']} have no way here: add the model by hand`)
    else {
      for (const [field, why] of Object.entries(leftFields))
        if (!['', '{}', '[]', '0', 'null', 'undefined'].includes(`${channel[field] ?? ''}`))
          settings.push({ setting: `${name}.${field}`, fate: 'left', why })
      const mapping = parseObject(textOf(channel['model_mapping'])) ?? {}
      for (const key of keysOf(channel))
        for (const model of wordsOf(channel['models'])) {
          list.push({
            model_name: model,
            litellm_params: {
              model: `${kind[0]}/${textOf(mapping[model]) || model}`,
              ...(key !== '' && { api_key: key }),
              ...addressOf(channel, kind),
              ...(Number(channel['weight']) > 0 && { weight: Number(channel['weight']) }),
              ...(priorities.length > 1 && { order: priorities.indexOf(Number(channel['priority'] ?? 0)) + 1 }),
              ...(textOf(channel['openai_organization']) && { organization: channel['openai_organization'] }),
              ...(textOf(channel['header_override']) && {
                extra_headers: parseObject(textOf(channel['header_override'])),
              }),
              ...ratios(model),
            },
          })
          channelOf.push(name)
        }
    }
  }
  return { source: { model_list: list }, channelOf, settings }
}

function nameOf({ id, name }: OneApiRow): string {
  return `channel ${name || id} (${id})`
}

/** Returns the keys of a channel. If there are several, each is on its own line. */
function keysOf({ key }: OneApiRow): string[] {
  const keys = textOf(key)
    .split('\n')
    .map((one) => one.trim())
    .filter((one) => one !== '')
  return keys.length > 0 ? keys : ['']
}

/** Returns the address of a channel, with the API version appended, as one-api and new-api do for each request. */
function addressOf({ base_url: written, other }: OneApiRow, [provider, version = '', usual]: ChannelKind): object {
  const base = (textOf(written) || usual || '').replace(/\/+$/, '')
  if (provider === 'azure') return { ...(base && { api_base: base }), ...(textOf(other) && { api_version: other }) }
  if (base === '') return {}
  return { api_base: /\/v\d\w*(\/openai)?$/.test(base) ? base : base + version }
}

/**
 * Computes prices from ratios in the options. A ratio of 1 is $0.002 for 1,000 tokens (relay/billing/ratio/model.go).
 * The options lack the ratios that are built into one-api. If one of a model's two ratios is missing, the price comes
 * from a preset or from `--prices`.
 */
function ratiosOf(options: readonly OneApiRow[]): (model: string) => object {
  const of = (key: string) => parseObject(textOf(optionOf(options, key))) ?? {}
  const [inputs, outputs, caches] = [of('ModelRatio'), of('CompletionRatio'), of('CacheRatio')]
  return (model) => {
    const [ratio, factor] = [inputs[model], outputs[model]]
    if (typeof ratio !== 'number' || typeof factor !== 'number') return {}
    const input = round(ratio * 2e-6)
    return {
      input_cost_per_token: input,
      output_cost_per_token: round(input * factor),
      ...(typeof caches[model] === 'number' && { cache_read_input_token_cost: round(input * caches[model]) }),
    }
  }
}

/** Removes the rounding error of binary fractions. */
function round(price: number): number {
  return Number(price.toPrecision(12))
}

/** Plans accounts and keys. A user becomes an account with what is left of their quota, and a token becomes a key. */
export function planOneApiKeys(
  { tokens, users, channels, options }: OneApiTables,
  { dialect, nowMs, untilMs }: { dialect: OneApiDialect; nowMs: number; untilMs: number | undefined },
): KeysPlan {
  const settings: ImportedSetting[] = []
  const notes = new Set<string>()
  const unit = Number(optionOf(options, 'QuotaPerUnit')) || 500_000
  // A quota can exceed the largest possible balance. It is then replaced by the largest balance.
  const nanosOf = (quota: unknown) => BigInt(Math.round(Math.min(Math.max(0, Number(quota) || 0) / unit, 9e9) * 1e9))
  const accounts = new Map<unknown, ForeignImport['accounts'][number]>()
  const groupOf = new Map(users.map(({ id, group }) => [id, textOf(group) || 'default']))
  const factors = parseObject(textOf(optionOf(options, 'GroupRatio'))) ?? {}
  for (const user of users) {
    // new-api sets `deleted_at` of a deleted user, and one-api the status 3.
    if (user['deleted_at'] || Number(user['status']) === 3) continue
    const name = textOf(user['username']) || `user ${user['id']}`
    const creditNanos = nanosOf(user['quota'])
    const isOn = Number(user['status'] ?? 1) === 1
    accounts.set(user['id'], {
      ...{ name: isShownWhole(name) ? name : `user ${user['id']}`, state: isOn ? 'active' : 'suspended', bounds: {} },
      ...{ creditNanos, reference: `import:${dialect}:${user['id']}` },
    })
    const factor = factors[groupOf.get(user['id'])!]
    if (typeof factor === 'number' && factor !== 1)
      notes.add(`user ${name}: their group pays ${factor} times the price: declare a plan with this factor`)
  }
  const groups = modelsByGroup(channels)
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
      // In new-api, a token of the group `auto` may use all groups of its user. Here it gets only the user's own group.
      const group = groups(named && named !== 'auto' ? named : groupOf.get(token['user_id'])!)
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
      const ends = [ownExpiresMs, untilMs].filter((end) => end !== undefined)
      keys.push({
        ...{ digest: digestKey(`sk-${secret}`), prefix: `sk-...${secret.slice(-4)}`, account: account.name },
        ...{
          label: isShownWhole(label) && !mayHoldKey(label) ? label : undefined,
          externalId: undefined,
          ownExpiresMs,
        },
        expiresMs: ends.length > 0 ? Math.min(...ends) : undefined,
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
