import type { LiveBounds } from './live-bounds.ts'

/**
 * A customer, who pays for requests. All requests of an account share one object. admission.ts keeps balance and holds.
 */
export type Account = {
  readonly id: string
  name: string
  state: 'active' | 'suspended'
  /** The account's limits over all its keys; undefined if it has none. */
  bounds?: LiveBounds | undefined
  /** The month of the last grant (monthly credit). Empty before the first grant; undefined if there are no grants. */
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
   * Unix milliseconds from which the key is invalid: its own expiry, or the end of the grace period after a rotation.
   */
  readonly expiresMs: number | undefined
  /** The label that the key's owner chose. */
  readonly label?: string | undefined
  /** The key's own limits (ruling R15); undefined if the key may do everything that its account may. */
  readonly bounds?: LiveBounds | undefined
  /** The limits of the key's person over all their keys (ruling Y20). Undefined if the person has no limits. */
  readonly personBounds?: LiveBounds | undefined
}

/** Whether a key, token or similar has expired. It expires at `endMs` itself. @param endMs undefined for never */
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
   * Whether the store has valid keys made by another gateway, as last reported. Without them, texts in the form of such
   * keys are not looked up.
   */
  readonly hasForeignKeys?: boolean
  /** Looks in memory only. Memory lacks revoked keys, unknown keys and keys that were just created. */
  findKnownKey(digest: string): ApiKey | undefined
  /**
   * Looks in memory, then in the store. A key is therefore valid as soon as the command that created it returns (ruling
   * R16).
   * @throws StoreSilent if the store does not answer. Whether the key is valid is then unknown (ruling C5).
   */
  findKey(digest: string): Promise<ApiKey | undefined>
  /** Resolves once memory is as new as the store. It may stay older if the store decides credit. @throws StoreSilent */
  readAgain?(): Promise<void>
  /** Finds an account in memory only. */
  findKnownAccount(id: string): Account | undefined
  /** Lists the valid keys in memory. */
  listKnownKeys(): Iterable<ApiKey>
  /** Lists the accounts in memory. If memory cannot hold all accounts, the least recently used come first. */
  listKnown(): Iterable<Account>
  /** Calls `hear` each time the store has reported an account. Only one listener is kept: a later call replaces it. */
  onChanged?(hear: (accountId: string) => void): void
  /** Records a use of the key for `last_used`, which is written to the store from time to time. */
  touch(key: ApiKey): void
}

/** Thrown if the store does not answer in time and memory does not have the answer. */
export class StoreSilent extends Error {}
