import { z } from 'zod'
import { type Operation, operation } from './operation.ts'
import { type ProblemName, problems } from './problem.ts'
import { operations } from './table.ts'

/** Makes the OpenAPI document (3.1) from the table. */
export function describeApi(version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const one of allOperations) {
    const path = `/api/v1${one.path}`
    paths[path] = { ...paths[path], [one.method.toLowerCase()]: describeOperation(one) }
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'triwire',
      version,
      summary: 'What operators of a gateway, and owners of its keys, can see and do.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ token: [] }, { cookie: [] }],
    tags: tags(),
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The token of an operator, or a key of an account.' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'triwire', description: '`__Host-triwire` over TLS.' },
      },
      schemas: { Problem: problemSchema },
    },
  }
}

const documentOperation = operation({
  id: 'openapi',
  http: 'GET /openapi.json',
  // Owners of keys may see only their own data, and not the list of what operators can do (ruling X14).
  role: 'reader',
  output: z.record(z.string(), z.unknown()),
  text: 'this document',
  run: async ({ version }) => ({ body: describeApi(version) }),
})

/** The table, and the operation that returns its OpenAPI document. */
export const allOperations: readonly Operation[] = [...operations, documentOperation]

const pathField = /\{(\w+)\}/g

/** Returns the names of the fields in the path. */
export function pathFields({ path }: Operation): string[] {
  return [...path.matchAll(pathField)].map(([, name]) => name!)
}

/** Returns the first part of an operation's name. */
export function groupOf({ id }: Operation): string {
  return id.split('.')[0]!
}

function tags(): { name: string }[] {
  return [...new Set(allOperations.map(groupOf))].map((name) => ({ name }))
}

/** The problems that any operation with an identified caller may return. */
const common: readonly ProblemName[] = [
  'unauthenticated',
  'forbidden',
  'misdirected',
  'rate_limited',
  'internal',
  'store_unavailable',
]

/** Returns all problems of an operation, each once. */
export function problemsOf(one: Operation): ProblemName[] {
  const { role, kind, method } = one
  const names: ProblemName[] = [...one.problems]
  const never = role === 'anyone' ? ['unauthenticated', 'forbidden'] : role === 'owner' ? ['forbidden'] : []
  names.push(...common.filter((name) => !never.some((one) => one === name)))
  if (method !== 'GET') names.push('cross_site')
  if (Object.keys(one.input.shape).length > 0 || method === 'GET') names.push('invalid_request')
  if (method === 'POST' || method === 'PATCH')
    names.push('invalid_request', 'payload_too_large', 'unsupported_media_type')
  if (kind === 'creates') names.push('idempotency_mismatch')
  if (kind === 'edits') names.push('precondition_required', 'precondition_failed')
  if (pathFields(one).length > 0) names.push('not_found')
  return [...new Set(names)].sort((a, b) => problems[a][0] - problems[b][0] || (a < b ? -1 : 1))
}

function describeOperation(one: Operation): Record<string, unknown> {
  const { id, role, kind, text, method } = one
  return {
    operationId: id,
    tags: [groupOf(one)],
    summary: text,
    description: roleText(role),
    ...(role === 'anyone' && { security: [] }),
    ...parametersOf(one),
    ...(method === 'POST' || method === 'PATCH' ? bodyOf(one) : undefined),
    responses: { ...successOf(one), ...problemResponses(one) },
    ...(kind === 'creates' && { 'x-idempotent-by': 'Idempotency-Key, for 24 hours' }),
  }
}

/** The role in words. */
export function roleText(role: Operation['role']): string {
  return {
    anyone: 'Anyone may.',
    owner: 'Owners of a key and operators may.',
    own: 'Owners of a key may.',
    lead: 'People with the role `lead` may.',
    reader: 'Operators may.',
    viewer: 'Operators with the role `viewer` or `admin` may.',
    finance: 'Operators with the role `finance` or `admin` may.',
    admin: 'Operators with the role `admin` may.',
  }[role]
}

type OpenApiSchema = Record<string, unknown>

function inputSchema({ input }: Operation): { properties: Record<string, OpenApiSchema>; required: string[] } {
  const { properties = {}, required = [] } = toSchema(input, 'input') as {
    properties?: Record<string, OpenApiSchema>
    required?: string[]
  }
  return { properties, required }
}

