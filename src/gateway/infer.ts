import { type ApiKey, StoreSilent } from '../accounts/account.ts'
import type { Admission, Entered, Refused } from '../accounts/admission.ts'
import { authenticate } from '../accounts/authenticate.ts'
import { type Eventual, whenThere } from '../accounts/eventual.ts'
import type { Failure } from '../accounts/limits.ts'
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
  // What memory decides is used at once, what a store decides is waited for (accounts/eventual.ts).
  const identified = identify(gateway, call, record)
  const key = identified instanceof Promise ? await identified : identified
  const entering = enter(gateway.admission, key)
  using entered = entering instanceof Promise ? await entering : entering
  const body = new ClientBody(await call.readBody())
  const model = findModel(gateway, body, record)
  const conversationKey = readConversationKey(call.wire, body, (name) => call.header(name))
  checkFields(call.wire, body)
  const connect = model.wire === call.wire ? passThrough : translate
  const exchange = connect(gateway, call, model, body, conversationKey, key.account.id)
  record.stream = exchange.stream
  if (exchange.losses.length > 0) record.losses = exchange.losses
  const holding = takeHold(gateway, entered, model, exchange)
  const release = holding instanceof Promise ? await holding : holding
  await new Delivery(gateway, call, record, key.account, model, exchange, release).run()
}

/**
 * Whose key this is (spec 5, rulings R4, R7, R16). A failing request may be throttled; one with a valid key never is.
 * @returns at once where memory knows.
 * @throws GatewayError 401, 429; 500 when the store that alone knows is silent, which is nobody's failure (ruling C5).
 */
export function identify(gateway: Gateway, call: Call, record: CallRecord): Eventual<ApiKey> {
  const authorization = call.header('authorization')
  const xApiKey = call.header('x-api-key')
  const credentials = { ...(authorization ? { authorization } : {}), ...(xApiKey ? { xApiKey } : {}) }
  const { directory, throttle } = gateway
  const isThrottled = () => throttle.isThrottled(call.ip)
  const found = authenticate({ directory, nowMs: gateway.nowMs(), isThrottled }, credentials)
  const identified = whenThere(found, (found) => {
    if (typeof found === 'object') return welcome(gateway, record, found.key)
    return whenThere(throttle.fail(call.ip), (failure): never => refuseKey(found, failure))
  })
  return identified instanceof Promise ? identified.catch(explainSilence) : identified
}

function welcome(gateway: Gateway, record: CallRecord, key: ApiKey): ApiKey {
  record.account = key.account.name
  record.keyPrefix = key.prefix
  if (key.account.state !== 'active') throw new GatewayError('account_suspended', texts.suspended)
  gateway.directory.touch(key)
  return key
}

function refuseKey(found: 'missing' | 'invalid', { throttled, retryAfterSeconds }: Failure): never {
  if (throttled) throw new GatewayError('too_many_failed_auth', texts.throttled, { retryAfterSeconds })
  throw new GatewayError('invalid_api_key', found === 'missing' ? texts.missingKey : texts.unknownKey)
}

function explainSilence(error: Error): never {
  throw error instanceof StoreSilent ? new GatewayError('internal_error', texts.silentStore) : error
}

/** Credit and the window, as far as the store decides them before the body is read. @throws GatewayError 402, 429, 500. */
function enter(admission: Admission, key: ApiKey): Eventual<Entered> {
  return whenThere(admission.enter(key), (answer) => {
    if (answer.ok) return answer
    throw explain(answer)
  })
}

/** What an admission refuses, in our words. */
function explain(refused: Refused): GatewayError {
  switch (refused.why) {
    case 'unwritable':
      return new GatewayError('internal_error', texts.noLedger)
    // With credit left that running requests hold, trying again is worth it; without, it is not.
    case 'no_credit':
      return new GatewayError('insufficient_credits', texts.noCredit, { shouldRetry: false })
    case 'all_held':
      return new GatewayError('insufficient_credits', texts.allHeld, { shouldRetry: true })
    case 'busy':
      return new GatewayError('rate_limit_exceeded', texts.busy)
    case 'rate':
      return new GatewayError('rate_limit_exceeded', texts.rate, { retryAfterSeconds: refused.retryAfterSeconds })
  }
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

/** Holds what the answer will probably cost (ruling C2). @returns the release. @throws GatewayError 402, 429, 500. */
function takeHold(gateway: Gateway, entered: Entered, model: Model, exchange: Exchange): Eventual<() => void> {
  const usage = {
    inputTokens: exchange.inputTokensEstimate,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: Math.min(exchange.outputTokensCap, gateway.config().billing.holdOutputTokens),
    reasoningTokens: 0,
    estimated: true,
  }
  return whenThere(entered.admit(priceNanos(model.prices, usage)), (answer) => {
    if (answer.ok) return answer.release
    throw explain(answer)
  })
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
  silentStore: 'The service cannot check API keys right now: try again in a moment.',
  noLedger: 'The service cannot record usage right now: try again in a moment.',
}
