import type { Eventual } from './eventual.ts'

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
  /** Unix milliseconds after which it is no longer valid: a rotated key's grace. */
  readonly expiresMs: number | undefined
}

/** Accounts and keys as the store has them, kept in memory so that a request asks no one. Keys are named by digest (keys.ts). */
export interface Directory {
  /** What memory holds. Revoked and unknown keys it does not hold, nor those that were made a moment ago. */
  findKnownKey(digest: string): ApiKey | undefined
  /**
   * What memory holds, and else the store (ruling R16): a key is valid from the moment the command that made it returned.
   * @throws StoreSilent when the store does not answer, by then nobody knows whether the key is valid (ruling C5).
   */
  findKey(digest: string): Eventual<ApiKey | undefined>
  /** The accounts that memory holds, those that were not used for the longest time first where it holds not all. */
  listKnown(): Iterable<Account>
  /** Notes a use, for `last_used`; written to the store now and then. */
  touch(key: ApiKey): void
}

/** The store did not say in time what only it knows. */
export class StoreSilent extends Error {}
