import { type Account, keyless } from '../accounts/account.ts'
import type { Call } from './call.ts'
import type { Gateway } from './gateway.ts'
import { noteAccount } from './identify.ts'
import { infer } from './infer.ts'
import type { CallRecord } from './record.ts'

/** Not a digest, so that no key matches. */
const noDigest = 'no key'

/**
 * Runs a request that an operator makes on behalf of an account, without a key. After this it is a request like any other.
 * @throws GatewayError
 */
export async function play(gateway: Gateway, call: Call, record: CallRecord, account: Account): Promise<void> {
  const { directory } = gateway
  // A new account may not be in memory yet. Looking up any key loads what is new.
  if (!directory.findKnownAccount(account.id)) await directory.findKey(noDigest)
  // The object that all requests of the account share.
  const payer = keyless(directory.findKnownAccount(account.id) ?? account)
  noteAccount(gateway, record, payer)
  return infer(gateway, call, record, payer)
}
