// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references of the configuration look like placeholders
import type { Preset } from '../../catalog/presets.ts'
import { presets } from '../../catalog/presets.ts'
import type { ModelWire } from '../../catalog/wire-names.ts'
import { awsDomainOf, placeFor } from '../../config/clouds.ts'

/*
 * How each provider of LiteLLM is reached: our wire and profile, its address, and the variable of its key. Addresses
 * come from docs/providers.md. If that page lacks a provider, nobody has compared the address with the provider's
 * pages. `triwire check --online` shows whether an address responds.
 */

/** Returns a parameter of a deployment as text, or undefined. A reference to a variable has our form (`${NAME}`). */
export type DeploymentTexts = (name: string) => string | undefined

/** One way in which our gateway can reach a deployment. */
export type DeploymentWay = {
  wire: ModelWire
  profile: string
  /** The entry of `upstreams`, without `accounts`. */
  upstream: Readonly<Record<string, unknown>>
  /** The entry of `accounts`, without its name. */
  account: Readonly<Record<string, unknown>>
  /** The name of the model at the upstream. */
  model: string
  /** Whether the server is the operator's own. Its tokens cost nothing unless a price is set. */
  isOwn: boolean
}

/** The ways to reach a deployment, the best way first, or the reason why it cannot be reached. */
type DeploymentWays = readonly DeploymentWay[] | string

type WaysOfProvider = (model: string, text: DeploymentTexts) => DeploymentWays

/** By preset and model name: profiles that replace the preset's profile. The first pattern that matches counts. */
const profilesByName: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  openai: [
    [/^gpt-5[\w.]*-chat/, 'openai'],
    [/^(o\d|gpt-[5-9]|gpt-oss|codex)/, 'openai-reasoning'],
  ],
  anthropic: [[/claude-(instant|[23]\b|(opus|sonnet|haiku)-4(?![-.][6-9]))/, 'anthropic-budget']],
  gemini: [[/^gemini-[3-9]/, 'gemini-3']],
}

/** Returns the profile of a model. @param name the name of the provider's preset */
function profileOf(name: string, model: string): string {
  const preset = presets[name]!
  const known = preset.models.find(({ id }) => id === model)
  return known?.profile ?? profilesByName[name]?.find(([names]) => names.test(model))?.[1] ?? preset.profile
}

/** Returns the profile of a Claude model at a cloud. @param model the cloud's name, with vendor, date and version */
function profileOfClaude(cloud: 'anthropic-bedrock' | 'anthropic-google', model: string): string {
  const name = model.replace(/^.*[./](?=claude)/s, '').replace(/@.*$/s, '')
  const known = profileOf('anthropic', name.replace(/-v\d+(?::\d+)?$/, '').replace(/-\d{8}$/, ''))
  return `${cloud}${/-(fixed-sampling|always-thinking)$/.exec(known)?.[0] ?? ''}`
}

const withoutEnd = (url: string) =>
  url.replace(/\/+$/, '').replace(/\/(chat\/completions|v1\/messages|messages|responses)$/, '')

/**
 * Returns an upstream with the same paths that LiteLLM uses. LiteLLM adds only `/chat/completions` or `/responses` to
 * its URL. We would also add `/v1` to a bare host, so the path is set for such a host.
 */
function asWritten(url: string, wire: 'chat' | 'responses' = 'chat'): Record<string, unknown> {
  const base = withoutEnd(url)
  const isBare = /^https?:\/\/[^/]+$/.test(base)
  const path = wire === 'chat' ? '/chat/completions' : '/responses'
  return { base_url: base, ...(isBare && { paths: { [wire]: path } }) }
}

/** With this prefix in the name of a model, LiteLLM sends requests to the responses endpoint of OpenAI or Azure. */
export const responsesPrefix = 'responses/'

const keyOf = (text: DeploymentTexts, variable: string) => ({ key: text('api_key') ?? `\${${variable}}` })

