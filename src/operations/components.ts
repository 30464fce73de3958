/* Names the schemas of an OpenAPI document, so that generated clients have one type for each kind of object. */

type Node = { [key: string]: unknown }

/** Members of a schema that contain another schema. They add nothing to the name of the inner schema. */
const children = ['items', 'additionalProperties'] as const

/**
 * Moves each object and each enumeration of a document into `components`. Equal schemas become one component. The name
 * of a component is the `title` of its schema, or else the path at which the schema occurs first, such as
 * `AccountState`.
 * @param roots schemas, each with the name to use if it has no title
 * @returns the components by name, and a reference for each root, in the same order
 */
export function nameSchemas(roots: readonly (readonly [hint: string, schema: Node])[]): {
  schemas: Record<string, Node>
  refs: Node[]
} {
  const names = new Map<string, string>()
  const schemas: Record<string, Node> = {}
  // Schemas with a title come first, starting with the smallest. A schema inside a titled schema gets a name that
  // begins with that title.
  const titled = roots.flatMap(([, schema]) => [...findTitled(schema)])
  const bySize = new Map(titled.map((one) => [JSON.stringify(one), one])).entries()
  for (const [, one] of [...bySize].sort(([a], [b]) => a.length - b.length)) visit(one, one['title'] as string)
  const refs = roots.map(([hint, schema]) => visit(schema, hint))
  return { schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))), refs }

  function visit({ title, description, default: usual, ...schema }: Node, hint: string): Node {
    const own = (title as string | undefined) ?? hint
    const whole = { ...schema }
    for (const name of children) if (isNode(schema[name])) whole[name] = visit(schema[name], own)
    if (Array.isArray(schema['anyOf'])) whole['anyOf'] = schema['anyOf'].map((one: Node) => visit(one, own))
    if (isNode(schema['properties']))
      whole['properties'] = Object.fromEntries(
        Object.entries(schema['properties']).map(([name, one]) => [name, visit(one as Node, own + pascal(name))]),
      )
    const about = { ...(description !== undefined && { description }), ...(usual !== undefined && { default: usual }) }
    if (!isNameable(whole)) return { ...whole, ...about }
    const text = JSON.stringify(whole)
    const name = names.get(text) ?? own
    if (!names.has(text)) {
      if (schemas[name]) throw new Error(`two schemas of the API have the name ${name}: give one of them a title`)
      names.set(text, name)
      schemas[name] = { ...whole, ...(description !== undefined && { description }) }
    }
    return { $ref: `#/components/schemas/${name}`, ...about }
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a schema becomes a component: an object with members, a map of values, or an enumeration. */
function isNameable(schema: Node): boolean {
  const isTable = isNode(schema['additionalProperties']) && Object.keys(schema['additionalProperties']).length > 0
  return 'properties' in schema || isTable || (Array.isArray(schema['enum']) && schema['enum'].length > 1)
}

function* findTitled(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const one of value) yield* findTitled(one)
  if (!isNode(value)) return
  if (typeof value['title'] === 'string') yield value
  for (const one of Object.values(value)) yield* findTitled(one)
}

/** Converts a name to Pascal case: `may_choose` becomes `MayChoose`, and `account.create` becomes `AccountCreate`. */
export function pascal(name: string): string {
  return name.replace(/(?:^|[._-])(\w)/g, (_, letter: string) => letter.toUpperCase())
}
