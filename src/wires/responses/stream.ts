import { asObject } from '../../bytes/json.ts'
import { type SseFrame, sseText } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent, BilledEvent } from '../../inference/answer.ts'
import { createNarrator, type Narrator } from '../../inference/narrator.ts'
import { factsOfFault, faultOfError, truncatedFault } from '../answers/faults.ts'
import { objectsOf, readFrame, stringOf, unreadable } from '../answers/read-answer.ts'
import type { AnswerHead } from '../wire.ts'
import { failedCode } from './failed-code.ts'
import { createItem, type Item } from './output-item.ts'
import { createResponse } from './response.ts'
import { decodeIncomplete, encodeIncomplete } from './stop-reasons.ts'
import { decodeUsage } from './usage.ts'

/** An output item of the upstream: which block it is, and what of it has been told. */
type Incoming = {
  type: string
  block: number | undefined
  kind: 'text' | 'refusal' | 'reasoning' | 'tool_call' | undefined
  isDone: boolean
  /** Told so far, by part; a call has the one part ''. */
  parts: Map<string, string>
  /** Reasoning comes as summary or raw; the kind that came first is told. */
  reasoningKind: 'summary' | 'content' | undefined
  lastPart: string | undefined
}

/**
 * A model's stream. Complete is only what the terminal event says. What a `done` event holds and no delta has told is
 * told then; what contradicts the deltas ends the answer, since nobody could take back what a client has seen.
 */
export function createDecoder(profile: Profile): Step<SseFrame, AnswerEvent> {
  const narrator = createNarrator()
  const reader = createReader(narrator, profile)
  return {
    push(frame) {
      if (narrator.isOver) return []
      const object = readFrame(frame, narrator)
      if (object === 'done') narrator.fail(truncatedFault())
      else if (object) reader.event(stringOf(object['type']) ?? frame.event ?? '', object)
      return narrator.take()
    },
    end() {
      narrator.fail(truncatedFault())
      return narrator.take()
    },
  }
}