function ofPreset(name: string): WaysOfProvider {
  const preset: Preset = presets[name]!
  const own = new URL(preset.upstream.baseUrl).host
  const usual: readonly ModelWire[] = preset.wire === 'responses' ? ['responses', 'chat'] : [preset.wire]
  return (asked, text) => {
    const isOfResponses = name === 'openai' && asked.startsWith(responsesPrefix)
    const model = isOfResponses ? asked.slice(responsesPrefix.length) : asked
    const possible = isOfResponses ? (['responses'] as const) : usual
    const url = text('api_base')
    const host = url === undefined ? own : (/^https:\/\/([^/:]+)/.exec(url)?.[1] ?? '')
    // A provider's regions have hosts below the provider's own host.
    const isTheirs = host === own || host.endsWith(`.${own}`)
    const profile = profileOf(name, model)
    const account = keyOf(text, preset.upstream.keyVariable)
    const { baseUrl, paths } = preset.upstream
    if (url === undefined || isTheirs)
      return possible.map((wire) => ({
        ...{ wire, profile, account, model, isOwn: false },
        upstream: url === undefined ? { base_url: baseUrl, ...(paths && { paths }) } : { base_url: withoutEnd(url) },
      }))
    if (preset.wire === 'messages')
      return [{ wire: 'messages', profile, account, model, isOwn: false, upstream: { base_url: withoutEnd(url) } }]
    const wire = isOfResponses ? 'responses' : 'chat'
    const plain = name === 'openai' ? `default-${wire}` : preset.profile
    return [{ wire, profile: plain, account, model, isOwn: isPrivate(url), upstream: asWritten(url, wire) }]
  }
}

/** Whether a host is this machine or in a private network: RFC 1918, a name without a dot, or a local suffix. */
function isPrivate(url: string): boolean {
  const host = /^https?:\/\/(\[[^\]]*\]|[^/:]+)/.exec(url)?.[1] ?? ''
  return (
    /^((127|10)\.\d+|192\.168|172\.(1[6-9]|2\d|3[01]))\.\d+\.\d+$|^\[(::1\]|f[cd])/.test(host) ||
    (/^[^.$]+$/.test(host) && host !== '') ||
    /\.(local|internal|lan|svc)(\.|$)/.test(host)
  )
}

type OpenPlace = { url?: string; urlVariable?: string; key?: string; profile?: string; isOwn?: true; paths?: object }

/** Returns the ways to reach a provider with chat completions. A provider without a `key` variable needs no key. */
function open({ url, urlVariable, key, profile = 'default-chat', isOwn, paths }: OpenPlace): WaysOfProvider {
  return (model, text) => {
    const written = text('api_base') ?? (urlVariable && !url ? `\${${urlVariable}}` : undefined)
    if (written === undefined && url === undefined) return 'its address is not known here: set `api_base`'
    const account = { key: text('api_key') ?? (key && !isOwn ? `\${${key}}` : 'none') }
    const upstream = written === undefined ? { base_url: url, ...(paths && { paths }) } : asWritten(written)
    return [{ wire: 'chat', profile, upstream, account, model, isOwn: isOwn ?? (!!written && isPrivate(written)) }]
  }
}

/**
 * Returns the ways to reach an operator's own server. In LiteLLM's settings, the address of such a server has no `/v1`.
 * Our gateway adds `/v1`.
 */
function ownServer(options: OpenPlace): WaysOfProvider {
  const plain = open({ ...options, isOwn: true })
  return (model, text) => {
    const ways = plain(model, text)
    if (typeof ways === 'string') return ways
    return ways.map((way) => ({ ...way, upstream: { base_url: way.upstream['base_url'] } }))
  }
}

const entraFields = ['tenant_id', 'client_id', 'client_secret']

/** Returns the account of a deployment: its key, or else its Entra credentials if all of them are set. */
function azureAccount(text: DeploymentTexts, variable: string) {
  const [tenant, client, secret] = entraFields.map(text)
  if (text('api_key') !== undefined || !tenant || !client || !secret) return { account: keyOf(text, variable) }
  const azure = { tenant, client, secret, scope: 'https://cognitiveservices.azure.com/.default' }
  return { account: { azure } }
}

