import { allOperations, describeApi, groupOf, roleText } from '../../src/operations/openapi.ts'
import type { SitePage } from './pages.ts'

type Schema = {
  $ref?: string
  type?: string | string[]
  description?: string
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  additionalProperties?: Schema | boolean
}
type Described = {
  summary?: string
  description?: string
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[]
  requestBody?: { content: Record<string, { schema: Schema }> }
  responses: Record<string, { description?: string; content?: Record<string, { schema?: Schema }> }>
}
type Document = { paths: Record<string, Record<string, Described>>; components?: { schemas?: Record<string, Schema> } }

/** The OpenAPI document as pages: one for each group of operations, and their index. */
export function apiPages(version: string): { pages: SitePage[]; document: unknown } {
  const document = describeApi(version) as unknown as Document
  const groups = [...new Set(allOperations.map(groupOf))]
  const pages = groups.map((group) => {
    const sections = allOperations
      .filter((one) => groupOf(one) === group)
      .map((one) => {
        const described = document.paths[`/api/v1${one.path}`]![one.method.toLowerCase()]!
        const sentence = one.text[0]!.toUpperCase() + one.text.slice(1)
        return [
          `## ${one.method} /api/v1${one.path}`,
          `${sentence}. ${roleText(one.role)}`,
          ...operation(document, described),
        ].join('\n\n')
      })
    return { path: `api/${group}.md`, text: `# Admin API: ${group}\n\n${sections.join('\n\n')}\n` }
  })
  const rows = allOperations.map(
    (one) => `| [\`${one.method} /api/v1${one.path}\`](./${groupOf(one)}.md) | ${cell(one.text)} |`,
  )
  const head =
    '# Admin API\n\nAll operations, from the OpenAPI document of this version: [openapi.json](./openapi.json.txt). How to sign in, pages, errors and versions are in [the guide](../docs/api.md).'
  pages.unshift({ path: 'api/index.md', text: `${head}\n\n| Operation | |\n|---|---|\n${rows.join('\n')}\n` })
  return { pages, document }
}

function operation(document: Document, { parameters = [], requestBody, responses }: Described): string[] {
  const parts: string[] = []
  if (parameters.length > 0) {
    const rows = parameters.map(
      (one) =>
        `| \`${one.name}\` | ${one.in}${one.required ? ', needed' : ''} | ${typeOf(document, one.schema)} | ${cell(one.description ?? '')} |`,
    )
    parts.push(`**Parameters**\n\n| Name | In | Type | |\n|---|---|---|---|\n${rows.join('\n')}`)
  }
  const body = requestBody && Object.values(requestBody.content)[0]?.schema
  if (body) parts.push(`**Body**\n\n${fields(document, body)}`)
  for (const [status, { description, content }] of Object.entries(responses)) {
    if (status >= '400') continue
    const schema = content && Object.values(content)[0]?.schema
    parts.push(`**Answer ${status}**${description ? `: ${cell(description)}` : ''}`)
    if (schema) parts.push(fields(document, schema))
  }
  const refused = Object.keys(responses).filter((status) => status >= '400')
  if (refused.length > 0) parts.push(`Refused with ${refused.map((one) => `\`${one}\``).join(', ')}: a problem object.`)
  return parts
}

/** The fields of a schema as a table, nested ones by their paths. */
function fields(document: Document, schema: Schema): string {
  const rows: string[] = []
  collect(document, schema, '', 0, rows)
  return rows.length > 0 ? `| Field | Type | |\n|---|---|---|\n${rows.join('\n')}` : `${typeOf(document, schema)}`
}

function collect(document: Document, given: Schema, path: string, depth: number, rows: string[]): void {
  const schema = resolve(document, given)
  const inner = schema.items ?? schema.anyOf?.find((one) => resolve(document, one).type !== 'null')
  if (inner && !schema.properties) {
    collect(document, inner, schema.items ? `${path}[]` : path, depth, rows)
    return
  }
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const here = path === '' ? name : `${path}.${name}`
    const needed = schema.required?.includes(name) ? '' : ', may be missing'
    rows.push(
      `| \`${here}\` | ${typeOf(document, field)}${needed} | ${cell(resolve(document, field).description ?? '')} |`,
    )
    if (depth < 3) collect(document, field, here, depth + 1, rows)
  }
}

function resolve(document: Document, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1)
  return name === undefined ? schema : (document.components?.schemas?.[name] ?? schema)
}

function typeOf(document: Document, given: Schema): string {
  const schema = resolve(document, given)
  if (schema.enum) return schema.enum.map((one) => `\`${one}\``).join(', ')
  if (schema.anyOf) return [...new Set(schema.anyOf.map((one) => typeOf(document, one)))].join(' or ')
  if (schema.type === 'array') return `list of ${schema.items ? typeOf(document, schema.items) : 'values'}`
  return [schema.type ?? 'any'].flat().join(' or ')
}

function cell(text: string): string {
  return text
    .replaceAll('|', '\\|')
    .replace(/\s+/g, ' ')
    .replace(/[{}]{2}/g, '')
}
