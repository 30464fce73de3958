import { type ApiKey, type Directory, hasEnded } from './account.ts'
import { readKey } from './keys.ts'

type Credentials = { authorization?: string | undefined; xApiKey?: string | undefined }

type AuthenticationParts = {
  directory: Directory
  /** Unix milliseconds. */
  nowMs: number
  /** Asked before the store is, so that a throttled address waits for nothing (ruling R16). */
  isThrottled(): boolean
}

/**
 * Finds the key of a request (ruling R7). Of two credentials the first valid one counts; two bad ones are one failure.
 * A key in memory is used without waiting for one that only the store may know (ruling R16). The caller checks whether
 * the account is active, since a suspended account is no failed authentication (ruling R4).
 * @throws StoreSilent, see `Directory.findKey`.
 */
export async function authenticate(
  asking: AuthenticationParts,
  { authorization, xApiKey }: Credentials,
): Promise<{ key: ApiKey } | 'missing' | 'invalid'> {
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
  // The store is asked only for a client that may still fail without being throttled.
  if (asking.isThrottled()) return 'invalid'
  const found = await Promise.all(unknown.map((digest) => asking.directory.findKey(digest)))
  const key = found.find((key) => key && isValid(key, asking.nowMs))
  return key ? { key } : 'invalid'
}

function readBearer(authorization: string | undefined): string | undefined {
  return authorization && /^\s*bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

function isValid({ expiresMs }: ApiKey, nowMs: number): boolean {
  return !hasEnded(expiresMs, nowMs)
}
