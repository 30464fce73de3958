import { asObject } from '../../bytes/json.ts'
import { resolveProfile } from '../../catalog/profiles.ts'
import { headerMistake, keyMistake } from '../../config/values.ts'
import { calendarsOf } from '../catalog/presets-file.ts'
import { costOf, hasCallPrices, type ImportFigures, type ImportPrices } from './litellm-figures.ts'
import type { DeploymentWay } from './litellm-places.ts'
import {
  type Deployment,
  firstFree,
  type LitellmMaking,
  type SourceFields,
  textOf,
  wordOf,
} from './litellm-settings.ts'

/** A deployment, how it is reached, and its limits and prices. */
type DeploymentFigures = { deployment: Deployment; way: DeploymentWay; figures: ImportFigures }

type ImportRoute = {
  name: string
  model: string
  profile: string | SourceFields
  weight: number
  priority: number
  headers: SourceFields | undefined
}

/** Parameters of a deployment, each with the second name that LiteLLM accepts for it. */
export const sameAs: Readonly<Record<string, string>> = {
  api_base: 'base_url',
  tenant_id: 'azure_tenant_id',
  client_id: 'azure_client_id',
  client_secret: 'azure_client_secret',
  vertex_project: 'vertex_ai_project',
  vertex_location: 'vertex_ai_location',
  vertex_credentials: 'vertex_ai_credentials',
}

/** Parameters of a deployment that are carried over to the upstream, the upstream's account or the route. */
const carriedParams = [
  ...['model', 'custom_llm_provider', 'api_key', 'api_base', 'base_url', 'api_version', 'organization', 'order'],
  ...Object.entries(sameAs).flat(),
  ...['aws_region_name', 'aws_profile_name', 'aws_role_name', 'aws_session_name', 'aws_external_id'],
  'aws_bedrock_runtime_endpoint',
]

/** Credentials of AWS. They are not carried over, because we read them from AWS's variables, profiles and roles. */
const awsSecrets = ['aws_access_key_id', 'aws_secret_access_key', 'aws_session_token']

/** The maximum output that is assumed if it is not known for any deployment of a model, in tokens. */
const usualOutput = 8192

