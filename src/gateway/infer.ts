import type { Account, ApiKey } from '../accounts/account.ts'
import { authenticate } from '../accounts/authenticate.ts'
import { hold, isAdmitted } from '../accounts/holds.ts'
import type { Place } from '../accounts/limits.ts'
import { type Model, priceNanos } from '../catalog/model.ts'
import { GatewayError } from '../errors.ts'
import { checkFields, readModelId } from '../wires/checks.ts'
import { ClientBody } from '../wires/client-body.ts'
import { readConversationKey } from '../wires/conversation-key.ts'
import type { Call } from './call.ts'
import { Delivery } from './delivery.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import { passThrough } from './pass-through.ts'
import type { CallRecord } from './record.ts'
import { translate } from './translate.ts'

/** One inference request, from the key to the bill. The checks run in the order they stand here (ruling R1). */
export async function infer(gateway: Gateway, call: Call, record: CallRecord): Promise<void> {
  const { account } = identify(gateway, call, record)
  checkBalance(gateway, account)
  const place = takePlace(gateway, account)
  const body = new ClientBody(await call.readBody())
  const model = findModel(gateway, body, record)
  const conversationKey = readConversationKey(call.wire, body, (name) => call.header(name))
  checkFields(call.wire, body)
  const connect = model.wire === call.wire ? passThrough : translate
  const exchange = connect(gateway, call, model, body, conversationKey, account.id)
  record.stream = exchange.stream
  if (exchange.losses.length > 0) record.losses = exchange.losses
  const release = takeHold(gateway, account, model, exchange, place)
  await new Delivery(gateway, call, record, account, model, exchange, release).run()
}

/**
 * Whose key this is (spec 5, rulings R4, R7). A failing request may be throttled; one with a valid key never is.
 * @throws GatewayError 401, 429.
 */
export function identify(gateway: Gateway, call: Call, record: CallRecord): ApiKey {
  const authorization = call.header('authorization')
  const xApiKey = call.header('x-api-key')
  const credentials = { ...(authorization ? { authorization } : {}), ...(xApiKey ? { xApiKey } : {}) }
  const found = authenticate(gateway.directory, credentials, gateway.nowMs())
  if (found === 'missing' || found === 'invalid') {
    const failure = gateway.throttle.fail(call.ip)
    if (failure.throttled) {
      const { retryAfterSeconds } = failure
      throw new GatewayError('too_many_failed_auth', texts.throttled, { retryAfterSeconds })
    }
    throw new GatewayError('invalid_api_key', found === 'missing' ? texts.missingKey : texts.unknownKey)
  }
  const { key } = found
  record.account = key.account.name
  record.keyId = key.id
  record.keyPrefix = key.prefix
  if (key.account.state !== 'active') throw new GatewayError('account_suspended', texts.suspended)
  gateway.directory.touch(key)
  return key
}

function checkBalance(gateway: Gateway, account: Account): void {
  if (!gateway.ledger.isWritable()) throw new GatewayError('internal_error', texts.noLedger)
  if (account.balanceNanos <= 0n || !isAdmitted(account)) {
    // With credit left that running requests hold, trying again is worth it; without, it is not.
    const shouldRetry = account.balanceNanos > 0n
    throw new GatewayError('insufficient_credits', shouldRetry ? texts.allHeld : texts.noCredit, { shouldRetry })
  }
}

function takePlace(gateway: Gateway, account: Account): Place & { ok: true } {
  if (gateway.isShedding()) throw new GatewayError('rate_limit_exceeded', texts.busy)
  const place = gateway.windows.take(account.id)
  if (!place.ok) {
    throw new GatewayError('rate_limit_exceeded', texts.rate, { retryAfterSeconds: place.retryAfterSeconds })
  }
  return place
}

/** @throws GatewayError 400 for a missing name, 404 for an unknown one. */
export function findModel(gateway: Gateway, body: ClientBody, record: CallRecord): Model {
  const id = readModelId(body)
  const model = gateway.config().catalog.models.get(id)
  if (model === undefined) {
    // The name is not repeated: nothing of a body ever is (spec 7.1).
    throw new GatewayError('model_not_found', texts.noModel, { param: 'model' })
  }
  record.model = model.id
  record.modelWire = model.wire
  return model
}

/**
 * Holds what the answer will probably cost (ruling C2). Asked again here because other requests may have taken their
 * holds while this body was read; that refusal gives the place in the window back (ruling R1).
 */
function takeHold(
  gateway: Gateway,
  account: Account,
  model: Model,
  exchange: Exchange,
  place: Place & { ok: true },
): () => void {
  if (!isAdmitted(account)) {
    place.giveBack()
    throw new GatewayError('insufficient_credits', texts.allHeld, { shouldRetry: true })
  }
  const usage = {
    inputTokens: exchange.inputTokensEstimate,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: Math.min(exchange.outputTokensCap, gateway.config().billing.holdOutputTokens),
    reasoningTokens: 0,
    estimated: true,
  }
  return hold(account, priceNanos(model.prices, usage))
}

const texts = {
  missingKey: 'An API key is required: send it as authorization: Bearer, or in x-api-key.',
  unknownKey: 'The API key is not valid: check it for typing errors, or make a new one.',
  throttled: 'Too many failed authentications from this address: wait, then send a valid API key.',
  suspended: 'The account is not active: ask its operator to activate it.',
  noCredit: 'The account has no credit left: add credit and try again.',
  allHeld: 'All credit of the account is held by requests that are running: wait for them, or add credit.',
  rate: 'The account has made too many requests in this minute: wait for retry-after seconds.',
  busy: 'The service is at capacity right now: try again in a moment.',
  noModel: 'No such model: GET /v1/models lists those that can be named.',
  noLedger: 'The service cannot record usage right now: try again in a moment.',
}
