import { asObject, type JsonObject, memberText } from '../../bytes/json.ts'
import type { Profile } from '../../catalog/profile.ts'
import { callsMax } from '../../inference/narrator.ts'
import { noteAnswer } from '../../inference/usage.ts'
import { brokenFault, faultOfError } from '../answers/faults.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import {
  estimateTexts,
  headValues,
  hideInChoice,
  isBelieved,
  mintCallId,
  type NativeHead,
  openAnswer,
} from '../answers/native-answer.ts'
import { objectsOf, stringOf, unreadable } from '../answers/read-answer.ts'
import type { WholeAnswer } from '../answers/relay.ts'
import { isNamed, missingInCall } from './begun-calls.ts'
import { choicesOf, partsOf, reasoningOf, withPlainChoices } from './content.ts'
import { errorIn, isBareError } from './decode-answer.ts'
import { explainsSilence } from './stop-reasons.ts'
import { encodeUsage, holdsMoreThanTokens, joinUsages, tellUsage, usagesIn, wantedUsage } from './usage.ts'

/** Reads a chat model's whole answer for a chat client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  const opened = openCompletion(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const answer = patch.value
  const choices = answer['choices'] as unknown[]
  const usage = asObject(answer['usage'])
  const { usageQuirk, chat } = head.model.profile
  const report = noteAnswer(joinUsages(usagesIn(answer, choices), new Map(), usageQuirk), answer)
  return {
    state: 'finished',
    report,
    estimateOutput: (enough) => estimateTexts(textsOf(choices, chat.reasoningField), enough),
    encode: (billed) => {
      const values = headValues(head, answer, 'chatcmpl-')
      if (answer['object'] !== 'chat.completion') values.set('object', '"chat.completion"')
      if (!isTime(answer['created'])) values.set('created', `${head.createdSeconds}`)
      patch.set([], values)
      for (const [place, choice] of choices.entries()) {
        const members = asObject(choice) ?? {}
        hideInChoice(patch, place, members)
        // The answer's own usage covers all choices, so a usage inside a choice is removed (ruling P10).
        if (asObject(members['usage'])) patch.set(['choices', `${place}`], new Map([['usage', undefined]]))
        addMissing(patch, members, place, head)
      }
      const counters = encodeUsage(billed)
      const isKept = isBelieved(report, billed, usage, wantedUsage(counters))
      if (usage && holdsMoreThanTokens(usage))
        patch.set([], new Map([['usage', JSON.stringify(tellUsage(usage, counters, isKept))]]))
      else patch.setMissing(['usage'], usage ? wantedUsage(counters) : counters, isKept)
      return patch.result()
    },
  }
}

/** Opens a whole answer in which each choice has a message; other forms are rewritten (ruling Y5). */
export function openCompletion(body: Buffer): ReturnType<typeof openAnswer> {
  const opened = openAnswer(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const error = errorIn(patch.value)
  if (error) return { state: 'failed', fault: faultOfError(error) }
  const rewritten = withListedChoice(patch)?.toString('latin1') ?? withPlainChoices(patch, 'message')
  if (rewritten !== undefined) return openCompletion(Buffer.from(rewritten, 'latin1'))
  const choices = patch.value['choices']
  if (!Array.isArray(choices) || choices.length === 0) {
    const isError = isBareError(patch.value, undefined)
    return { state: 'failed', fault: isError ? faultOfError(patch.value) : brokenFault('the answer has no choices') }
  }
  return choices.some(isUnread) ? { state: 'failed', fault: unreadable() } : opened
}

/**
 * Whether a choice is unreadable for clients (ruling Y5). It has no message and does not say why, or it has a call
 * without a name.
 */
function isUnread(choice: unknown): boolean {
  const { message: raw, finish_reason } = asObject(choice) ?? {}
  const message = asObject(raw)
  if (!message) return raw != null || !explainsSilence(finish_reason)
  const calls = message['tool_calls']
  return Array.isArray(calls) && calls.some((call) => !isNamed(asObject(call) ?? {}))
}

/** The message of a choice that has none. */
const silentMessage: JsonObject = { role: 'assistant', content: null, refusal: null }

/** Adds the members without which SDKs throw (ruling Y3). */
function addMissing(patch: JsonPatch, choice: JsonObject, place: number, head: NativeHead): void {
  const path = ['choices', `${place}`]
  const message = asObject(choice['message']) ?? silentMessage
  if (message === silentMessage) patch.set(path, new Map([['message', JSON.stringify(silentMessage)]]))
  const calls = objectsOf(message['tool_calls'])
  const hasCalls = calls.length > 0 || message['function_call'] != null
  if (choice['index'] === undefined) patch.set(path, new Map([['index', `${place}`]]))
  if (!stringOf(choice['finish_reason']))
    patch.set(path, new Map([['finish_reason', hasCalls ? '"tool_calls"' : '"stop"']]))
  if (!stringOf(message['role'])) patch.set([...path, 'message'], new Map([['role', '"assistant"']]))
  if (message['content'] === undefined) patch.set([...path, 'message'], new Map([['content', 'null']]))
  for (const [at, call] of calls.entries()) {
    const callPath = [...path, 'message', 'tool_calls', `${at}`]
    patch.set(
      callPath,
      missingInCall(call, () => mintCallId('call_', head, `${place}/${at}`)),
    )
    if (asObject(call['function'])?.['arguments'] == null)
      patch.set([...callPath, 'function'], new Map([['arguments', '""']]))
  }
}

function textsOf(choices: readonly unknown[], reasoningField: Profile['chat']['reasoningField']): string[] {
  const named: NamedCalls = new Set()
  // The texts are not spread into `push`, since there may be more of them than a function call may have arguments.
  return objectsOf(choices).flatMap((choice) => producedTexts(choice, reasoningField, named))
}

/** Calls whose name has been counted for the bill. Some servers repeat the name in every fragment. */
export type NamedCalls = Set<string>

/** How many characters of an id or a name are compared. */
const keyCharactersMax = 200

/**
 * The texts of a choice's delta or message, in the order of a translated answer (ruling C10). The order is reasoning
 * (from one field only), content, refusal, then the name and arguments of each call. A custom call has an input instead
 * of arguments.
 */
export function producedTexts(
  choice: Record<string, unknown>,
  field: Profile['chat']['reasoningField'],
  named: NamedCalls,
): string[] {
  const delta = asObject(choice['delta']) ?? asObject(choice['message'])
  if (delta === undefined) return []
  const parts = partsOf(delta['content'])
  const texts = [reasoningOf(delta, field) || parts.reasoning, parts.text, stringOf(delta['refusal']) ?? '']
  for (const [position, call] of objectsOf(delta['tool_calls']).entries()) {
    const id = `${keyWord(choice['index'])}/${keyWord(call['index'] ?? position)}/${keyWord(call['id'])}`
    texts.push(...callTexts(asObject(call['function']) ?? asObject(call['custom']), id, named))
  }
  const legacy = asObject(delta['function_call'])
  if (legacy) texts.push(...callTexts(legacy, `${keyWord(choice['index'])}/legacy`, named))
  return texts.filter((text) => text !== '')
}

/** Whether a choice's delta has any content besides reasoning. */
export function saysAnswer(choice: Record<string, unknown>): boolean {
  const delta = asObject(choice['delta']) ?? {}
  const isText = partsOf(delta['content']).text !== '' || !!stringOf(delta['refusal'])
  return isText || objectsOf(delta['tool_calls']).length > 0 || delta['function_call'] != null
}

function callTexts(call: Record<string, unknown> | undefined, id: string, named: NamedCalls): string[] {
  const name = stringOf(call?.['name']) ?? ''
  const key = `${id}/${keyWord(name)}`
  const isNew = !named.has(key)
  if (name !== '' && named.size < callsMax) named.add(key)
  const args = call?.['arguments'] ?? call?.['input']
  return [isNew ? name : '', typeof args === 'string' ? args : args == null ? '' : JSON.stringify(args)]
}

function keyWord(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, keyCharactersMax) : typeof value === 'number' ? `${value}` : ''
}

/** Puts the single choice of a chunk or an answer into a list; undefined if `choices` is a list already or absent. */
export function withListedChoice(patch: JsonPatch): Buffer | undefined {
  const member = patch.members.findLast(({ key }) => key === 'choices')
  if (!member || !asObject(patch.value['choices'])) return undefined
  const one = choicesOf(patch.value).length > 0 ? memberText(patch.bytes, member) : ''
  patch.set([], new Map([['choices', `[${one}]`]]))
  return patch.result()
}

/** Whether a value is a creation time. Typed clients fail at a fraction (SambaNova). */
export function isTime(value: unknown): value is number {
  return Number.isInteger(value)
}
