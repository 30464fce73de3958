import type { z } from 'zod'
import { asObject } from '../bytes/json.ts'
import type { Path } from './document.ts'
import { litellmKeyCure } from './litellm-words.ts'
import { jsonSchema } from './schema.ts'

/** Reports a mistake that the schema found; unknown keys one by one. The key and the message form one sentence. */
export function explain(issue: z.core.$ZodIssue, raw: unknown, report: (path: Path, message: string) => void): void {
  const { path } = issue
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(path, raw, issue.keys).join(', ')
      for (const key of issue.keys) {
        const cure = litellmKeyCure(key)
        report([...path, key], `is not a known key; ${cure ?? `known here: ${known}`}`)
      }
      return
    }
    case 'invalid_union': {
      // No form of the schema accepts the value. The form whose type fits is probably the intended one. If several
      // forms are maps, the map with the fewest unknown keys is chosen.
      const isMeant = (inner: z.core.$ZodIssue) => inner.path.length > 0 || inner.code === 'unrecognized_keys'
      const [meant] = issue.errors
        .filter((branch) => branch.some(isMeant))
        .sort((one, other) => countUnknown(one) - countUnknown(other))
      if (!meant) break
      for (const inner of meant) explain({ ...inner, path: [...path, ...inner.path] }, raw, report)
      return
    }
    case 'invalid_key':
      report(path, issue.issues[0]?.message ?? 'is not a valid name')
      return
    case 'invalid_type':
      if (valueAt(raw, path) !== undefined && /^(object|record)$/.test(issue.expected)) {
        report(path, 'must be a map of keys')
        return
      }
  }
  if (valueAt(raw, path) !== undefined) report(path, issue.message)
  // A missing value gets a message of ours instead of the library's. Messages of our own checks are kept.
  else
    report(
      path,
      issue.code === 'custom' || issue.message.startsWith('must')
        ? `is missing: it ${issue.message}`
        : 'is missing; add it',
    )
}

function countUnknown(branch: readonly z.core.$ZodIssue[]): number {
  return branch.reduce((sum, { path, code, ...issue }) => {
    return sum + (path.length === 0 && 'keys' in issue ? (issue.keys as string[]).length : 0)
  }, 0)
}

function valueAt(raw: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, step) => (at as Record<PropertyKey, unknown> | null | undefined)?.[step], raw)
}

type SchemaNode = {
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode
  /** Lists the allowed keys of a map, if the map has a fixed set of keys. */
  propertyNames?: { enum?: string[] }
  items?: SchemaNode
  anyOf?: SchemaNode[]
}

/**
 * Returns the keys that the JSON Schema allows in the map at a path of the configuration. The schema may have several
 * forms of this map. The keys are those of the form to which just these keys of the map are unknown.
 * @param unknown the keys of the map that are reported as unknown
 */
function knownKeys(path: Path, raw: unknown, unknown: readonly string[]): string[] {
  let node: SchemaNode | undefined = jsonSchema()
  for (const step of path) {
    if (typeof step === 'number') node = branchesOf(node, 'items')[0]?.items
    else {
      const map: SchemaNode | undefined = branchesOf(node, 'properties')[0]
      node = map?.properties?.[String(step)] ?? map?.additionalProperties
    }
  }
  const keys = Object.keys(asObject(valueAt(raw, path)) ?? {})
  const forms = branchesOf(node, 'properties').map(
    (map) => map.propertyNames?.enum ?? Object.keys(map.properties ?? {}),
  )
  const meant = forms.find((known) => keys.every((key) => known.includes(key) !== unknown.includes(key)))
  return meant ?? forms[0] ?? []
}

/** If the schema allows several forms of a value, returns the forms that are lists or maps with named keys. */
function branchesOf(node: SchemaNode | undefined, kind: 'items' | 'properties'): SchemaNode[] {
  const branches = node?.anyOf?.filter((branch) => branch[kind]) ?? []
  return branches.length > 0 || !node ? branches : [node]
}
