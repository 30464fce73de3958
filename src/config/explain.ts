import type { z } from 'zod'
import type { Path } from './document.ts'
import { jsonSchema } from './schema.ts'

/** One issue of the schema as ends of sentences that follow the key: unknown keys one by one, unions by what was meant. */
export function explain(issue: z.core.$ZodIssue, raw: unknown, report: (path: Path, message: string) => void): void {
  const { path } = issue
  switch (issue.code) {
    case 'unrecognized_keys': {
      const known = knownKeys(path).join(', ')
      for (const key of issue.keys) report([...path, key], `is not a known key; known here: ${known}`)
      return
    }
    case 'invalid_union': {
      // Of text or a map, the branch that got past the kind of the value is the one that was meant.
      const isMeant = (inner: z.core.$ZodIssue) => inner.path.length > 0 || inner.code === 'unrecognized_keys'
      const meant = issue.errors.find((branch) => branch.some(isMeant))
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
  // What the library says of what is not there has a kind of its own; the rest is ours.
  else
    report(
      path,
      issue.code === 'custom' || issue.message.startsWith('must')
        ? `is missing: it ${issue.message}`
        : 'is missing; add it',
    )
}

function valueAt(raw: unknown, path: Path): unknown {
  return path.reduce<unknown>((at, step) => (at as Record<PropertyKey, unknown> | null | undefined)?.[step], raw)
}

type SchemaNode = {
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode
  /** Of a map whose keys are of one kind. */
  propertyNames?: { enum?: string[] }
  items?: SchemaNode
  anyOf?: SchemaNode[]
}

/** The keys a map may have, read off the schema that editors get. */
function knownKeys(path: Path): string[] {
  let node: SchemaNode | undefined = jsonSchema()
  for (const step of path) {
    if (typeof step === 'number') node = branchOf(node, 'items')?.items
    else {
      const map: SchemaNode | undefined = branchOf(node, 'properties')
      node = map?.properties?.[String(step)] ?? map?.additionalProperties
    }
  }
  const map = branchOf(node, 'properties')
  return map?.propertyNames?.enum ?? Object.keys(map?.properties ?? {})
}

/** Of several forms the one that is a list, or a map with keys of its own. */
function branchOf(node: SchemaNode | undefined, kind: 'items' | 'properties'): SchemaNode | undefined {
  return node?.anyOf?.find((branch) => branch[kind]) ?? node
}
