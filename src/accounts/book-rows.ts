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

/** @property balanceNanos the sum of its entries @property spend of its budget, as of a key */
export type AccountRow = BookRow<'accounts'> & { balanceNanos: bigint; bounds: AccountBounds; spend: Spend | undefined }

/** An account as it begins. */
export function newAccount(id: string, name: string, createdMs: number): AccountRow {
  const nothing = { balanceNanos: 0n, bounds: accountBounds.none, spend: undefined, lastGrant: undefined }
  return { id, name, state: 'active', createdMs, ...nothing }
}

export type KeyRow = BookRow<'keys'> & {
  accountName: string | undefined
  personName: string | undefined
  scope: string
  bounds: KeyBounds
  /** Of its budget, in the window of the last entry; none where it has none. */
  spend: Spend | undefined
  /** Those of its person over all their keys, and what these have spent and hold (ruling Y20). */
  personBounds: PersonBounds
  personSpend: Spend | undefined
  personHeldNanos: bigint | undefined
  /** The sum of its holds of running requests, if the store knows it. */
  heldNanos: bigint | undefined
}

/** A key that was just made. The secret is shown to its creator this once. */
export type IssuedKey = { key: string; id: string; prefix: string }

/** Another one whenever something that can be edited is another. */
export function versionOfAccount({ id, name, state, bounds }: AccountRow): string {
  return versionOf([id, name, state, accountBounds.tell(bounds)])
}

export function versionOfKey({ id, label, expiresMs, revokedMs, bounds }: KeyRow): string {
  return versionOf([id, label ?? null, expiresMs ?? null, revokedMs ?? null, keyBounds.tell(bounds)])
}

/** A digest of the fields that can be edited, to tell one version from another. */
export function versionOf(fields: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(fields), 'base64url').slice(0, 16)
}

/** The end of a page: the sort values of its last row, and its id. */
type PageKey = readonly (string | number)[]

export const accountSorts = ['created', '-created', 'name'] as const

/** A page of accounts that match every given filter, after a given place. */
export type AccountPage = {
  /** In the name, whatever its case, or the beginning of the id. */
  q?: string | undefined
  state?: AccountRow['state'] | undefined
  /** Only these. */
  ids?: readonly string[] | undefined
  externalId?: string | undefined
  /** Only those that have another plan than these. */
  otherPlans?: readonly string[] | undefined
  /** `created`: the oldest first. */
  sort: (typeof accountSorts)[number]
  beyond?: PageKey | undefined
  limit: number
}

export const keySorts = ['created', '-created'] as const

/**
 * States that a key may be in, each key in exactly one. The first that applies, in this order: it was revoked, its end or that of
 * its grace is over, its account is suspended. Else it is active.
 */
export const keyStates = ['revoked', 'expired', 'suspended', 'active'] as const

export type KeyState = (typeof keyStates)[number]

/** A page of keys: those that fit all of what is given, after a place. */
export type KeyPage = {
  accountId?: string | undefined
  personId?: string | undefined
  /** Only these. */
  ids?: readonly string[] | undefined
  /** The beginning of the label, of the visible characters or of the id, whatever its case. */
  q?: string | undefined
  state?: KeyState | undefined
  /** Only keys of another gateway. */
  isForeign?: boolean | undefined
  externalId?: string | undefined
  /** Without the keys of sessions of people. */
  isWithoutSessions?: boolean | undefined
  /** At which keys have expired, in Unix milliseconds. */
  nowMs?: number | undefined
  /** `created`, the default: the oldest first. */
  sort?: (typeof keySorts)[number] | undefined
  beyond?: PageKey | undefined
  limit: number
}

/** Keys of one label that are found by it. Filters refuse a label that more keys have. */
export const keysNamedMax = 1_000

/** A row as a database answers it, by the names of its columns. */
export type StoreRow = Readonly<Record<string, unknown>>

/** @param row of the account's columns, with its balance and what it has spent. */
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

/** Columns of a key's person beside those of the key begin so. */
export const personPrefix = 'person_'

function readPersonOf(row: StoreRow): Pick<KeyRow, keyof typeof noPerson> {
  if (row.person === null) return noPerson
  const names = [...Object.keys(personBounds.columns), 'from_ms', 'until_ms', 'spent']
  const person = Object.fromEntries(names.map((name) => [name, row[personPrefix + name] ?? null]))
  const heldNanos = (row.person_held as bigint | null | undefined) ?? undefined
  return { personBounds: personBounds.read(person), personSpend: readSpent(person), personHeldNanos: heldNanos }
}

/** @param row of a key, an account or a person, with what it has spent. */
export function readSpent({ budget, from_ms, until_ms, spent }: StoreRow): Spend | undefined {
  if (budget === null || from_ms === null) return undefined
  return { fromMs: Number(from_ms), untilMs: Number(until_ms), spentNanos: spent as bigint }
}

/** Counts of what the second release does not know in a store. @property isClosed whether it refuses the store for entries of form 3 */
export type NewerContent = {
  [Name in
    | 'foreignKeys'
    | 'labelledKeys'
    | 'plans'
    | 'boundAccounts'
    | 'persons'
    | 'sessions'
    | 'financeOperators']: number
} & { isClosed: boolean }
