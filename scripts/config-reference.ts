import { jsonSchema } from '../src/config/schema.ts'

type SchemaNode = {
  type?: string
  const?: unknown
  enum?: unknown[]
  pattern?: string
  default?: unknown
  description?: string
  required?: string[]
  properties?: Record<string, SchemaNode>
  additionalProperties?: SchemaNode | false
  items?: SchemaNode
  anyOf?: SchemaNode[]
}

/** Makes the tables of `docs/configuration.md`: one for each map of the file, with a row for each key. */
export function configReference(): string {
  return [...tables('', jsonSchema(), new Set())].join('\n')
}

/** Makes the table of a map, then those of the maps in it. @param told maps that already have a table, by their keys */
function* tables(title: string, node: SchemaNode, told: Set<string>): Iterable<string> {
  const keys = Object.keys(node.properties ?? {}).join()
  if (told.has(keys)) return
  told.add(keys)
  const rows = Object.entries(node.properties ?? {}).map(([key, child]) => {
    const fallback = node.required?.includes(key) ? '*required*' : formatDefault(child)
    return `| \`${key}\` | ${formatType(child)} | ${fallback} | ${child.description ?? ''} |`
  })
  const heading = title ? `### ${title}\n\n` : ''
  yield `${heading}| Key | Value | Default | |\n|---|---|---|---|\n${rows.join('\n')}\n`
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    const name = title ? `${title}.${key}` : key
    const map = branches(child).find((branch) => branch.properties)
    const items = branches(child).flatMap((branch) => (branch.items ? branches(branch.items) : []))
    const item = items.find((branch) => branch.properties)
    if (map) yield* tables(name, map, told)
    if (item) yield* tables(`${name}[]`, item, told)
    const values = child.additionalProperties || undefined
    if (values?.properties) {
      yield* tables(`${name}.<name>`, values, told)
    }
  }
}

function branches(node: SchemaNode): SchemaNode[] {
  return node.anyOf ?? [node]
}

function formatDefault(node: SchemaNode): string {
  return node.default === undefined || typeof node.default === 'object' ? '' : `\`${node.default}\``
}

function formatType(node: SchemaNode): string {
  if (node.anyOf) return node.anyOf.map(formatType).join(' or ')
  // The list of profiles is too long for a table. It has its own section.
  if (node.enum) return node.enum.length > 8 ? 'a name' : node.enum.map((word) => `\`${word}\``).join(' ')
  if (node.const !== undefined) return `\`${node.const}\``
  if (node.type === 'array') return node.items?.properties ? 'list of maps' : `list of ${formatType(node.items ?? {})}`
  return { object: 'map', integer: 'number', string: 'text' }[node.type ?? ''] ?? node.type ?? ''
}
