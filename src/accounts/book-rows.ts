/** An account as the books have it. */
export type AccountRow = {
  id: string
  name: string
  state: 'active' | 'suspended'
  /** Sum of its entries. */
  balanceNanos: bigint
  createdMs: number
}

/** A key as the books have it: by its digest, never itself. Times in Unix milliseconds. */
export type KeyRow = {
  id: string
  accountId: string
  digest: string
  prefix: string
  /** What its owner calls it. Several keys may have the same: a rotated one and its successor do. */
  label: string | undefined
  createdMs: number
  expiresMs: number | undefined
  revokedMs: number | undefined
  lastUsedMs: number | undefined
}

/** A key that was just made. The secret is shown to whoever asked for it, this once. */
export type IssuedKey = { key: string; id: string; prefix: string }
