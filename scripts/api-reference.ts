import { allOperations, describeApi, groupOf, roleText } from '../src/operations/openapi.ts'
import type { Operation } from '../src/operations/operation.ts'
import { problems } from '../src/operations/problem.ts'

type Schema = {
  type?: string | string[]
  description?: string
  properties?: Record<string, Schema>
  [key: string]: unknown
}
type Parameter = { name: string; in: string; required: boolean; description?: string; schema: Schema }
type Described = {
  parameters?: Parameter[]
  requestBody?: { content: { 'application/json': { schema: Schema & { required?: string[] } } } }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

const { paths, components } = describeApi('') as {
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, Schema> }
}

/** Returns the target of a reference. Returns any other schema unchanged. */
function resolve(schema: Schema): Schema {
  const { $ref, ...rest } = schema
  return $ref === undefined ? schema : { ...components.schemas[($ref as string).split('/').at(-1)!], ...rest }
}

/** Makes the reference of the admin API from the table of operations. */
export function apiReference(): string {
  const groups = [...new Set(allOperations.map(groupOf))]
  return groups
    .map((group) => {
      const sections = allOperations.filter((one) => groupOf(one) === group).map(describe)
      return `### ${group}\n\n${sections.join('\n')}`
    })
    .join('\n')
}

/** Makes the table of the API's problems and their statuses. */
export function problemReference(): string {
  const rows = Object.entries(problems).map(([name, [status, title]]) => `| \`${name}\` | ${status} | ${title} |`)
  return ['| `urn:triwire:problem:` | Status | Title |', '|---|---|---|', ...rows, ''].join('\n')
}

function describe(one: Operation): string {
  const described = paths[`/api/v1${one.path}`]![one.method.toLowerCase()]!
  const own =
    one.problems.length > 0 ? ` Further problem types: ${one.problems.map((name) => `\`${name}\``).join(', ')}.` : ''
  const cli = one.cli.length > 0 ? ` Command: ${one.cli.map(({ command }) => `\`${command}\``).join(', ')}.` : ''
  const sentence = one.text[0]!.toUpperCase() + one.text.slice(1)
  return [
    `**\`${one.method} /api/v1${one.path}\`** (\`${one.id}\`)`,
    '',
    `${sentence}. ${roleText(one.role)}${own}${cli}`,
    '',
    ...fieldTable(described),
    answerText(one, described),
    '',
  ].join('\n')
}

function fieldTable({ parameters = [], requestBody }: Described): string[] {
  const body = requestBody && resolve(requestBody.content['application/json'].schema)
  const rows = [
    ...parameters.map(({ name, in: where, required, description, schema }) =>
      row(name, where, required, description ?? '', schema),
    ),
    ...Object.entries(body?.properties ?? {}).map(([name, schema]) =>
      row(
        name,
        'body',
        (body!['required'] as string[] | undefined)?.includes(name) ?? false,
        schema.description ?? '',
        schema,
      ),
    ),
  ]
  return rows.length === 0 ? [] : ['| Field | In | Required | |', '|---|---|---|---|', ...rows, '']
}

function row(name: string, where: string, required: boolean, description: string, schema: Schema): string {
  const values = (resolve(schema)['enum'] as string[] | undefined)?.map((value) => `\`${value}\``).join(', ')
  const usual = schema['default'] === undefined ? '' : `default \`${schema['default']}\``
  const more = [description, values, usual].filter(Boolean).join('; ')
  return `| \`${name}\` | ${where} | ${required ? 'yes' : ''} | ${more.replaceAll('|', '\\|')} |`
}

function answerText(one: Operation, { responses }: Described): string {
  const statuses = Object.keys(responses).filter((status) => status < '300')
  const answer = responses[statuses.at(-1)!]!.content?.['application/json']?.schema
  const schema = answer && resolve(answer)
  const item = one.kind === 'list' ? resolve(schema!.properties!['items']!['items'] as Schema) : schema
  const names = Object.keys(item?.properties ?? {})
  const told = names.length > 0 ? `: ${names.map((name) => `\`${name}\``).join(', ')}` : ''
  const list = one.kind === 'list' ? ' `items` of' : ''
  const csv = one.csv ? ' With `accept: text/csv` it returns all rows as CSV.' : ''
  return `Returns ${statuses.join(' or ')}${list}${told}.${csv}`
}
