import type { Model } from '../../catalog/model.ts'
import {
  type AdaptContext,
  type AdaptedRequest,
  adaptBody,
  capTokens,
  commonValues,
  droppedFields,
  type MemberValues,
  renameDevelopers,
  sentFields,
  sentService,
  setCacheKey,
  setInside,
} from '../requests/adapt-bytes.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { checkReach, isSelfContained } from '../requests/reach.ts'
import { mayHideReasoning } from '../requests/reasoning-wish.ts'
import { refuse, wrongType } from '../requests/refusals.ts'
import { choicesMax } from './usage.ts'

/** Words in the names of tools that a provider runs. OpenAI has no such tools on this wire, but some providers do. */
const hostedWords = ['_search']

const capFields = ['max_completion_tokens', 'max_tokens'] as const

/** Adapts a chat request for a chat model (ruling P1). */
export function adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest {
  const values = commonValues(body, model, context)
  const stream = body.value('stream') === true
  refuseAudio(body)
  // The gateway never lets a provider store a request (spec 1.7). A server may read the text "true" as true.
  if (body.has('store') && body.value('store') !== false) values.set('store', 'false')
  const choices = choicesOf(body)
  const outputTokensCap = setCap(body, model, values) * choices
  const edits = renameDevelopers(body, model, 'messages')
  if (stream && !model.profile.drops.has('stream_options')) {
    const wish = new Map([['include_usage', 'true']])
    if (!body.isObject('stream_options')) values.set('stream_options', '{"include_usage":true}')
    else if (!isUsageAsked(body)) edits.push(...setInside(body, 'stream_options', wish))
  }
  setCacheKey(body, model, values, context)
  checkReach(body, model, (type) => type !== 'function' && type !== 'custom', 'messages')
  return {
    body: adaptBody(body, values, edits),
    stream,
    isSelfContained: isSelfContained(body, hostedWords),
    service: sentService(body, values),
    outputTokensCap,
    choices,
    mayHideReasoning: mayHideReasoning(sentFields(body, values), model.profile),
    losses: droppedFields(values, sendsCap(body, values) ? capFields : []),
  }
}

/**
 * Whether the client asks for usage (ruling Y12). If the body has several such fields, an upstream may read any of
 * them. So all of them must be true.
 */
function isUsageAsked(body: ClientBody): boolean {
  const wishes = body.valuesInside('stream_options', 'include_usage')
  return wishes.length > 0 && wishes.every((wish) => wish === true)
}

/**
 * The number of answers that the client requests. The output cap applies to each answer. The reported usage is the sum
 * for all answers (ruling C7).
 */
function choicesOf(body: ClientBody): number {
  if (!body.has('n')) return 1
  const n = body.value('n')
  if (typeof n === 'number' && Number.isInteger(n) && n > 0 && n <= choicesMax) return n
  // A server may read the text "4" as the number 4. Four answers would cost more than the credit that was set aside.
  throw wrongType('n', `an integer from 1 to ${choicesMax}`)
}

/** Refuses audio output, because its tokens have a separate price, which no model here has (ruling C7). */
function refuseAudio(body: ClientBody): void {
  const modalities = body.value('modalities')
  if (Array.isArray(modalities) && modalities.includes('audio'))
    refuse('modalities', 'audio is not offered as output: ask for text.')
  if (body.has('audio')) refuse('audio', 'audio is not offered as output: remove the field.')
}

/**
 * Lowers a cap above the model's maximum. A cap field that the upstream does not accept is renamed. If the client sent
 * both cap fields, a single field remains, with the smaller value (ruling T17).
 */
function setCap(body: ClientBody, model: Model, values: MemberValues): number {
  const { drops } = model.profile
  const { maxField } = model.profile.chat
  const asked = new Map<(typeof capFields)[number], number>()
  for (const field of capFields) if (body.has(field)) asked.set(field, body.value(field) as number)
  if (asked.size === 0) return model.outputTokensMax
  const cap = capTokens(model, Math.min(...asked.values()))
  for (const [field, tokens] of asked) {
    const isTaken = !drops.has(field) && (field === maxField || (maxField !== 'max_tokens' && asked.size === 1))
    if (!isTaken) {
      values.set(field, undefined)
      values.set(maxField, String(cap))
    } else if (tokens !== cap) values.set(field, String(cap))
  }
  return sendsCap(body, values) ? cap : model.outputTokensMax
}

/** Whether the upstream gets a cap. It gets none if it accepts none of the fields. */
function sendsCap(body: ClientBody, values: MemberValues): boolean {
  return capFields.some((field) => (values.has(field) ? values.get(field) !== undefined : body.has(field)))
}
