import type { LiveBounds } from './live-bounds.ts'

/** Who pays. One live object per account; what it has and what it holds is the admission's (admission.ts). */
export type Account = {
  readonly id: string
  name: string
  state: 'active' | 'suspended'
}

export type ApiKey = {
  readonly id: string
  /** The first characters, for people to tell keys apart. Safe to log. */
  readonly prefix: string
  readonly account: Account
  /** Unix milliseconds from which on it is not valid: its own end, or that of a rotated key's grace. */
  readonly expiresMs: number | undefined
  /** What its owner calls it. */
  readonly label?: string | undefined
  /** Undefined where it may do all that its account may (ruling R15). */
  readonly bounds?: LiveBounds | undefined
}

/** Whether a key, a token or the like has ended. At the very moment of its end it has. @param endMs undefined: it has none */
export function hasEnded(endMs: number | undefined, nowMs: number): boolean {
  return endMs !== undefined && nowMs >= endMs
}

/** Stands for a key where an operator asks on an account's behalf and shows none: it has no limits and no name. */
export function keyless(account: Account): ApiKey {
  return { id: '', prefix: '', account, expiresMs: undefined }
}

/** The id of the key that a debit names; undefined for one that was asked for without. */
export function keyIdOf({ id }: ApiKey): string | undefined {
  return id === '' ? undefined : id
}

/** Accounts and keys as the store has them, kept in memory so that a request asks no one. Keys are named by digest (keys.ts). */
export interface Directory {
  /** What memory holds. Revoked and unknown keys it does not hold, nor those that were made a moment ago. */
  findKnownKey(digest: string): ApiKey | undefined
  /**
   * What memory holds, and else the store (ruling R16): a key is valid from the moment the command that made it returned.
   * @throws StoreSilent when the store does not answer, by then nobody knows whether the key is valid (ruling C5).
   */
  findKey(digest: string): Promise<ApiKey | undefined>
  /** Of the accounts that memory holds. */
  findKnownAccount(id: string): Account | undefined
  /** The valid keys that memory holds. */
  listKnownKeys(): Iterable<ApiKey>
  /** The accounts that memory holds, those that were not used for the longest time first where it holds not all. */
  listKnown(): Iterable<Account>
  /** Tells which account the store has told something of; one listener, a later one in its place. */
  onChanged?(hear: (accountId: string) => void): void
  /** Notes a use, for `last_used`; written to the store now and then. */
  touch(key: ApiKey): void
}

/** The store did not say in time what only it knows. */
export class StoreSilent extends Error {}
