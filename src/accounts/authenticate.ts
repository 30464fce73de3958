import { type ApiKey, type Directory, hasEnded } from './account.ts'
import { digestForeignKey, readKey } from './keys.ts'

type Credentials = { authorization?: string | undefined; xApiKey?: string | undefined }

/** Reads the access token of a session; undefined for any text that we have not made (`createTokens`). */
export type AccessReader = (text: string) => { digest: string; expiresMs: number } | undefined

type AuthenticationParts = {
  directory: Directory
  /** Unix milliseconds. */
  nowMs: number
  /** Asked before the store is, so that a throttled address waits for nothing (ruling R16). */
  isThrottled(): boolean
  /** Undefined if there are no sessions. */
  readAccess?: AccessReader | undefined
}

/**
 * Finds the key of a request (ruling R7). Of two credentials the first valid one counts; two bad ones are one failure.
 * A key in memory is used without waiting for one that only the store may know (ruling R16). The caller checks whether
 * the account is active, since a suspended account is no failed authentication (ruling R4).
 * @returns `ended` if nothing but tokens of ended sessions was shown, and `expired` if one of them may be refreshed. Neither is a
 * failed authentication (ruling Y28).
 * @throws StoreSilent, see `Directory.findKey`.
 */
export async function authenticate(
  asking: AuthenticationParts,
  { authorization, xApiKey }: Credentials,
): Promise<{ key: ApiKey } | 'missing' | 'invalid' | 'ended' | 'expired'> {
  if (!authorization && !xApiKey) return 'missing'
  const unknown: { digest: string; isOurs: boolean }[] = []
  let [hasEndedToken, hasExpiredToken, isFailure] = [false, false, false]
  for (const text of [authorization && (readBearer(authorization) ?? ''), xApiKey?.trim()]) {
    if (text === undefined) continue
    const access = asking.readAccess?.(text)
    // A token says itself when it ends, so one that was kept costs nobody a look into the store.
    const isOver = access !== undefined && hasEnded(access.expiresMs, asking.nowMs)
    const digest = isOver ? undefined : (access?.digest ?? digestOfKey(text, asking.directory.hasForeignKeys === true))
    const key = digest === undefined ? undefined : asking.directory.findKnownKey(digest)
    if (key && isValid(key, asking.nowMs)) return { key }
    if (isOver) hasExpiredToken = true
    if (access) hasEndedToken = true
    else if (text !== '') isFailure = true
    if (digest !== undefined && !key) unknown.push({ digest, isOurs: access !== undefined })
  }
  // Of a client that may not fail again without being throttled, the store is asked only for tokens that we have made.
  const asked = asking.isThrottled() ? unknown.filter(({ isOurs }) => isOurs) : unknown
  const found = await Promise.all(asked.map(({ digest }) => asking.directory.findKey(digest)))
  const key = found.find((key) => key && isValid(key, asking.nowMs))
  if (key) return { key }
  if (isFailure || !hasEndedToken) return 'invalid'
  return hasExpiredToken ? 'expired' : 'ended'
}

/**
 * Returns the digest by which a key is looked up. It is undefined for a text without the form of a key, so that garbage costs no lookup.
 * @param takesForeign whether the store has keys of another gateway
 */
export function digestOfKey(text: string, takesForeign: boolean): string | undefined {
  const reading = readKey(text)
  if (reading.kind === 'well_formed') return reading.digest
  return takesForeign ? digestForeignKey(text) : undefined
}

function readBearer(authorization: string | undefined): string | undefined {
  return authorization && /^\s*bearer +(\S+)\s*$/i.exec(authorization)?.[1]
}

function isValid({ expiresMs }: ApiKey, nowMs: number): boolean {
  return !hasEnded(expiresMs, nowMs)
}
