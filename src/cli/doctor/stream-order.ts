import { asObject } from '../../bytes/json.ts'
import { isDoneMark } from '../../bytes/sse.ts'
import type { ClientWire } from '../../catalog/wire-names.ts'

/*
 * The order in which the events of a stream may come, for each wire (spec 6), as a client relies on it. A stream that breaks
 * off counts as in order; its missing end is reported elsewhere.
 */

type StreamEvent = Record<string, unknown>

/** Returns the first violation of the order, or undefined. `datas` are the data of the frames, without empty ones. */
export const findDisorder: Readonly<Record<ClientWire, (datas: readonly string[]) => string | undefined>> = {
  messages: (datas) => withEvents(datas, findMessagesDisorder),
  chat: findChatDisorder,
  responses: (datas) => withEvents(datas, findResponsesDisorder),
}

function withEvents(datas: readonly string[], find: (events: readonly StreamEvent[]) => string | undefined) {
  const events = datas.map(parse)
  return events.every((event) => event !== undefined) ? find(events) : 'an event is not a JSON object'
}

function findMessagesDisorder(events: readonly StreamEvent[]): string | undefined {
  let [isBegun, hasDelta, isEnded] = [false, false, false]
  let started = 0
  let open: number | undefined
  for (const { type, index } of events) {
    if (type === 'ping' || type === 'error') continue
    if (isEnded) return `${type} comes after message_stop`
    if (isBegun === (type === 'message_start')) {
      return isBegun ? 'message_start comes twice' : `${type} comes before message_start`
    }
    isBegun = true
    switch (type) {
      case 'content_block_start':
        if (open !== undefined) return `block ${index} starts while block ${open} is open`
        if (index !== started) return `block ${index} starts where block ${started} is due`
        open = started++
        break
      case 'content_block_delta':
      case 'content_block_stop':
        if (index !== open) return `${type} comes for block ${index}, which is not open`
        if (type === 'content_block_stop') open = undefined
        break
      case 'message_delta':
        if (open !== undefined) return `message_delta comes while block ${open} is open`
        hasDelta = true
        break
      case 'message_stop':
        if (!hasDelta) return 'message_stop comes without message_delta'
        isEnded = true
    }
  }
  return undefined
}

function findChatDisorder(datas: readonly string[]): string | undefined {
  let [isFinished, hasUsage, isEnded] = [false, false, false]
  let id: unknown
  for (const data of datas) {
    if (isEnded) return 'an event comes after [DONE]'
    if (isDoneMark(data)) {
      if (!isFinished) return '[DONE] comes without a finish_reason'
      if (!hasUsage) return '[DONE] comes without a chunk of usage and no choices'
      isEnded = true
      continue
    }
    const chunk = parse(data)
    if (!chunk) return 'an event is not a JSON object'
    // A failure in a started stream is reported elsewhere.
    if (chunk['error'] !== undefined) continue
    if (chunk['object'] !== 'chat.completion.chunk') return `the object of an event is ${chunk['object']}`
    id ??= chunk['id']
    if (chunk['id'] !== id) return 'the id changes within the stream'
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    if (hasUsage && choices.length > 0) return 'content comes after the usage'
    if (choices.some((choice) => asObject(choice)?.['finish_reason'])) isFinished = true
    if (choices.length === 0 && asObject(chunk['usage'])) hasUsage = true
  }
  return undefined
}

const responsesEnds = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function findResponsesDisorder(events: readonly StreamEvent[]): string | undefined {
  const open = new Set<unknown>()
  let last = -1
  let end: unknown
  for (const [at, { type, sequence_number: sequence, output_index: item }] of events.entries()) {
    if (end !== undefined) return `${type} comes after ${end}`
    if (type === 'error') continue
    if (at === 0 && type !== 'response.created') return `${type} comes before response.created`
    if (!Number.isInteger(sequence)) return `${type} has no sequence_number`
    if ((sequence as number) <= last) return `sequence_number ${sequence} comes after ${last}`
    last = sequence as number
    if (type === 'response.output_item.added') open.add(item)
    else if (item !== undefined && !open.has(item)) return `${type} comes for item ${item}, which is not open`
    if (type === 'response.output_item.done') open.delete(item)
    if (!responsesEnds.has(String(type))) continue
    if (open.size > 0 && type !== 'response.failed') return `${type} comes while item ${[...open][0]} is open`
    end = type
  }
  return undefined
}

function parse(data: string): StreamEvent | undefined {
  try {
    return asObject(JSON.parse(data))
  } catch {
    return undefined
  }
}