const azure: WaysOfProvider = (asked, text) => {
  const [, family, bare] = /^(?:(responses|o_series|gpt5_series)\/)?(.*)$/s.exec(asked)!
  const model = bare!
  const base = withoutEnd(text('api_base') ?? '${AZURE_API_BASE}').replace(/\/openai\/deployments\/.*$/, '')
  const version = text('api_version') ?? '${AZURE_API_VERSION:-2024-10-21}'
  const { account } = azureAccount(text, 'AZURE_API_KEY')
  const known = text('base_model')?.replace(/^azure\//, '') ?? model
  const profile = family === 'o_series' || family === 'gpt5_series' ? 'openai-reasoning' : profileOf('openai', known)
  const header = 'key' in account ? { key_header: 'api-key' } : {}
  const way = { profile, account, model, isOwn: false }
  if (/\/openai\/v1$/.test(base) || /^(v1|latest|preview)$/.test(version)) {
    const upstream = { base_url: base.endsWith('/openai/v1') ? base : `${base}/openai/v1`, ...header }
    return [
      { ...way, wire: 'responses', upstream },
      { ...way, wire: 'chat', upstream },
    ]
  }
  const classic = { base_url: base.replace(/\/openai$/, ''), query: { 'api-version': version }, ...header }
  const chat = { chat: '/openai/deployments/{model}/chat/completions' }
  if (family === 'responses')
    return [{ ...way, wire: 'responses', upstream: { ...classic, paths: { responses: '/openai/responses' } } }]
  return [{ ...way, wire: 'chat', upstream: { ...classic, paths: chat } }]
}

/** The ways to reach Microsoft Foundry: Claude at its messages endpoint, other models at `/openai/v1`. */
const azureAi: WaysOfProvider = (model, text) => {
  const url = text('api_base') ?? '${AZURE_AI_API_BASE}'
  const host = /^https?:\/\/[^/]+/.exec(url)?.[0] ?? url
  const { account } = azureAccount(text, 'AZURE_AI_API_KEY')
  const way = { account, model, isOwn: false }
  if (/\/anthropic\b/.test(url) || /^claude/.test(model))
    return [
      { ...way, wire: 'messages', profile: profileOf('anthropic', model), upstream: { base_url: `${host}/anthropic` } },
    ]
  const header = 'key' in account ? { key_header: 'api-key' } : {}
  // Endpoints of single models have hosts of their own. They take the key as `Authorization`.
  const isResource = url.startsWith('$') || /\.(services\.ai|openai|cognitiveservices)\.azure\.com$/.test(host)
  const upstream = isResource ? { base_url: `${host}/openai/v1`, ...header } : asWritten(url)
  return [{ ...way, wire: 'chat', profile: 'default-chat', upstream }]
}

/** Matches models that Bedrock serves as chat completions (docs/providers.md; presets of `bedrock`). */
const mantleFamilies = /^(openai|deepseek|qwen|zai|moonshotai|moonshot|mistral|minimax|nvidia|google)\./

const bedrock: WaysOfProvider = (asked, text) => {
  const [, inPath, rest] =
    /^(?:(?:converse|invoke|converse_like|mantle)\/)?(?:([a-z]{2,4}(?:-[a-z]+)+-\d)\/)?(.*)$/s.exec(asked)!
  const model = rest!
  const region = text('aws_region_name') ?? inPath ?? '${AWS_REGION_NAME:-us-east-1}'
  const key = text('api_key')
  const endpoint = text('api_base') || text('aws_bedrock_runtime_endpoint') || undefined
  /** Whether the account must name the region and the service, because the address does not. */
  const isVague = endpoint ? !URL.canParse(endpoint) || placeFor(endpoint, {}, {}).region === '' : region.includes('$')
  const settings = {
    profile: text('aws_profile_name'),
    role: text('aws_role_name'),
    session_name: text('aws_session_name'),
    external_id: text('aws_external_id'),
    ...(isVague && { region, service: 'bedrock' }),
  }
  const aws = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined))
  const account = key === undefined ? { aws } : { key }
  const header = key === undefined ? {} : { key_header: 'authorization' }
  const way = { account, model, isOwn: false }
  if (/(^|\.)anthropic\./.test(model) || model.startsWith('arn:')) {
    const paths = { messages: { whole: '/model/{model}/invoke', stream: '/model/{model}/invoke-with-response-stream' } }
    const base = withoutEnd(endpoint ?? `https://bedrock-runtime.${region}.${awsDomainOf(region)}`)
    const upstream = { base_url: base, paths, ...header }
    const profile = profileOfClaude('anthropic-bedrock', text('base_model') ?? model)
    return [{ ...way, wire: 'messages', profile, upstream }]
  }
  if (mantleFamilies.test(model)) {
    if (endpoint && !endpoint.includes('bedrock-mantle'))
      return 'its address is for another API of Bedrock: set an `api_base` for chat completions, with the provider `openai`'
    return [
      {
        ...{ ...way, wire: 'chat', profile: 'default-chat' },
        account: key === undefined && isVague ? { aws: { ...aws, service: 'bedrock-mantle' } } : account,
        upstream: { base_url: withoutEnd(endpoint ?? `https://bedrock-mantle.${region}.api.aws/v1`) },
      },
    ]
  }
  return 'Bedrock serves it by its Converse API only, which is no wire of triwire'
}