function toSchema(schema: z.ZodType, io: 'input' | 'output'): OpenApiSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

function parametersOf(one: Operation): { parameters?: unknown[] } {
  const { properties, required } = inputSchema(one)
  const inPath = pathFields(one)
  const parameters: unknown[] = inPath.map((name) => toParameter(name, 'path', properties[name]!, true))
  if (one.method === 'GET' || one.method === 'DELETE') {
    const inQuery = Object.entries(properties).filter(([name]) => !inPath.includes(name))
    parameters.push(...inQuery.map(([name, schema]) => toParameter(name, 'query', schema, required.includes(name))))
  }
  if (one.kind === 'creates')
    parameters.push(
      toParameter(
        'Idempotency-Key',
        'header',
        { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
        false,
      ),
    )
  if (one.media?.includes('text/event-stream') && one.method === 'GET')
    parameters.push(toParameter('Last-Event-ID', 'header', { type: 'string' }, false))
  if (one.kind === 'edits') parameters.push(toParameter('If-Match', 'header', { type: 'string' }, true))
  return parameters.length > 0 ? { parameters } : {}
}

function toParameter(name: string, where: string, schema: OpenApiSchema, required: boolean) {
  const { description, ...rest } = schema
  return { name, in: where, required, ...(description !== undefined && { description }), schema: rest }
}

function bodyOf(one: Operation): Record<string, unknown> {
  const { properties, required } = inputSchema(one)
  const inPath = pathFields(one)
  const names = Object.keys(properties).filter((name) => !inPath.includes(name))
  if (names.length === 0) return {}
  const needed = required.filter((name) => names.includes(name))
  const schema = {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, properties[name]])),
    ...(needed.length > 0 && { required: needed }),
    additionalProperties: false,
  }
  return { requestBody: { required: needed.length > 0, content: { 'application/json': { schema } } } }
}

function successOf(one: Operation): Record<string, unknown> {
  if (one.media) return { 200: mediaOf(one.media), ...(one.isLarge && { default: mediaOf(['application/json']) }) }
  const item = toSchema(one.output, 'output')
  const json = (schema: OpenApiSchema) => ({
    'application/json': { schema },
    ...Object.fromEntries(
      [...(one.texts ?? []), ...(one.csv ? ['text/csv'] : [])].map((type) => [type, { schema: { type: 'string' } }]),
    ),
  })
  if (one.kind === 'list') {
    const schema = {
      type: 'object',
      properties: { items: { type: 'array', items: item }, next: { type: ['string', 'null'] } },
      required: ['items', 'next'],
    }
    return { 200: { description: 'A page; `next` is the cursor of the one behind it.', content: json(schema) } }
  }
  if (one.id === 'session.sign_out') return { 204: { description: 'Signed out.' } }
  const answer = { description: 'Done.', content: json(item) }
  if (one.kind !== 'creates') return { 200: answer }
  return {
    200: { ...answer, description: 'It was made before: nothing was made now.' },
    201: { ...answer, description: 'Made.' },
  }
}

/** Describes content without a schema of ours. Errors of an operation that answers like a wire have no schema either. */
function mediaOf(media: readonly string[]): Record<string, unknown> {
  const content = media.map((type) => [type, { schema: type === 'application/json' ? {} : { type: 'string' } }])
  return { description: 'As it comes.', content: Object.fromEntries(content) }
}

function problemResponses(one: Operation): Record<string, unknown> {
  const byStatus = new Map<number, ProblemName[]>()
  for (const name of problemsOf(one)) {
    const [status] = problems[name]
    byStatus.set(status, [...(byStatus.get(status) ?? []), name])
  }
  const content = {
    'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
    // A wire refuses in its own words, with the same statuses.
    ...(one.media?.includes('application/json') && { 'application/json': { schema: {} } }),
  }
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [status, { description: names.join(', '), content }]),
  )
}

const problemSchema = {
  type: 'object',
  properties: {
    type: { type: 'string', enum: Object.keys(problems).map((name) => `urn:triwire:problem:${name}`) },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    request_id: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        properties: { pointer: { type: 'string' }, detail: { type: 'string' } },
        required: ['pointer', 'detail'],
      },
    },
    current: { description: 'What is there now, where something else was edited.' },
  },
  required: ['type', 'title', 'status', 'detail', 'request_id'],
}