/** Shared with the whole JSON answer, which is read like a terminal event whose items were never announced. */
export function createReader(narrator: Narrator, profile: Profile) {
  const byId = new Map<string, Incoming>()
  const byIndex = new Map<number, Incoming>()
  /** The item whose text, refusal or reasoning was told last. */
  let current: Incoming | undefined
  return { event, finish }

  function event(type: string, object: Record<string, unknown>) {
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        return narrator.start()
      case 'response.output_item.added': {
        const item = asObject(object['item']) ?? {}
        begin(object, item)
        // Most reasoning tells nothing of itself but that it begins and ends (ruling C12).
        return item['type'] === 'reasoning' ? narrator.alive(true) : undefined
      }
      case 'response.output_text.delta':
        return tell(object, 'message', 'text', `${object['content_index']}`, object['delta'])
      case 'response.refusal.delta':
        return tell(object, 'message', 'refusal', `${object['content_index']}`, object['delta'])
      case 'response.reasoning_summary_text.delta':
        return tellReasoning(object, 'summary', `${object['summary_index']}`, object['delta'])
      case 'response.reasoning_text.delta':
        return tellReasoning(object, 'content', `${object['content_index']}`, object['delta'])
      case 'response.function_call_arguments.delta':
        return tell(object, 'function_call', 'tool_call', '', object['delta'])
      case 'response.output_text.done':
        return tellRest(object, 'message', 'text', `${object['content_index']}`, object['text'])
      case 'response.refusal.done':
        return tellRest(object, 'message', 'refusal', `${object['content_index']}`, object['refusal'])
      case 'response.function_call_arguments.done':
        return tellRest(object, 'function_call', 'tool_call', '', object['arguments'])
      case 'response.output_item.done': {
        const item = asObject(object['item']) ?? {}
        complete(find(object, item) ?? add(object, item), item)
        return item['type'] === 'reasoning' ? narrator.alive(false) : undefined
      }
      case 'response.completed':
      case 'response.incomplete':
        return finish(type.slice('response.'.length), asObject(object['response']) ?? {})
      case 'response.failed':
      case 'response.cancelled':
        return fail(asObject(object['response'])?.['error'], asObject(object['response'])?.['usage'])
      case 'error':
        return fail(asObject(object['error']) ?? object, undefined)
      default:
        return narrator.alive()
    }
  }

  /** By id, else by place: some providers change the ids between events. */
  function find(place: Record<string, unknown>, item: Record<string, unknown> = {}): Incoming | undefined {
    const id = stringOf(place['item_id']) ?? stringOf(item['id'])
    const known = id === undefined ? undefined : byId.get(id)
    if (known) return known
    const atPlace = byIndex.get(place['output_index'] as number)
    return atPlace && (item['type'] === undefined || item['type'] === atPlace.type) ? atPlace : undefined
  }

  function add(place: Record<string, unknown>, item: Record<string, unknown>): Incoming {
    const incoming: Incoming = {
      type: stringOf(item['type']) ?? '',
      block: undefined,
      kind: undefined,
      isDone: false,
      parts: new Map(),
      reasoningKind: undefined,
      lastPart: undefined,
    }
    const id = stringOf(place['item_id']) ?? stringOf(item['id'])
    if (id !== undefined) byId.set(id, incoming)
    if (typeof place['output_index'] === 'number') byIndex.set(place['output_index'], incoming)
    return incoming
  }

  function begin(place: Record<string, unknown>, item: Record<string, unknown>) {
    narrator.start()
    const incoming = add(place, item)
    if (incoming.type !== 'function_call') return
    if (!openCall(incoming, item)) return
    write(incoming, 'tool_call', '', stringOf(item['arguments']) ?? '')
  }

  /** A call opens when its name is known: in the first event, else in the last. */
  function openCall(incoming: Incoming, item: Record<string, unknown>): boolean {
    const name = stringOf(item['name'])
    if (incoming.block !== undefined) return true
    if (!name?.trim()) return false
    incoming.kind = 'tool_call'
    incoming.block = narrator.open({ kind: 'tool_call', callId: stringOf(item['call_id']) ?? '', name })
    return true
  }

  function tell(
    place: Record<string, unknown>,
    type: string,
    kind: NonNullable<Incoming['kind']>,
    part: string,
    text: unknown,
  ) {
    const words = stringOf(text)
    if (!words) return
    const incoming = find(place) ?? add(place, { type })
    if (incoming.type !== type || incoming.isDone) return narrator.fail(unreadable())
    write(incoming, kind, part, words)
  }

  function tellReasoning(place: Record<string, unknown>, kind: 'summary' | 'content', part: string, text: unknown) {
    const incoming = find(place) ?? add(place, { type: 'reasoning' })
    incoming.reasoningKind ??= kind
    if (incoming.reasoningKind === kind) tell(place, 'reasoning', 'reasoning', part, text)
  }

  function tellRest(
    place: Record<string, unknown>,
    type: string,
    kind: NonNullable<Incoming['kind']>,
    part: string,
    text: unknown,
  ) {
    const incoming = find(place) ?? add(place, { type })
    if (incoming.type === type && !incoming.isDone) writeRest(incoming, kind, part, text)
  }

  function write(incoming: Incoming, kind: NonNullable<Incoming['kind']>, part: string, text: string) {
    incoming.parts.set(part, (incoming.parts.get(part) ?? '') + text)
    // A call whose name has not come yet: its arguments are told with it.
    if (kind === 'tool_call' && incoming.block === undefined) return
    if (incoming.kind !== kind || incoming.block === undefined) {
      // One such block is open at a time (I4); what resumes later is a new block (I7).
      if (current?.block !== undefined) narrator.stop(current.block)
      if (current) current.block = undefined
      current = incoming
      incoming.kind = kind
      incoming.block = narrator.open({ kind } as { kind: 'text' })
      incoming.lastPart = undefined
    }
    if (kind === 'reasoning' && incoming.lastPart !== undefined && incoming.lastPart !== part) text = `\n\n${text}`
    incoming.lastPart = part
    narrator.delta(incoming.block, text)
  }

  /** What a done event says of a part: the rest of it, all of it, or something else than what was told. */
  function writeRest(incoming: Incoming, kind: NonNullable<Incoming['kind']>, part: string, text: unknown) {
    const whole = stringOf(text)
    const told = incoming.parts.get(part) ?? ''
    if (!whole || whole === told) return
    if (whole.startsWith(told)) write(incoming, kind, part, whole.slice(told.length))
    else narrator.fail(unreadable())
  }

  function complete(incoming: Incoming, item: Record<string, unknown>) {
    if (incoming.isDone) return
    if (incoming.type === 'function_call') completeCall(incoming, item)
    else if (incoming.type === 'message') {
      for (const [index, part] of objectsOf(item['content']).entries()) {
        if (part['type'] === 'output_text') writeRest(incoming, 'text', `${index}`, part['text'])
        else if (part['type'] === 'refusal') writeRest(incoming, 'refusal', `${index}`, part['refusal'])
      }
    } else if (incoming.type === 'reasoning') {
      const kinds = ['summary', 'content'] as const
      incoming.reasoningKind ??= kinds.find((kind) => objectsOf(item[kind]).some((part) => stringOf(part['text'])))
      const parts = incoming.reasoningKind ? objectsOf(item[incoming.reasoningKind]) : []
      for (const [index, part] of parts.entries()) writeRest(incoming, 'reasoning', `${index}`, part['text'])
    }
    if (incoming.block !== undefined) narrator.stop(incoming.block, item['status'] === 'incomplete')
    incoming.isDone = true
  }

  function completeCall(incoming: Incoming, item: Record<string, unknown>) {
    const wasOpen = incoming.block !== undefined
    if (!openCall(incoming, item)) return
    if (!wasOpen) narrator.delta(incoming.block!, incoming.parts.get('') ?? '')
    writeRest(incoming, 'tool_call', '', item['arguments'])
  }

  function finish(status: string, response: Record<string, unknown>) {
    narrator.start()
    for (const [index, item] of objectsOf(response['output']).entries()) {
      const place = { output_index: index }
      complete(find(place, item) ?? add(place, item), item)
    }
    usage(response['usage'])
    const detail = asObject(response['incomplete_details'])?.['reason']
    const isIncomplete = status === 'incomplete' || response['status'] === 'incomplete'
    const reason = isIncomplete ? decodeIncomplete(detail) : 'end'
    narrator.finish(reason)
  }

  function fail(error: unknown, counters: unknown) {
    usage(counters)
    narrator.fail(faultOfError(error ?? {}))
  }

  function usage(raw: unknown) {
    narrator.usage(decodeUsage(raw, profile.usageQuirk))
  }
}

