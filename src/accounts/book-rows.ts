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

type Row = Readonly<Record<string, unknown>>

/** @param row of the account's columns, with its balance. Integers may come as bigint. */
export function readAccountRow(row: Row): AccountRow {
  return {
    id: row.id as string,
    name: row.name as string,
    state: row.state as AccountRow['state'],
    balanceNanos: row.balance as bigint,
    createdMs: Number(row.created_ms),
  }
}

export function readKeyRow(row: Row): KeyRow {
  return {
    id: row.id as string,
    accountId: row.account_id as string,
    digest: row.digest as string,
    prefix: row.prefix as string,
    label: (row.label as string | null) ?? undefined,
    createdMs: Number(row.created_ms),
    expiresMs: readTime(row.expires_ms),
    revokedMs: readTime(row.revoked_ms),
    lastUsedMs: readTime(row.last_used_ms),
  }
}

function readTime(value: unknown): number | undefined {
  return value === null ? undefined : Number(value)
}