/** The hosts of Vertex by location. The host of any other location begins with its name (docs/providers.md). */
const vertexHosts = new Map([
  ['global', 'aiplatform.googleapis.com'],
  ['us', 'aiplatform.us.rep.googleapis.com'],
  ['eu', 'aiplatform.eu.rep.googleapis.com'],
])

const vertex: WaysOfProvider = (model, text) => {
  if (text('api_base')) return 'its `api_base` is not carried: make an upstream with this address'
  const project = text('vertex_project') ?? '${VERTEXAI_PROJECT}'
  const location = text('vertex_location') ?? '${VERTEXAI_LOCATION:-us-central1}'
  const file = text('vertex_credentials')
  if (file?.trimStart().startsWith('{'))
    return 'its `vertex_credentials` are written out: put them into a file and name that'
  const account = { google: file === undefined ? {} : { credentials_file: file } }
  const base_url = `https://${vertexHosts.get(location) ?? `${location}-aiplatform.googleapis.com`}`
  const root = `/v1/projects/${project}/locations/${location}`
  const way = { account, isOwn: false }
  if (/^claude/.test(model)) {
    const at = `${root}/publishers/anthropic/models/{model}`
    const paths = { messages: { whole: `${at}:rawPredict`, stream: `${at}:streamRawPredict` } }
    const profile = profileOfClaude('anthropic-google', text('base_model') ?? model)
    return [{ ...way, model, wire: 'messages', profile, upstream: { base_url, paths } }]
  }
  if (!/^gemini/.test(model) && !model.includes('/'))
    return 'it has an address of its own at Google: set it as provider `openai` with `api_base`'
  const isGemini = /^gemini/.test(model)
  return [
    {
      ...{ ...way, wire: 'chat', profile: isGemini ? profileOf('gemini', model) : 'default-chat' },
      model: isGemini ? `google/${model}` : model,
      upstream: { base_url, paths: { chat: `${root}/endpoints/openapi/chat/completions` } },
    },
  ]
}

const plainCompletions: WaysOfProvider = () => 'it is asked for plain completions, which is no wire of triwire'

