import { z } from 'zod'
import { nameSchemas, pascal } from './components.ts'
import * as field from './fields.ts'
import { type Operation, operation } from './operation.ts'
import { type ProblemName, problems, wrongField } from './problem.ts'
import { operations } from './table.ts'
import { webhookShapes } from './webhook-shapes.ts'

/**
 * Makes the OpenAPI 3.1 document from the table of operations.
 * @param groups limits the document to these groups of operations (see `groupOf`), and leaves out webhooks
 */
export function describeApi(version: string, groups?: readonly string[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  const chosen = allOperations.filter((one) => groups?.includes(groupOf(one)) ?? true)
  const webhooks = groups ? {} : describeWebhooks()
  const places: SchemaPlace[] = Object.values(webhooks).map(({ post }) => ({
    hint: '',
    in: post.requestBody.content['application/json'],
  }))
  for (const one of chosen) {
    const path = `/api/v1${one.path}`
    const described = describeOperation(one)
    places.push(...placesOf(one, described))
    paths[path] = { ...paths[path], [one.method.toLowerCase()]: described }
  }
  const { schemas, refs } = nameSchemas(places.map(({ hint, in: { schema } }) => [hint, schema]))
  for (const [at, place] of places.entries()) place.in.schema = refs[at]!
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
    tags: [...new Set(chosen.map(groupOf))].map((name) => ({ name })),
    paths,
    ...(!groups && { webhooks }),
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'The token of an operator, or a key of an account.' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'triwire', description: '`__Host-triwire` over TLS.' },
      },
      schemas,
    },
  }
}

/**
 * Documents by version and groups. They are cached, because any operator may request a document, and making it takes
 * long.
 */
const documents = new Map<string, Record<string, unknown>>()
const documentsMax = 64

function documentOf(version: string, groups?: readonly string[]): Record<string, unknown> {
  const key = JSON.stringify([version, groups && [...new Set(groups)].sort()])
  const known = documents.get(key)
  if (known) return known
  if (documents.size >= documentsMax) documents.clear()
  const document = describeApi(version, groups)
  documents.set(key, document)
  return document
}

const documentOperation = operation({
  id: 'openapi',
  http: 'GET /openapi.json',
  // Owners of keys may see only their own data, and not the list of what operators can do (ruling X14).
  role: 'reader',
  output: z.record(z.string(), z.unknown()),
  input: z.strictObject({
    groups: field.someWords
      .optional()
      .describe('only operations of these groups, such as account,key: the first parts of their ids'),
  }),
  text: 'return the OpenAPI document of this API',
  async run({ version }, { groups }) {
    const known = [...new Set(allOperations.map(groupOf))]
    const unknown = groups?.find((name) => !known.includes(name))
    if (unknown !== undefined) throw wrongField('groups', `There is no such group: the groups are ${known.join(', ')}.`)
    return { body: documentOf(version, groups) }
  },
})

/** The operations of the table, and the one that returns the OpenAPI document. */
export const allOperations: readonly Operation[] = [...operations, documentOperation]

const pathField = /\{(\w+)\}/g

/** Returns the names of the fields in the path. */
export function pathFields({ path }: Operation): string[] {
  return [...path.matchAll(pathField)].map(([, name]) => name!)
}

/** Returns the first part of an operation's id, such as `account`. */
export function groupOf({ id }: Operation): string {
  return id.split('.')[0]!
}

/** Describes the messages of webhooks. They are signed as Standard Webhooks 1.0.0 requires. */
function describeWebhooks() {
  const headers = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
  const described = Object.entries(webhookShapes).map(([event, shape]) => {
    const schema = toSchema(shape, 'output')
    const post = {
      operationId: `webhook.${event}`,
      summary: `the message that a webhook gets for \`${event}\``,
      security: [],
      parameters: headers.map((name) => toParameter(name, 'header', { type: 'string' }, true)),
      requestBody: { required: true, content: { 'application/json': { schema } } },
      responses: {
        '2XX': { description: 'Received.' },
        '410': { description: 'The receiver does not want the message; it is not sent again.' },
        default: { description: 'The message failed; it is sent again for a day.' },
      },
    }
    return [event, { post }] as const
  })
  return Object.fromEntries(described)
}

/** The problems that every operation with an identified caller may return. */
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

