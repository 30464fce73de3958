import { asObject, type RawJson } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { closeSchema } from '../../inference/closed-schema.ts'
import type { OutputFormat, Tool } from '../../inference/request.ts'
import { innerSchemas, targetOf } from '../../inference/schema.ts'
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

/** The most schemas inside one strict tool. A schema counts each time that a reference (`$ref`) leads to it. */
const schemasMax = 2_000

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
  let used: Weight = { tools: 0, optional: 0, unions: 0 }
  if (isClosed && format.kind === 'schema') used = addWeight(used, format.schema) ?? limits
  return (tool, schema) => {
    if (strictOf(tool, profile, losses) !== true) return { schema }
    if (!isClosed) return { schema, strict: true }
    const closed = closeSchema(schema)
    const all = closed && addWeight({ ...used, tools: used.tools + 1 }, closed)
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

/**
 * Adds the optional properties and unions of a schema. A schema that is referenced several times counts each time.
 * @returns undefined for a schema with more than `schemasMax` inner schemas
 */
function addWeight({ tools, optional, unions }: Weight, { source }: RawJson): Weight | undefined {
  const root = asObject(JSON.parse(source)) ?? {}
  const waiting: unknown[] = [root]
  for (let looked = 0; waiting.length > 0; looked++) {
    if (looked > schemasMax) return undefined
    const { $defs: _, definitions: __, ...schema } = asObject(waiting.pop()) ?? {}
    const { properties, required, type, anyOf, $ref } = schema
    const names = Object.keys(asObject(properties) ?? {})
    optional += names.filter((name) => !Array.isArray(required) || !required.includes(name)).length
    if (Array.isArray(anyOf) || (Array.isArray(type) && type.length > 1)) unions++
    if (typeof $ref === 'string') waiting.push(targetOf($ref, root))
    for (const inner of innerSchemas(schema)) waiting.push(inner)
  }
  return { tools, optional, unions }
}