/** For each provider of LiteLLM, the function that returns the ways to reach it. */
const providers: Readonly<Record<string, WaysOfProvider>> = {
  ...Object.fromEntries(
    Object.entries(presets)
      .filter(([name, { ofCloud }]) => name !== 'bedrock' && !ofCloud)
      .map(([name]) => [name, ofPreset(name)]),
  ),
  dashscope: ofPreset('qwen'),
  fireworks_ai: ofPreset('fireworks'),
  azure,
  azure_text: plainCompletions,
  'text-completion-openai': plainCompletions,
  'text-completion-codestral': plainCompletions,
  azure_ai: azureAi,
  bedrock,
  bedrock_converse: bedrock,
  vertex_ai: vertex,
  vertex_ai_beta: vertex,
  openrouter: open({ url: 'https://openrouter.ai/api/v1', key: 'OPENROUTER_API_KEY', profile: 'openrouter' }),
  together_ai: open({ url: 'https://api.together.xyz/v1', key: 'TOGETHERAI_API_KEY' }),
  cerebras: open({ url: 'https://api.cerebras.ai/v1', key: 'CEREBRAS_API_KEY' }),
  nvidia_nim: open({ url: 'https://integrate.api.nvidia.com/v1', key: 'NVIDIA_NIM_API_KEY' }),
  sambanova: open({ url: 'https://api.sambanova.ai/v1', key: 'SAMBANOVA_API_KEY' }),
  deepinfra: open({ url: 'https://api.deepinfra.com/v1/openai', key: 'DEEPINFRA_API_KEY' }),
  cohere_chat: open({ url: 'https://api.cohere.ai/compatibility/v1', key: 'COHERE_API_KEY' }),
  cohere: open({ url: 'https://api.cohere.ai/compatibility/v1', key: 'COHERE_API_KEY' }),
  volcengine: open({ url: 'https://ark.cn-beijing.volces.com/api/v3', key: 'VOLCENGINE_API_KEY' }),
  github: open({ url: 'https://models.github.ai/inference', key: 'GITHUB_API_KEY' }),
  perplexity: open({
    ...{ url: 'https://api.perplexity.ai', key: 'PERPLEXITYAI_API_KEY' },
    paths: { chat: '/chat/completions' },
  }),
  databricks: open({ urlVariable: 'DATABRICKS_API_BASE', key: 'DATABRICKS_API_KEY' }),
  litellm_proxy: ownServer({ urlVariable: 'LITELLM_PROXY_API_BASE', profile: 'litellm' }),
  hosted_vllm: open({ urlVariable: 'HOSTED_VLLM_API_BASE', profile: 'vllm', isOwn: true }),
  vllm: open({ profile: 'vllm', isOwn: true }),
  lm_studio: open({ urlVariable: 'LM_STUDIO_API_BASE', isOwn: true }),
  llamafile: open({ url: 'http://127.0.0.1:8080/v1', profile: 'llama-cpp', isOwn: true }),
  xinference: open({ urlVariable: 'XINFERENCE_API_BASE', isOwn: true }),
  ollama: ownServer({ url: 'http://127.0.0.1:11434', profile: 'ollama' }),
  ollama_chat: ownServer({ url: 'http://127.0.0.1:11434', profile: 'ollama' }),
  openai_like: open({}),
  custom_openai: open({}),
}

/** Patterns of model names without a provider, each with the provider that LiteLLM then assumes. */
const bareNames: readonly (readonly [RegExp, string])[] = [
  [/^(gpt-|chatgpt-|o\d|codex)/, 'openai'],
  [/^claude/, 'anthropic'],
  [/^gemini/, 'vertex_ai'],
  [/^((us|eu|apac|global|jp|au)\.)?(anthropic|amazon|meta|deepseek|openai)\./, 'bedrock'],
]

/**
 * Splits LiteLLM's name of a model into provider and model.
 * @param custom `custom_llm_provider`, which has priority
 * @param hasBase whether the deployment has its own address. Then an unknown provider counts as OpenAI-compatible
 */
export function splitLitellmModel(name: string, custom: string | undefined, hasBase: boolean) {
  const [, first, rest = ''] = /^([^/]+)\/(.*)$/s.exec(name) ?? []
  if (custom !== undefined) return { provider: custom, model: first === custom ? rest : name }
  if (first !== undefined && Object.hasOwn(providers, first)) return { provider: first, model: rest }
  const known = bareNames.find(([names]) => names.test(name))?.[1]
  const inPreset = Object.entries(presets).find(
    ([, { ofCloud, models }]) => !ofCloud && models.some(({ id }) => id === name),
  )?.[0]
  return { provider: known ?? inPreset ?? (hasBase ? 'openai' : first), model: name }
}

/** Returns the ways to reach a deployment. @param text returns a parameter; `base_model` comes from `model_info` */
export function waysOfDeployment(provider: string | undefined, model: string, text: DeploymentTexts): DeploymentWays {
  if (provider === undefined) return 'its provider is not named: write `provider/model`'
  if (Object.hasOwn(providers, provider)) return providers[provider]!(model, text)
  if (text('api_base') === undefined) return `its provider ${provider} is not known here, and it has no \`api_base\``
  return open({})(model, text)
}

/** Returns the preset of a provider of LiteLLM. For a name with `*`, callers use the models of this preset. */
export function presetOfProvider(provider: string | undefined): Preset | undefined {
  return Object.entries(presets).find(
    ([name, { listedAs }]) => name === provider || listedAs.includes(provider ?? ''),
  )?.[1]
}
