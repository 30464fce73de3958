import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { Answer, AnswerBlock, AnswerEvent } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import { Narrator } from '../../inference/narrator.ts'
import type { Usage } from '../../inference/usage.ts'
import type { OnAnswer } from '../answers/decode-frames.ts'
import { faultOfError } from '../answers/faults.ts'
import { objectsOf, parseAnswer, unreadable } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { AnswerReader } from './decode-stream.ts'
import { encodeStopReason } from './stop-reasons.ts'
import { encodeUsage } from './usage.ts'

/** The events of a model's whole JSON answer, as it would have streamed them. The body is its own completion. */
export function decodeAnswer(bodyText: string, profile: Profile, onAnswer?: OnAnswer): AnswerEvent[] {
  const narrator = new Narrator()
  const reader = new AnswerReader(narrator, profile)
  const body = parseAnswer(bodyText)
  if (body) onAnswer?.(body)
  if (!body) narrator.fail(unreadable())
  else if (reader.findError(body)) return narrator.take()
  else if (body['object'] === 'error') narrator.fail(faultOfError(body))
  // A choice without anything that it says is no answer, and none is invented (I10).
  else if (!objectsOf(body['choices']).some(hasMessage)) narrator.fail(unreadable())
  else {
    narrator.start()
    reader.choices(body, 'message', bodyText)
    if (body['usage']) reader.usage(body['usage'])
    reader.end(true)
  }
  return narrator.take()
}

/** Under its own name, or as servers outside the dialect send it (ruling Y5). */
function hasMessage({ message, delta, text }: JsonObject): boolean {
  return asObject(message) !== undefined || asObject(delta) !== undefined || typeof (message ?? text) === 'string'
}

/** The whole JSON answer for a client. This wire has one text and one reasoning: what came in pieces is put together. */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const textsOf = (kind: AnswerBlock['kind']) =>
    answer.blocks.filter(({ block, text }) => block.kind === kind && text !== '').map(({ text }) => text)
  const calls = answer.blocks.flatMap(({ block, text }) =>
    block.kind === 'tool_call'
      ? [{ id: block.callId, type: 'function', function: { name: block.name, arguments: text } }]
      : [],
  )
  const content = textsOf('text').join('')
  const refusal = textsOf('refusal').join('')
  const reasoning = textsOf('reasoning').join('\n\n')
  const message = {
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal !== '') ? null : content,
    refusal: refusal === '' ? null : refusal,
    // Of tools of a provider only; the vendor's answers have the empty list (ruling Y3).
    annotations: [],
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  return JSON.stringify({
    id: mintId('chatcmpl-', head.requestId, ''),
    object: 'chat.completion',
    created: head.createdSeconds,
    model: head.modelId,
    choices: [{ index: 0, message, logprobs: null, finish_reason: encodeStopReason(answer.reason) }],
    usage: encodeUsage(usage),
  })
}