/** Makes a model's catalog entry without its id. @param dearest the prices of the dearest deployment, used for all */
export function entryOf(
  made: LitellmMaking,
  wire: string,
  priced: readonly DeploymentFigures[],
  dearest: ImportPrices,
): SourceFields {
  for (const { deployment, figures } of priced)
    if (figures.prices && costOf(figures.prices) !== costOf(dearest))
      made.notes.add(`${deployment.name}: its deployments cost different prices; the dearest is taken for all.`)
  for (const name of calendarsOf(dearest as Parameters<typeof calendarsOf>[0])) made.calendars.add(name)
  const routes = routesOf(made, priced)
  const [first] = routes
  const isPlain = routes.length === 1 && first!.headers === undefined
  const profiles = new Set(routes.map(({ profile }) => JSON.stringify(profile)))
  const route = ({ name, model, weight, priority, headers, profile }: ImportRoute) => ({
    name,
    upstream_model: model,
    ...(profiles.size > 1 && { profile }),
    ...(priority !== 1 && { priority }),
    ...(weight !== 1 && { weight }),
    ...(headers && { headers }),
  })
  const outputs = priced.flatMap(({ figures }) => figures.maxOutput ?? [])
  const maxOutput = outputs.length > 0 ? Math.min(...outputs) : usualOutput
  if (outputs.length === 0)
    made.notes.add(`${priced[0]!.deployment.name}: its most output tokens are not known; ${usualOutput} are assumed.`)
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

/** Makes the routes of a model. Deployments that differ only in their keys become accounts of one upstream. */
function routesOf(made: LitellmMaking, priced: readonly DeploymentFigures[]): ImportRoute[] {
  const weights = weightsOf(
    made,
    priced.map(({ deployment }) => deployment),
  )
  const priorities = prioritiesOf(priced.map(({ deployment }) => deployment))
  const places = new Map<
    string,
    Omit<ImportRoute, 'name' | 'model'> & { first: DeploymentFigures; accounts: SourceFields[]; members: number[] }
  >()
  for (const [at, one] of priced.entries()) {
    const { deployment, way } = one
    const { path, params } = deployment
    const carried = ['model_name', ...carriedParams.map((key) => `litellm_params.${key}`)]
    for (const key of carried) made.note(`${path}.${key}`, 'carried', 'catalog.models and upstreams')
    for (const key of awsSecrets)
      if (params[key] === `os.environ/${key.toUpperCase()}`)
        made.note(`${path}.litellm_params.${key}`, 'replaced', 'it is read from the same variable')
      else
        made.note(`${path}.litellm_params.${key}`, 'left', 'put it into a profile of AWS, and name that: `aws.profile`')
    const headers = headersOf(made, deployment)
    made.note(`${path}.model_info.order`, 'carried', 'priority of a route')
    const priority = priorities[at]!
    const weight = weights[at]!
    const profile = profileOf(made, deployment, way)
    const place = JSON.stringify([way.upstream, way.model, headers, priority, profile])
    const there = places.get(place)
    const account = accountOf(made, deployment, way)
    if (!there)
      places.set(place, { first: one, accounts: [account], members: [at], weight, priority, headers, profile })
    else {
      there.weight += weight
      there.members.push(at)
      if (!there.accounts.some((other) => JSON.stringify(other) === JSON.stringify(account)))
        there.accounts.push(account)
    }
  }
  for (const { members } of places.values())
    if (new Set(members.map((at) => weights[at])).size > 1)
      for (const at of members)
        for (const key of ['weight', ...rateKeys]) {
          const path = `${priced[at]!.deployment.path}.litellm_params.${key}`
          if (made.report.get(path)?.fate === 'carried') made.overrule(path, evenly)
        }
  const unit = places.size > 1 ? unitOf([...places.values()].map(({ weight }) => weight)) : 0
  const used = new Set<string>()
  return [...places.values()].map(({ first, accounts, weight, priority, headers, profile }) => ({
    name: upstreamOf(made, first, accounts, used),
    model: first.way.model,
    profile,
    weight: places.size > 1 ? Math.min(1_000_000, Number((weight / unit).toPrecision(6))) : 1,
    priority,
    headers,
  }))
}

const rateKeys = ['rpm', 'tpm'] as const

const evenly =
  'the keys of one upstream get equal shares of its requests: for other shares, make an upstream for each key, with a `weight`'

/**
 * Returns the priority of each deployment. LiteLLM first uses the deployments with the lowest `order`. Deployments
 * without an order come last (litellm 1.110, `_get_order_filtered_deployments`).
 */
export function prioritiesOf(deployments: readonly Deployment[]): number[] {
  const orders = deployments.map(({ params, info }) => {
    const order = wordOf(params['order'] ?? info['order'])
    return order === '' || !Number.isSafeInteger(Number(order)) ? Number.POSITIVE_INFINITY : Number(order)
  })
  const ranks = [...new Set(orders)].sort((a, b) => (a < b ? -1 : 1))
  return orders.map((order) => ranks.indexOf(order) + 1)
}

/**
 * Returns the weights of routes. LiteLLM's strategy simple-shuffle uses `weight`, or else `rpm`, or else `tpm`. A
 * weight may have a fraction.
 */
function weightsOf(made: LitellmMaking, deployments: readonly Deployment[]): number[] {
  if (deployments.length > 1)
    for (const key of ['weight', 'rpm', 'tpm']) {
      const values = deployments.map(({ params }) => shareOf(params[key]))
      if (!values.every((value) => value !== undefined)) continue
      for (const { path } of deployments) {
        made.note(`${path}.litellm_params.${key}`, 'carried', 'weight of a route')
        for (const other of rateKeys) made.note(`${path}.litellm_params.${other}`, 'replaced', `${key} weighs here`)
      }
      return values
    }
  const isWeighed = deployments.length > 1 && deployments.some(({ params }) => (params['weight'] ?? '') !== '')
  for (const { path } of deployments) {
    if (isWeighed)
      made.note(`${path}.litellm_params.weight`, 'left', 'not each deployment of the name has a weight above 0')
    made.note(`${path}.litellm_params.weight`, 'replaced', 'the deployment is the only one of its name')
    // LiteLLM's default strategy uses these rates as weights, not as limits (docs.litellm.ai/docs/routing, Nov. 2026).
    const { routing_strategy: strategy = 'simple-shuffle' } = asObject(made.source['router_settings']) ?? {}
    if (deployments.length === 1 && strategy === 'simple-shuffle')
      for (const key of rateKeys)
        made.note(
          `${path}.litellm_params.${key}`,
          'replaced',
          'it weighs the deployments of a name, and this name has one',
        )
  }
  return deployments.map(() => 1)
}

function headersOf(made: LitellmMaking, { path, params }: Deployment): SourceFields | undefined {
  const headers: SourceFields = {}
  const organization = textOf(params['organization'])
  if (organization !== undefined) headers['openai-organization'] = organization
  for (const key of ['extra_headers', 'headers']) {
    const mistakes: string[] = []
    for (const [name, value] of Object.entries(asObject(params[key]) ?? {})) {
      const text = textOf(value)
      const mistake = text === undefined ? 'holds no text' : headerMistake(name, text)
      if (mistake === undefined) headers[name] = text
      else mistakes.push(`${name} ${mistake}`)
      made.note(`${path}.litellm_params.${key}`, 'carried', 'headers of a route')
    }
    if (mistakes.length > 0) made.overrule(`${path}.litellm_params.${key}`, mistakes.join('; '))
  }
  return Object.keys(headers).length > 0 ? headers : undefined
}

function accountOf(made: LitellmMaking, { path }: Deployment, { account }: DeploymentWay): SourceFields {
  const { key } = account
  if (typeof key !== 'string' || /^\$\{/.test(key) || keyMistake(key) === undefined) return { ...account }
  made.overrule(`${path}.litellm_params.api_key`, 'it cannot be a key: set the variable that stands there now')
  return { ...account, key: `\${${path.replace(/\W+/g, '_').toUpperCase()}KEY}` }
}

/**
 * Returns the name of the upstream that has these accounts. If no upstream has them, one is created.
 * @param used the pairs of an upstream and its model name that are already in use. Each route needs a pair of its own
 */
function upstreamOf(
  made: LitellmMaking,
  { deployment, way }: DeploymentFigures,
  accounts: readonly SourceFields[],
  used: Set<string>,
): string {
  let place = JSON.stringify([way.upstream, accounts])
  const find = () => made.upstreams.get(place)?.name
  let there = find()
  for (; there !== undefined && used.has(`${there} ${way.model}`); there = find()) place += '+'
  if (there !== undefined) {
    used.add(`${there} ${way.model}`)
    return there
  }
  const base = (deployment.provider ?? 'upstream').replace(/[^\w-]/g, '-')
  const taken = new Set([...made.upstreams.values()].map(({ name }) => name))
  const name = firstFree(base, taken)
  used.add(`${name} ${way.model}`)
  const named = accounts.map((account, at) => ({
    name: accounts.length === 1 ? 'main' : `key-${at + 1}`,
    ...account,
  }))
  made.upstreams.set(place, { name, entry: { ...way.upstream, accounts: named } })
  return name
}

/** Returns a share of requests: a number above 0, or a text with such a number. Anything else gives undefined. */
function shareOf(value: unknown): number | undefined {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number > 0 ? number : undefined
}

/** Returns the unit of written weights: their greatest common divisor, or the least weight if there are fractions. */
function unitOf(weights: readonly number[]): number {
  return weights.every(Number.isSafeInteger) ? weights.reduce(commonDivisor) : Math.min(...weights)
}

function commonDivisor(a: number, b: number): number {
  return b === 0 ? a : commonDivisor(b, a % b)
}

/**
 * Returns the profile of a deployment: a name, or a map if the deployment lists fields to drop or to accept. A list in
 * our file replaces the list of the extended profile, so it also gets the fields of that profile.
 */
function profileOf(
  made: LitellmMaking,
  { path, params }: Deployment,
  { profile, wire }: DeploymentWay,
): string | SourceFields {
  const fieldsOf = (theirs: string, ours: 'drops' | 'accepts') => {
    const fields = params[theirs]
    // A path into a field, such as `tools[*].examples`, cannot be expressed here.
    if (!Array.isArray(fields) || !fields.every((one) => typeof one === 'string' && /^[a-z][a-z0-9_]*$/.test(one)))
      return new Set<string>()
    made.note(`${path}.litellm_params.${theirs}`, 'carried', `${ours} of the profile`)
    return new Set<string>(fields)
  }
  const dropped = fieldsOf('additional_drop_params', 'drops')
  const allowed = fieldsOf('allowed_openai_params', 'accepts')
  const named = resolveProfile(wire, profile)
  const drops = named.drops.difference(allowed).union(dropped)
  const accepts = named.accepts.union(allowed)
  const more = {
    ...(drops.symmetricDifference(named.drops).size > 0 && { drops: [...drops] }),
    ...(accepts.size > named.accepts.size && { accepts: [...accepts] }),
  }
  return Object.keys(more).length > 0 ? { extends: profile, ...more } : profile
}
