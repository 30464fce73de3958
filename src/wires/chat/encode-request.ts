import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest } from '../../inference/request.ts'
import { encodeFormat, strictOf, toolFields } from '../requests/encode-tools.ts'
import type { Losses } from '../requests/losses.ts'
import { finishRequest, type Prepared, prepareRequest } from '../requests/prepare.ts'
import { type Reasoning, resolveReasoning } from '../requests/reasoning-wish.ts'
import { encodeScalars } from '../requests/scalars.ts'
import { oneId, shortId } from '../requests/stand-ins.ts'
import type { EncodedRequest } from '../wire.ts'
import { encodeMessages, findThoughtless } from './encode-turns.ts'
import { chatScalars } from './fields.ts'

/**
 * Encodes a decoded request of any wire for a chat model (translation 2.2, 2.6). Members that grow with the
 * conversation come last (ruling T8).
 */
export function encodeRequest(request: InferenceRequest, model: Model): EncodedRequest {
  const { profile } = model
  const prepared = prepareRequest(request, model, {
    capField: profile.chat.maxField,
    outputTokensMin: 1,
    hasJsonMode: true,
    hasAllowedTools: true,
    stopsMax: profile.drops.has('stop') ? 0 : profile.maxStops,
    takesBlankStops: true,
  })
  const { losses, stops } = prepared
  const wish = resolveReasoning(request.reasoning, profile.reasoning, prepared.outputTokensCap, losses)
  const reasoning = reasoningForTurns(wish, prepared, profile)
  const { verbosity, ...scalars } = encodeScalars(request.scalars, chatScalars, profile.accepts, losses)
  const isStreamed = request.stream || profile.preferStream
  const body: Record<string, unknown> = {
    model: model.upstreamModel,
    stream: isStreamed,
    stream_options: isStreamed && !profile.drops.has('stream_options') ? { include_usage: true } : undefined,
    [profile.chat.maxField]: request.outputTokensMax === undefined ? undefined : prepared.outputTokensCap,
    ...scalars,
    stop: stops.sent.length > 0 ? stops.sent : undefined,
    ...reasoningFields(reasoning, profile.reasoning),
    verbosity,
    response_format: encodeFormat(prepared.format, 'nested'),
    ...identity(request, profile, losses),
    prompt_cache_key: profile.accepts.has('prompt_cache_key') ? request.cacheKey : undefined,
    ...toolFields(prepared, 'nested', profile, (tool) => strictOf(tool, profile, losses)),
    messages: encodeMessages(prepared, profile),
  }
  return finishRequest(body, 'messages', prepared, profile)
}

/**
 * Decides whether to request reasoning. Some models refuse a forced call (R-CHOICE) or a format of the answer while they
 * reason. Others refuse a turn whose reasoning text is missing, because the client never saw it (R-HIST). In these cases
 * reasoning is turned off if the model allows it.
 */
function reasoningForTurns(wish: Reasoning, prepared: Prepared, profile: Profile): Reasoning {
  const { canDisable, style, default: usual = 'none' } = profile.reasoning
  if (!canDisable || style === 'none') return wish
  const refused = wish.state === 'on' || usual !== 'none' ? refusedReasoning(prepared, profile.reasoning) : undefined
  const { turns, choice, losses } = prepared
  const isThoughtless = findThoughtless(profile, choice.tools.length > 0)
  if (!refused && !(isThoughtless && turns.some(isThoughtless))) return wish
  if (wish.state === 'on') losses.add('reasoning', 'dropped', refused ?? 'a turn of the history lacks its reasoning')
  return { state: 'off' }
}

/** Returns why a model refuses the request while it reasons; undefined if it accepts the request. */
function refusedReasoning(
  { choice, format }: Prepared,
  { forcedCalls = true, jsonAnswers = true }: Profile['reasoning'],
): string | undefined {
  if (!forcedCalls && (choice.mode === 'required' || choice.mode === 'named')) return 'a tool must be called'
  return !jsonAnswers && format.kind !== 'text' ? 'the answer must be JSON' : undefined
}

function reasoningFields(reasoning: Reasoning, profile: Profile['reasoning']): Record<string, unknown> {
  if (reasoning.state === 'unsaid') return {}
  const isOn = reasoning.state === 'on'
  switch (profile.style) {
    case 'none':
      return {}
    case 'effort':
      return { reasoning_effort: isOn ? reasoning.level : 'none' }
    case 'budget':
      return { thinking: isOn ? { type: 'enabled', budget_tokens: reasoning.budgetTokens } : { type: 'disabled' } }
    case 'adaptive':
      return isOn
        ? { thinking: { type: 'adaptive' }, reasoning_effort: reasoning.level }
        : { thinking: { type: 'disabled' } }
    case 'switch':
      return isOn
        ? { thinking: { type: 'enabled' }, reasoning_effort: reasoning.level }
        : { thinking: { type: 'disabled' } }
    case 'toggle':
      return { [profile.field ?? 'enable_thinking']: isOn }
  }
}

/** The user's identity (R-WHO). Upstreams of this wire accept 64 characters. */
function identity(request: InferenceRequest, profile: Profile, losses: Losses): Record<string, unknown> {
  if (!profile.accepts.has('safety_identifier')) return { user: oneId(request.identity, losses) }
  const { user, safetyId, either } = request.identity
  return { user: shortId(user ?? safetyId ?? either), safety_identifier: shortId(safetyId) }
}
