import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { SseFrame } from '../../bytes/sse.ts'
import type { Profile } from '../../catalog/profile.ts'
import { tooMany } from '../../inference/narrator.ts'
import { faultOfError, truncatedFault } from '../answers/faults.ts'
import {
  AnswerDecoder,
  argumentsIn,
  kindOfPart,
  listOf,
  type OnAnswer,
  readContent,
  stringOf,
  unreadable,
  wordsIn,
} from '../answers/read-answer.ts'
import { type IncomingItem, IncomingItems, type ItemKind } from './incoming-items.ts'
import { ItemTeller } from './item-teller.ts'
import { decodeIncomplete, hasFailed } from './stop-reasons.ts'
import { decodeUsage } from './usage.ts'

/**
 * Decodes a responses model's answer. A stream is complete only after its terminal event. If only a `done` event has a
 * text, the text is reported at that event. Text that contradicts the deltas fails the answer, since the client has
 * already seen the deltas. A whole answer is read like a terminal event without earlier events.
 */
export class ResponsesDecoder extends AnswerDecoder {
  /** Always false: only the terminal event completes an answer (ruling T19). */
  readonly isEnough = false
  readonly #items = new IncomingItems()
  readonly #teller: ItemTeller

  constructor(profile: Profile, onAnswer?: OnAnswer) {
    super(profile, onAnswer)
    this.#teller = new ItemTeller(this.narrator, profile.cumulative)
  }

  protected readWhole(body: JsonObject) {
    const status = stringOf(body['status']) ?? 'completed'
    const isEnded = status === 'completed' || status === 'incomplete'
    if (body['error']) this.narrator.fail(faultOfError(body['error']))
    else if ((body['output'] ?? body['output_text']) == null || !isEnded) this.narrator.fail(unreadable())
    else this.#finish(status, body)
  }

  /** Called if the stream ends without its terminal event. The answer was then cut. */
  protected close() {
    this.narrator.fail(truncatedFault())
  }

