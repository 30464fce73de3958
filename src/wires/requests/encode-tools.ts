import type { RawJson } from '../../bytes/json.ts'
import { sent, verbatim } from '../../bytes/json-source.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { OutputFormat, Tool } from '../../inference/request.ts'
import { spellOut, withoutRootBranches } from '../../inference/schema.ts'
import type { OfferedTools } from './choice.ts'
import type { Nesting } from './decode-tools.ts'
import type { Losses } from './losses.ts'
import type { Prepared } from './prepare.ts'
import { formatName, toolSchema } from './stand-ins.ts'

/* The other direction of `decode-tools.ts`. */

type EncodedTool = Record<string, unknown>

function withWords(kind: string, words: EncodedTool, nesting: Nesting): EncodedTool {
  return nesting === 'nested' ? { type: kind, [kind]: words } : { type: kind, ...words }
}

/** `tools`, `tool_choice` and `parallel_tool_calls`. @param strictOf what is said of strictness, where anything is */
export function toolFields(
  { choice, losses }: Prepared,
  nesting: Nesting,
  profile: Profile,
  strictOf: (tool: Tool) => boolean | undefined,
): EncodedTool {
  if (choice.tools.length === 0) return {}
  return {
    tools: choice.tools.map((tool) => {
      const { name, description } = tool
      const schema = profile.toolSchemas === 'plain' ? spellOut(plainSchema(tool, losses)) : toolSchema(tool.schema)
      const words = { name, description: sent(description), parameters: verbatim(schema), strict: strictOf(tool) }
      // Not by `withWords`: a computed key costs more than all the others.
      return nesting === 'nested' ? { type: 'function', function: words } : { type: 'function', ...words }
    }),
    tool_choice: encodeChoice(choice, nesting),
    parallel_tool_calls: choice.parallel,
  }
}

/** A tool's schema whose root is an object and no choice: loosened where the client's is one (R-SCHEMA, ruling T9). */
export function plainSchema(tool: Tool, losses: Losses): RawJson {
  const schema = toolSchema(tool.schema)
  const plain = withoutRootBranches(schema)
  if (plain) losses.add('tools', 'rewritten', 'a schema whose root is a choice, loosened')
  return plain ?? schema
}

/**
 * The strictness of a tool as a model is asked for it. If the model does not take it, the arguments may not fit (ruling
 * T9).
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

/** @param strict what is said of strictness where the client said nothing */
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
