import { randomText } from '../ids.ts'
import { BookError, type BookErrorCode } from './book-error.ts'
import { type BookChange, type BookWrite, type Facts, type Moment, whatDiffers, whatIsSet } from './book-rules.ts'
import type { BoundWishes } from './bounds.ts'
import { type PersonBounds, personBounds } from './key-bounds.ts'
import { mayHoldKey } from './keys.ts'
import { BudgetCount, identitiesOf, insertPerson, type PersonCounting, type Uncounted } from './person-budgets.ts'
import {
  findPerson,
  type IdentityField,
  identities,
  type PersonField,
  type PersonRow,
  personFields,
  refuseElsewhere,
  versionOfPerson,
} from './persons.ts'
import { isShownWhole } from './shown-text.ts'
import type { SignedIn } from './sign-in/rows.ts'
import type { ActDetails } from './trail.ts'

/*
 * The rules for people who use keys (ruling Y21). book-rules.ts has the rules for accounts. People's names are stored
 * only in their own register. The audit trail is a chain that cannot be changed later. It therefore contains the
 * person's id and the names of changed fields, but no values.
 */

/**
 * The wanted fields of a person. A field that is left out keeps its value, or is empty for a new person. Null removes
 * the value. `account` is an id or a name.
 */
export type PersonWishes = BoundWishes<PersonBounds> & {
  [Field in Exclude<PersonField, 'accountId'>]?: string | null | undefined
} & { account?: string | null | undefined }

/** Creates a person. The result is stored to answer repeated requests, so it must not contain the name (ruling Y21). */
export function createPerson(wishes: PersonWishes, { nowMs, calendar }: Moment): BookChange<{ id: string }> {
  return {
    about: aboutPerson(wishes),
    decide(facts) {
      const person = newPerson(fieldsOf(wishes, facts), nowMs)
      refuseTaken(facts, person)
      const after = { ...sayFields(person, personFields), ...whatIsSet(personBounds.tell(person.bounds)) }
      const trail = { operation: 'person.create', object: person.id, after }
      return { writes: insertPerson(person, calendar, facts), result: { id: person.id }, trail }
    },
  }
}

/** Changes a person. @param seen the version that the caller has seen, if any */
export function updatePerson(
  asked: string,
  wishes: PersonWishes,
  counting: PersonCounting,
  seen?: string | undefined,
): BookChange<PersonRow | Uncounted> {
  return {
    about: aboutPerson(wishes, asked),
    decide(facts) {
      const person = findPerson(facts, asked)
      if (seen !== undefined && seen !== versionOfPerson(person)) throw new BookError('stale', person.id)
      const result = changedPerson(person, fieldsOf(wishes, facts))
      refuseUnnamed(result)
      refuseTaken(facts, result)
      refuseElsewhere(result, facts.personKeys)
      const changed = personFields.filter((field) => person[field] !== result[field])
      const bounds = whatDiffers(personBounds.tell(person.bounds), personBounds.tell(result.bounds))
      if (changed.length === 0 && !bounds) return { writes: [], result }
      const count = new BudgetCount(facts, counting)
      const writes = setPerson(result, changed).concat(count.move(result, person, identitiesOf(facts, person)))
      const before = { ...sayFields(person, changed), ...bounds?.before }
      const after = { ...sayFields(result, changed), ...bounds?.after }
      const trail = { operation: 'person.update', object: person.id, before, after }
      return count.isComplete ? { writes: count.locking(writes), result, trail } : count.ask()
    },
  }
}

/** A person as a line of an imported list. @property line the number of the line in the file, for messages */
export type PersonLine = PersonWishes & { line: number }

export type ImportCounts = { created: number; changed: number; unchanged: number }

/**
 * Imports a list of people, either all or none. A line is matched to a person by external id, else by e-mail address,
 * else by name. A line never matches a person with another external id or address. An identity that is linked to
 * another person stays unchanged. An empty field keeps its value.
 * @throws BookError with the number of the line
 */
