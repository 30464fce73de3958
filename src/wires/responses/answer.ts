import type { Profile } from '../../catalog/profile.ts'
import type { Answer, AnswerEvent } from '../../inference/answer.ts'
import { Narrator } from '../../inference/narrator.ts'
import type { Usage } from '../../inference/usage.ts'
import type { OnAnswer } from '../answers/decode-frames.ts'
import { faultOfError } from '../answers/faults.ts'
import { parseAnswer, stringOf, unreadable } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { AnswerReader } from './decode-stream.ts'
import { encodeItem } from './output-item.ts'
import { createResponse } from './response.ts'
import { encodeIncomplete } from './stop-reasons.ts'

/** The events of a model's whole JSON answer, as it would have streamed them. */
export function decodeAnswer(bodyText: string, profile: Profile, onAnswer?: OnAnswer): AnswerEvent[] {
  const narrator = new Narrator()
  const body = parseAnswer(bodyText)
  if (body) onAnswer?.(body)
  const status = stringOf(body?.['status']) ?? 'completed'
  if (!body) narrator.fail(unreadable())
  else if (body['error']) narrator.fail(faultOfError(body['error']))
  else if ((body['output'] ?? body['output_text']) == null || (status !== 'completed' && status !== 'incomplete')) {
    narrator.fail(unreadable())
  } else new AnswerReader(narrator, profile).finish(status, body)
  return narrator.take()
}

/** The whole JSON answer for a client: the same object that ends a stream. */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const incomplete = encodeIncomplete(answer.reason)
  const output = answer.blocks.map((folded, index) =>
    encodeItem(index, folded, head, folded.cut ? 'incomplete' : 'completed'),
  )
  const status = incomplete ? 'incomplete' : 'completed'
  return createResponse(head).ended({ status, incomplete, output, usage })
}
