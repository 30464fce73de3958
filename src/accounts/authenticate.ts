import type { ApiKey, Directory } from './account.ts'
import { type Eventual, whenThere } from './eventual.ts'
import { readKey } from './keys.ts'

export type Credentials = { authorization?: string; xApiKey?: string }

export type Asking = {
  directory: Directory
  /** Unix milliseconds. */
  nowMs: number
  /** Asked before the store is: an address that is throttled waits for nothing (ruling R16). */
  isThrottled(): Eventual<boolean>
}

/**
 * Who asks (ruling R7). Of two credentials the first valid one counts; two bad ones are one failure. Whether the account is
 * active is the caller's question, for a suspended one is no failed authentication (ruling R4).
 * @returns at once where memory holds the key or it is malformed.
 * @throws StoreSilent, see `Directory.findKey`.
 */
export function authenticate(
  asking: Asking,
  { authorization, xApiKey }: Credentials,
): Eventual<{ key: ApiKey } | 'missing' | 'invalid'> {
  if (!authorization && !xApiKey) return 'missing'
  return whenThere(findValid(asking, readBearer(authorization)), (bearer) => {
    if (bearer) return { key: bearer }
    return whenThere(findValid(asking, xApiKey?.trim()), (key) => (key ? { key } : 'invalid'))
  })
}

function readBearer(authorization: string | undefined): string | undefined {
  return authorization && /^\s*bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

function findValid(asking: Asking, text: string | undefined): Eventual<ApiKey | undefined> {
  if (!text) return undefined
  const reading = readKey(text)
  if (reading.kind === 'malformed') return undefined
  return whenThere(findKey(asking, reading.digest), (key) => {
    return key && (key.expiresMs === undefined || asking.nowMs <= key.expiresMs) ? key : undefined
  })
}

/** Only who may still fail unthrottled makes the store be asked. */
function findKey({ directory, isThrottled }: Asking, digest: string): Eventual<ApiKey | undefined> {
  const known = directory.findKnownKey(digest)
  if (known) return known
  return whenThere(isThrottled(), (isSo) => (isSo ? undefined : directory.findKey(digest)))
}
