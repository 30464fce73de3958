import { sent, verbatim } from '../../bytes/json-source.ts'
import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest, OutputFormat, Tool } from '../../inference/request.ts'
import { plainSchema } from '../requests/encode-tools.ts'
import type { Losses } from '../requests/losses.ts'
import { finishRequest, type OfferedTools, type Prepared, prepareRequest } from '../requests/prepare.ts'
import { type Reasoning, resolveReasoning } from '../requests/reasoning-wish.ts'
import { encodeScalars } from '../requests/scalars.ts'
import { opaqueId } from '../requests/stand-ins.ts'
import type { EncodedRequest } from '../wire.ts'
import { markForCache } from './cache-marks.ts'
import { type EncodedMessage, encodeConversation } from './encode-turns.ts'
import { messagesScalars } from './fields.ts'
import { createStrictness, type StrictTool } from './strict-tools.ts'
import { goesOnUnproven, lacksThought, withoutOpenThoughts } from './thought.ts'

type Fields = Record<string, unknown>

/**
 * Encodes a decoded request of any wire for a messages model (translation 2.4, 2.7). Members that grow with the
 * conversation come last (T8).
 */
export function encodeRequest(request: InferenceRequest, model: Model): EncodedRequest {
  const { profile } = model
  const prepared = prepareRequest(request, model, {
    capField: 'max_tokens',
    outputTokensMin: 1,
    hasJsonMode: false,
    hasAllowedTools: false,
    stopsMax: profile.drops.has('stop_sequences') ? 0 : profile.maxStops,
    takesBlankStops: false,
  })
  const { losses, stops, outputTokensCap } = prepared
  const choice = declareHistory(prepared, profile)
  const wish = resolveReasoning(request.reasoning, profile.reasoning, outputTokensCap, losses)
  const { system, messages: said } = encodeConversation(prepared, profile)
  const reasoning = reasoningAllowed(wish, choice, said, profile, losses)
  const messages = reasoning.state === 'on' ? said : withoutOpenThoughts(said, prepared, profile)
  const strictness = createStrictness(prepared.format, profile, losses)
  const tools = choice.tools.map((tool) => encodeTool(tool, strictness(tool, plainSchema(tool, losses))))
  const isMarked = markForCache(request, profile, { tools, system, messages })
  const body: Fields = {
    model: model.upstreamModel,
    max_tokens: outputTokensCap,
    stream: request.stream || profile.preferStream,
    ...reasoningFields(reasoning, prepared.format, profile),
    ...scalarFields(request, profile, reasoning, losses),
    stop_sequences: stops.sent.length > 0 ? stops.sent : undefined,
    metadata: identity(request, losses),
    tool_choice: encodeChoice(choice),
    tools: tools.length > 0 ? tools : undefined,
    system: system.length > 0 ? system : undefined,
    messages,
  }
  if (prepared.format.kind === 'schema' && prepared.format.description !== undefined)
    losses.add('format.description', 'dropped', 'the wire has no such field')
  return { ...finishRequest(body, 'messages', prepared, profile), isMarked }
}

/**
 * Declares tools for the calls in the history, which this wire requires even if no tool may be called now (R-CHOICE).
 * No tools are declared if the model cannot be kept from calling them.
 */
function declareHistory(prepared: Prepared, profile: Profile): OfferedTools {
  const { choice, turns } = prepared
  if (choice.tools.length > 0 || !profile.toolChoice.has('none')) return choice
  const names = new Set<string>()
  for (const turn of turns) {
    if (turn.by === 'model') for (const part of turn.parts) if (part.type === 'tool_call') names.add(part.name)
  }
  if (names.size === 0) return choice
  return { tools: [...names].map((name) => ({ name, schema: { source: '{"type":"object"}' } })), mode: 'none' }
}

/**
 * Decides whether thinking may be requested. If this wire does not accept thinking together with the rest of the
 * request, thinking is left out (R-CHOICE, R-HIST). Some models think by default, and then refuse a forced call or a turn
 * without its thinking. Their thinking is switched off then.
 */
