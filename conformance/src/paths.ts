import type { Json } from './case.ts'

/*
 * Paths into JSON: `body.choices[0].delta.content`. Steps:
 *
 *     name          a member; ["any name"] for one with a dot, or in other characters
 *     [0] [-1]      an entry, counted from the start or the end
 *     [*]           each entry: the result is a list
 *     [?type=text]  each entry whose member `type` is the text or number after it: the result is a list
 *     |json         the value that a string has as JSON
 *     |join         the strings of a list, as one string
 *     |length       the number of entries or characters
 *     |keys         the names of the members
 */

type Step =
  | { kind: 'member'; name: string }
  | { kind: 'entry'; at: number }
  | { kind: 'each'; where?: { name: string; is: string } }
  | { kind: 'apply'; name: string }

const stepForm =
  /\["((?:[^"\\]|\\.)*)"\]|\[(-?\d+)\]|\[\*\]|\[\?([\w.-]+)=([^\]]*)\]|\|(json|join|length|keys)\b|\.?([A-Za-z_$][\w$-]*)/gy

/** Splits a path into its steps. @throws Error at the first character that begins no step */
export function readPath(path: string): Step[] {
  const steps: Step[] = []
  stepForm.lastIndex = 0
  while (stepForm.lastIndex < path.length) {
    const start = stepForm.lastIndex
    const found = stepForm.exec(path)
    if (!found) throw new Error(`the path ${path} cannot be read from its character ${start + 1} on`)
    const [whole, quoted, entry, whereName, whereIs, apply, name] = found
    if (quoted !== undefined) steps.push({ kind: 'member', name: JSON.parse(`"${quoted}"`) })
    else if (entry !== undefined) steps.push({ kind: 'entry', at: Number(entry) })
    else if (whole === '[*]') steps.push({ kind: 'each' })
    else if (whereName !== undefined) steps.push({ kind: 'each', where: { name: whereName, is: whereIs! } })
    else if (apply !== undefined) steps.push({ kind: 'apply', name: apply })
    else steps.push({ kind: 'member', name: name! })
  }
  return steps
}

/** Returns the value at a path; undefined if it is absent. After `[*]` or `[?…]`, the rest is taken of each entry. */
export function valueAt(document: Json | undefined, path: string): Json | undefined {
  return walk(document, readPath(path))
}

function walk(value: Json | undefined, steps: readonly Step[]): Json | undefined {
  const [step, ...rest] = steps
  if (!step) return value
  switch (step.kind) {
    case 'member':
      return isObject(value) && Object.hasOwn(value, step.name) ? walk(value[step.name], rest) : undefined
    case 'entry':
      return Array.isArray(value) ? walk(value.at(step.at), rest) : undefined
    case 'each': {
      if (!Array.isArray(value)) return undefined
      const { where } = step
      const chosen = where ? value.filter((entry) => String(valueAt(entry, where.name)) === where.is) : value
      // Nested lists become one list. Steps such as |join, after the last [*], apply to all of that list.
      const split = rest.findIndex(({ kind }) => kind === 'apply')
      const [inner, outer] = split < 0 ? [rest, []] : [rest.slice(0, split), rest.slice(split)]
      const isNested = inner.some(({ kind }) => kind === 'each')
      const values = chosen.map((entry) => walk(entry, inner)).filter((entry) => entry !== undefined)
      return walk(isNested ? values.flat() : values, outer)
    }
    case 'apply':
      return walk(apply(value, step.name), rest)
  }
}

function apply(value: Json | undefined, name: string): Json | undefined {
  if (name === 'length') return typeof value === 'string' || Array.isArray(value) ? value.length : undefined
  if (name === 'keys') return isObject(value) ? Object.keys(value) : undefined
  if (name === 'join')
    return Array.isArray(value) ? value.filter((part) => typeof part === 'string').join('') : undefined
  // Of a list, each string is read.
  if (Array.isArray(value)) return value.flatMap((entry) => apply(entry, name) ?? [])
  if (typeof value !== 'string') return undefined
  try {
    return JSON.parse(value) as Json
  } catch {
    return undefined
  }
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
