import { asObject } from '../../bytes/json.ts'
import { noteAnswer } from '../../inference/usage.ts'
import { brokenFault } from '../answers/faults.ts'
import type { Wanted } from '../answers/json-patch.ts'
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
import { objectsOf, stringOf, unreadable } from '../answers/read-answer.ts'
import type { WholeAnswer } from '../answers/relay.ts'
import { fillItems } from './missing-members.ts'
import { SaidCalls } from './said-calls.ts'
import { lastSealed } from './sealing.ts'
import { decodeUsage, encodeUsage, type ResponsesUsage } from './usage.ts'

/** Reads a responses model's whole answer for a responses client (ruling P2). */
export function readAnswer(body: Buffer, head: NativeHead): WholeAnswer {
  const opened = openAnswer(body)
  if (opened.state === 'failed') return opened
  const { patch } = opened
  const answer = patch.value
  if (!Array.isArray(answer['output']) || !isEnded(answer['status'])) {
    return { state: 'failed', fault: brokenFault('the answer is not an ended response') }
  }
  const calls = new SaidCalls((place) => mintCallId('call_', head, place))
  const missing = answer['output'].map((item, place) => calls.final(asObject(item) ?? {}, place))
  if (missing.includes(undefined) || isUnread(answer['output'])) return { state: 'failed', fault: unreadable() }
  const usage = asObject(answer['usage'])
  const counted = noteAnswer(decodeUsage(usage, head.model.profile.usageQuirk, answer['tool_usage']), answer)
  const callsSeen = callsIn(head, answer['output'], calledBy)
  const report = callsSeen ? { ...counted, callsSeen } : counted
  return {
    state: 'finished',
    report,
    lastSealed: () => lastSealed(answer['output']),
    estimateOutput: (enough) => estimateTexts(producedTexts(answer['output']), enough),
    encode: (billed) => {
      patch.set([], responseValues(head, answer))
      fillItems(patch, ['output'], answer['output'])
      for (const [place, values] of missing.entries()) patch.set(['output', `${place}`], values!)
      const wanted = wantedUsage(encodeUsage(billed), usage)
      patch.setMissing(['usage'], wanted, isBelieved(report, billed, usage, wanted))
      renameInUsage(patch, ['usage'], usage, head)
      return patch.result()
    },
  }
}

/**
 * New values for members of a response object that are missing or must not be shown unchanged (spec 2.8, 4.4; rulings
 * P2, P3, P9).
 */
export function responseValues(head: NativeHead, response: Record<string, unknown>): Map<string, string | undefined> {
  const values = headValues(head, response, 'resp_')
  if (response['object'] !== 'response') values.set('object', '"response"')
  if (response['created_at'] === undefined) values.set('created_at', `${head.createdSeconds}`)
  for (const name of ['error', 'incomplete_details']) if (response[name] === undefined) values.set(name, 'null')
  if (!Array.isArray(response['output'])) values.set('output', '[]')
  if (response['store'] !== false) values.set('store', 'false')
  return values
}

/** Returns the counters that a usage must have (spec 2.8). If the upstream reports no usage, these are all counters. */
export function wantedUsage(counters: ResponsesUsage, reported: Record<string, unknown> | undefined): Wanted {
  if (reported === undefined) return counters
  const { cached_tokens } = counters.input_tokens_details
  return { ...counters, input_tokens_details: { cached_tokens } }
}

/** Whether the status of a response says that its output is final. A response without a status counts too. */
export function isEnded(status: unknown): boolean {
  return status === undefined || status === 'completed' || status === 'incomplete'
}

/** Whether the only items of a response cannot be read, because none has a type (ruling Y5). */
export function isUnread(output: unknown): boolean {
  return Array.isArray(output) && output.length > 0 && !output.some((item) => stringOf(asObject(item)?.['type']))
}

/** Calls that the client runs. They cost nothing at the provider. */
const clientCalls = new Set([
  'function',
  'custom_tool',
  'computer',
  'local_shell',
  'shell',
  'apply_patch',
  'tool_search',
])

/** Actions of a web search on pages already found. They are not billed; only the search itself is. */
const readingActions = new Set(['open_page', 'find_in_page', 'find'])

/** The kind of hosted tool that an item calls, for example `web_search` for `web_search_call`. */
export function calledBy(item: Record<string, unknown>): string | undefined {
  const kind = /^([a-z][a-z0-9_]*)_call$/.exec(stringOf(item['type']) ?? '')?.[1]
  if (kind === undefined || clientCalls.has(kind) || item['status'] === 'failed') return undefined
  return readingActions.has(stringOf(asObject(item['action'])?.['type']) ?? '') ? undefined : kind
}

/** The text that a translated answer has between the parts of its reasoning. */
export const partBreak = '\n\n'

/**
 * The texts of output items, in order (ruling C10): messages, reasoning, and the names and arguments of all calls. If
 * an item has a summary and raw reasoning, only the first one with text is taken. Sealed and binary output is not text.
 */
export function producedTexts(output: unknown): string[] {
  return objectsOf(output)
    .flatMap(textsOfItem)
    .filter((text) => text !== '')
}

function textsOfItem(item: Record<string, unknown>): string[] {
  if (item['type'] === 'message') {
    return objectsOf(item['content']).map((part) => stringOf(part['text']) ?? stringOf(part['refusal']) ?? '')
  }
  if (item['type'] === 'reasoning') {
    const parts = [item['summary'], item['content']].map((list) =>
      objectsOf(list)
        .map((part) => stringOf(part['text']) ?? '')
        .filter((text) => text !== ''),
    )
    return [(parts.find((texts) => texts.length > 0) ?? []).join(partBreak)]
  }
  return [
    stringOf(item['name']) ?? '',
    stringOf(item['arguments']) ?? stringOf(item['input']) ?? stringOf(item['code']) ?? '',
  ]
}
