import { type Account, type ApiKey, keyless, type LiveBounds } from '../accounts/account.ts'
import type { Budget } from '../accounts/budget.ts'
import { type KeyBounds, mayUse } from '../accounts/key-bounds.ts'
import { labelsOfRequest } from '../accounts/labels.ts'
import { free } from '../bytes/memory.ts'
import type { Chain, Model } from '../catalog/model.ts'
import { findNearIds } from '../catalog/near-ids.ts'
import type { Config } from '../config/config.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { Likeness } from '../inference/likeness.ts'
import type { Pool } from '../upstream/pool.ts'
import {
  checkConversation,
  checkFields,
  readConversationKey,
  readModelId,
  readOpening,
  readSessionId,
} from '../wires/requests/checks.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { readLikeness } from '../wires/requests/likeness.ts'
import type { ClientHalf } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import { enter, holdOf, identify, inOrder, noteAccount, takeHold, welcomeDigest } from './admit.ts'
import { noteExchange } from './attempts.ts'
import { type Call, ClientGone } from './call.ts'
import { type ChainWalk, openChain } from './chain.ts'
import { Delivery } from './delivery.ts'
import { exchangeNatively, translate, type UpstreamRequests } from './exchange.ts'
import type { Gateway, Snapshot } from './gateway.ts'
import type { CallRecord } from './record.ts'

/**
 * Handles one inference request to its end, under the configuration that is in force when it arrives (U14).
 * @param payer the key that pays if an operator sends the request from the playground without a key (operate §4)
 */
export function infer(gateway: Gateway, call: Call, record: CallRecord, payer?: ApiKey): Promise<void> {
  const { snapshot, release } = gateway.snapshots.take()
  return walk(gateway, snapshot, call, record, payer).finally(release)
}

/**
 * Handles a request from its key to its bill. The checks have the order of ruling R1. The promise of `run` is returned
 * without `await`, so that the variables of this function do not live as long as the answer.
 */
async function walk(
  gateway: Gateway,
  snapshot: Snapshot,
  call: Call,
  record: CallRecord,
  payer: ApiKey | undefined,
): Promise<void> {
  const key = payer ?? (await identify(gateway, call, record))
  const { account } = key
  // `using` would cost 1 µs a request, because V8 handles it in its slow runtime.
  const entered = await enter(gateway.admission, key)
  const share = gateway.bodies.enter(account.id)
  try {
    const bytes = await call.readBody(share)
    await gateway.turns.take(account.id, bytes.length)
    if (call.isGone) throw new ClientGone()
    const { config } = snapshot
    const { pool } = snapshot
    const { bounds, personBounds } = key
    const who = { accountId: account.id, customer: account, pool, bounds, personBounds, plan: account.plan }
    const at = record.startedMs - gateway.aheadMs()
    const asked = readRequest({ gateway, config, call, record, at, ...who }, bytes)
    const { model, affinity, likeness, asking, chain } = asked
    const release = await takeHold(config, key, entered, asked, record, at)
    if (chain) chain.release = release
    // The body for the model exists now. The client's body is kept only if another target may need it, or if the two
    // bodies share memory.
    if (asking.exchangeFor === undefined && chain === undefined && !asking.exchange.sharesMemoryWith(bytes)) free(bytes)
    const parts = {
      gateway,
      snapshot,
      call,
      record,
      key,
      model,
      chain,
      affinity,
      likeness,
      release,
      share: share.handOn(),
    }
    return new Delivery(parts, asking).run()
  } catch (error) {
    throw await inOrder(entered, key, error)
  } finally {
    share[Symbol.dispose]()
    entered[Symbol.dispose]()
  }
}

/** A digest that no key has. To look it up loads new keys and accounts, as for any unknown key. */
const noDigest = 'no key'

/**
 * Runs a request from the playground. An operator sends the request on behalf of an account, without a key. An owner
 * sends it with their key. The gateway then handles the request like any other request.
 * @param keyDigest the digest of the owner's key
 * @throws GatewayError
 */
export async function play(
  gateway: Gateway,
  call: Call,
  record: CallRecord,
  account: Account,
  keyDigest?: string,
): Promise<void> {
  const { directory } = gateway
  if (keyDigest !== undefined) return infer(gateway, call, record, await welcomeDigest(gateway, record, keyDigest))
  // A new account may not be in memory yet.
  if (!directory.findKnownAccount(account.id)) await directory.findKey(noDigest)
  // The directory's object of the account is used if possible, because later changes of the account are made in it.
  const payer = keyless(directory.findKnownAccount(account.id) ?? account)
  noteAccount(gateway, record, payer)
  return infer(gateway, call, record, payer)
}

/**
 * Answers a request to count tokens. Counting gives way to paid requests (ruling R18). It is never billed, takes no
 * place in the rate window, and sends nothing to a model (spec 4.2, ruling R1).
 */
