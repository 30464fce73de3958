import { envelopePrefix } from '../accounts/seal.ts'
import { splice } from '../bytes/json.ts'
import { setMembers } from '../bytes/json-edit.ts'
import { free } from '../bytes/memory.ts'
import { type ServiceWords, spellTier, tierScalar } from '../catalog/base-service.ts'
import type { CredentialHeaders } from '../catalog/credentials.ts'
import type { Model } from '../catalog/model.ts'
import type { CacheWrites } from '../catalog/price-list.ts'
import type { Profile } from '../catalog/profile.ts'
import { compile, foldName, routingBetas } from '../catalog/routing-fields.ts'
import { type ClientWire, wirePlaces } from '../catalog/wire-names.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { InferenceRequest, Loss } from '../inference/request.ts'
import { boundsOf, type UsageBounds } from '../inference/usage.ts'
import type { Target } from '../upstream/target.ts'
import type { NativeHead } from '../wires/answers/native-answer.ts'
import type { StreamFold, StreamRelay, WholeAnswer } from '../wires/answers/relay.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { inClientWords } from '../wires/requests/client-words.ts'
import { enclose } from '../wires/requests/envelope.ts'
import type { HiddenReasoning } from '../wires/requests/reasoning-wish.ts'
import type { AnswerHead, DecodeContext, Native, Sealing, VersionHeaders } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import type { Call } from './call.ts'
import { withoutEchoes } from './echoes.ts'
import type { Flow } from './fairness/places.ts'
import type { Gateway } from './gateway.ts'
import { type AnswerPlan, TranslatedStream, TranslatedWhole } from './translated-answer.ts'

/** The input of an exchange: a request that has passed the checks that all pairs of wires share. */
export type CheckedRequest = {
  gateway: Pick<Gateway, 'sealer' | 'nowMs'>
  call: Pick<Call, 'wire' | 'requestId' | 'header'>
  accountId: string
  model: Model
  body: ClientBody
  /** The start of the request by the store's clock, in Unix milliseconds. It decides which services have a price. */
  at: number
  /** The conversation key, already scoped to the account. Only this form goes to upstreams. Undefined without a key. */
  scopedKey: string | undefined
  /** The key for the prompt cache if the request names none (ruling Y18). Undefined if the model gets no such key. */
  implicitKey?: string | undefined
}

/** One request as it is sent to a model, and the functions that turn the answer into the client's wire. */
export type Exchange = Outgoing & {
  /** The profile that the request was made for. A target with another profile needs its own exchange. */
  profile: Profile
  credential: CredentialHeaders
  /** The headers of the request. The credential is added later, in `upstream/`, for one target. */
  headersFor(target: Target): [name: string, value: string][]
  /**
   * The tier, speed and geography that the request to the model asks for, by the name of the field (ruling Y17).
   * Undefined if the request asks for none of them.
   */
  service: ServiceWords | undefined
  stream: boolean
  asksForStream: boolean
  /** The cap on output tokens that was sent, or the model's maximum. */
  outputTokensCap: number
  /** The number of answers asked for. The cap on output tokens is for all answers together (ruling C7). */
  choices: number
  /** Whether the answer may contain reasoning that its stream does not show in full (ruling C12). */
  mayHideReasoning: HiddenReasoning
  /** The limits within which the usage figures of the answer are accepted (ruling C14). */
  bounds: UsageBounds
  losses: readonly Loss[]
  /**
   * The kind of cache writes that the request can cause. `short` and `long` tell how long the provider keeps the new
   * entries. `none`: there are no writes, or they cost no more than plain input.
   */
  cacheWrites: CacheWrites
  /** The estimated input tokens of the whole request. */
  inputTokensEstimate: number
  /** Returns a new relay, which carries the answer to the client. Each attempt needs its own relay. */
  openStream(): StreamRelay
  readWhole(body: Buffer): WholeAnswer
  /** Combines the events of a stream into one answer, for a client that wants JSON (ruling Y1). */
  openFold(): StreamFold
  /** Rewrites the text of a refusal in the client's terms, if the model speaks another wire. */
  inClientWords?: (text: string) => string
}

