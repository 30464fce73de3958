import { type Account, keyless } from '../accounts/account.ts'
import type { Call } from './call.ts'
import type { Gateway } from './gateway.ts'
import { noteAccount } from './identify.ts'
import { infer } from './infer.ts'
import type { CallRecord } from './record.ts'

/** What no digest looks like. */
const noDigest = 'no key'

/**
 * A request that an operator asks for an account, without a key of it: from there on it is a request like any other.
 * @throws GatewayError
 */
export async function play(gateway: Gateway, call: Call, record: CallRecord, account: Account): Promise<void> {
  const { directory } = gateway
  // One that was made a moment ago is not in memory: looking for a key brings what is new.
  if (!directory.findKnownAccount(account.id)) await directory.findKey(noDigest)
  // The object that all its requests know.
  const payer = keyless(directory.findKnownAccount(account.id) ?? account)
  noteAccount(gateway, record, payer)
  return infer(gateway, call, record, payer)
}