export function importPersons(
  lines: readonly PersonLine[],
  nowMs: number,
  counting: PersonCounting,
): BookChange<ImportCounts | Uncounted> {
  const accounts = new Set(lines.flatMap(({ account }) => account ?? []))
  return {
    about: { persons: 'all', accounts: [...accounts] },
    decide(facts) {
      const known = indexPersons(facts.persons.filter(({ erasedMs }) => erasedMs === undefined))
      const writes: BookWrite[] = []
      const count = new BudgetCount(facts, counting)
      const result = { created: 0, changed: 0, unchanged: 0 }
      const seen = new Map<string, number>()
      for (const { line, ...wishes } of lines) {
        try {
          const fields = fieldsOf(wishes, facts)
          const [found, other] = matches(known, fields)
          if (other) throw new BookError('person_ambiguous', 'it')
          const person = found ?? newPerson(fields, nowMs)
          if (seen.has(person.id)) throw new BookError('person_twice', `line ${seen.get(person.id)}`)
          seen.set(person.id, line)
          const after = found?.linkedId === undefined ? changedPerson(person, fields) : person
          const changed = personFields.filter((one) => person[one] !== after[one])
          if (changed.includes('accountId')) refuseElsewhere(after, facts.personKeys)
          const isSame = found && changed.length === 0 && versionOfPerson(found) === versionOfPerson(after)
          if (!found) writes.push(...insertPerson(person, counting.calendar, facts))
          else if (!isSame)
            writes.push(...setPerson(after, changed), ...count.move(after, found, identitiesOf(facts, found)))
          // The new values are added to the indexes, because a later line may match this person by these values.
          for (const list of indexesOf(known, { ...nobody, ...pick(after, found ? changed : personFields) }))
            list.push(after)
          result[!found ? 'created' : isSame ? 'unchanged' : 'changed']++
        } catch (error) {
          throw error instanceof BookError ? new BookError(error.code, error.subject, line) : error
        }
      }
      const trail = { operation: 'person.import', object: 'persons', after: result }
      return count.isComplete ? { writes: count.locking(writes), result, trail } : count.ask()
    },
  }
}

/**
 * Records that two people are one person with two identities. From then on, all keys belong to the first person, and
 * reports count both people's entries together. The external id of the second person is kept, and a search for it finds
 * the first person.
 */
export function linkPersons(asked: string, other: string, counting: PersonCounting): BookChange<PersonRow | Uncounted> {
  return {
    about: { persons: [asked, other] },
    decide(facts) {
      const [person, second] = [findPerson(facts, asked), findPerson(facts, other)]
      const [personId, secondId] = [person.id, second.id]
      if (personId === secondId) throw new BookError('person_same', personId)
      const result = { ...person }
      for (const field of ['name', 'email', 'accountId'] as const) result[field] ??= second[field]
      result.bounds = personBounds.after(second.bounds, whatIsBound(person.bounds))
      refuseUnbound(result)
      const theirs = facts.personKeys.map((one) => ({ ...one, personId }))
      refuseElsewhere(result, second.accountId ? [...theirs, { personId, accountId: second.accountId }] : theirs)
      const count = new BudgetCount(facts, counting)
      const ids = [...identitiesOf(facts, person), ...identitiesOf(facts, second)]
      const counts = count.move(result, { ...person, spend: undefined }, ids)
      const writes: BookWrite[] = [
        { kind: 'set_person', personId, fields: pick(result, ['name', 'email', 'accountId']) },
        ...count.end(second),
        { kind: 'link_person', personId: secondId, to: personId },
        ...giveKeys(facts, secondId, personId),
        ...counts,
      ]
      const trail = { operation: 'person.link', object: personId, after: { identity: secondId } }
      return count.isComplete ? { writes: count.locking(writes), result, trail } : count.ask()
    },
  }
}

/**
 * Deletes all data about a person and about their identities. If the person signs in again, they are a new person.
 * Their sessions end. Keys that are not from sign-ins stay valid and belong to nobody. Entries keep the person's id.
 */
export function erasePerson(asked: string, nowMs: number): BookChange<PersonRow> {
  return {
    about: { persons: [asked] },
    decide(facts) {
      const person = findPerson(facts, asked)
      const { id: personId, createdMs } = person
      const count = new BudgetCount(facts)
      const writes: BookWrite[] = [
        { kind: 'erase_person', personId, erasedMs: nowMs },
        ...giveKeys(facts, personId, null),
        ...count.end(person),
      ]
      return {
        writes: count.locking(writes),
        result: { ...nobody, id: personId, createdMs, erasedMs: nowMs },
        trail: { operation: 'person.erase', object: personId, after: { erased: true } },
      }
    },
  }
}

/**
 * Ends everything that a person got by signing in: sessions, keys that the person made for agents, and browser sessions
 * of the consoles.
 */
