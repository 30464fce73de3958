import { randomText } from '../ids.ts'
import { newAccount } from './book-rows.ts'
import {
  type BookChange,
  type BookWrite,
  beginSpend,
  checkLabel,
  checkName,
  issueKey,
  postCredit,
  whatIsSet,
} from './book-rules.ts'
import type { BoundWishes } from './bounds.ts'
import type { Calendar } from './calendar.ts'
import { formatCredits } from './credit.ts'
import { type AccountBounds, accountBounds, type KeyBounds, keyBounds, type PersonBounds } from './key-bounds.ts'
import { insertPerson } from './person-budgets.ts'
import { newPerson } from './person-rules.ts'
import { type PersonRow, refuseElsewhere } from './persons.ts'
import type { Trail } from './trail.ts'

/*
 * Keys of another gateway, of which only the digests are known. They work like our own keys, so clients need no change
 * when they move to triwire. A rotation replaces such a key by an ordinary key with the same bounds and spending.
 */

/** An account for imported keys: the existing account of that name, or a new one. */
type ForeignAccount = {
  name: string
  /** The state of a new account. An existing account keeps its state. */
  state: 'active' | 'suspended'
  bounds: BoundWishes<AccountBounds>
  /** Credit that is booked once with this reference, in nano-credits; 0 for no credit. */
  creditNanos: bigint
  reference: string
}

/**
 * A key to import.
 * @property digest the result of `digestOfHex`. Of several keys with one digest, only the first is imported
 * @property account the name of one of the imported accounts
 */
type ForeignKey = {
  digest: string
  /** Characters by which people tell the key from others. They need not be unique. */
  prefix: string
  label: string | undefined
  account: string
  /** The id of the key's person in the operator's own directory. If no person has this id, a new person is created. */
  externalId: string | undefined
  /** When the key expires, in Unix milliseconds. */
  expiresMs: number | undefined
  /** The expiry that the other gateway set for the key, in Unix milliseconds. A successor of the key gets it too. */
  ownExpiresMs: number | undefined
  bounds: BoundWishes<KeyBounds>
}

/**
 * The fields with which the person of a key is created. They are ignored if the person exists already.
 * @property account required if the person has bounds
 */
type ForeignPerson = {
  externalId: string
  name?: string | undefined
  email?: string | undefined
  account?: string | undefined
  bounds: BoundWishes<PersonBounds>
}

/**
 * Accounts and keys that are imported at once.
 * @property origin the name of the other gateway, in one word
 * @property persons the people of whom more is known than the external id in their keys
 */
export type ForeignImport = {
  origin: string
  accounts: readonly ForeignAccount[]
  persons?: readonly ForeignPerson[]
  keys: readonly ForeignKey[]
}

/** The numbers of created objects. @property keysKnown the number of keys that existed before, which stay unchanged */
export type ForeignCounts = {
  accounts: number
  persons: number
  keys: number
  keysKnown: number
  creditedNanos: bigint
}

/** The most keys in one import. During the import, no other change of the books can be made. */
export const foreignKeysMax = 10_000

/**
 * The maximum number of people to look up by id. For more people the statement would be too long, so all people of the
 * store are read.
 */
const namedPersonsMax = 1_000

/**
 * Imports keys of another gateway with their accounts and people, either all or none. Repeating an import changes
 * nothing. Keys are matched by digest, credits by reference, accounts by name, and people by external id.
 * @throws BookError `name_invalid`, `label_invalid`, `label_secret`, `external_id_invalid`, `person_elsewhere`,
 *   `overflow`
 */
export function importForeign(
  { origin, accounts, persons: known = [], keys }: ForeignImport,
  calendar: Calendar,
): BookChange<ForeignCounts> {
  const externalIds = [...new Set(keys.flatMap(({ externalId }) => externalId ?? []))]
  return {
    about: {
      accounts: accounts.map(({ name }) => name),
      persons: externalIds.length > namedPersonsMax ? 'all' : externalIds,
      digests: keys.map(({ digest }) => digest),
      references: accounts.map(({ reference }) => reference),
      isDated: true,
    },
    decide(facts) {
      const { nowMs } = facts
      const result = { accounts: 0, persons: 0, keys: 0, keysKnown: 0, creditedNanos: 0n }
      const writes: BookWrite[] = []
      const parts: Trail[] = []
      const ids = new Map<string, string>()
      const named = new Map(facts.accounts.map((account) => [account.name, account]))
      for (const { name, state, bounds: wishes, creditNanos, reference } of accounts) {
        checkName(name)
        const existing = named.get(name)
        const bounds = accountBounds.after(accountBounds.none, wishes)
        const account = existing ?? { ...newAccount(`acct_${randomText(16)}`, name, nowMs), state, bounds }
        const { id } = account
        ids.set(name, id)
        if (!existing) {
          writes.push({ kind: 'insert_account', account })
          const after = { name, state, ...whatIsSet(accountBounds.tell(bounds)) }
          parts.push({ operation: 'account.create', object: id, after })
          if (bounds.budget) writes.push(...beginSpend(id, id, bounds.budget, calendar, facts))
          result.accounts++
        }
        if (creditNanos === 0n || facts.references?.has(reference)) continue
        writes.push(postCredit(account, creditNanos, reference))
        parts.push({
          operation: 'account.credit',
          object: id,
          after: { amount: formatCredits(creditNanos), reference },
        })
        result.creditedNanos += creditNanos
      }
      const digests = new Set(facts.digests)
      const fieldsOf = new Map<string, Omit<ForeignPerson, 'externalId'>>(known.map((one) => [one.externalId, one]))
      const persons = new Map<string, PersonRow>()
      for (const person of facts.persons) if (person.externalId) persons.set(person.externalId, person)
      const personOf = (externalId: string): PersonRow => {
        const existing = persons.get(externalId)
        // The id may be that of a second identity. Then the key belongs to the person of this identity.
        if (existing) return facts.persons.find(({ id }) => id === existing.linkedId) ?? existing
        const { name, email, account, bounds: wishes } = fieldsOf.get(externalId) ?? { bounds: {} }
        const accountId = account === undefined ? undefined : ids.get(account)
        const person = newPerson({ externalId, name, email, accountId, wishes }, nowMs)
        persons.set(externalId, person)
        writes.push(...insertPerson(person, calendar, facts))
        result.persons++
        return person
      }
      for (const { account, externalId, label, bounds: wishes, ...key } of keys) {
        if (digests.has(key.digest)) {
          result.keysKnown++
          continue
        }
        digests.add(key.digest)
        const accountId = ids.get(account)!
        if (label !== undefined) checkLabel(label, accountId)
        const person = externalId === undefined ? undefined : personOf(externalId)
        if (person) refuseElsewhere(person, [{ personId: person.id, accountId }])
        const bounds = keyBounds.after(keyBounds.none, { ...wishes, person: person?.id })
        const { write } = issueKey({ accountId, label, ownExpiresMs: key.ownExpiresMs, bounds }, nowMs)
        const row = { ...write.key, ...key, origin }
        writes.push({ ...write, key: row })
        if (bounds.budget) writes.push(...beginSpend(accountId, row.id, bounds.budget, calendar, facts))
        result.keys++
      }
      const { creditedNanos: _, ...counts } = result
      return { writes, result, parts, trail: { operation: 'key.import', object: origin, after: counts } }
    },
  }
}