function reasoningAllowed(
  wish: Reasoning,
  choice: OfferedTools,
  messages: readonly EncodedMessage[],
  profile: Profile,
  losses: Losses,
): Reasoning {
  const { canDisable, forcedCalls = true, default: usual = 'none' } = profile.reasoning
  const isForced = choice.mode === 'required' || choice.mode === 'named'
  if (canDisable && usual !== 'none') {
    const isRefused = isForced && !forcedCalls
    if (isRefused || (profile.unprovenThought === 'pass' && choice.tools.length > 0 && messages.some(lacksThought))) {
      const why = isRefused ? 'a tool must be called' : 'a turn of the history lacks its reasoning'
      if (wish.state === 'on') losses.add('reasoning', 'dropped', why)
      return { state: 'off' }
    }
  }
  if (wish.state !== 'on') return wish
  if (isForced) {
    losses.add('reasoning', 'dropped', 'a tool must be called')
    return { state: 'unsaid' }
  }
  if (profile.reasoning.style === 'budget' && goesOnUnproven(messages)) {
    losses.add('reasoning', 'dropped', 'the turn that goes on has no signed thinking')
    return { state: 'unsaid' }
  }
  return wish
}

function reasoningFields(reasoning: Reasoning, format: OutputFormat, profile: Profile): Fields {
  const shape =
    format.kind === 'schema' ? { format: { type: 'json_schema', schema: verbatim(format.schema) } } : undefined
  if (reasoning.state === 'unsaid') return { output_config: shape }
  const { style, field } = profile.reasoning
  if (style === 'toggle') return { [field ?? 'enable_thinking']: reasoning.state === 'on', output_config: shape }
  if (reasoning.state === 'off') return { thinking: { type: 'disabled' }, output_config: shape }
  if (style === 'budget') {
    return { thinking: { type: 'enabled', budget_tokens: reasoning.budgetTokens }, output_config: shape }
  }
  return {
    thinking: style === 'adaptive' ? { type: 'adaptive', display: 'summarized' } : undefined,
    output_config: { effort: reasoning.level, ...shape },
  }
}

const samplingFields = ['temperature', 'top_p', 'top_k']

/** Writes the fields with a single value. With thinking, sampling settings are left out (R-THINK, translation 2.4). */
function scalarFields(request: InferenceRequest, profile: Profile, reasoning: Reasoning, losses: Losses): Fields {
  const fields = encodeScalars(request.scalars, messagesScalars, profile.accepts, losses)
  if (profile.messages.oneSamplingField && fields['temperature'] !== undefined)
    drop('top_p', 'the model takes one of both')
  if (reasoning.state === 'on') for (const field of samplingFields) drop(field, 'not together with thinking')
  return fields

  function drop(field: string, why: string) {
    if (fields[field] === undefined) return
    fields[field] = undefined
    losses.add(field, 'dropped', why)
  }
}

/** The user for whom the client acts. This wire has one field for the user's id and the safety id (R-WHO). */
function identity(request: InferenceRequest, losses: Losses): Fields | undefined {
  const { safetyId, user, either } = request.identity
  if (safetyId !== undefined && user !== undefined) losses.add('user', 'dropped', 'the wire has one id of the user')
  const id = safetyId ?? user ?? either
  return id === undefined ? undefined : { user_id: opaqueId(id) }
}

function encodeTool({ name, description }: Tool, { schema, strict }: StrictTool): Fields {
  return { name, description: sent(description), input_schema: verbatim(schema), strict }
}

function encodeChoice(choice: OfferedTools): unknown {
  if (choice.tools.length === 0) return undefined
  const serial = choice.parallel === false ? { disable_parallel_tool_use: true } : {}
  switch (choice.mode) {
    case 'default':
      return choice.parallel === false ? { type: 'auto', ...serial } : undefined
    case 'none':
      return { type: 'none' }
    case 'auto':
      return { type: 'auto', ...serial }
    case 'required':
      return { type: 'any', ...serial }
    case 'named':
      return { type: 'tool', name: choice.name, ...serial }
  }
}