export function signOutPerson(asked: string, nowMs: number): BookChange<PersonRow> {
  return {
    about: { persons: [asked] },
    decide(facts) {
      const person = findPerson(facts, asked)
      const { id: personId } = person
      return {
        // The keys stay the person's. The second kind of write makes servers read the accounts of these keys again.
        writes: [{ kind: 'sign_out_person', personId, endedMs: nowMs }, ...giveKeys(facts, personId, personId)],
        result: person,
        trail: { operation: 'person.sign_out', object: personId, after: { signed_out: true } },
      }
    },
  }
}

/**
 * Finds the person with an identity, or creates a new person. A name or address that the person lacks is taken from the
 * provider, if its form is valid. The person gets the bounds of the sign-in rules. The person also gets the account of
 * these rules, if the rules set bounds or if the person has an account already.
 * @param accountId undefined for an operator, who has no account
 * @throws BookError `person_elsewhere` if the person has keys of another account
 */
export function personOfIdentity(
  facts: Facts,
  { issuer, subject, budget, requestsPerMinute, ...texts }: Omit<SignedIn, 'account' | 'role'>,
  accountId: string | undefined,
  counting: PersonCounting,
): { person: PersonRow; writes: BookWrite[] } | { uncounted: Uncounted } {
  const identity = facts.persons.find((one) => one.issuer === issuer && one.subject === subject)
  const known = facts.persons.find(({ id }) => id === identity?.linkedId) ?? identity
  const bounds = { budget, requestsPerMinute }
  const hasBounds = known?.accountId !== undefined || Object.values(bounds).some((one) => one !== undefined)
  const isBound = accountId !== undefined && hasBounds
  const fields: PersonFields = { wishes: bounds, ...(isBound && { accountId }) }
  for (const field of ['name', 'email'] as const) {
    const text = field === 'email' ? texts.email?.toLowerCase() : texts.name?.trim()
    if (text !== undefined && forms[field].isRight(text) && known?.[field] === undefined) fields[field] = text
  }
  if (!known) {
    const id = `per_${randomText(16)}`
    const person = changedPerson({ ...nobody, issuer, subject, id, createdMs: facts.nowMs }, fields)
    return { person, writes: insertPerson(person, counting.calendar, facts) }
  }
  const person = changedPerson(known, fields)
  if (isBound) refuseElsewhere(person, facts.personKeys)
  const count = new BudgetCount(facts, counting)
  const changed = personFields.filter((field) => known[field] !== person[field])
  const writes = setPerson(person, changed).concat(count.move(person, known, identitiesOf(facts, known)))
  return count.isComplete ? { person, writes: count.locking(writes) } : { uncounted: count.ask().result }
}

function aboutPerson({ externalId, account }: PersonWishes, asked?: string) {
  const persons = [asked, externalId].flatMap((one) => one ?? [])
  return { persons, ...(typeof account === 'string' && { accounts: [account] }) }
}

const shown = (most: number) => (text: string) => isShownWhole(text, most) && !mayHoldKey(text)

/**
 * The valid forms of fields. An address has at most 254 characters (RFC 5321 4.5.3.1.3). A name in the form of an id is
 * refused, because a search would take it for an id.
 */
const forms: Readonly<Record<IdentityField, { isRight(text: string): boolean; wrong: BookErrorCode }>> = {
  externalId: { isRight: shown(200), wrong: 'external_id_invalid' },
  email: { isRight: (text) => shown(254)(text) && /^[^\s@]+@[^\s@]+$/.test(text), wrong: 'email_invalid' },
  name: { isRight: (text) => shown(100)(text) && !/^per_[0-9A-Za-z]{16}$/.test(text), wrong: 'person_name_invalid' },
}

/** Whether a text is valid for a field of a person. */
export function isPersonField(field: IdentityField, text: string): boolean {
  return forms[field].isRight(text)
}

/** Checks the wanted fields, and returns them in the form of a row. */
function fieldsOf(
  { account, budget, requestsPerMinute, ...texts }: PersonWishes,
  { accounts }: Pick<Facts, 'accounts'>,
): PersonFields {
  const fields: PersonFields = { wishes: { budget, requestsPerMinute } }
  for (const field of identities) {
    const text = texts[field]
    if (text === undefined) continue
    if (text !== null && !forms[field].isRight(text)) throw new BookError(forms[field].wrong, '')
    fields[field] = (field === 'email' ? text?.toLowerCase() : text) ?? undefined
  }
  if (account === undefined) return fields
  const found = accounts.find(({ id, name }) => id === account || name === account)
  if (account !== null && !found) throw new BookError('no_account', account)
  return { ...fields, accountId: found?.id }
}

