import { createHash } from 'node:crypto'
import { homedir, hostname } from 'node:os'
import type { Command } from 'commander'
import type { Catalog } from '../../catalog/model.ts'
import { didYouMean, writeFirst } from '../../catalog/near-ids.ts'
import { findClientUrl } from '../../config/client-url.ts'
import {
  type Candidate,
  chooseModel,
  chooseSmall,
  findFigures,
  isWritable,
  listCandidates,
  type SetupSource,
} from '../../programs/figures.ts'
import type { Access, Program } from '../../programs/program.ts'
import type { FetchResponse } from '../../upstream/http-fetch.ts'
import { ask, explainFailure, readModelIds } from '../ask.ts'

/** The options of `setup` about access. Each has been checked on its own. */
export type AccessOptions = {
  /** The URL of the gateway, without `/v1`. */
  url?: string
  key?: string
  /** A token for requesting the list of models if there is no key. */
  bearer?: string
  model?: string
  smallModel?: string
  contextWindow?: number
  maxOutput?: number
}

const unwritable = 'The id of the model has quotes or control characters: give it an alias'
const keyPlaceholder = 'sk-tri-YOUR-KEY'

/**
 * Finds the gateway's address, the model and its limits. With `url` they come from the gateway, and otherwise from the
 * configuration.
 * @throws Error for an unknown model
 */
export async function findAccess(program: Program, options: AccessOptions, command: Command): Promise<SetupSource> {
  const { glanceAtConfig } = await import('../../config/load.ts')
  const notes: string[] = []
  const config = () => glanceAtConfig(command.optsWithGlobals())
  // With `url`, the configuration in this folder may belong to another gateway, so its mistakes are ignored.
  const own = options.url === undefined ? config() : ifReadable(config)
  const isOperator = own !== undefined && !own.isBuiltIn
  const catalog = options.url === undefined || isOperator ? own?.catalog : undefined
  const ids =
    options.url === undefined ? [...(catalog?.models.keys() ?? [])] : await askOr(options.url, options, catalog, notes)
  const list = listCandidates(ids.filter(isWritable), catalog?.models)
  const chosen = options.model === undefined ? chooseModel(program, list) : find(options.model, ids, list)
  if (chosen === undefined)
    throw new Error(ids.length > 0 ? unwritable : 'The catalog has no model: name one in the configuration')
  const { model } = chosen
  if (options.model === undefined && ids.length > 1)
    notes.push(`the model is ${model}, of ${ids.length}; --model names another`)
  const asked = { contextWindow: options.contextWindow, outputTokensMax: options.maxOutput }
  const figures = findFigures(model, asked, catalog?.models.get(model))
  if (options.url === undefined && own!.apiUrl === undefined && own!.listen.port === 0)
    throw new Error('The configuration lets the gateway choose its port: name its address with --url, or set api_url')
  const origin = options.url ?? findClientUrl(own!).url
  if (options.url === undefined && own?.ownPage !== undefined)
    notes.push(`with your key, ${own.ownPage} shows your requests and what is left`)
  const { contextWindow, outputTokensMax } = figures
  const models = [{ ...chosen, contextWindow, outputTokensMax }, ...list.filter((one) => one.model !== model)]
  const small = options.smallModel === undefined ? chooseSmall(program, models) : find(options.smallModel, ids, models)
  if (options.smallModel === undefined && small.model !== model)
    notes.push(`small work goes to ${small.model}; --small-model names another`)
  const key = options.key ?? keyPlaceholder
  const session = createHash('sha256').update([key, homedir(), hostname()].join('\n')).digest('hex').slice(0, 12)
  const access: Access = { origin, key, model, contextWindow, outputTokensMax, small, models, session }
  const modelWire = catalog?.models.get(model)?.wire
  return { access, figures, modelWire, isOperator, notes, publicUrl: options.url ?? own?.apiUrl }
}

function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Requests the gateway's models. If the gateway cannot be reached, models that the person named are not checked. */
async function askOr(
  url: string,
  { key, bearer, model, smallModel }: AccessOptions,
  own: Catalog | undefined,
  notes: string[],
) {
  try {
    return await askModels(url, key ?? bearer)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (model === undefined) throw new Error(`${why}; with --model the model is taken on trust`)
    const named = [model, smallModel ?? model]
    const isOwn = named.every((id) => own?.models.has(id))
    notes.push(`${why}; ${isOwn ? 'the model is in the configuration' : 'the model is taken on trust'}`)
    return named
  }
}

function find(asked: string, ids: readonly string[], list: readonly Candidate[]): Candidate {
  const found = list.find(({ model }) => model === asked)
  if (found) return found
  if (ids.includes(asked)) throw new Error(unwritable)
  throw new Error(`There is no model "${asked}": ${didYouMean(asked, ids) ?? `there are ${writeFirst(ids)}`}`)
}

/** The longest wait for the gateway's list of models, in ms. */
const timeoutMs = 10_000

/**
 * Returns the ids of the models that a gateway lists, in its order. A key is sent if there is one.
 * @throws Error with a message for people if there is no list
 */
async function askModels(origin: string, key: string | undefined): Promise<string[]> {
  const url = `${origin}/v1/models`
  const headers: Record<string, string> = { accept: 'application/json' }
  // A server reads the key from one of these two headers.
  if (key !== undefined) Object.assign(headers, { authorization: `Bearer ${key}`, 'x-api-key': key })
  let response: FetchResponse
  try {
    response = await ask(url, { headers, signal: AbortSignal.timeout(timeoutMs) })
  } catch (error) {
    throw new Error(
      `${url} cannot be reached (${explainFailure(error, url, `no answer within ${timeoutMs / 1_000} s`)})`,
    )
  }
  const text = await response.text().catch(() => '')
  if ([401, 403].includes(response.status))
    throw new Error(`${url} wants ${key === undefined ? 'a key: give it with --key' : 'another key'}`)
  if (response.status >= 300 && response.status < 400) {
    const to = URL.parse(response.headers.get('location') ?? '', url)?.origin
    throw new Error(`${url} redirects${to ? ` to ${to}` : ''}, which is not followed: name that with --url`)
  }
  if (!response.ok) throw new Error(`${url} answers ${response.status}: is this the address of the gateway?`)
  const ids = readModelIds(text)
  if (ids.length === 0) throw new Error(`${url} lists no models: is this the address of the gateway?`)
  return ids
}