/** The request for an upstream, and a function that makes the request again for a model with another profile. */
export type UpstreamRequests = {
  exchange: Exchange
  /**
   * Makes the request anew for another target that has another profile. Undefined if all targets have the same profile.
   * @throws GatewayError if the request cannot be made for that target
   */
  exchangeFor: ((model: Model) => Exchange) | undefined
}

/**
 * Whether the provider may run its own tools. If so, the body does not limit the tokens that these tools cause (ruling
 * C14).
 */
export function mayCallTools({ bounds }: Pick<Exchange, 'bounds'>): boolean {
  return !bounds.isOutputCapped
}

/** The part of an exchange that takes memory. It keeps the request body as long as an attempt may need the body. */
export class Outgoing {
  #body: Buffer | undefined
  readonly #upstreamModel: string
  readonly #sealing: Sealing | undefined
  readonly #betas: string | undefined
  /** Whether `unseal` has removed sealed items from the body. */
  isUnsealed = false

  /**
   * @param body the body, with the model's name as it is in the catalog entry
   * @param sealing undefined if nothing is sealed
   * @param betas the beta features of the request, for targets that want them in the body
   */
  constructor(body: Buffer, { upstreamModel }: Model, sealing?: Sealing, betas?: string) {
    this.#body = body
    this.#betas = betas
    this.#upstreamModel = upstreamModel
    this.#sealing = sealing
  }