/** The stream for a client: every event of the official sequence, since SDK helpers build on each (ruling T12). */
export function createEncoder(head: AnswerHead): Step<BilledEvent, string> {
  const response = createResponse(head)
  const open = new Map<number, Item>()
  const done: string[] = []
  let hasReported = false
  let sequence = 0
  let hasStarted = false
  return {
    push(event) {
      const text = encode(event)
      return text === '' ? [] : [text]
    },
    end: () => [],
  }

  function encode(event: BilledEvent): string {
    switch (event.type) {
      case 'start':
        return ''
      case 'block_start': {
        const item = createItem(event.index, event.block, head)
        open.set(event.index, item)
        return begin() + item.start(next)
      }
      case 'block_delta':
        return open.get(event.index)!.delta(next, event.text)
      case 'block_seal':
        open.get(event.index)!.seal(event.sealed)
        return ''
      case 'block_stop': {
        const item = open.get(event.index)!
        open.delete(event.index)
        const text = item.stop(next, event.cut)
        done[event.index] = item.whole(event.cut)
        return text
      }
      case 'usage':
        hasReported = true
        return ''
      case 'alive':
        return `${begin()}: ping\n\n`
      case 'finish': {
        const incomplete = encodeIncomplete(event.reason)
        const status = incomplete ? 'incomplete' : 'completed'
        return (
          begin() +
          next(
            `response.${status}`,
            `"response":${response.ended({ status, incomplete, output: done, usage: event.usage })}`,
          )
        )
      }
      case 'fail': {
        const facts = factsOfFault(event.fault)
        const error = { code: failedCode(facts), message: facts.message }
        const usage = hasReported ? event.usage : null
        const ended = response.ended({ status: 'failed', error, output: done, usage })
        return begin() + next('response.failed', `"response":${ended}`)
      }
    }
  }

  function begin(): string {
    if (hasStarted) return ''
    hasStarted = true
    const members = `"response":${response.begun()}`
    return next('response.created', members) + next('response.in_progress', members)
  }

  /** One event, numbered. @param members its other members as JSON text */
  function next(type: string, members: string): string {
    return sseText(type, `{"type":"${type}","sequence_number":${sequence++},${members}}`)
  }
}
