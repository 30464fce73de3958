import { isDeepStrictEqual } from 'node:util'
import { asObject } from '../../../bytes/json.ts'

/** The path to a value: keys of objects, and indexes of lists. */
export type ValuePath = readonly (string | number)[]

/**
 * A value to insert or to replace at a place. If it is undefined, the old value is removed. An index after the end of a
 * list appends.
 */
export type ValueChange = { place: ValuePath; value: unknown }

type Wishes = {
  /**
   * For each list, by its path (`a.b`): the key that identifies the entries of the list. A list without such a key is
   * replaced as a whole.
   */
  lists?: Readonly<Record<string, string>>
  /** Paths of values to remove. A path at which `ours` has a value is not removed. */
  without?: readonly (readonly string[])[]
}

/** Finds the changes that make `theirs` contain all of `ours` and leave the rest as it is. */
export function findChanges(theirs: unknown, ours: unknown, { lists = {}, without = [] }: Wishes): ValueChange[] {
  return [
    ...without
      .filter((place) => valueAt(ours, place) === undefined && valueAt(theirs, place) !== undefined)
      .map((place) => ({ place, value: undefined })),
    ...walk(theirs, ours, [], lists),
  ]
}

function walk(
  theirs: unknown,
  ours: unknown,
  place: ValuePath,
  lists: Readonly<Record<string, string>>,
): ValueChange[] {
  const identity = lists[place.join('.')]
  if (identity !== undefined && Array.isArray(ours)) {
    const own = Array.isArray(theirs) ? theirs : []
    if (!Array.isArray(theirs)) return [{ place, value: ours }]
    let end = own.length
    return ours.flatMap((entry) => {
      const at = own.findIndex((one) => asObject(one)?.[identity] === entry[identity])
      if (at >= 0 && isDeepStrictEqual(own[at], entry)) return []
      return [{ place: [...place, at >= 0 ? at : end++], value: entry }]
    })
  }
  const [left, right] = [asObject(theirs), asObject(ours)]
  if (left && right)
    return Object.entries(right).flatMap(([key, value]) => walk(left[key], value, [...place, key], lists))
  return isDeepStrictEqual(theirs, ours) ? [] : [{ place, value: ours }]
}

function valueAt(value: unknown, place: ValuePath): unknown {
  return place.reduce<unknown>(
    (inner, key) => (Array.isArray(inner) ? inner[Number(key)] : asObject(inner)?.[key]),
    value,
  )
}

/** Applies the changes to parsed values. `editSettings` compares the edited text with the result. */
export function applyChanges(value: unknown, changes: readonly ValueChange[]): unknown {
  const copy = structuredClone(value) ?? {}
  const root = { root: copy } as Record<string, unknown>
  for (const change of changes) {
    const place: ValuePath = ['root', ...change.place]
    let inner = root as Record<string | number, unknown>
    place.slice(0, -1).forEach((key, at) => {
      inner[key] ??= typeof place[at + 1] === 'number' ? [] : {}
      inner = inner[key] as Record<string | number, unknown>
    })
    const last = place.at(-1)!
    if (change.value === undefined) delete inner[last]
    else inner[last] = change.value
  }
  return root['root']
}