export async function countTokens(gateway: Gateway, call: Call, record: CallRecord): Promise<void> {
  const { account, bounds } = await identify(gateway, call, record)
  if (gateway.isStrained() || gateway.isShedding()) throw makeWay()
  using place = gateway.counting.enter(account.id)
  if (place === undefined) throw makeWay()
  using share = gateway.bodies.enter(account.id)
  const bytes = await call.readBody(share)
  if (!gateway.counting.mayCount(bytes.length)) throw makeWay()
  await gateway.turns.take(account.id, bytes.length)
  if (call.isGone) throw new ClientGone()
  const body = new ClientBody(bytes)
  findModel(gateway.snapshots.current.config, body, record, bounds)
  readSessionId((name) => call.header(name))
  const { client } = wires[call.wire]
  checkConversation(client, body)
  const inputTokens = client.counter!.countTokens(JSON.parse(body.text()))
  call.reply(200, 'application/json', JSON.stringify({ input_tokens: inputTokens }))
}

/**
 * Makes the error for a count of tokens that is refused because of load. Counts do not use the rate window, so the
 * error for a full window is not used here (spec 4.2).
 */
function makeWay(): GatewayError {
  return new GatewayError('rate_limit_exceeded', failureTexts.counterFull, { retryAfterSeconds: 1, reason: 'counter' })
}

export type ReadRequestParts = {
  /** A rehearsal (rehearse.ts) lacks the optional members, because nobody pays and no upstream is asked. */
  gateway: Pick<Gateway, 'sealer' | 'nowMs' | 'scopeKey'> & Partial<Pick<Gateway, 'stays' | 'admission' | 'openDigest'>>
  config: Pick<Config, 'catalog' | 'labels' | 'billing'>
  call: Pick<Call, 'wire' | 'requestId' | 'header'>
  record: CallRecord
  /** The start of the request by the store's clock, in Unix milliseconds (ruling Y15). */
  at: number
  accountId: string
  /** The limits of the client's key; undefined if it has none. */
  bounds?: (Pick<KeyBounds, 'models' | 'person' | 'labels' | 'mayChoose'> & Partial<LiveBounds>) | undefined
  /** The limits of the person to whom the key belongs (ruling Y20). */
  personBounds?: LiveBounds | undefined
  plan?: string | undefined
  /** Counts the upstream accounts that serve the customer; undefined in a rehearsal, which chooses no account. */
  pool?: Pick<Pool, 'sizeOf'> | undefined
  customer?: Pick<Account, 'id' | 'name'> | undefined
}

export type ReadRequest = {
  model: Model
  /** The conversation key scoped to the account. */
  affinity: string | undefined
  /**
   * The digests that a request without a conversation key shares with similar requests. Undefined if the digests do not
   * decide the upstream account (ruling Y24).
   */
  likeness?: Likeness | undefined
  asking: UpstreamRequests
  /** The further entries of a fallback chain (ruling Y23); undefined for a plain model. */
  chain?: ChainWalk | undefined
}

/**
 * Checks a body in the order of ruling R1, and makes the request for the model. No check depends on the account's
 * credit. This function sends nothing and waits for nothing.
 * @throws GatewayError 400, 404
 */
export function readRequest(reading: ReadRequestParts, bytes: Buffer): ReadRequest {
  const { gateway, config, call, record, accountId, bounds, plan } = reading
  const { client } = wires[call.wire]
  const body = new ClientBody(bytes, client.keptKeys)
  const model = findModel(config, body, record, bounds, plan)
  const conversationKey = readConversationKey(client, body, (name) => call.header(name))
  noteWho(record, bounds, config.labels, call.header('x-triwire-labels'))
  checkFields(client, body)
  const scopedKey = conversationKey === undefined ? undefined : gateway.scopeKey(accountId, conversationKey)
  if (model.chain) return readChain(model.chain, model.id)
  const asking = ask(model)
  noteExchange(record, asking.exchange)
  const likeness =
    scopedKey === undefined && isPooled(model) ? likenessOf(asking.exchange.inputTokensEstimate) : undefined
  return { model, affinity: scopedKey, likeness, asking }

  function isPooled(model: Model): boolean {
    return model.affinity === 'alike' && reading.pool !== undefined && reading.pool.sizeOf(model, reading.customer) > 1
  }

  function likenessOf(tokens: number): Likeness {
    return readLikeness(client, body, gateway.openDigest!(accountId), tokens)
  }

  function ask(model: Model): UpstreamRequests {
    const implicitKey = implicitKeyOf(model, client, body, scopedKey, (key) => gateway.scopeKey(accountId, key))
    const connect = model.wire === call.wire ? exchangeNatively : translate
    const exchangeFor = (served: Model) =>
      connect({ gateway, call, accountId, model: served, body, at: reading.at, scopedKey, implicitKey })
    const isServedAlike = model.routes.every(({ serving }) => serving.profile === model.profile)
    return { exchange: exchangeFor(model), exchangeFor: isServedAlike ? undefined : exchangeFor }
  }

  function readChain(chain: Chain, id: string): ReadRequest {
    const { stays, admission } = gateway
    // A rehearsal has no `openDigest`, because nothing about a rehearsal is remembered.
    const isAlike =
      scopedKey === undefined && gateway.openDigest && chain.entries.some(({ affinity }) => affinity === 'alike')
    const likeness = isAlike ? likenessOf(estimateBytesTokens(body.bytes, body.mayHoldDataUrl)) : undefined
    const conversation = scopedKey ?? likeness?.opener
    const estimate = (model: Model, { exchange }: UpstreamRequests) => holdOf(config, model, exchange, reading.at)
    const lefts = [bounds, reading.personBounds].flatMap((one) =>
      one?.budget && admission ? admission.lookBudget(one as LiveBounds & { budget: Budget }) : [],
    )
    const leftNanos = lefts.reduce<bigint | undefined>(
      (least, left) => (left < (least ?? left) ? left : (least ?? left)),
      undefined,
    )
    const { first, walk } = openChain({
      chain,
      plan,
      record,
      ask,
      holdOf: estimate,
      leftNanos,
      stays: conversation === undefined ? undefined : stays?.of(`${id} ${conversation}`),
    })
    noteExchange(record, first.asked.exchange)
    return { model: first.model, affinity: scopedKey, likeness, asking: first.asked, chain: walk }
  }
}

