import type { Json } from './case.ts'
import type { Bindings } from './match.ts'

/** Replaces the text `$model` by a name, everywhere in a value. */
export function replaceModel<T extends Json | undefined>(value: T, model: string): T {
  return replace(value, (one) => (one === '$model' ? model : undefined)) as T
}

/** Replaces each `{"$use": name}` by what `$same` bound. @throws Error if nothing is bound to the name */
export function replaceUses<T extends Json | undefined>(value: T, bindings: Bindings): T {
  return replace(value, (one) => {
    if (typeof one !== 'object' || one === null || Array.isArray(one) || typeof one['$use'] !== 'string')
      return undefined
    const bound = bindings.get(one['$use'])
    if (bound === undefined) throw new Error(`nothing was seen for "${one['$use']}", which a later request needs`)
    return bound
  }) as T
}

function replace(value: Json | undefined, find: (value: Json | undefined) => Json | undefined): Json | undefined {
  const found = find(value)
  if (found !== undefined) return found
  if (Array.isArray(value)) return value.map((entry) => replace(entry, find)!)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replace(member, find)!]))
}
