import { type ApiKey, type Directory, hasEnded } from './account.ts'
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
 * Who asks (ruling R7). Of two credentials the first valid one counts; two bad ones are one failure. One that memory holds
 * is not kept waiting for one that it does not (ruling R16). Whether the account is active is the caller's question, for a
 * suspended one is no failed authentication (ruling R4).
 * @returns at once where memory holds a valid key or both are malformed.
 * @throws StoreSilent, see `Directory.findKey`.
 */
export function authenticate(
  asking: Asking,
  { authorization, xApiKey }: Credentials,
): Eventual<{ key: ApiKey } | 'missing' | 'invalid'> {
  if (!authorization && !xApiKey) return 'missing'
  const unknown: string[] = []
  for (const text of [readBearer(authorization), xApiKey?.trim()]) {
    const reading = text ? readKey(text) : undefined
    if (reading?.kind !== 'well_formed') continue
    const key = asking.directory.findKnownKey(reading.digest)
    if (key === undefined) unknown.push(reading.digest)
    else if (isValid(key, asking.nowMs)) return { key }
  }
  if (unknown.length === 0) return 'invalid'
  return whenThere(lookFor(asking, unknown), (key) => (key ? { key } : 'invalid'))
}

function readBearer(authorization: string | undefined): string | undefined {
  return authorization && /^\s*bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

/** Only who may still fail unthrottled makes the store be asked. */
function lookFor({ directory, isThrottled, nowMs }: Asking, digests: readonly string[]): Eventual<ApiKey | undefined> {
  return whenThere(isThrottled(), (isSo) => {
    if (isSo) return undefined
    const found = digests.map((digest) => directory.findKey(digest))
    const first = (keys: readonly (ApiKey | undefined)[]) => keys.find((key) => key && isValid(key, nowMs))
    return found.some((key) => key instanceof Promise)
      ? Promise.all(found).then(first)
      : first(found as readonly (ApiKey | undefined)[])
  })
}

function isValid({ expiresMs }: ApiKey, nowMs: number): boolean {
  return !hasEnded(expiresMs, nowMs)
}