/**
 * Records the person and the labels of the request (ruling Y21), as its key has them at this moment.
 * @throws GatewayError 400 for a label that the key may not choose. The message repeats no word of the client (spec
 *   7.1). It also names no allowed value, because values may be the names of other customers' projects.
 */
function noteWho(
  record: CallRecord,
  bounds: ReadRequestParts['bounds'],
  declared: Config['labels'],
  chosen: string | undefined,
): void {
  if (bounds === undefined && chosen === undefined) return
  const { person, labels: own, mayChoose } = bounds ?? {}
  if (person !== undefined) record.personId = person
  if (own === undefined && chosen === undefined) return
  const read = labelsOfRequest(chosen, { labels: own, mayChoose }, declared)
  if (read === 'forbidden')
    throw new GatewayError('invalid_request', texts.labels(mayChoose ?? []), { param: 'x-triwire-labels' })
  if (read.labels !== undefined) record.labels = read.labels
}

/**
 * Returns the key for the provider's prompt cache, if the body names no key. It is the client's conversation key, or
 * else the model's implicit key (ruling Y18). Undefined if implicit keys are off for the model.
 */
function implicitKeyOf(
  { implicitKey }: Model,
  client: ClientHalf,
  body: ClientBody,
  scopedKey: string | undefined,
  scope: (key: string) => string,
): string | undefined {
  if (implicitKey === 'off' || scopedKey !== undefined) return implicitKey === 'off' ? undefined : scopedKey
  return scope(implicitKey === 'account' ? 'implicit' : `implicit ${readOpening(client, body)}`)
}

/**
 * Finds the model that a body names.
 * @param bounds the limits of the key, such as a list of allowed models (ruling R15); undefined if it has no limits
 * @param plan the account's plan. If the model has prices for this plan, the returned model has these prices
 * @throws GatewayError 400 if the name is missing; 404 if the model is unknown or the key may not use it
 */
function findModel(
  config: Pick<Config, 'catalog'>,
  body: ClientBody,
  record: CallRecord,
  bounds: Pick<KeyBounds, 'models'> | undefined,
  plan?: string | undefined,
): Model {
  const id = readModelId(body)
  const { models } = config.catalog
  const model = models.get(id)
  if (model === undefined || (bounds !== undefined && !mayUse(bounds.models, id))) {
    const ids = bounds === undefined ? models.keys() : models.keys().filter((one) => mayUse(bounds.models, one))
    // The client's own name is not repeated, because errors never quote a body (spec 7.1).
    const near = findNearIds(id, ids)
    const suggestion = near.length > 0 ? ` Perhaps it is ${near.join(' or ')}.` : ''
    const text = model === undefined ? texts.unknown : texts.forbidden
    throw new GatewayError('model_not_found', text + suggestion, { param: 'model' })
  }
  record.model = model.entryId
  if (model.id !== model.entryId) record.alias = model.id
  record.modelWire = model.wire
  return plan === undefined ? model : (model.planned?.get(plan) ?? model)
}

const texts = {
  unknown: 'No such model: GET /v1/models lists the available models.',
  labels: (dimensions: readonly string[]) =>
    dimensions.length === 0
      ? 'The header x-triwire-labels chooses labels, and this API key may choose none: leave it out.'
      : `The header x-triwire-labels contains a label that this API key may not choose: send at most one declared value for each of ${dimensions.join(', ')}, such as ${dimensions[0]}=VALUE, or leave the header out. Ask the person who gave you the key for the values.`,
  forbidden: 'This API key may not use the model: use another one, or ask the person who gave you the key.',
}
