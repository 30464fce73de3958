import { asObject } from '../../bytes/json.ts'
import type { Model } from '../../catalog/model.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { InferenceRequest } from '../../inference/request.ts'
import { encodeFormat, toolFields } from '../requests/encode-tools.ts'
import type { Losses } from '../requests/losses.ts'
import { finishRequest, type Prepared, prepareRequest } from '../requests/prepare.ts'
import { type Reasoning, resolveReasoning } from '../requests/reasoning-wish.ts'
import { encodeScalars } from '../requests/scalars.ts'
import { oneId, shortId } from '../requests/stand-ins.ts'
import type { EncodedRequest } from '../wire.ts'
import { encodeInput } from './encode-turns.ts'
import { responsesScalars } from './fields.ts'

/** The smallest cap that this wire accepts, in tokens (R-MAX). */
const outputTokensMin = 16

/**
 * Encodes a decoded request of any wire for a responses model (translation 2.3, 2.5). Members that grow with the
 * conversation come last (T8).
 */
export function encodeRequest(request: InferenceRequest, model: Model): EncodedRequest {
  const { profile } = model
  const prepared = prepareRequest(request, model, {
    capField: 'max_output_tokens',
    outputTokensMin,
    hasJsonMode: true,
    hasAllowedTools: true,
    stopsMax: 0,
    takesBlankStops: true,
  })
  const { losses } = prepared
  const reasoning = resolveReasoning(request.reasoning, profile.reasoning, prepared.outputTokensCap, losses)
  const { text, ...scalars } = encodeScalars(request.scalars, responsesScalars, profile.accepts, losses)
  const body: Record<string, unknown> = {
    model: model.upstreamModel,
    stream: request.stream || profile.preferStream,
    store: false,
    max_output_tokens: request.outputTokensMax === undefined ? undefined : prepared.outputTokensCap,
    ...scalars,
    ...reasoningFields(reasoning, request, profile),
    text: encodeText(prepared, text),
    ...identity(request, profile, losses),
    prompt_cache_key: profile.accepts.has('prompt_cache_key') ? request.cacheKey : undefined,
    // Without `strict`, models of this wire try strict mode, which makes optional properties required. So `strict` is
    // always sent (R-SCHEMA).
    ...toolFields(prepared, 'beside', profile, (tool) => tool.strict ?? false),
    ...encodeInput(request, prepared, profile),
  }
  return finishRequest(body, 'input', prepared, profile)
}

/**
 * Writes the reasoning level, which this wire calls effort. A summary is requested only if the client asked to see
 * reasoning (R-THINK).
 */
function reasoningFields(reasoning: Reasoning, request: InferenceRequest, profile: Profile): Record<string, unknown> {
  if (reasoning.state === 'unsaid') return {}
  const isOn = reasoning.state === 'on'
  if (profile.reasoning.style === 'toggle') return { [profile.reasoning.field ?? 'enable_thinking']: isOn }
  const wantsSummary = isOn && request.reasoning.isAsked
  return { reasoning: { effort: isOn ? reasoning.level : 'none', summary: wantsSummary ? 'auto' : undefined } }
}

/** Writes the field `text`. @param scalars other members of `text` that have a single value, such as `verbosity` */
function encodeText({ format }: Prepared, scalars: unknown): unknown {
  // `strict` is always sent. If it is omitted, the upstream chooses strict output whenever the schema allows it.
  const encoded = encodeFormat(format, 'beside', false)
  return encoded || scalars ? { format: encoded, ...asObject(scalars) } : undefined
}

/**
 * Encodes the ids of a user (R-WHO). `either` is the user's id if the client's wire has only one. It becomes the safety
 * id if the model takes one, and otherwise `user`.
 */
function identity(request: InferenceRequest, profile: Profile, losses: Losses): Record<string, unknown> {
  if (!profile.accepts.has('safety_identifier')) return { user: oneId(request.identity, losses) }
  const { user, safetyId, either } = request.identity
  return { user: shortId(user), safety_identifier: shortId(safetyId ?? either) }
}
