import { hash } from 'node:crypto'

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

/** Another one whenever something that can be edited is another. */
export function versionOfAccount({ id, name, state }: AccountRow): string {
  return versionOf([id, name, state])
}

export function versionOfKey({ id, label, expiresMs, revokedMs }: KeyRow): string {
  return versionOf([id, label ?? null, expiresMs ?? null, revokedMs ?? null])
}

function versionOf(fields: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16)
}

/** Where a page ends: what its last row is sorted by, and its id. */
export type Place = readonly (string | number)[]

export const accountSorts = ['created', '-created', 'name'] as const

/** A page of accounts: those that fit all of what is given, from behind a place on. */
export type AccountPage = {
  /** In the name, whatever its case, or the beginning of the id. */
  q?: string | undefined
  state?: AccountRow['state'] | undefined
  /** `created`: the oldest first. */
  sort: (typeof accountSorts)[number]
  beyond?: Place | undefined
  limit: number
}

/** A page of keys, the oldest first. */
export type KeyPage = {
  accountId?: string | undefined
  /** In the label, whatever its case, or the beginning of the visible characters or the id. */
  q?: string | undefined
  beyond?: Place | undefined
  limit: number
}

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
