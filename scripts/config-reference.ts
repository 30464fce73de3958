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

/** The tables of `docs/configuration.md`: one for each map of the file, a row for each key. */
export function configReference(): string {
  return [...tables('', jsonSchema())].join('\n')
}

function* tables(title: string, node: SchemaNode): Iterable<string> {
  const rows = Object.entries(node.properties ?? {}).map(([key, child]) => {
    const fallback = node.required?.includes(key) ? '*required*' : formatDefault(child)
    return `| \`${key}\` | ${formatType(child)} | ${fallback} | ${child.description ?? ''} |`
  })
  const heading = title ? `### ${title}\n\n` : ''
  yield `${heading}| Key | Value | Default | |\n|---|---|---|---|\n${rows.join('\n')}\n`
  for (const [key, child] of Object.entries(node.properties ?? {})) {
    const name = title ? `${title}.${key}` : key
    const map = branches(child).find((branch) => branch.properties)
    const item = branches(child).find((branch) => branch.items?.properties)?.items
    if (map) yield* tables(name, map)
    if (item) yield* tables(`${name}[]`, item)
    const values = child.additionalProperties || undefined
    if (values?.properties) {
      yield* tables(`${name}.<name>`, values)
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
  // Too many to be read in a table: the list of profiles has a section of its own.
  if (node.enum) return node.enum.length > 8 ? 'a name' : node.enum.map((word) => `\`${word}\``).join(' ')
  if (node.const !== undefined) return `\`${node.const}\``
  if (node.type === 'array') return node.items?.properties ? 'list of maps' : `list of ${formatType(node.items ?? {})}`
  return { object: 'map', integer: 'number', string: 'text' }[node.type ?? ''] ?? node.type ?? ''
}
