import { hash } from 'node:crypto'
import type { Spend } from './budget.ts'
import {
  type AccountBounds,
  accountBounds,
  type KeyBounds,
  keyBounds,
  type PersonBounds,
  personBounds,
} from './key-bounds.ts'
import { type BookRow, readFields, registers } from './registers.ts'

/**
 * The row of an account. @property balanceNanos the sum of the account's entries @property spend the amount that counts
 * against the account's budget; undefined without a budget
 */
export type AccountRow = BookRow<'accounts'> & { balanceNanos: bigint; bounds: AccountBounds; spend: Spend | undefined }

/** Makes the row of a new account. */
export function newAccount(id: string, name: string, createdMs: number): AccountRow {
  const nothing = { balanceNanos: 0n, bounds: accountBounds.none, spend: undefined, lastGrant: undefined }
  return { id, name, state: 'active', createdMs, ...nothing }
}

export type KeyRow = BookRow<'keys'> & {
  accountName: string | undefined
  personName: string | undefined
  scope: string
  bounds: KeyBounds
  /** The part of the key's budget that is spent in the budget period of the last entry. Undefined without a budget. */
  spend: Spend | undefined
  /** The limits of the key's person over all their keys, and what these keys have spent and hold (ruling Y20). */
  personBounds: PersonBounds
  personSpend: Spend | undefined
  personHeldNanos: bigint | undefined
  /** The sum of the holds of running requests, if the store knows it. */
  heldNanos: bigint | undefined
}

/** A newly created key. The secret is shown to its creator only once. */
export type IssuedKey = { key: string; id: string; prefix: string }

/** Returns a version that changes whenever an editable field changes. */
export function versionOfAccount({ id, name, state, bounds }: AccountRow): string {
  return versionOf([id, name, state, accountBounds.tell(bounds)])
}

export function versionOfKey({ id, label, expiresMs, revokedMs, bounds }: KeyRow): string {
  return versionOf([id, label ?? null, expiresMs ?? null, revokedMs ?? null, keyBounds.tell(bounds)])
}

/** Computes a digest of the editable fields, which identifies the version of a row. */
export function versionOf(fields: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16)
}

/** The position where a page ends: the sort values of its last row, and the row's id. */
type PageKey = readonly (string | number)[]

export const accountSorts = ['created', '-created', 'name'] as const

/** A request for a page of accounts that match every given filter and come after a given position. */
export type AccountPage = {
  /** A part of the name, in capitals or small letters, or the beginning of the id. */
  q?: string | undefined
  state?: AccountRow['state'] | undefined
  /** Only accounts with these ids. */
  ids?: readonly string[] | undefined
  externalId?: string | undefined
  /** Selects accounts that have a plan, but none of these plans. */
  otherPlans?: readonly string[] | undefined
  /** The sort order. `created` lists the oldest first. */
  sort: (typeof accountSorts)[number]
  beyond?: PageKey | undefined
  limit: number
}

export const keySorts = ['created', '-created'] as const

/**
 * The states of a key. If several apply, the first in this order counts. Expired: the end of the key or of its grace
 * period is past. Suspended: its account is suspended. Active: none of the others applies.
 */
export const keyStates = ['revoked', 'expired', 'suspended', 'active'] as const

export type KeyState = (typeof keyStates)[number]

/** A request for a page of keys that match every given filter and come after a given position. */
export type KeyPage = {
  accountId?: string | undefined
  personId?: string | undefined
  /** Only keys with these ids. */
  ids?: readonly string[] | undefined
  /** Only keys whose label, visible characters or id begins with this text, in lower or upper case. */
  q?: string | undefined
  state?: KeyState | undefined
  /** Whether to return only keys that were imported from another gateway. */
  isForeign?: boolean | undefined
  externalId?: string | undefined
  /** Whether to leave out the keys of people's sessions. */
  isWithoutSessions?: boolean | undefined
  /** The time at which a key's expiry is judged, in Unix milliseconds. */
  nowMs?: number | undefined
  /** The sort order. `created`, the default, lists the oldest first. */
  sort?: (typeof keySorts)[number] | undefined
  beyond?: PageKey | undefined
  limit: number
}

/** The most keys that a search by label returns. If more keys have the label, a filter by this label is refused. */
export const keysNamedMax = 1_000

/** A row as a database returns it, by column name. */
export type StoreRow = Readonly<Record<string, unknown>>

/** Reads an account from a row of the database. @param row the account's columns, with its balance and its spending */
export function readAccountRow(row: StoreRow): AccountRow {
  const fields = readFields(registers.accounts, row)
  return { ...fields, balanceNanos: row.balance as bigint, bounds: accountBounds.read(row), spend: readSpent(row) }
}

export function readKeyRow(row: StoreRow): KeyRow {
  return {
    ...readFields(registers.keys, row),
    accountName: (row.account_name as string | null) ?? undefined,
    personName: (row.person_name as string | null) ?? undefined,
    scope: ((row.scope ?? row.id) as string | null) ?? '',
    bounds: keyBounds.read(row),
    spend: readSpent(row),
    ...readPersonOf(row),
    heldNanos: (row.held as bigint | null) ?? undefined,
  }
}

export const noPerson = { personBounds: personBounds.none, personSpend: undefined, personHeldNanos: undefined }

/** In the row of a key, the columns of its person begin with this prefix. */
export const personPrefix = 'person_'

function readPersonOf(row: StoreRow): Pick<KeyRow, keyof typeof noPerson> {
  if (row.person === null) return noPerson
  const names = [...Object.keys(personBounds.columns), 'from_ms', 'until_ms', 'spent']
  const person = Object.fromEntries(names.map((name) => [name, row[personPrefix + name] ?? null]))
  const heldNanos = (row.person_held as bigint | null | undefined) ?? undefined
  return { personBounds: personBounds.read(person), personSpend: readSpent(person), personHeldNanos: heldNanos }
}

/** Reads the amount that counts against the budget of a key, an account or a person; undefined without a budget. */
export function readSpent({ budget, from_ms, until_ms, spent }: StoreRow): Spend | undefined {
  if (budget === null || from_ms === null) return undefined
  return { fromMs: Number(from_ms), untilMs: Number(until_ms), spentNanos: spent as bigint }
}
