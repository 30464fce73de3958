import { asObject, type JsonObject, memberText, parseKeeping, splice } from '../../bytes/json.ts'
import { removeElements } from '../../bytes/json-edit.ts'
import { mostTokensOf } from '../../inference/estimate.ts'
import { objectOfArguments } from '../../inference/raw-arguments.ts'
import { noteAnswer } from '../../inference/usage.ts'
import { brokenFault } from '../answers/faults.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import {
  callsIn,
  estimateTexts,
  headValues,
  isBelieved,
  mintCallId,
  type NativeHead,
  openAnswer,
  renameInUsage,
} from '../answers/native-answer.ts'
import { kindOfPart, objectsOf, stringOf, unreadable, wordsIn } from '../answers/read-answer.ts'
import type { WholeAnswer } from '../answers/relay.ts'
import { initialOf, missingInBlock, saysNothing } from './block-content.ts'
import { decodeUsage, encodeUsage, type MessagesUsage, plainUsage } from './usage.ts'

/** Reads a messages model's whole answer for a messages client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  const opened = openAnswer(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const answer = patch.value
  const listed = withListedContent(patch) ?? withoutUnknown(patch)
  if (listed) return readAnswer(listed, head)
  if (answer['type'] !== 'message' || !Array.isArray(answer['content'])) {
    return { state: 'failed', fault: brokenFault('the answer is not a message') }
  }
  const missing = answer['content'].map((block, place) => plainBlock(asObject(block), place, head))
  if (missing.includes(undefined)) return { state: 'failed', fault: unreadable() }
  const usage = asObject(answer['usage'])
  const counted = noteAnswer(decodeUsage(usage, head.model.profile.usageQuirk), answer)
  const callsSeen = callsIn(head, answer['content'], calledBy)
  const report = callsSeen ? { ...counted, callsSeen } : counted
  return {
    state: 'finished',
    report,
    // The body contains all counted texts, so its length bounds the estimate.
    estimateOutput: (enough = 0) =>
      mostTokensOf(body.length) <= enough ? enough : estimateTexts(textsOf(answer, body), enough),
    encode: (billed) => {
      patch.set([], headValues(head, answer, 'msg_'))
      patch.set([], missingInMessage(answer))
      for (const [place, values] of missing.entries()) patch.set(['content', `${place}`], values!)
      const wanted = encodeUsage(billed)
      patch.setMissing(['usage'], wanted, isBelieved(report, billed, plainUsage(usage), wanted))
      renameInUsage(patch, ['usage'], usage, head)
      return patch.result()
    },
  }
}

/** Returns the required members (ruling Y3) that this message lacks, except `content`. */
export function missingInMessage(message: JsonObject): Map<string, string> {
  const values = new Map<string, string>()
  for (const [name, value] of Object.entries({ type: 'message', role: 'assistant' }))
    if (message[name] !== value) values.set(name, JSON.stringify(value))
  const hasCalls = objectsOf(message['content']).some(({ type }) => kindOfPart(type) === 'tool_call')
  const reason = hasCalls ? 'tool_use' : 'end_turn'
  if (!stringOf(message['stop_reason'])) values.set('stop_reason', JSON.stringify(reason))
  if (message['stop_sequence'] === undefined) values.set('stop_sequence', 'null')
  return values
}

/** Puts content that is a text or a single block into a list (ruling Y5); undefined if `content` is a list already. */
function withListedContent(patch: JsonPatch): Buffer | undefined {
  const { type, content } = patch.value
  const member = patch.members.findLast(({ key }) => key === 'content')
  if (type !== 'message' || !member || !(typeof content === 'string' || asObject(content))) return undefined
  const text =
    typeof content === 'string' ? JSON.stringify({ type: 'text', text: content }) : memberText(patch.bytes, member)
  patch.set([], new Map([['content', content === '' ? '[]' : `[${text}]`]]))
  return patch.result()
}

/**
 * Returns the answer without the blocks that say nothing (ruling Y5). Returns undefined if no block says nothing, or if
 * every block does.
 */
function withoutUnknown(patch: JsonPatch): Buffer | undefined {
  const { content } = patch.value
  const member = patch.members.findLast(({ key }) => key === 'content')
  if (!Array.isArray(content) || !member || !content.some(saysNothing) || content.every(saysNothing)) return undefined
  return splice(
    patch.bytes,
    removeElements(patch.elementsAt(member), (place) => saysNothing(content[place])),
  )
}

/** The members to set so that SDKs can read the block (rulings Y3, Y5); undefined if the block is unreadable. */
function plainBlock(block: JsonObject | undefined, place: number, head: NativeHead): Map<string, string> | undefined {
  const values = block && missingInBlock(block, () => mintCallId('toolu_', head, place))
  if (!block || !values || !stringOf(block['type'])) return undefined
  const kind = kindOfPart(block['type'])
  if (kind === 'tool_call') {
    // An input that is not an object cannot be copied as it is, so a new object is written.
    if (!asObject(block['input'])) values.set('input', objectOfArguments(initialOf(block, () => undefined)))
  } else if (kind !== undefined) {
    const member = kind === 'reasoning' ? 'thinking' : 'text'
    const words = wordsIn(block) ?? (block[member] == null ? '' : undefined)
    if (words === undefined) return undefined
    if (typeof block[member] !== 'string') values.set(member, JSON.stringify(words))
    if (kind === 'reasoning' && typeof block['signature'] !== 'string') values.set('signature', '""')
  }
  return values
}

/** The kind of hosted tool that a block calls. */
export function calledBy(block: Record<string, unknown>): string | undefined {
  return block['type'] === 'server_tool_use' ? stringOf(block['name']) : undefined
}

/** All texts of a message (ruling C10). A tool's input is included as the model wrote it. */
function textsOf(answer: Record<string, unknown>, body: Buffer): string[] {
  const blocks = objectsOf(answer['content'])
  if (!blocks.some((block) => 'input' in block)) return blocks.flatMap((block) => producedTexts(block, String))
  const { value, raw } = parseKeeping(body.toString('utf8'), ['input'])
  return objectsOf(asObject(value)?.['content']).flatMap((block) => producedTexts(block, (input) => raw(input).source))
}

/** Returns the texts of a block. For a call, even of a hosted tool, these are its name and its input. */
function producedTexts(block: Record<string, unknown>, write: (input: unknown) => string): string[] {
  const name = stringOf(block['name'])
  if (name !== undefined && 'input' in block) return [name, write(block['input'])]
  return [stringOf(block['text']) ?? stringOf(block['thinking']) ?? '']
}

/** The usage before anything is counted (spec 6.1). */
export const zeroUsage: MessagesUsage = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
}