  /** Returns the body for a target. @throws Error after `forget` */
  bodyFor({ model }: Target): Buffer {
    if (this.#body === undefined) throw new Error('the request was released and cannot be sent again')
    const { envelope } = model.profile.messages
    if (envelope) return enclose(this.#body, envelope, this.#betas)
    const isItsName = model.upstreamModel === this.#upstreamModel
    return isItsName ? this.#body : renameModel(this.#body, model.upstreamModel)
  }

  /**
   * Whether the body that is still to be sent is in the same memory as these bytes. If so, the memory must not be
   * freed.
   */
  sharesMemoryWith(bytes: Buffer): boolean {
    return this.#body?.buffer === bytes.buffer
  }

  /** Whether only the provider account that sealed items of the body can open them. */
  get isOfAccount(): boolean {
    return this.#sealing?.lastIn !== undefined
  }

  /** Removes items that only their provider can open (ruling U13). @returns false if there are no such items */
  unseal(): boolean {
    const rest = this.#body && this.#sealing?.remove(this.#body)
    if (rest === undefined) return false
    this.#body = rest
    this.isUnsealed = true
    return true
  }

  /** Whether the body may contain sealed items that can be removed if an account refuses them. */
  get mayUnseal(): boolean {
    return !this.isUnsealed && this.#body !== undefined && this.#sealing?.mayBeIn?.(this.#body) === true
  }

  /**
   * Returns a digest of the history's last sealed item, which only the provider can read. Returns undefined for a
   * history without sealed items.
   */
  lastSealed(): string | undefined {
    return this.#body && this.#sealing?.lastIn?.(this.#body)
  }

  /** Whether the body contains the text as a whole JSON string, between quotes; false after `forget` (ruling U9). */
  holds(text: string): boolean {
    return this.#body?.includes(`"${text}"`) ?? false
  }

  /**
   * Returns a text without the parts that repeat the request body. Undefined after `forget`, or if the body cannot be
   * searched.
   */
  withoutEchoes(text: string, flow: Flow): string | undefined {
    return this.#body && withoutEchoes(text, this.#body, flow)
  }

  /**
   * Releases the body, because no other attempt can follow.
   * @param isSent whether nothing reads the body any more, so that its memory can be freed now
   *   (docs/decisions/0049-memory-given-back.md)
   */
  forget(isSent: boolean): void {
    if (isSent && this.#body) free(this.#body)
    this.#body = undefined
  }
}

/** Returns the body with another name for the model, if it names one. All other bytes stay the same. */
function renameModel(bytes: Buffer, name: string): Buffer {
  const body = new ClientBody(bytes)
  if (!body.has('model')) return bytes
  return splice(bytes, setMembers(body.range, body.members, new Map([['model', JSON.stringify(name)]])))
}

/**
 * Builds the headers of a request to an upstream. Of the client's headers, only the version and the beta flags are sent
 * on, and only to a model of the client's wire. They are spelled as the target wants them (rulings N3, P4). A removed
 * beta flag is listed as a loss.
 */
function upstreamHeaders(
  call: Pick<Call, 'wire' | 'header'>,
  model: Model,
): { headersFor: Exchange['headersFor']; betas: string | undefined; losses: readonly Loss[] } {
  const { versionHeaders } = wires[model.wire].model
  if (!versionHeaders) return { headersFor: () => [], betas: undefined, losses: [] }
  const isTheirs = call.wire === model.wire
  const version = (isTheirs && sent(call, versionHeaders, 'version')) || versionHeaders.versionDefault
  const betas = isTheirs ? sent(call, versionHeaders, 'beta') : undefined
  const kept = betas === undefined ? undefined : priced(betas, model)
  return { headersFor: spell(version, kept), betas: kept, losses: kept === betas ? [] : [betaDropped] }
}

const betaDropped: Loss = { field: 'beta', what: 'dropped', why: 'raises the price, or lets another model answer' }

function sent(call: Pick<Call, 'header'>, { spellings }: VersionHeaders, name: string): string | undefined {
  return spellings.map((spelling) => call.header(`${spelling}-${name}`)).find((value) => value !== undefined)
}

/**
 * Removes the names of beta features that raise the price or let another model answer. Names that the catalog entry
 * allows stay (rulings C7, Y13).
 */
function priced(betas: string, { profile, allowedFields }: Model): string {
  const { costlyBetas } = profile.messages
  const isCostly = patterns.get(costlyBetas) ?? compile([...routingBetas, ...costlyBetas])
  patterns.set(costlyBetas, isCostly)
  const names = betas.split(',').map((beta) => [beta, foldName(beta.trim())] as const)
  return names.flatMap(([beta, name]) => (isCostly.test(name) && !allowedFields.has(name) ? [] : beta)).join(',')
}

/** The compiled pattern for each list of costly betas. A list lives as long as the configuration that has it. */
const patterns = new WeakMap<readonly string[], RegExp>()

/**
 * Makes `headersFor`. The function keeps no reference to the client's call, because an attempt may outlive the call.
 */
function spell(version: string, beta: string | undefined): Exchange['headersFor'] {
  return ({ upstream: { messagesHeaders }, model }) => {
    const { envelope } = model.profile.messages
    const headers: [string, string][] = envelope ? [] : [[`${messagesHeaders}-version`, version]]
    if (beta && envelope?.betas !== 'body') headers.push([`${messagesHeaders}-beta`, beta])
    return headers
  }
}

/**
 * The bounds for a request to which the provider adds tokens. These tokens come from its own tools, or from content
 * that it fetches or stores (C14). So no maximum of the input is known.
 */
const unbounded: UsageBounds = { inputTokensMax: Number.POSITIVE_INFINITY, isOutputCapped: false }

/** Makes the exchange for a client and a model with the same wire. The bytes pass with few edits (rulings P1, P2). */
export function exchangeNatively(checked: CheckedRequest): Exchange {
  const { gateway, call, model, body, at, scopedKey, implicitKey } = checked
  const { native, model: source } = wires[call.wire]
  const isOurSeal = (text: string) => gateway.sealer.isOurs(text)
  const adapted = native.adaptRequest(body, model, { scopedKey, implicitKey, isOurSeal, nowMs: at })
  const { body: bytes, stream, service, outputTokensCap, choices, mayHideReasoning } = adapted
  const { headersFor, betas, losses } = upstreamHeaders(call, model)
  const inputTokensEstimate = estimateBytesTokens(body.bytes, body.mayHoldDataUrl)
  const createdSeconds = Math.floor(gateway.nowMs() / 1000)
  const head = { requestId: call.requestId, model, createdSeconds, inputTokensEstimate }
  const { openStream, openFold, readWhole } = answering(native, head)
  return Object.assign(new Outgoing(bytes, model, native.sealing, betas), {
    service,
    outputTokensCap,
    choices,
    mayHideReasoning,
    openStream,
    openFold,
    readWhole,
    profile: model.profile,
    credential: source.credential,
    headersFor,
    stream,
    asksForStream: stream,
    losses: losses.length > 0 ? [...adapted.losses, ...losses] : adapted.losses,
    inputTokensEstimate,
    cacheWrites: cacheWritesOf(model, body, isMarked(model, body, bytes), body.hasEscapedLetters),
    bounds: adapted.isSelfContained ? boundsOf(bytes, inputTokensEstimate, body.mayHoldDataUrl) : unbounded,
  })
}

/**
 * Returns the dearest kind of cache write that a request can cause. On the messages wire, only cache marks
 * (`cache_control`) cause writes. Providers of the other wires write without being asked.
 * @param isMarked returns whether the sent body has marks
 * @param isHidden whether JSON escapes can hide a mark in the sent body. Then the dearest kind is assumed
 */
function cacheWritesOf(model: Model, body: ClientBody, isMarked: () => boolean, isHidden: boolean): CacheWrites {
  if (!model.prices.hasDearerWrites) return 'none'
  if (!wirePlaces[model.wire].cacheKey && !isHidden && !isMarked()) return 'none'
  return isHidden || body.holdsString('1h') || body.holdsString('12h') ? 'long' : 'short'
}

/** Returns a function that tells whether a request has cache marks. @param bytes the body as the model gets it */
function isMarked({ profile }: Model, body: ClientBody, bytes: Buffer): () => boolean {
  return () =>
    body.holdsString('cache_control') || (profile.messages.autoCacheSameWire && bytes.includes('"cache_control"'))
}

/** Makes the functions that read an answer. They are made here so that they do not keep the client's body in memory. */
function answering(native: Native, head: NativeHead): Pick<Exchange, 'openStream' | 'openFold' | 'readWhole'> {
  return {
    openStream: () => native.openStream(head),
    openFold: () => native.openStream(head).folding(),
    readWhole: (body) => native.readAnswer(body, head),
  }
}

/**
 * The most sealed signatures that are opened for one request (ruling R18, B25). Opening a signature takes time even if
 * it is forged.
 */
const envelopesMax = 1_000
const envelopeStart = `"${envelopePrefix}`

/**
 * Makes the exchange between two wires. It translates the request to the model's wire, and the answer to the client's
 * wire.
 */
export function translate(checked: CheckedRequest): Exchange {
  const { gateway, call, accountId, model, body, at, scopedKey, implicitKey } = checked
  const { client } = wires[call.wire]
  const { model: source } = wires[model.wire]
  const { sealer } = gateway
  const decoded = client.decodeRequest(body, {
    cacheKey: scopedKey ?? implicitKey,
    unseal: openLast(body.bytes, (envelope) => sealer.unseal(envelope, accountId, model.entryId)),
  })
  const { request, service } = withTier(decoded, call.wire, model, at)
  const encoded = source.encodeRequest(request, model)
  const { isShown, wantsSealed } = request.reasoning
  const inputTokensEstimate = estimateBytesTokens(body.bytes, body.mayHoldDataUrl)
  const seals = wantsSealed && source.signsReasoning
  const head: AnswerHead = {
    requestId: call.requestId,
    modelId: model.id,
    createdSeconds: Math.floor(gateway.nowMs() / 1000),
    nowSeconds: () => Math.floor(gateway.nowMs() / 1000),
    inputTokensEstimate,
    echo: request.echo ?? '',
    ...(seals && { seal: (sealed) => sealer.seal(sealed, accountId, model.entryId) }),
  }
  // A function that captured `encoded` itself would keep the whole body for as long as the answer lasts.
  const {
    isMarked: hasMarks = false,
    body: bytes,
    names,
    toolNames,
    stops,
    localStops,
    outputTokensCap,
    mayHideReasoning,
    losses,
  } = encoded
  const shown = { showsReasoning: isShown, wantsSealed: seals, stops, localStops, names }
  const wantsWholeCalls = request.stream && client.streamsObjects === true
  const filters = { ...shown, requestId: call.requestId, callIdPrefix: client.callIdPrefix, wantsWholeCalls }
  const plan: AnswerPlan = { source, wire: model.wire, profile: model.profile, filters, toolNames }
  return Object.assign(new Outgoing(bytes, model, source.sealing), {
    outputTokensCap,
    mayHideReasoning,
    losses,
    profile: model.profile,
    credential: source.credential,
    headersFor: upstreamHeaders(call, model).headersFor,
    service,
    stream: request.stream,
    asksForStream: request.stream || model.profile.preferStream,
    choices: 1,
    bounds: boundsOf(bytes, inputTokensEstimate, body.mayHoldDataUrl),
    inputTokensEstimate,
    cacheWrites: cacheWritesOf(model, body, () => hasMarks, false),
    openStream: () => new TranslatedStream(plan, client, head),
    readWhole(answer: Buffer) {
      const whole = new TranslatedWhole(plan, client, head)
      whole.pushWhole(answer)
      return whole.whole()
    },
    openFold: () => new TranslatedWhole(plan, client, head),
    inClientWords: (text: string) => inClientWords(text, source.speech, client.request),
  })
}

/**
 * Returns the request with its tier in the words of the model's wire. If the model does not have the tier, the tier is
 * left out and recorded as a loss (C7).
 */
function withTier(
  decoded: InferenceRequest,
  from: ClientWire,
  model: Model,
  at: number,
): { request: InferenceRequest; service: ServiceWords | undefined } {
  const { [tierScalar]: asked, ...scalars } = decoded.scalars
  if (typeof asked?.value !== 'string') return { request: decoded, service: undefined }
  const service = spellTier(asked.value, from, model, at)
  const [[field, said]] = Object.entries(service ?? { '': '' }) as [[string, string]]
  if (service && !model.profile.drops.has(field))
    return { request: { ...decoded, scalars: { ...scalars, [tierScalar]: { ...asked, value: said } } }, service }
  const loss: Loss = { field: asked.field, what: 'dropped', why: 'the model’s default holds' }
  return { request: { ...decoded, scalars, losses: [...decoded.losses, loss] }, service: undefined }
}

/**
 * Returns a function that opens envelopes (sealed signatures). It opens only the last `envelopesMax` of a request,
 * because a model may need these for its next turn. Envelopes are counted when the first is opened, because most
 * requests have none. This function is separate so that its closure keeps nothing but `bytes` in memory.
 */
function openLast(bytes: Buffer, unseal: DecodeContext['unseal']): DecodeContext['unseal'] {
  let tooMany: number | undefined
  return (envelope) => {
    tooMany ??= countEnvelopes(bytes) - envelopesMax
    return tooMany-- > 0 ? undefined : unseal(envelope)
  }
}

/** Counts the places where an envelope seems to begin. If other text looks like that, fewer envelopes are opened. */
function countEnvelopes(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(envelopeStart); at >= 0; at = bytes.indexOf(envelopeStart, at + 1)) count++
  return count
}
