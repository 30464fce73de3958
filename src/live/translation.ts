import { randomBytes } from 'node:crypto'
import { formatCredits } from '../accounts/credit.ts'
import { createSealer, scopeKey } from '../accounts/seal.ts'
import { splice } from '../bytes/json.ts'
import { setMembers } from '../bytes/json-edit.ts'
import type { Model } from '../catalog/model.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Config } from '../config/config.ts'
import { withSimulator } from '../config/load.ts'
import { GatewayError } from '../errors.ts'
import { type FieldFate, fieldFates } from '../gateway/field-fates.ts'
import { type ClientAnswer, type PlayedAnswer, type Rehearsed, rehearse, type ToldError } from '../gateway/rehearse.ts'
import { readSealKey } from '../host/seal-key.ts'
import type { Loss } from '../inference/request.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { wires } from '../wires/wires.ts'
import { type ExplainedUsage, explainUsage } from './explanation.ts'

export type TranslationOptions = {
  /** The client's headers, with names in lower case. */
  headers?: ReadonlyMap<string, string>
  /**
   * The account that pays. Conversation keys are valid only within this account. Of the envelopes (encrypted signatures
   * of providers), only those of this account can be opened.
   */
  accountId?: string
  /** The upstream to ask, if the model has several. */
  upstream?: string
  /** The model's answer, which is to be translated. @property status 200 by default */
  answer?: { body: Buffer; status?: number }
  /** Returns the current time in Unix milliseconds. */
  nowMs?: () => number
}

/**
 * The request in the form that the model gets, and the answer in the form that the client gets. Each is present only if
 * the caller asked for it.
 */
export type Translation = { ok: true; model: string; from: ClientWire; to: ModelWire; upstream: string } & (
  | DescribedRequest
  | { path?: never }
) & { answer?: DescribedAnswer }

export type DescribedRequest = {
  /** The path, with its query. */
  path: string
  /** The headers in the order of sending, without the credential. Values of configured headers are hidden. */
  headers: readonly (readonly [name: string, value: string])[]
  /** The body exactly as it is sent. */
  body: string
  fields: readonly FieldFate[]
  /** The fields that the translation dropped or changed, as the access log has them (ruling T9). */
  losses: readonly Loss[]
}

export type DescribedAnswer = {
  status: number
  content_type: string
  /** The body exactly as the client gets it, except for ids and times. */
  body: string
  /** Whether the connection is closed before the end of the answer. */
  cut: boolean
  outcome: string
  /** Why the answer failed, in the words of the log. */
  cause: string | null
  /** The usage that would be billed; null if nothing would be billed. */
  usage: ExplainedUsage | null
  usage_source: string | null
  /** The cost, in credits. */
  cost: string | null
  /** Doubts about the figures that the model reported (ruling C6). */
  doubts: readonly string[]
}

export type RefusedTranslation = { ok: false; refusal: ToldError }

/** An account id that no account of any store has. */
const nobody = 'acct_0000000000000000'

/**
 * Describes how the gateway changes a request, and its answer. It runs the gateway's own code for requests, but sends
 * and stores nothing, and checks no key, credit or rate limit. It blocks the event loop for as long as a real request
 * would, and longer for a long answer.
 * @param bytes the client's body. If it is undefined, the smallest possible request takes its place, and only the
 * answer is described
 * @param modelId a model or alias of the catalog that replaces the model in the body; undefined to keep the body's
 * model
 * @throws NotServedError if the options name an upstream that does not serve the model
 */
export async function describeTranslation(
  config: Config,
  wire: ClientWire,
  bytes: Buffer | undefined,
  modelId: string | undefined,
  options: TranslationOptions = {},
): Promise<Translation | RefusedTranslation> {
  const { headers, accountId = nobody, upstream, nowMs = Date.now } = options
  const answer = options.answer && playedAnswer(options.answer)
  const model = findModel(config, bytes, modelId)
  if (upstream !== undefined) checkUpstream(model, upstream)
  const body = bytes === undefined ? smallestRequest(wire, model, modelId, answer) : nameModel(bytes, modelId)
  const key = config.sealKey ? readSealKey(config.sealKey, config.store) : randomBytes(32)
  const rehearsed = await rehearse(
    {
      config: config.isBuiltIn ? withSimulator(config, 'http://127.0.0.1') : config,
      wire,
      header: (name) => headers?.get(name),
      accountId,
      sealer: createSealer(key),
      scopeKey,
      upstream,
      answer,
      nowMs,
    },
    body,
    bytes?.length,
  )
  if (rehearsed.state === 'refused') return { ok: false, refusal: rehearsed.refusal }
  const { model: asked, sent } = rehearsed
  const pair = { ok: true as const, model: asked.id, from: wire, to: asked.wire, upstream: sent.upstream }
  const answered = rehearsed.answer && { answer: describeAnswer(rehearsed.answer, rehearsed) }
  return bytes ? { ...pair, ...describeRequest(config, wire, body, rehearsed), ...answered } : { ...pair, ...answered }
}

