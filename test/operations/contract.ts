import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { describeApi } from '../../src/operations/openapi.ts'

type Schema = Record<string, unknown>
type Described = { operationId: string; responses: Record<string, { content?: Record<string, { schema: Schema }> }> }

export const document = JSON.parse(JSON.stringify(describeApi('0.0.0'))) as {
  paths: Record<string, Record<string, Described>>
  webhooks: Record<string, { post: { requestBody: { content: { 'application/json': { schema: { $ref: string } } } } } }>
  components: { schemas: Record<string, Schema> }
}

// Schemas are compiled for a few answers each: what makes validators quick takes longer than they run.
const ajv = new Ajv2020({ strict: false, validateFormats: false, inlineRefs: false, code: { optimize: false } })
ajv.addSchema({ $id: 'api', ...document } as Schema)

const routes = Object.entries(document.paths).map(([path, methods]) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`),
  methods,
}))
const compiled = new Map<string, ValidateFunction>()

/** Checks an answer against the document, which must have its status and a schema for its body. */
export function checkAnswer(
  method: string,
  target: string,
  { status, type, body }: { status: number; type: string | null; body: unknown },
): string | undefined {
  const path = target.replace(/\?.*$/, '')
  const route = routes.find(({ pattern, methods }) => pattern.test(path) && methods[method.toLowerCase()])
  if (!route) return undefined
  const { operationId, responses } = route.methods[method.toLowerCase()]!
  const code =
    responses[status]?.content?.[type?.replace(/;.*$/, '') ?? ''] || !responses['default'] ? `${status}` : 'default'
  const response = responses[code]
  assert.ok(response, `${operationId} answers ${status}, which the document does not tell`)
  const media = type?.replace(/;.*$/, '') ?? ''
  if (!response.content) assert.equal(body, undefined)
  else assert.ok(response.content[media], `${operationId} answers ${status} as ${media}`)
  if (media.startsWith('text/') || body === undefined) return operationId
  const inPlace = `#/paths/${escapePart(route.path)}/${method.toLowerCase()}/responses/${code}/content/${escapePart(media)}/schema`
  // Most answers are of a schema that several operations name.
  const { $ref, ...rest } = response.content![media]!.schema
  const at = typeof $ref === 'string' && Object.keys(rest).length === 0 ? $ref : inPlace
  const validate = validatorAt(at)
  assert.ok(validate(body), `${operationId} ${status}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`)
  return operationId
}

/** Holds the body of a webhook's message against the document. @returns what differs, or undefined */
export function checkMessage(body: { type: string }): string | undefined {
  const described = document.webhooks[body.type]
  // A receiver also serves as the models.
  if (!described) return undefined
  const validate = validatorAt(described.post.requestBody.content['application/json'].schema.$ref)
  const isRight: boolean = validate(body)
  return isRight ? undefined : `${body.type}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(body)}`
}

/** @param at the place of a schema in the document, from its `#` on */
function validatorAt(at: string): ValidateFunction {
  return compiled.getOrInsertComputed(at, () => ajv.compile({ $ref: `api${at}` }))
}

function escapePart(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'))
}
