import { asObject, type RawJson } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { closeSchema } from '../../inference/closed-schema.ts'
import type { OutputFormat, Tool } from '../../inference/request.ts'
import { innerSchemas, type Schema, targetOf } from '../../inference/schema.ts'
import { strictOf } from '../requests/encode-tools.ts'
import type { Losses } from '../requests/losses.ts'

/*
 * Strict tools (ruling Y10). The provider makes the model's calls fit the tool's schema. For this, the provider
 * compiles all strict schemas of a request together with the output format. If they are too complex, the request is
 * refused.
 */

/** The quantities that the provider limits, summed over all strict schemas of a request. */
type Weight = { tools: number; optional: number; unions: number }

/**
 * The provider's limits per request. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs (complexity limits) and
 * camel-ai/camel#4171 (13 July 2026), "Too many strict tools". A further limit on the compiled size has no published
 * figure.
 */
const limits: Weight = { tools: 20, optional: 24, unions: 16 }

/**
 * The most schemas inside one strict tool, and inside all strict tools of a request. A schema counts each time that a
 * reference (`$ref`) leads to it.
 */
const schemasMax = 2_000
const allSchemasMax = limits.tools * schemasMax

/** A tool's schema as sent to the provider. */
export type StrictTool = { schema: RawJson; strict?: true }

/**
 * Decides for each tool in turn whether it is strict. `strict` is left out if the tool's schema has no closed form (see
 * `closeSchema`), or if the tool would exceed a limit. The loss is then logged. Earlier tools stay strict, so that a
 * longer list begins with the same bytes (T8).
 * @param format the request's output format as sent
 */
export function createStrictness(
  format: OutputFormat,
  profile: Profile,
  losses: Losses,
): (tool: Tool, schema: RawJson) => StrictTool {
  // A model with the shape `none` (no output formats) also accepts strict tools, but only with schemas in closed form.
  const isClosed = profile.shape === 'closed' || profile.shape === 'none'
  const room: Room = { schemas: allSchemasMax }
  let used: Weight = { tools: 0, optional: 0, unions: 0 }
  if (isClosed && format.kind === 'schema') used = addWeight(used, format.schema, room) ?? limits
  return (tool, schema) => {
    if (strictOf(tool, profile, losses) !== true) return { schema }
    if (!isClosed) return { schema, strict: true }
    const closed = closeSchema(schema)
    const all = closed && addWeight({ ...used, tools: used.tools + 1 }, closed, room)
    if (!all || all.tools > limits.tools || all.optional > limits.optional || all.unions > limits.unions) {
      const why = closed ? 'more than the model takes in one request' : 'its schema has no closed form'
      losses.add('tools.strict', 'dropped', why)
      return { schema }
    }
    used = all
    if (closed !== schema) losses.add('tools', 'rewritten', 'what strict schemas cannot say is said in words')
    return { schema: closed, strict: true }
  }
}

/** How many more schemas may be counted in this request. */
type Room = { schemas: number }

/**
 * Adds the optional properties and unions of a schema. A schema that is referenced several times counts each time.
 * @returns undefined for a schema with more than `schemasMax` inner schemas, or if there is no more room
 */
function addWeight({ tools, optional, unions }: Weight, { source }: RawJson, room: Room): Weight | undefined {
  const root = asObject(JSON.parse(source)) ?? {}
  const parts = new Map<unknown, Part>()
  const waiting: unknown[] = [root]
  for (let left = schemasMax; waiting.length > 0; left--) {
    if (left < 0 || room.schemas-- <= 0) return undefined
    const schema = waiting.pop()
    const part = parts.get(schema) ?? readPart(asObject(schema) ?? {}, root)
    parts.set(schema, part)
    optional += part.optional
    unions += part.unions
    for (const inner of part.inner) waiting.push(inner)
  }
  return { tools, optional, unions }
}

/** The numbers of optional properties and unions of one schema, and the schemas directly inside it. */
type Part = { optional: number; unions: number; inner: readonly unknown[] }

function readPart({ properties, required, type, items, anyOf, $ref }: Schema, root: Schema): Part {
  const wanted = new Set(Array.isArray(required) ? required : [])
  const optional = Object.keys(asObject(properties) ?? {}).filter((name) => !wanted.has(name)).length
  const unions = Array.isArray(anyOf) || (Array.isArray(type) && type.length > 1) ? 1 : 0
  const inner = [...innerSchemas({ properties, items, anyOf })]
  return { optional, unions, inner: typeof $ref === 'string' ? [targetOf($ref, root), ...inner] : inner }
}
