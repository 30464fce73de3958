import { asObject } from '../../bytes/json.ts'
import { type SseFrame, sseText } from '../../bytes/sse.ts'
import type { Step } from '../../bytes/step.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { AnswerEvent, AnswerHead, BilledEvent } from '../../inference/answer.ts'
import { createNarrator, type Narrator } from '../../inference/narrator.ts'
import { objectsOf, readFrame, unreadable, wordOf } from '../frame.ts'
import { factsOfFault, faultOfError, truncatedFault } from '../stream-fault.ts'
import { failedCode } from './failed-code.ts'
import { createItem, type Item } from './output-item.ts'
import { createResponse } from './response.ts'
import { decodeIncomplete, encodeIncomplete } from './stop-reasons.ts'
import { decodeUsage } from './usage.ts'

/** An output item of the upstream: which block it is, and what of it has been told. */
type Source = {
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
      else if (object) reader.event(wordOf(object['type']) ?? frame.event ?? '', object)
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
  const byId = new Map<string, Source>()
  const byIndex = new Map<number, Source>()
  /** The item whose text, refusal or reasoning was told last. */
  let current: Source | undefined
  return { event, finish }

  function event(type: string, object: Record<string, unknown>) {
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        return narrator.start()
      case 'response.output_item.added':
        return begin(object, asObject(object['item']) ?? {})
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
        return settle(object, 'message', 'text', `${object['content_index']}`, object['text'])
      case 'response.refusal.done':
        return settle(object, 'message', 'refusal', `${object['content_index']}`, object['refusal'])
      case 'response.function_call_arguments.done':
        return settle(object, 'function_call', 'tool_call', '', object['arguments'])
      case 'response.output_item.done': {
        const item = asObject(object['item']) ?? {}
        return complete(find(object, item) ?? add(object, item), item)
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
  function find(place: Record<string, unknown>, item: Record<string, unknown> = {}): Source | undefined {
    const id = wordOf(place['item_id']) ?? wordOf(item['id'])
    const known = id === undefined ? undefined : byId.get(id)
    if (known) return known
    const atPlace = byIndex.get(place['output_index'] as number)
    return atPlace && (item['type'] === undefined || item['type'] === atPlace.type) ? atPlace : undefined
  }

  function add(place: Record<string, unknown>, item: Record<string, unknown>): Source {
    const source: Source = {
      type: wordOf(item['type']) ?? '',
      block: undefined,
      kind: undefined,
      isDone: false,
      parts: new Map(),
      reasoningKind: undefined,
      lastPart: undefined,
    }
    const id = wordOf(place['item_id']) ?? wordOf(item['id'])
    if (id !== undefined) byId.set(id, source)
    if (typeof place['output_index'] === 'number') byIndex.set(place['output_index'], source)
    return source
  }

  function begin(place: Record<string, unknown>, item: Record<string, unknown>) {
    narrator.start()
    const source = add(place, item)
    if (source.type !== 'function_call') return
    if (!openCall(source, item)) return
    write(source, 'tool_call', '', wordOf(item['arguments']) ?? '')
  }

  /** A call opens when its name is known: in the first event, else in the last. */
  function openCall(source: Source, item: Record<string, unknown>): boolean {
    const name = wordOf(item['name'])
    if (source.block !== undefined) return true
    if (!name?.trim()) return false
    source.kind = 'tool_call'
    source.block = narrator.open({ kind: 'tool_call', callId: wordOf(item['call_id']) ?? '', name })
    return true
  }

  function tell(
    place: Record<string, unknown>,
    type: string,
    kind: NonNullable<Source['kind']>,
    part: string,
    text: unknown,
  ) {
    const words = wordOf(text)
    if (!words) return
    const source = find(place) ?? add(place, { type })
    if (source.type !== type || source.isDone) return narrator.fail(unreadable())
    write(source, kind, part, words)
  }

  function tellReasoning(place: Record<string, unknown>, kind: 'summary' | 'content', part: string, text: unknown) {
    const source = find(place) ?? add(place, { type: 'reasoning' })
    source.reasoningKind ??= kind
    if (source.reasoningKind === kind) tell(place, 'reasoning', 'reasoning', part, text)
  }

  function settle(
    place: Record<string, unknown>,
    type: string,
    kind: NonNullable<Source['kind']>,
    part: string,
    text: unknown,
  ) {
    const source = find(place) ?? add(place, { type })
    if (source.type === type && !source.isDone) writeRest(source, kind, part, text)
  }

  function write(source: Source, kind: NonNullable<Source['kind']>, part: string, text: string) {
    source.parts.set(part, (source.parts.get(part) ?? '') + text)
    // A call whose name has not come yet: its arguments are told with it.
    if (kind === 'tool_call' && source.block === undefined) return
    if (source.kind !== kind || source.block === undefined) {
      // One such block is open at a time (I4); what resumes later is a new block (I7).
      if (current?.block !== undefined) narrator.stop(current.block)
      if (current) current.block = undefined
      current = source
      source.kind = kind
      source.block = narrator.open({ kind } as { kind: 'text' })
      source.lastPart = undefined
    }
    if (kind === 'reasoning' && source.lastPart !== undefined && source.lastPart !== part) text = `\n\n${text}`
    source.lastPart = part
    narrator.delta(source.block, text)
  }

  /** What a done event says of a part: the rest of it, all of it, or something else than what was told. */
  function writeRest(source: Source, kind: NonNullable<Source['kind']>, part: string, text: unknown) {
    const whole = wordOf(text)
    const told = source.parts.get(part) ?? ''
    if (!whole || whole === told) return
    if (whole.startsWith(told)) write(source, kind, part, whole.slice(told.length))
    else narrator.fail(unreadable())
  }

  function complete(source: Source, item: Record<string, unknown>) {
    if (source.isDone) return
    if (source.type === 'function_call') completeCall(source, item)
    else if (source.type === 'message') {
      for (const [index, part] of objectsOf(item['content']).entries()) {
        if (part['type'] === 'output_text') writeRest(source, 'text', `${index}`, part['text'])
        else if (part['type'] === 'refusal') writeRest(source, 'refusal', `${index}`, part['refusal'])
      }
    } else if (source.type === 'reasoning') {
      const kinds = ['summary', 'content'] as const
      source.reasoningKind ??= kinds.find((kind) => objectsOf(item[kind]).some((part) => wordOf(part['text'])))
      const parts = source.reasoningKind ? objectsOf(item[source.reasoningKind]) : []
      for (const [index, part] of parts.entries()) writeRest(source, 'reasoning', `${index}`, part['text'])
    }
    if (source.block !== undefined) narrator.stop(source.block, item['status'] === 'incomplete')
    source.isDone = true
  }

  function completeCall(source: Source, item: Record<string, unknown>) {
    const wasOpen = source.block !== undefined
    if (!openCall(source, item)) return
    if (!wasOpen) narrator.delta(source.block!, source.parts.get('') ?? '')
    writeRest(source, 'tool_call', '', item['arguments'])
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
    narrator.finish(reason, { rawReason: wordOf(detail) ?? status })
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
