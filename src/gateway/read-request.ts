import type { Account, LiveBounds } from '../accounts/account.ts'
import type { Budget } from '../accounts/budget.ts'
import { type KeyBounds, mayUse } from '../accounts/key-bounds.ts'
import { labelsOfRequest } from '../accounts/labels.ts'
import type { Chain, Model } from '../catalog/model.ts'
import { findNearIds } from '../catalog/near-ids.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../errors.ts'
import { estimateBytesTokens } from '../inference/estimate.ts'
import type { Likeness } from '../inference/likeness.ts'
import type { Pool } from '../upstream/pool.ts'
import { checkFields, readConversationKey, readModelId, readOpening } from '../wires/requests/checks.ts'
import { ClientBody } from '../wires/requests/client-body.ts'
import { readLikeness } from '../wires/requests/likeness.ts'
import type { ClientHalf } from '../wires/wire.ts'
import { wires } from '../wires/wires.ts'
import { holdOf } from './admit.ts'
import { noteExchange } from './attempts.ts'
import type { Call } from './call.ts'
import { type ChainWalk, openChain } from './chain.ts'
import { exchangeNatively, translate, type UpstreamRequests } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

export type ReadRequestParts = {
  /** A rehearsal (no payer, no upstream) has no admission, stays or digest: nothing is paid for or remembered. */
  gateway: Pick<Gateway, 'sealer' | 'nowMs' | 'scopeKey'> & Partial<Pick<Gateway, 'stays' | 'admission' | 'openDigest'>>
  config: Pick<Config, 'catalog' | 'labels' | 'billing'>
  call: Pick<Call, 'wire' | 'requestId' | 'header'>
  record: CallRecord
  accountId: string
  /** The limits of the client's key; undefined if it has none. */
  bounds?: (Pick<KeyBounds, 'models' | 'person' | 'labels' | 'mayChoose'> & Partial<LiveBounds>) | undefined
  /** The limits of the key's person (ruling Y20). */
  personBounds?: LiveBounds | undefined
  plan?: string | undefined
  /** Counts the upstream accounts that serve the customer; undefined if no account is chosen. */
  pool?: Pick<Pool, 'sizeOf'> | undefined
  customer?: Pick<Account, 'id' | 'name'> | undefined
}

export type ReadRequest = {
  model: Model
  /** The conversation key scoped to the account. */
  affinity: string | undefined
  /**
   * The digests that a request without a conversation key shares with similar requests. Undefined unless they choose
   * its upstream account (ruling Y24).
   */
  likeness?: Likeness | undefined
  asking: UpstreamRequests
  /** The further entries of a fallback chain (ruling Y23); undefined for a plain model. */
  chain?: ChainWalk | undefined
}

/**
 * Checks a body in the order of ruling R1 and makes the request for the model. No check needs to know the account's credit.
 * Sends nothing and waits for nothing.
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
      connect({ gateway, call, accountId, model: served, body, scopedKey, implicitKey })
    const isServedAlike = model.routes.every(({ serving }) => serving.profile === model.profile)
    return { exchange: exchangeFor(model), exchangeFor: isServedAlike ? undefined : exchangeFor }
  }

  function readChain(chain: Chain, id: string): ReadRequest {
    const { stays, admission } = gateway
    // A rehearsal has no key for digests, and nothing about it is remembered.
    const isAlike =
      scopedKey === undefined && gateway.openDigest && chain.entries.some(({ affinity }) => affinity === 'alike')
    const likeness = isAlike ? likenessOf(estimateBytesTokens(body.bytes)) : undefined
    const conversation = scopedKey ?? likeness?.opener
    const estimate = (model: Model, { exchange }: UpstreamRequests) => holdOf(config, model, exchange, record)
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
 * Returns the key for the provider's prompt cache if the body names none: the client's conversation key, or else the
 * model's implicit key (ruling Y18). Undefined if implicit keys are off for the model.
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
 * @param bounds the limits of the key, if it has any; they may list models (ruling R15)
 * @param plan of the account. The returned model has the prices of this plan, or its usual prices if the plan has none.
 * @throws GatewayError 400 for a missing name, 404 for an unknown one or one that the key may not use
 */
export function findModel(
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
    // The client's own name is not repeated: errors never quote a body (spec 7.1).
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
