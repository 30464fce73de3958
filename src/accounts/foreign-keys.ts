import { randomText } from '../ids/base62.ts'
import { newAccount } from './book-rows.ts'
import {
  type BookChange,
  type BookWrite,
  beginSpend,
  checkLabel,
  checkName,
  issueKey,
  postCredit,
} from './book-rules.ts'
import type { BoundWishes } from './bounds.ts'
import type { Calendar } from './calendar.ts'
import { type AccountBounds, accountBounds, type KeyBounds, keyBounds, type PersonBounds } from './key-bounds.ts'
import { insertPerson } from './person-budgets.ts'
import { newPerson } from './person-rules.ts'
import { type PersonRow, refuseElsewhere } from './persons.ts'

/*
 * Keys of another gateway, of which only digests are known. They work as keys of ours do, so that no client changes on the day of
 * the move. A rotation makes an ordinary key of the same line.
 */

/** An account that keys are brought into: the one of that name, or a new one. */
type ForeignAccount = {
  name: string
  /** For a new account only; one that exists stays as it is. */
  state: 'active' | 'suspended'
  bounds: BoundWishes<AccountBounds>
  /** Credit that is booked once, with this reference; 0 for none. */
  creditNanos: bigint
  reference: string
}

/**
 * A key to bring in. @property digest as `digestOfHex` makes it; of two keys with one digest the first counts
 * @property account the name of one of the accounts
 */
type ForeignKey = {
  digest: string
  /** Characters by which people tell it from others. It is not unique. */
  prefix: string
  label: string | undefined
  account: string
  /** The id of its person in the operator's own directory; a person is made if nobody has it. */
  externalId: string | undefined
  /** When it ends, in Unix milliseconds. */
  expiresMs: number | undefined
  /** The end of its successor. */
  ownExpiresMs: number | undefined
  bounds: BoundWishes<KeyBounds>
}

/** Fields of a person who is made for a key. A person who exists stays as they are. @property account required by a bound */
type ForeignPerson = {
  externalId: string
  name?: string | undefined
  email?: string | undefined
  account?: string | undefined
  bounds: BoundWishes<PersonBounds>
}

/**
 * Accounts and keys that are brought in at once.
 * @property origin the gateway, in a word @property persons people of the keys of whom more than an id is known
 */
export type ForeignImport = {
  origin: string
  accounts: readonly ForeignAccount[]
  persons?: readonly ForeignPerson[]
  keys: readonly ForeignKey[]
}

/** Counts of what was made. @property keysKnown keys that were there before, which stay as they are */
export type ForeignCounts = {
  accounts: number
  persons: number
  keys: number
  keysKnown: number
  creditedNanos: bigint
}

/** As many keys are brought in at once: no other change of the books is made meanwhile. */
export const foreignKeysMax = 10_000

/** With more people, all are read: naming each would be too many values for one statement. */
const namedPersonsMax = 1_000

/**
 * Brings in keys of another gateway with their accounts and people, whole or not at all. A second import of the same changes
 * nothing. Keys are known by their digests, credits by references, accounts by names, and people by external ids.
 * @throws BookError `name_invalid`, `label_invalid`, `label_secret`, `external_id_invalid`, `person_elsewhere`, `overflow`
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
          if (bounds.budget) writes.push(...beginSpend(id, id, bounds.budget, calendar, facts))
          result.accounts++
        }
        if (creditNanos === 0n || facts.references?.has(reference)) continue
        writes.push(postCredit(account, creditNanos, reference))
        result.creditedNanos += creditNanos
      }
      const digests = new Set(facts.digests)
      const fieldsOf = new Map<string, Omit<ForeignPerson, 'externalId'>>(known.map((one) => [one.externalId, one]))
      const persons = new Map<string, PersonRow>()
      for (const person of facts.persons) if (person.externalId) persons.set(person.externalId, person)
      const personOf = (externalId: string): PersonRow => {
        const existing = persons.get(externalId)
        if (existing) return existing
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
        const bounds = keyBounds.after(keyBounds.none, { ...wishes, person: person?.linkedId ?? person?.id })
        const { write } = issueKey({ accountId, label, ownExpiresMs: key.ownExpiresMs, bounds }, nowMs)
        const row = { ...write.key, ...key, origin }
        writes.push({ ...write, key: row })
        if (bounds.budget) writes.push(...beginSpend(accountId, row.id, bounds.budget, calendar, facts))
        result.keys++
      }
      const { creditedNanos: _, ...counts } = result
      return { writes, result, trail: { operation: 'key.import', object: origin, after: counts } }
    },
  }
}
