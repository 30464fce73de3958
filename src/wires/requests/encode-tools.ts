import type { RawJson } from '../../bytes/json.ts'
import { sent, verbatim } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { OutputFormat, Tool } from '../../inference/request.ts'
import { isAcceptedStrict, spellOut, withoutRootBranches } from '../../inference/schema.ts'
import type { Nesting } from './decode-tools.ts'
import type { Losses } from './losses.ts'
import type { OfferedTools, Prepared } from './prepare.ts'
import { formatName, toolSchema } from './stand-ins.ts'

/* Writes the tools, tool choice and output format that `decode-tools.ts` reads. */

type EncodedTool = Record<string, unknown>

function withWords(kind: string, words: EncodedTool, nesting: Nesting): EncodedTool {
  return nesting === 'nested' ? { type: kind, [kind]: words } : { type: kind, ...words }
}

/**
 * Writes `tools`, `tool_choice` and `parallel_tool_calls`.
 * @param strictOf the value of `strict` for a tool; undefined to omit it
 */
export function toolFields(
  { choice, losses }: Prepared,
  nesting: Nesting,
  profile: Profile,
  strictOf: (tool: Tool) => boolean | undefined,
): EncodedTool {
  if (choice.tools.length === 0) return {}
  const noteLoosened = (removed: string) =>
    losses.add('tools', 'rewritten', `${removed} that the upstream does not accept, removed`)
  return {
    tools: choice.tools.map((tool) => {
      const { name, description } = tool
      const isPlain = profile.toolSchemas === 'plain'
      const schema = isPlain ? spellOut(plainSchema(tool, losses), noteLoosened) : toolSchema(tool.schema)
      let strict = strictOf(tool)
      // OpenAI refuses some strict tools that the messages wire allows, such as those with an optional property (Y10).
      if (strict && isPlain && !isAcceptedStrict(schema)) {
        losses.add('tools.strict', 'dropped', 'the model takes no such schema as strict')
        strict = false
      }
      const words = { name, description: sent(description), parameters: verbatim(schema), strict }
      // `withWords` is not used here, since a computed key costs more than all other work on the tool.
      return nesting === 'nested' ? { type: 'function', function: words } : { type: 'function', ...words }
    }),
    tool_choice: encodeChoice(choice, nesting),
    parallel_tool_calls: choice.parallel,
  }
}

/**
 * Returns a tool's schema as an object without a choice, such as `anyOf`, at its root. A schema with such a choice is
 * loosened (R-SCHEMA, ruling T9).
 */
export function plainSchema(tool: Tool, losses: Losses): RawJson {
  const schema = toolSchema(tool.schema)
  const plain = withoutRootBranches(schema)
  if (plain) losses.add('tools', 'rewritten', 'a schema whose root is a choice, loosened')
  return plain ?? schema
}

/**
 * Returns the value of `strict` to send for a tool; undefined if the model does not accept `strict`. The arguments may
 * then violate the schema (ruling T9).
 */
export function strictOf(tool: Tool, profile: Pick<Profile, 'accepts'>, losses: Losses): boolean | undefined {
  if (profile.accepts.has('strict')) return tool.strict
  if (tool.strict) losses.add('tools.strict', 'dropped', 'the model does not take it')
  return undefined
}

function encodeChoice(choice: OfferedTools, nesting: Nesting): unknown {
  const named = (name: string | undefined) => withWords('function', { name }, nesting)
  if (choice.allowed) {
    return withWords('allowed_tools', { mode: choice.mode, tools: choice.allowed.map(named) }, nesting)
  }
  switch (choice.mode) {
    case 'default':
      return undefined
    case 'named':
      return named(choice.name)
    default:
      return choice.mode
  }
}

/** Writes the format of the answer. @param strict the value of `strict` if the client set none */
export function encodeFormat(format: OutputFormat, nesting: Nesting, strict?: boolean): unknown {
  switch (format.kind) {
    case 'text':
      return undefined
    case 'json':
      return { type: 'json_object' }
    case 'schema': {
      const { name, description, schema } = format
      const words = {
        name: formatName(name),
        description: sent(description),
        schema: verbatim(schema),
        strict: format.strict ?? strict,
      }
      return withWords('json_schema', words, nesting)
    }
  }
}
