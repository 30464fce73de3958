import { BookError } from './book-error.ts'
import { readSpent, type StoreRow, versionOf } from './book-rows.ts'
import type { Spend } from './budget.ts'
import { type PersonBounds, personBounds } from './key-bounds.ts'
import { type BookRow, readFields, registers } from './registers.ts'

/*
 * People who use keys: their rows, and how they are found. The rules are in person-rules.ts.
 */

/**
 * A person with bounds. @property spend the amount that counts against the person's budget; undefined without a budget
 * @property heldNanos the holds of running requests, if the store knows them
 */
export type PersonRow = BookRow<'persons'> & {
  bounds: PersonBounds
  spend: Spend | undefined
  heldNanos: bigint | undefined
}

/** Reads a person from a row. @param row the person's columns, with the columns of their spending */
export function readPersonRow(row: StoreRow): PersonRow {
  const heldNanos = (row.held as bigint | null) ?? undefined
  return { ...readFields(registers.persons, row), bounds: personBounds.read(row), spend: readSpent(row), heldNanos }
}

/**
 * A request for a page of people after a position. @property q a part of the name, external id or address, or the start
 * of the id
 */
export type PersonPage = {
  q?: string | undefined
  accountId?: string | undefined
  /** Only people who belong to this account, or have a key of it. */
  usingAccountId?: string | undefined
  beyond?: readonly (string | number)[] | undefined
  limit: number
}

/**
 * An account that has keys of a person. @property isOver whether all of these keys are revoked, or those of sessions
 * that are over
 */
export type PersonKeys = { personId: string; accountId: string; isOver?: boolean }

/** The fields of a row that an operator may set for a person. */
export const personFields = ['name', 'externalId', 'email', 'accountId'] as const

export type PersonField = (typeof personFields)[number]

/** Fields by which a person is found, the most reliable first. */
export const identities = ['externalId', 'email', 'name'] as const

export type IdentityField = (typeof identities)[number]

type Persons = { persons: readonly PersonRow[] }

/**
 * Finds a person by id, external id, e-mail address or name. A second identity of a person finds that person.
 * @throws BookError `no_person`; `person_ambiguous` if several people have this address or name
 */
export function findPerson({ persons }: Persons, asked: string): PersonRow {
  const live = persons.filter(({ erasedMs }) => erasedMs === undefined)
  for (const field of ['id', ...identities] as const) {
    const found = live.filter((one) => one[field] === (field === 'email' ? asked.toLowerCase() : asked))
    if (found.length > 1) throw new BookError('person_ambiguous', asked)
    if (found[0]) return live.find(({ id }) => id === found[0]!.linkedId) ?? found[0]
  }
  throw new BookError('no_person', asked)
}

/** Finds the person for a key of an account. @throws BookError, also if the person belongs to another account */
export function personOfKey(facts: Persons, asked: string, accountId: string): string {
  const person = findPerson(facts, asked)
  refuseElsewhere(person, [{ personId: person.id, accountId }])
  return person.id
}

/** Returns a version that changes whenever an editable field changes. */
export function versionOfPerson(person: PersonRow): string {
  const fields = personFields.map((field) => person[field] ?? null)
  return versionOf([person.id, ...fields, personBounds.tell(person.bounds)])
}

/** Checks that a person of an account has no keys of another account. @throws BookError */
export function refuseElsewhere({ id, accountId }: PersonRow, keys: readonly PersonKeys[]): void {
  const isElsewhere = keys.some((one) => one.personId === id && one.accountId !== accountId && !one.isOver)
  if (accountId !== undefined && isElsewhere) throw new BookError('person_elsewhere', id)
}
