import { BookError } from './book-error.ts'
import { readSpent, type StoreRow, versionOf } from './book-rows.ts'
import type { Spend } from './budget.ts'
import { type PersonBounds, personBounds } from './key-bounds.ts'
import { type BookRow, readFields, registers } from './registers.ts'

/* People who use keys: their rows, and how they are found. The rules are in person-rules.ts. */

/** @property spend of its budget, as of a key @property heldNanos by running requests, if the store knows it */
export type PersonRow = BookRow<'persons'> & {
  bounds: PersonBounds
  spend: Spend | undefined
  heldNanos: bigint | undefined
}

/** @param row of the person's columns, with what they have spent */
export function readPersonRow(row: StoreRow): PersonRow {
  const heldNanos = (row.held as bigint | null) ?? undefined
  return { ...readFields(registers.persons, row), bounds: personBounds.read(row), spend: readSpent(row), heldNanos }
}

/** A page of people after a place. @property q a part of the name, external id or address, or the start of the id */
export type PersonPage = {
  q?: string | undefined
  accountId?: string | undefined
  /** Those of this account, and all who have a key of it. */
  usingAccountId?: string | undefined
  beyond?: readonly (string | number)[] | undefined
  limit: number
}

/** An account that has keys of a person, revoked ones left out. */
export type PersonKeys = { personId: string; accountId: string }

/** All that an operator may say of a person, by the fields of a row. */
export const personFields = ['name', 'externalId', 'email', 'accountId'] as const

export type PersonField = (typeof personFields)[number]

/** Fields by which a person is found, the surest first. */
export const identities = ['externalId', 'email', 'name'] as const

export type IdentityField = (typeof identities)[number]

type Persons = { persons: readonly PersonRow[] }

/**
 * The person that a text means: by id, by external id, or by an e-mail address or a name that only one person has. A second
 * identity means the person that it belongs to.
 * @throws BookError `no_person`, `person_ambiguous`
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

/** The person that a key of an account is to have. @throws BookError also if the person is of another account */
export function personOfKey(facts: Persons, asked: string, accountId: string): string {
  const person = findPerson(facts, asked)
  refuseElsewhere(person, [{ personId: person.id, accountId }])
  return person.id
}

/** Another one whenever something that can be edited is another. */
export function versionOfPerson(person: PersonRow): string {
  const fields = personFields.map((field) => person[field] ?? null)
  return versionOf([person.id, ...fields, personBounds.tell(person.bounds)])
}

/** A person of an account has no keys of others. @throws BookError */
export function refuseElsewhere({ id, accountId }: PersonRow, keys: readonly PersonKeys[]): void {
  const isElsewhere = keys.some((one) => one.personId === id && one.accountId !== accountId)
  if (accountId !== undefined && isElsewhere) throw new BookError('person_elsewhere', id)
}
