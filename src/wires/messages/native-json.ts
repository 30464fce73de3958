import { asObject, parseKeeping } from '../../bytes/json.ts'
import { mostTokensOf } from '../../inference/estimate.ts'
import { noteAnswer } from '../../inference/usage.ts'
import { brokenFault } from '../answers/faults.ts'
import {
  callsIn,
  headValues,
  isBelieved,
  type NativeHead,
  openAnswer,
  renameInUsage,
} from '../answers/native-answer.ts'
import { estimateTexts } from '../answers/produced-text.ts'
import { objectsOf, stringOf } from '../answers/read-answer.ts'
import type { WholeAnswer } from '../answers/relay.ts'
import { decodeUsage, encodeUsage, type MessagesUsage, plainUsage } from './usage.ts'

/** A messages model's whole answer for a messages client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  const opened = openAnswer(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const answer = patch.value
  if (answer['type'] !== 'message' || !Array.isArray(answer['content'])) {
    return { state: 'failed', fault: brokenFault('the answer is not a message') }
  }
  const usage = asObject(answer['usage'])
  const counted = noteAnswer(decodeUsage(usage, head.model.profile.usageQuirk), answer)
  const callsSeen = head.model.prices.hasCalls && callsIn(answer['content'], calledBy)
  const report = callsSeen ? { ...counted, callsSeen } : counted
  return {
    state: 'finished',
    report,
    // Every text stands in the body as it is counted.
    estimateOutput: (enough = 0) =>
      mostTokensOf(body.length) <= enough ? enough : estimateTexts(textsOf(answer, body), enough),
    encode: (billed) => {
      patch.set([], headValues(head, answer, 'msg_'))
      const wanted = encodeUsage(billed)
      patch.setMissing(['usage'], wanted, isBelieved(report, billed, plainUsage(usage), wanted))
      renameInUsage(patch, ['usage'], usage, head)
      return patch.result()
    },
  }
}

/** The hosted tool that a block calls. */
export function calledBy(block: Record<string, unknown>): string | undefined {
  return block['type'] === 'server_tool_use' ? stringOf(block['name']) : undefined
}

/** All that a message says (ruling C10), a tool's input as the model wrote it. */
function textsOf(answer: Record<string, unknown>, body: Buffer): string[] {
  const blocks = objectsOf(answer['content'])
  if (!blocks.some((block) => 'input' in block)) return blocks.flatMap((block) => producedTexts(block, String))
  const { value, raw } = parseKeeping(body.toString('utf8'), ['input'])
  return objectsOf(asObject(value)?.['content']).flatMap((block) => producedTexts(block, (input) => raw(input).source))
}

/** The texts of a block: its text, or the name of a call (a hosted tool's too) and its input. */
export function producedTexts(block: Record<string, unknown>, write: (input: unknown) => string): string[] {
  const name = stringOf(block['name'])
  if (name !== undefined && 'input' in block) return [name, write(block['input'])]
  return [stringOf(block['text']) ?? stringOf(block['thinking']) ?? '']
}

/** Before anything was counted (spec 6.1). */
export const zeroUsage: MessagesUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
}
