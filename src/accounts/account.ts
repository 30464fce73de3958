/** Who pays. One live object per account: every request of the account sees the same balance and holds. */
export type Account = {
  readonly id: string
  name: string
  state: 'active' | 'suspended'
  /** Sum of the account's ledger entries, as last read from the store. */
  balanceNanos: bigint
  /** Sum of the holds of requests that are running (ruling C2). */
  heldNanos: bigint
  /** Requests that hold. */
  running: number
}

export type ApiKey = {
  readonly id: string
  /** The first characters, for people to tell keys apart. Safe to log. */
  readonly prefix: string
  readonly account: Account
  /** Unix milliseconds after which it is no longer valid: a rotated key's grace. */
  readonly expiresMs: number | undefined
}

/** Accounts and keys as the store has them, kept in memory so that a request asks no one. */
export interface Directory {
  /** By the key's digest (see keys.ts). Revoked and unknown keys are not found. @throws when the store was never read. */
  findKey(digest: string): ApiKey | undefined
  /** Notes a use, for `last_used`; written to the store now and then. */
  touch(key: ApiKey): void
}
