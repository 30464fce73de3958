import { type ApiKey, type Directory, hasEnded } from './account.ts'
import { digestForeignKey, readKey } from './keys.ts'

type Credentials = { authorization?: string | undefined; xApiKey?: string | undefined }

/** Reads the access token of a session. Returns undefined for a text that we did not make (`createTokens`). */
export type AccessReader = (text: string) => { digest: string; expiresMs: number } | undefined

type AuthenticationParts = {
  directory: Directory
  /** The current time in Unix milliseconds. */
  nowMs: number
  /**
   * Whether the address is throttled. Checked before the store is queried, so a throttled address causes no wait
   * (ruling R16).
   */
  isThrottled(): boolean
  /** Reads access tokens; undefined if there are no sessions. */
  readAccess?: AccessReader | undefined
}

/**
 * Finds the key of a request (ruling R7). Of two credentials, the first valid one counts. Two invalid ones count as one
 * failure. A key in memory is used at once, without querying the store about the other credential (ruling R16). The
 * caller checks whether the account is active, because a suspended account is not an authentication failure (ruling
 * R4).
 * @returns `ended` if all credentials are tokens of ended sessions; `expired` if at least one token can be refreshed.
 *   Neither is an authentication failure (ruling Y28).
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
    // A token contains its own expiry, so an expired token is rejected without querying the store.
    const isOver = access !== undefined && hasEnded(access.expiresMs, asking.nowMs)
    const digest = isOver ? undefined : (access?.digest ?? digestOfKey(text, asking.directory.hasForeignKeys === true))
    const key = digest === undefined ? undefined : asking.directory.findKnownKey(digest)
    if (key && isValid(key, asking.nowMs)) return { key }
    if (isOver) hasExpiredToken = true
    if (access) hasEndedToken = true
    else if (text !== '') isFailure = true
    if (digest !== undefined && !key) unknown.push({ digest, isOurs: access !== undefined })
  }
  // If the client's next failure would be throttled, only tokens that we made are looked up in the store.
  const asked = asking.isThrottled() ? unknown.filter(({ isOurs }) => isOurs) : unknown
  const found = await Promise.all(asked.map(({ digest }) => asking.directory.findKey(digest)))
  const key = found.find((key) => key && isValid(key, asking.nowMs))
  if (key) return { key }
  if (isFailure || !hasEndedToken) return 'invalid'
  return hasExpiredToken ? 'expired' : 'ended'
}

/**
 * Returns the digest by which a key is looked up. Returns undefined for a text that does not have the form of a key, so
 * garbage costs no lookup.
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