  protected read(object: JsonObject, frame: SseFrame) {
    if (this.#items.isFull) return this.narrator.fail(tooMany)
    const type = stringOf(object['type']) ?? frame.event
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        return this.narrator.start()
      case 'response.output_item.added':
        this.#begin(object, plainItem(object['item'] ?? {}))
        return this.#markReasoning(object, true)
      case 'response.output_text.delta':
        return this.#tell(object, 'message', 'text', partOf(object['content_index']), object['delta'])
      case 'response.audio.transcript.delta':
      case 'response.audio_transcript.delta':
        this.narrator.media('audio', undefined)
        return this.#tell(object, 'message', 'text', partOf(object['content_index']), object['delta'])
      case 'response.audio.delta':
        return this.narrator.media('audio', '')
      case 'response.content_part.added':
      case 'response.content_part.done':
        return this.#tellPart(object, type.endsWith('done'))
      case 'response.refusal.delta':
        return this.#tell(object, 'message', 'refusal', partOf(object['content_index']), object['delta'])
      case 'response.reasoning_summary_text.delta':
        return this.#tellReasoning(object, 'summary', partOf(object['summary_index']), object['delta'])
      case 'response.reasoning_text.delta':
        return this.#tellReasoning(object, 'content', partOf(object['content_index']), object['delta'])
      case 'response.function_call_arguments.delta':
        return this.#tell(object, 'function_call', 'tool_call', '', object['delta'])
      case 'response.output_text.done':
        return this.#tellRest(object, 'message', 'text', partOf(object['content_index']), object['text'])
      case 'response.refusal.done':
        return this.#tellRest(object, 'message', 'refusal', partOf(object['content_index']), object['refusal'])
      case 'response.function_call_arguments.done':
        return this.#tellRest(object, 'function_call', 'tool_call', '', object['arguments'])
      case 'response.output_item.done':
        this.#complete(object, plainItem(object['item'] ?? {}))
        return this.#markReasoning(object, false)
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled': {
        const response = asObject(object['response']) ?? {}
        const status = type.slice('response.'.length)
        if (hasFailed(response, status)) return this.#fail(response['error'], response['usage'])
        return this.#finish(status, response)
      }
      case 'error':
        return this.#fail(asObject(object['error']) ?? object, undefined)
      default:
        // Some proxies send an error object of the chat wire, without a type.
        if (object['type'] === undefined && object['error']) return this.#fail(object['error'], undefined)
        return this.narrator.alive()
    }
  }

  /**
   * Handles the terminal event, or a whole answer.
   * @param status the status that the event's name means; for a whole answer, the answer's status
   */
  #finish(status: string, response: JsonObject) {
    this.narrator.start()
    // Some servers write a text or a single item instead of the list (ruling Y5).
    for (const [index, one] of listOf(response['output']).entries()) {
      const item = plainItem(one)
      if (this.#items.isFull) return this.narrator.fail(tooMany)
      this.#teller.complete(this.#items.final({ output_index: index }, typeOf(item), item), item)
    }
    // Some servers send no items, but only the text, as `output_text`. The vendor's SDK adds this member itself.
    const words = this.#items.hasSpoken() ? undefined : stringOf(response['output_text'])
    if (words) this.#teller.complete(this.#items.add({}, 'message'), plainItem(words))
    this.#teller.end(this.#items.unfinished())
    this.#usage(response['usage'])
    const detail = asObject(response['incomplete_details'])?.['reason']
    const isIncomplete = status === 'incomplete' || response['status'] === 'incomplete'
    this.narrator.finish(isIncomplete ? decodeIncomplete(detail) : 'end')
  }

  #begin(place: JsonObject, item: JsonObject) {
    this.narrator.start()
    const incoming = this.#items.announce(place, typeOf(item), item)
    if (incoming === 'several') this.narrator.fail(unreadable())
    else this.#teller.begin(incoming, item)
  }

  /** Handles the first or last event of a part of a message. Without deltas, this event has the part's whole text. */
  #tellPart(object: JsonObject, isDone: boolean) {
    const [part] = readContent(object['part'])
    if (part?.kind !== 'text' && part?.kind !== 'refusal') return this.narrator.alive()
    const incoming = part.text === '' ? undefined : this.#itemAt(object, 'message')
    if (incoming?.type !== 'message' || incoming.isDone) return this.narrator.alive()
    const place = partOf(object['content_index'])
    if (isDone) this.#teller.writeRest(incoming, part.kind, place, part.text)
    else this.#teller.writeStart(incoming, part.kind, place, part.text)
  }

  #tell(place: JsonObject, type: string, kind: ItemKind, part: string, text: unknown) {
    const words = wordsIn(text)
    const incoming = words && this.#itemAt(place, type)
    if (incoming) this.#write(incoming, type, kind, part, words)
  }

  #tellReasoning(place: JsonObject, kind: 'summary' | 'content', part: string, text: unknown) {
    const incoming = this.#itemAt(place, 'reasoning')
    if (!incoming) return
    incoming.reasoningKind ??= kind
    const words = wordsIn(text)
    if (words && incoming.reasoningKind === kind) this.#write(incoming, 'reasoning', 'reasoning', part, words)
  }

  #tellRest(place: JsonObject, type: string, kind: ItemKind, part: string, text: unknown) {
    const incoming = this.#itemAt(place, type)
    if (incoming?.type === type && !incoming.isDone) this.#teller.writeRest(incoming, kind, part, text)
  }

  #write(incoming: IncomingItem, type: string, kind: ItemKind, part: string, words: string) {
    if (incoming.type === type && !incoming.isDone) this.#teller.writeDelta(incoming, kind, part, words)
    else this.narrator.fail(unreadable())
  }

  /**
   * Returns the item of an event that does not contain the item. If no event has announced the item yet, it is added,
   * and the event's type decides its kind.
   */
  #itemAt(place: JsonObject, type: string): IncomingItem | undefined {
    const known = this.#items.find(place, type)
    if (known !== 'several') return known ?? this.#items.add(place, type)
    this.narrator.fail(unreadable())
    return undefined
  }

  #complete(place: JsonObject, item: JsonObject) {
    const known = this.#items.find(place, typeOf(item), item)
    if (known === 'several') this.narrator.fail(unreadable())
    else this.#teller.complete(known ?? this.#items.add(place, typeOf(item), item), item)
  }

  /** Reports that reasoning begins or ends, which is all that most models show of their reasoning (ruling C12). */
  #markReasoning(object: JsonObject, begins: boolean) {
    if (asObject(object['item'])?.['type'] === 'reasoning') this.narrator.alive(begins)
  }

  #fail(error: unknown, counters: unknown) {
    this.#usage(counters)
    this.narrator.fail(faultOfError(error ?? {}))
  }

  #usage(raw: unknown) {
    this.narrator.usage(decodeUsage(raw, this.profile.usageQuirk))
  }
}

/** Makes the key of an item's part from the part's index. A part without an index is the first part (ruling U7). */
function partOf(index: unknown): string {
  return typeof index === 'number' ? `${index}` : '0'
}

function typeOf(item: JsonObject): string {
  return stringOf(item['type']) ?? ''
}

/**
 * Converts an output item to the wire's own form. Instead of an item, some servers send a text, a part of a message, or
 * a call in another wire's form (ruling Y5). Any other item stays unchanged.
 */
function plainItem(value: unknown): JsonObject {
  if (typeof value === 'string') return { type: 'message', content: value }
  const item = asObject(value)
  // An empty type is no kind of item, so the item is recorded as unreadable.
  if (!item) return { type: '' }
  const type = stringOf(item['type']) ?? ('name' in item ? 'function_call' : 'message')
  const kind = kindOfPart(type)
  if (type === 'message') return item['type'] === type ? item : { ...item, type }
  if (kind === 'text' || kind === 'refusal') return { ...item, type: 'message', content: [item] }
  if (kind !== 'tool_call') return item
  const fn = asObject(item['function']) ?? {}
  const name = item['name'] ?? fn['name']
  return { ...item, type: 'function_call', name, arguments: argumentsIn(item) }
}
