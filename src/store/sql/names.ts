import { type Dialect, isOneOf, type Put } from './dialect.ts'
import { idsOfPerson } from './spends.ts'
import { ask, type StoreStep } from './step.ts'
import { slices } from './words.ts'

/** Finds names for ids in reports. No entry contains the name of a person (ruling Y21). */
export function createNames(dialect: Dialect) {
  const { schema } = dialect
  return { nameLines, namePersons, findLines, findHolders, findRotated, listLines, listIdentities }

  function* nameLines(ids: readonly string[]): StoreStep<Map<string, string>> {
    const names = new Map<string, string>()
    for (const list of slices(ids)) {
      const rows = yield* ask(
        dialect,
        (put) =>
          `SELECT scope, label, prefix FROM ${schema}.keys WHERE ${isOneOf(put, 'scope', list)} ORDER BY created_ms, id <> scope, id`,
      )
      for (const { scope, label, prefix } of rows)
        names.set(scope as string, (label === null ? prefix : `${label} (${prefix})`) as string)
    }
    return names
  }

  function* namePersons(ids: readonly string[]): StoreStep<Map<string, { id: string; name: string }>> {
    const names = new Map<string, { id: string; name: string }>()
    for (const list of slices(ids)) {
      const rows = yield* ask(
        dialect,
        (
          put,
        ) => `SELECT o.id AS word, p.id, coalesce(p.name, p.external_id, p.email, p.id) AS name FROM ${schema}.persons o
          JOIN ${schema}.persons p ON p.id = coalesce(o.linked_id, o.id)
          WHERE p.erased_ms IS NULL AND o.erased_ms IS NULL AND ${isOneOf(put, 'o.id', list)}`,
      )
      for (const { word, id, name } of rows) names.set(word as string, { id: id as string, name: name as string })
    }
    return names
  }

  /** Lists the ids of all keys in the lines of these keys. A line is a key with all its successors. */
  function* listLines(keys: readonly string[]): StoreStep<string[]> {
    const ids = new Set(keys)
    for (const list of slices(keys)) {
      const scopes = (put: Put) => `SELECT scope FROM ${schema}.keys WHERE ${isOneOf(put, 'id', list)}`
      const select = (put: Put) => `SELECT id FROM ${schema}.keys WHERE scope IN (${scopes(put)})`
      for (const { id } of yield* ask(dialect, select)) ids.add(id as string)
    }
    return [...ids]
  }

  /** Lists the ids of a person and of the identities that are linked to the person. */
  function* listIdentities(personId: string): StoreStep<string[]> {
    return (yield* ask(dialect, (put) => idsOfPerson(schema, put(personId)))).map(({ id }) => id as string)
  }

  /** Returns those of the given lines (a key with its successors) that have a valid key made by this gateway. */
  function* findRotated(scopes: readonly string[]): StoreStep<Set<string>> {
    const rotated = new Set<string>()
    for (const list of slices([...new Set(scopes)])) {
      const select = (put: Put) => `SELECT DISTINCT scope FROM ${schema}.keys
        WHERE origin IS NULL AND revoked_ms IS NULL AND ${isOneOf(put, 'scope', list)}`
      for (const { scope } of yield* ask(dialect, select)) rotated.add(scope as string)
    }
    return rotated
  }

  /** Returns, for each key that is a successor, the first key of its line (a key with its successors). */
  function* findLines(keys: readonly string[]): StoreStep<Map<string, string>> {
    const lines = new Map<string, string>()
    for (const list of slices([...new Set(keys)])) {
      const select = (put: Put) =>
        `SELECT id, scope FROM ${schema}.keys WHERE scope <> id AND ${isOneOf(put, 'id', list)}`
      for (const { id, scope } of yield* ask(dialect, select)) lines.set(id as string, scope as string)
    }
    return lines
  }

  /** Returns, for each key that belongs to a person, the id of that person. */
  function* findHolders(keys: readonly string[]): StoreStep<Map<string, string>> {
    const holders = new Map<string, string>()
    for (const list of slices([...new Set(keys)])) {
      const select = (put: Put) =>
        `SELECT id, person FROM ${schema}.keys WHERE person IS NOT NULL AND ${isOneOf(put, 'id', list)}`
      for (const { id, person } of yield* ask(dialect, select)) holders.set(id as string, person as string)
    }
    return holders
  }
}
