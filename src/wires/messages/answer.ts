import { asObject } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { Answer, AnswerEvent, FoldedBlock } from '../../inference/answer.ts'
import { mintId } from '../../inference/ids.ts'
import { Narrator } from '../../inference/narrator.ts'
import { objectOfArguments } from '../../inference/raw-arguments.ts'
import type { Usage } from '../../inference/usage.ts'
import { listOf } from '../answers/content-parts.ts'
import type { OnAnswer } from '../answers/decode-frames.ts'
import { faultOfError } from '../answers/faults.ts'
import { keptSources } from '../answers/kept-sources.ts'
import { parseAnswer, unreadable } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { AnswerReader } from './decode-stream.ts'
import { encodeStopReason } from './stop-reasons.ts'
import { callMembers, encodeWholeUsage, messageMembers, textMembers } from './vendor-members.ts'

/** The events of a model's whole JSON answer, as it would have streamed them. */
export function decodeAnswer(bodyText: string, profile: Profile, onAnswer?: OnAnswer): AnswerEvent[] {
  const narrator = new Narrator()
  const body = parseAnswer(bodyText)
  if (body) onAnswer?.(body)
  if (body && (body['type'] === 'error' || asObject(body['error']))) narrator.fail(faultOfError(body['error'] ?? body))
  else if (!body || body['content'] == null) narrator.fail(unreadable())
  else {
    const reader = new AnswerReader(narrator, profile)
    narrator.start()
    reader.content(
      body['content'],
      keptSources(bodyText, 'input', (root) => listOf(root['content']).map(asObject)),
    )
    reader.reason(body)
    reader.usage(body['usage'])
    reader.finish()
  }
  return narrator.take()
}

/** The whole JSON answer for a client. A tool's input stands in it as the model wrote it (ruling T16). */
export function encodeAnswer(answer: Answer, head: AnswerHead, usage: Usage): string {
  const refuses = answer.blocks.some(({ block }) => block.kind === 'refusal')
  const start = {
    id: mintId('msg_', head.requestId, ''),
    type: 'message',
    role: 'assistant',
    model: head.modelId,
  }
  const end = {
    stop_reason: encodeStopReason(answer.reason, refuses),
    stop_sequence: answer.reason === 'stop_sequence' ? (answer.stopSequence ?? null) : null,
    ...messageMembers,
    usage: encodeWholeUsage(usage),
  }
  const content = answer.blocks.map(encodeBlock).join(',')
  return `${JSON.stringify(start).slice(0, -1)},"content":[${content}],${JSON.stringify(end).slice(1)}`
}

function encodeBlock({ block, text }: FoldedBlock): string {
  if (block.kind === 'reasoning') return JSON.stringify({ type: 'thinking', thinking: text, signature: '' })
  if (block.kind !== 'tool_call') return JSON.stringify({ type: 'text', text, ...textMembers })
  const call = { type: 'tool_use', id: block.callId, name: block.name, ...callMembers }
  return `${JSON.stringify(call).slice(0, -1)},"input":${objectOfArguments(text)}}`
}