type SentRehearsal = Extract<Rehearsed, { state: 'sent' }>

/**
 * Finds the model of the request. Undefined if the catalog has no such model; the checks of the request report this
 * later.
 */
function findModel(config: Config, bytes: Buffer | undefined, modelId: string | undefined): Model | undefined {
  const { models } = config.catalog
  if (modelId !== undefined) return models.get(modelId)
  const named = bytes && readBody(bytes)
  return named?.isString('model') ? models.get(named.value('model') as string) : undefined
}

/** Thrown if the named upstream does not serve the model. */
export class NotServedError extends Error {
  readonly modelId: string

  constructor(modelId: string, upstream: string, names: string) {
    super(`${modelId} is not served by "${upstream}": name one of ${names}`)
    this.modelId = modelId
  }
}

function checkUpstream(model: Model | undefined, name: string): void {
  if (model === undefined || model.routes.some(({ upstream }) => upstream === name)) return
  const names = [...new Set(model.routes.map(({ upstream }) => upstream))].join(', ')
  throw new NotServedError(model.id, name, names)
}

/** Returns the body with another model. A body that is not JSON is returned unchanged. */
function nameModel(bytes: Buffer, modelId: string | undefined): Buffer {
  const body = modelId === undefined ? undefined : readBody(bytes)
  if (body === undefined || body.value('model') === modelId) return bytes
  return splice(bytes, setMembers(body.range, body.members, new Map([['model', JSON.stringify(modelId)]])))
}

function readBody(bytes: Buffer): ClientBody | undefined {
  try {
    return new ClientBody(bytes)
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

/**
 * Makes the smallest request of a wire. Its limit of output tokens is the model's own limit, so no answer exceeds it.
 */
function smallestRequest(
  wire: ClientWire,
  model: Model | undefined,
  modelId: string | undefined,
  answer: PlayedAnswer | undefined,
): Buffer {
  const { conversation, caps, isCapRequired } = wires[wire].client.request
  return Buffer.from(
    JSON.stringify({
      model: modelId,
      [conversation.field]: [{ role: 'user', content: 'Hello' }],
      ...(isCapRequired && { [caps[0]!]: model?.outputTokensMax ?? 1 }),
      stream: answer?.contentType === eventStream,
    }),
  )
}

const eventStream = 'text/event-stream'

/** Finds whether the answer is a stream or JSON. A stream begins with the name of a field, or with a comment. */
function playedAnswer({ body, status = 200 }: NonNullable<TranslationOptions['answer']>): PlayedAnswer {
  const start = body.toString('utf8', 0, 200).replace(/^\ufeff?\s*/, '')
  const isStream = /^(?:(?:event|data|id|retry)\s*:|:)/.test(start)
  return { status, contentType: isStream ? eventStream : 'application/json', body }
}

function describeRequest(
  config: Config,
  wire: ClientWire,
  bytes: Buffer,
  { model, sent, record }: SentRehearsal,
): DescribedRequest {
  const { losses = [] } = record
  return {
    path: sent.path,
    headers: tellHeaders(config, model, sent),
    body: sent.body.toString('utf8'),
    fields: fieldFates({ wire, bytes, model, body: sent.body, losses }),
    losses,
  }
}

/** Lists the headers. The values of configured headers are hidden, because any of them may be a key. */
function tellHeaders(
  config: Config,
  { routes }: Model,
  { upstream, headers }: SentRehearsal['sent'],
): DescribedRequest['headers'] {
  const configured = [config.upstreams.get(upstream), ...routes.filter((route) => route.upstream === upstream)]
  const hidden = new Set(configured.flatMap((one) => [...(one?.headers.keys() ?? [])]))
  const pairs = headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1]!] as const] : []))
  return pairs.map(([name, value]) => [name, hidden.has(name) ? '[configured]' : value])
}

function describeAnswer({ debit, ...answer }: ClientAnswer, { record }: SentRehearsal): DescribedAnswer {
  return {
    status: answer.status,
    content_type: answer.contentType,
    body: answer.body.toString('utf8'),
    cut: answer.isCut,
    outcome: record.outcome ?? 'ok',
    cause: record.cause ?? null,
    usage: debit ? explainUsage(debit.usage, debit.calls) : null,
    usage_source: debit?.usageSource ?? null,
    cost: debit ? formatCredits(debit.amountNanos) : null,
    doubts: record.flags ?? [],
  }
}
