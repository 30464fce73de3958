import { type ApiKey, StoreSilent } from '../accounts/account.ts'
import { authenticate } from '../accounts/authenticate.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import type { Call } from './call.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

/**
 * Finds the key of a request (spec 5, rulings R4, R7, R16). Only failing requests are throttled, never one with a known key.
 * @throws GatewayError 401, 429; 500 if the store must be read and is silent, which does not count as a failure (ruling C5)
 */
export async function identify(gateway: Gateway, call: Call, record: CallRecord): Promise<ApiKey> {
  const authorization = call.header('authorization')
  const xApiKey = call.header('x-api-key')
  const credentials = { ...(authorization ? { authorization } : {}), ...(xApiKey ? { xApiKey } : {}) }
  const { directory, throttle } = gateway
  const isThrottled = () => throttle.isThrottled(call.ip)
  const asking = { directory, nowMs: gateway.nowMs(), isThrottled }
  const found = await authenticate(asking, credentials).catch(explainSilence)
  if (typeof found === 'object') return welcome(gateway, record, found.key)
  const { throttled, retryAfterSeconds } = await throttle.fail(call.ip)
  if (throttled) throw new GatewayError('too_many_failed_auth', failureTexts.throttled, { retryAfterSeconds })
  throw new GatewayError('invalid_api_key', found === 'missing' ? texts.missingKey : texts.unknownKey)
}

function welcome(gateway: Gateway, record: CallRecord, key: ApiKey): ApiKey {
  record.keyId = key.id
  record.keyPrefix = key.prefix
  if (key.label !== undefined) record.keyLabel = key.label
  if (key.bounds !== undefined) record.bounds = key.bounds
  noteAccount(gateway, record, key)
  gateway.directory.touch(key)
  return key
}

/** Records the account. @throws GatewayError 401 `account_suspended` unless the account is active */
export function noteAccount(gateway: Gateway, record: CallRecord, { account }: ApiKey): void {
  record.account = account.name
  record.accountId = account.id
  if (account.state !== 'active' || gateway.barred.has(account.id))
    throw new GatewayError('account_suspended', texts.suspended)
}

function explainSilence(error: Error): never {
  throw error instanceof StoreSilent
    ? new GatewayError('internal_error', failureTexts.silentStore, { reason: 'store' })
    : error
}

const texts = {
  missingKey: 'An API key is required: send it as authorization: Bearer, or in x-api-key.',
  unknownKey: 'The API key is not valid: check it for typing errors, or make a new one.',
  suspended: 'The account is not active: ask its operator to activate it.',
}