const nobody = {
  ...{ name: undefined, externalId: undefined, email: undefined, accountId: undefined },
  ...{ erasedMs: undefined, linkedId: undefined, issuer: undefined, subject: undefined },
  ...{ bounds: personBounds.none, spend: undefined, heldNanos: undefined },
}

/** The values that a change sets in the row of a person, and the wanted bounds. */
type PersonFields = Partial<Pick<PersonRow, PersonField>> & { wishes: BoundWishes<PersonBounds> }

/**
 * Makes a person from these fields. @throws BookError if no field identifies the person, or a field has an invalid form
 */
export function newPerson(fields: PersonFields, nowMs: number): PersonRow {
  const person = changedPerson({ ...nobody, id: `per_${randomText(16)}`, createdMs: nowMs }, fields)
  refuseUnnamed(person)
  return person
}

/** Returns the changed person. @throws BookError if the person then has bounds (budget, rate) but no account */
function changedPerson(person: PersonRow, { wishes, ...fields }: PersonFields): PersonRow {
  const after = { ...person, ...fields, bounds: personBounds.after(person.bounds, wishes) }
  refuseUnbound(after)
  return after
}

function refuseUnbound({ id, accountId, bounds }: PersonRow): void {
  if (accountId === undefined && personBounds.isBounded(bounds)) throw new BookError('person_unbound', id)
}

function whatIsBound(bounds: PersonBounds): BoundWishes<PersonBounds> {
  return Object.fromEntries(Object.entries(bounds).filter(([, bound]) => bound !== undefined))
}

function setPerson(person: PersonRow, changed: readonly PersonField[]): BookWrite[] {
  return changed.length === 0 ? [] : [{ kind: 'set_person', personId: person.id, fields: pick(person, changed) }]
}

function refuseUnnamed(person: PersonRow): void {
  if (identities.every((field) => person[field] === undefined) && person.subject === undefined)
    throw new BookError('person_unnamed', person.id)
}

function refuseTaken({ persons }: Facts, { id, externalId }: PersonRow): void {
  const isTaken = externalId !== undefined && persons.some((one) => one.id !== id && one.externalId === externalId)
  if (isTaken) throw new BookError('person_taken', externalId)
}

function giveKeys({ personKeys }: Facts, from: string, to: string | null): BookWrite[] {
  const theirs = personKeys.filter(({ personId }) => personId === from)
  return theirs.map(({ accountId }) => ({ kind: 'give_keys', accountId, from, to }))
}

/**
 * Describes fields for the audit trail. The trail cannot be erased later. So it records which fields have values, but
 * no value except the account's id (ruling Y21).
 */
function sayFields(person: PersonRow, fields: readonly PersonField[]): ActDetails {
  const said = fields.map((field) => [
    field,
    field === 'accountId' ? (person[field] ?? null) : person[field] !== undefined,
  ])
  return Object.fromEntries(said)
}

function pick(person: PersonRow, fields: readonly PersonField[]): Partial<PersonRow> {
  return Object.fromEntries(fields.map((field) => [field, person[field]]))
}

type PersonIndex = Readonly<Record<IdentityField, Map<string, PersonRow[]>>>

function indexPersons(persons: readonly PersonRow[]): PersonIndex {
  const index = { externalId: new Map(), email: new Map(), name: new Map() }
  for (const person of persons) for (const list of indexesOf(index, person)) list.push(person)
  return index
}

function indexesOf(index: PersonIndex, person: Pick<PersonRow, IdentityField>): PersonRow[][] {
  return identities.flatMap((field) => {
    const text = person[field]
    if (text === undefined) return []
    const list = index[field].get(text) ?? []
    index[field].set(text, list)
    return [list]
  })
}

/** Finds the people whom an imported line may match: by external id, else by e-mail address, else by name. */
function matches(index: PersonIndex, fields: Partial<PersonRow>): readonly PersonRow[] {
  for (const [at, field] of identities.entries()) {
    const surer = identities.slice(0, at)
    const differs = (one: PersonRow) => surer.some((it) => fields[it] !== undefined && one[it] !== undefined)
    const text = fields[field]
    const found = text === undefined ? [] : (index[field].get(text) ?? []).filter((one) => !differs(one))
    if (found.length > 0) return found
  }
  return []
}