function describeOperation(one: Operation): Described {
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

/**
 * A part of the document that contains a schema. @property hint the name of the schema's component if it has no title
 */
type SchemaPlace = { hint: string; in: { schema: OpenApiSchema } }

/** Lists the schemas of an operation: those of parameters, body and answers. */
function placesOf({ id }: Operation, { parameters = [], requestBody, responses }: Described): SchemaPlace[] {
  const name = pascal(id)
  const contents = (parts: readonly WithContent[]) => parts.flatMap(({ content = {} }) => Object.values(content))
  return [
    ...parameters.map((one) => ({ hint: name + pascal(one.name), in: one })),
    ...contents(requestBody ? [requestBody] : []).map((one) => ({ hint: `${name}Body`, in: one })),
    ...contents(Object.values(responses)).map((one) => ({ hint: `${name}Answer`, in: one })),
  ]
}

type WithContent = { [name: string]: unknown; content?: Record<string, { schema: OpenApiSchema }> }

type Described = Record<string, unknown> & {
  parameters?: ReturnType<typeof toParameter>[]
  requestBody?: WithContent
  responses: Record<string, WithContent>
}

/** Describes in a sentence who may use operations of a role. */
export function roleText(role: Operation['role']): string {
  return {
    anyone: 'Anyone may use this operation.',
    owner: 'Owners of a key and operators may use this operation.',
    own: 'Owners of a key may use this operation.',
    lead: 'People with the role `lead` may use this operation.',
    reader: 'All operators may use this operation.',
    viewer: 'Operators with the role `viewer` or `admin` may use this operation.',
    finance: 'Operators with the role `finance` or `admin` may use this operation.',
    admin: 'Operators with the role `admin` may use this operation.',
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
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override })
  return rest
}

type Overriding = { zodSchema: z.core.$ZodTypes; jsonSchema: z.core.JSONSchema.BaseSchema }

/**
 * Describes a field of `sharedShapes` as null or the shape that the field has in answers. Read-only members are not
 * required, so that requests and answers can use the same component.
 */
function override({ zodSchema, jsonSchema }: Overriding): void {
  const shared = field.sharedShapes.get(zodSchema)
  if (shared) jsonSchema.anyOf = [toSchema(shared.shape as z.ZodType, 'output'), { type: 'null' }]
  const { properties = {}, required } = jsonSchema
  const isAsked = (name: string) => (properties[name] as { readOnly?: boolean } | undefined)?.readOnly !== true
  if (required && zodSchema._zod.def.type === 'object') jsonSchema.required = required.filter(isAsked)
}

function parametersOf(one: Operation): Pick<Described, 'parameters'> {
  const { properties, required } = inputSchema(one)
  const inPath = pathFields(one)
  const parameters = inPath.map((name) => toParameter(name, 'path', properties[name]!, true))
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

function bodyOf(one: Operation) {
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

function successOf(one: Operation): Described['responses'] {
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
      ...(item['title'] !== undefined && { title: `${item['title']}Page` }),
      type: 'object',
      properties: {
        items: { type: 'array', items: item },
        next: { type: ['string', 'null'] },
        away: {
          type: 'array',
          items: { type: 'string' },
          description: 'On the last page: months whose entries were moved into files and would follow here.',
        },
        ...(one.path.endsWith('/requests') && {
          unbilled_since: {
            type: 'string',
            description: 'On the last page: requests without a bill are listed only if they ended since this time.',
          },
        }),
      },
      required: ['items', 'next'],
    }
    return { 200: { description: 'A page; `next` is the cursor of the next page.', content: json(schema) } }
  }
  if (one.id === 'session.sign_out') return { 204: { description: 'Signed out.' } }
  const answer = { description: 'Done.', content: json(item) }
  const isEdited = allOperations.some(({ path, kind }) => path === one.path && kind === 'edits')
  if (one.kind !== 'creates') return { 200: { ...answer, ...(isEdited && { headers: { ETag: etagHeader } }) } }
  return {
    200: { ...answer, description: 'The object exists already, because an earlier request with the same key made it.' },
    201: { ...answer, description: 'Made.', ...(one.madeAt && { headers: { Location: locationHeader } }) },
  }
}

const etagHeader = {
  description: 'The version of the object, which an edit sends in `If-Match`.',
  schema: { type: 'string' },
}

const locationHeader = {
  description: 'The path of the new object.',
  schema: { type: 'string', format: 'uri-reference' },
}

/** Describes an answer whose content has no schema in the document. */
function mediaOf(media: readonly string[]) {
  const content = media.map((type) => [type, { schema: type === 'application/json' ? {} : { type: 'string' } }])
  return { description: 'The answer as it is produced.', content: Object.fromEntries(content) }
}

function problemResponses(one: Operation): Described['responses'] {
  const byStatus = new Map<number, ProblemName[]>()
  for (const name of problemsOf(one)) {
    const [status] = problems[name]
    byStatus.set(status, [...(byStatus.get(status) ?? []), name])
  }
  const content = {
    'application/problem+json': { schema: problemSchema },
    // A failed operation may answer in the error format of a wire. The document has no schema for this format.
    ...(one.media?.includes('application/json') && { 'application/json': { schema: {} } }),
  }
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [status, { description: names.join(', '), content }]),
  )
}

const problemSchema = {
  title: 'Problem',
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
    current: { description: 'The current object, if another request has changed it.' },
  },
  required: ['type', 'title', 'status', 'detail', 'request_id'],
}
