import type { Model } from '../../catalog/model.ts'
import type { Edit } from '../../json.ts'
import { elementsOf, membersOf } from '../../json-edit.ts'
import type { ClientBody } from '../client-body.ts'
import {
  type AdaptContext,
  type AdaptedRequest,
  adaptBody,
  capTokens,
  checkHostedTools,
  commonValues,
  droppedFields,
  type MemberValues,
} from '../native-request.ts'

const capFields = ['max_completion_tokens', 'max_tokens'] as const

/** A chat request for a chat model (ruling P1). */
export function adaptRequest(body: ClientBody, model: Model, context: AdaptContext): AdaptedRequest {
  const values = commonValues(body, model)
  const stream = body.value('stream') === true
  const outputTokensCap = setCap(body, model, values)
  if (stream && !model.profile.drops.has('stream_options')) {
    const options = body.isObject('stream_options') ? (body.value('stream_options') as Record<string, unknown>) : {}
    if (options['include_usage'] !== true) {
      values.set('stream_options', JSON.stringify({ ...options, include_usage: true }))
    }
  }
  if (context.scopedKey !== undefined && body.has('prompt_cache_key') && !values.has('prompt_cache_key')) {
    values.set('prompt_cache_key', JSON.stringify(context.scopedKey))
  }
  checkHostedTools(body, model, (tool) => tool['type'] !== 'function' && tool['type'] !== 'custom')
  return {
    body: adaptBody(body, values, model.profile.developerRole ? [] : renameDevelopers(body)),
    stream,
    outputTokensCap,
    dropped: droppedFields(values),
  }
}

/**
 * Lowers what is above the maximum. A cap field that the upstream does not take becomes the one it does, with the
 * smaller value where both were sent (ruling T17).
 */
function setCap(body: ClientBody, model: Model, values: MemberValues): number {
  const { maxField, drops } = model.profile
  const asked = capFields.filter((field) => body.has(field)).map((field) => body.value(field) as number)
  if (asked.length === 0) return model.outputTokensMax
  const cap = capTokens(model, Math.min(...asked))
  for (const field of capFields) {
    if (!body.has(field)) continue
    const isTaken = !drops.has(field) && (field === maxField || maxField !== 'max_tokens')
    if (!isTaken) {
      values.set(field, undefined)
      values.set(maxField, String(cap))
    } else if ((body.value(field) as number) !== capTokens(model, body.value(field) as number)) {
      values.set(field, String(capTokens(model, body.value(field) as number)))
    }
  }
  return cap
}

/** An upstream that does not know the role `developer` is told `system`. */
function renameDevelopers(body: ClientBody): Edit[] {
  const { bytes } = body
  if (bytes.indexOf('"developer"') < 0) return []
  const edits: Edit[] = []
  for (const message of elementsOf(bytes, body.member('messages')!)) {
    if (bytes[message.start] !== 0x7b) continue
    for (const member of membersOf(bytes, message)) {
      if (member.key === 'role' && bytes.toString('utf8', member.start, member.end) === '"developer"') {
        edits.push({ start: member.start, end: member.end, text: '"system"' })
      }
    }
  }
  return edits
}
