import { verbatim, writeJson } from '../../bytes/json-writer.ts'
import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest, OutputFormat, Tool } from '../../inference/request.ts'
import type { Choice } from '../choice.ts'
import { dropFields, formatName, prepareRequest, shortId, toolSchema } from '../prepare-request.ts'
import { type Reasoning, resolveReasoning } from '../reasoning-wish.ts'
import type { EncodedRequest } from '../wire.ts'
import { encodeInput } from './encode-items.ts'

/** The smallest cap this wire takes, in tokens (R-MAX). */
const outputTokensMin = 16

/** A hub request for a responses model (translation 2.3, 2.5). What grows with the conversation stands last (T8). */
export function encodeRequest(request: InferenceRequest, model: Model): EncodedRequest {
  const { profile } = model
  const prepared = prepareRequest(request, model, {
    outputTokensMin,
    hasJsonMode: true,
    stopsMax: 0,
    takesBlankStops: true,
  })
  const { choice, losses, stops } = prepared
  const reasoning = resolveReasoning(request.reasoning, profile.reasoning, prepared.outputTokensCap, losses)
  const body: Record<string, unknown> = {
    model: model.upstreamModel,
    stream: request.stream || profile.preferStream,
    store: false,
    max_output_tokens: request.outputTokensMax === undefined ? undefined : prepared.outputTokensCap,
    temperature: request.sampling.temperature,
    top_p: request.sampling.topP,
    ...reasoningFields(reasoning, request, profile),
    text: encodeText(request, prepared.format),
    ...identity(request, profile),
    prompt_cache_key: profile.accepts.has('prompt_cache_key') ? request.cacheKey : undefined,
    ...toolFields(choice),
    ...encodeInput(request, prepared, profile),
  }
  if (request.sampling.topK !== undefined) losses.add('top_k', 'dropped', 'the wire has no such field')
  dropFields(body, profile.drops, losses)
  return {
    body: writeJson(body),
    names: prepared.names.restore,
    localStops: stops.local,
    stops: stops.all,
    outputTokensCap: prepared.outputTokensCap,
    losses: losses.list,
  }
}

/** Effort is this wire's own word. Its summary is asked for only where a messages client may see it (R-THINK). */
function reasoningFields(reasoning: Reasoning, request: InferenceRequest, profile: Profile): Record<string, unknown> {
  if (reasoning.state === 'unsaid') return {}
  const isOn = reasoning.state === 'on'
  if (profile.reasoning.style === 'toggle') return { [profile.reasoning.field ?? 'enable_thinking']: isOn }
  const wantsSummary = isOn && request.reasoning.isShown && request.origin !== 'chat'
  return { reasoning: { effort: isOn ? reasoning.level : 'none', summary: wantsSummary ? 'auto' : undefined } }
}

function encodeText(request: InferenceRequest, format: OutputFormat): unknown {
  const encoded = encodeFormat(format)
  if (!encoded && request.verbosity === undefined) return undefined
  return { format: encoded, verbosity: request.verbosity }
}

function encodeFormat(format: OutputFormat): unknown {
  switch (format.kind) {
    case 'text':
      return undefined
    case 'json':
      return { type: 'json_object' }
    case 'schema': {
      const { name, description, schema, strict } = format
      return {
        type: 'json_schema',
        name: formatName(name),
        description,
        schema: verbatim(schema),
        // Said in any case: what is not said is read as an attempt at strictness.
        strict: strict ?? false,
      }
    }
  }
}

/** R-WHO: a messages client's one identifier goes to the field that is for it, where the model has that. */
function identity(request: InferenceRequest, profile: Profile): Record<string, unknown> {
  const { user, safetyId } = request.identity
  if (!profile.accepts.has('safety_identifier')) return { user: shortId(user ?? safetyId) }
  if (request.origin === 'messages') return { safety_identifier: shortId(user) }
  return { user: shortId(user), safety_identifier: shortId(safetyId) }
}

function toolFields(choice: Choice): Record<string, unknown> {
  if (choice.tools.length === 0) return {}
  return {
    tools: choice.tools.map(encodeTool),
    tool_choice: encodeChoice(choice),
    parallel_tool_calls: choice.parallel,
  }
}

/** An omitted `strict` means "try" here and makes optional properties required: always said (R-SCHEMA). */
function encodeTool(tool: Tool): unknown {
  return {
    type: 'function',
    name: tool.name,
    description: tool.description,
    parameters: verbatim(toolSchema(tool.schema)),
    strict: tool.strict ?? false,
  }
}

function encodeChoice(choice: Choice): unknown {
  const named = (name: string | undefined) => ({ type: 'function', name })
  if (choice.allowed) return { type: 'allowed_tools', mode: choice.mode, tools: choice.allowed.map(named) }
  switch (choice.mode) {
    case 'default':
      return undefined
    case 'named':
      return named(choice.name)
    default:
      return choice.mode
  }
}
