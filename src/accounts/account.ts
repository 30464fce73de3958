import type { Spend } from './budget.ts'
import type { KeyBounds } from './key-bounds.ts'
import { digestForeignKey, readKey } from './keys.ts'

/**
 * A customer, who pays for requests. All its requests share one object. live-accounts.ts keeps its balance and holds
 * (reserved credit).
 */
export type Account = {
  readonly id: string
  name: string
  state: 'active' | 'suspended'
  /** The limits that all keys of the account share; undefined if the account has no limits. */
  bounds?: LiveBounds | undefined
  /** The month of the last grant (monthly credit). Empty before the first one; undefined if grants are off. */
  grantMonth?: string | undefined
  /** The plan that sets the account's prices. Without a plan, the price lists of the models apply. */
  plan?: string | undefined
}

export type ApiKey = {
  readonly id: string
  /** The first characters of the key, so that people can tell keys apart. Safe to log. */
  readonly prefix: string
  readonly account: Account
  /**
   * When the key becomes invalid, in Unix milliseconds. Either the key expires, or its grace period after a rotation
   * ends.
   */
  readonly expiresMs: number | undefined
  /** The label that the key's owner chose. */
  readonly label?: string | undefined
  /** The key's own limits (ruling R15); undefined if the key may do everything that its account may. */
  readonly bounds?: LiveBounds | undefined
  /** The limits of the key's person over all their keys (ruling Y20). Undefined if the person has no limits. */
  readonly personBounds?: LiveBounds | undefined
}

/**
 * The limits of an account, a person or a line of keys (a key and its rotations), as the store last reported them. All
 * requests of the same account, person or line use the same object.
 */
export type LiveBounds = KeyBounds & {
  /** The id of the account, the person or the line of keys. Requests are counted under this id (ruling R15). */
  readonly scope: string
  /**
   * The spent part of the budget, as the store last reported it. Undefined with a store that several servers share,
   * which checks budgets itself.
   */
  spend: Spend | undefined
  /** The sum of the holds of requests that run in this process. */
  heldNanos: bigint
  readonly keyIds: Set<string>
}

/** Whether a key, token or similar has expired. It expires at `endMs`. @param endMs undefined for never */
export function hasEnded(endMs: number | undefined, nowMs: number): boolean {
  return endMs !== undefined && nowMs >= endMs
}

/**
 * Makes a key for an operator who acts for an account without using one of its keys. The key has no limits and no name.
 */
export function keyless(account: Account): ApiKey {
  return { id: '', prefix: '', account, expiresMs: undefined }
}

/** The key id for a debit; undefined for a request without a key (`keyless`). */
export function keyIdOf({ id }: ApiKey): string | undefined {
  return id === '' ? undefined : id
}

/**
 * The store's accounts and keys, kept in memory so that a request need not query the store. Keys are found by digest
 * (keys.ts).
 */
export interface Directory {
  /**
   * Whether the store has valid keys of another gateway, as last reported. If it has none, texts in the form of such
   * keys are not looked up.
   */
  readonly hasForeignKeys?: boolean
  /**
   * Finds a key in memory only. Memory lacks revoked keys, unknown keys, keys of sign-ins that ended more than a day ago,
   * and keys that were just created.
   */
  findKnownKey(digest: string): ApiKey | undefined
  /**
   * Finds a key in memory, or else in the store. A key is therefore valid as soon as the command that created it
   * returns (ruling R16).
   * @throws StoreSilent if the store does not answer. Whether the key is valid is then unknown (ruling C5).
   */
  findKey(digest: string): Promise<ApiKey | undefined>
  /**
   * Brings memory up to date with the store. Reads nothing from a store that several servers share, because that store
   * decides about credit itself.
   * @throws StoreSilent
   */
  readAgain?(): Promise<void>
  /** Finds an account in memory only. */
  findKnownAccount(id: string): Account | undefined
  /** Lists the valid keys in memory. */
  listKnownKeys(): Iterable<ApiKey>
  /** Lists the accounts in memory. If memory cannot hold all accounts, the least recently used come first. */
  listKnown(): Iterable<Account>
  /** Calls `hear` each time the store has reported an account. Only the listener of the last call is kept. */
  onChanged?(hear: (accountId: string) => void): void
  /** Records a use of the key for `last_used`, which is written to the store from time to time. */
  touch(key: ApiKey): void
}

/** Thrown if the store does not answer in time and memory does not have the answer. */
export class StoreSilent extends Error {}

type Credentials = { authorization?: string | undefined; xApiKey?: string | undefined }

/** Reads the access token of a session. Returns undefined for a text that we did not make (`createTokens`). */
export type AccessReader = (text: string) => { digest: string; expiresMs: number } | undefined

type AuthenticationParts = {
  directory: Directory
  /** The current time in Unix milliseconds. */
  nowMs: number
  /**
   * Returns whether the address is throttled. It is called before the store is queried, so a throttled address causes
   * no wait (ruling R16).
   */
  isThrottled(): boolean
  /** Reads access tokens; undefined if there are no sessions. */
  readAccess?: AccessReader | undefined
}

/**
 * Finds the key of a request (ruling R7). A request can have two credentials; the first valid one is used. A key in
 * memory is used at once, without a query about the other credential (ruling R16). The caller checks whether the
 * account is active, because a suspended account is not an authentication failure (ruling R4).
 * @returns `ended` or `expired` if all credentials are tokens of sessions. `ended`: the sessions have ended. `expired`:
 *   the lifetime of a token is over, so a refresh may help. Neither is an authentication failure (ruling Y28).
 * @throws StoreSilent, see `Directory.findKey`.
 */
export async function authenticate(
  asking: AuthenticationParts,
  { authorization, xApiKey }: Credentials,
): Promise<{ key: ApiKey } | 'missing' | 'invalid' | 'ended' | 'expired'> {
  const bearer = authorization && (readBearer(authorization) ?? '')
  if (!bearer && !xApiKey) return 'missing'
  const unknown: { digest: string; isOurs: boolean }[] = []
  let [hasEndedToken, hasExpiredToken, isFailure] = [false, false, false]
  for (const text of [bearer, xApiKey?.trim()]) {
    if (text === undefined) continue
    const access = asking.readAccess?.(text)
    // A token contains its expiry, so the store is not queried about an expired token.
    const isOver = access !== undefined && hasEnded(access.expiresMs, asking.nowMs)
    const digest = isOver ? undefined : (access?.digest ?? digestOfKey(text, asking.directory.hasForeignKeys === true))
    const key = digest === undefined ? undefined : asking.directory.findKnownKey(digest)
    if (key && isValid(key, asking.nowMs)) return { key }
    if (isOver) hasExpiredToken = true
    if (access) hasEndedToken = true
    else if (text !== '') isFailure = true
    if (digest !== undefined && !key) unknown.push({ digest, isOurs: access !== undefined })
  }
  // If the address of the client is throttled, only tokens that we made are looked up in the store.
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
