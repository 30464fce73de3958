import {
  dataOf,
  decodeUtf8,
  encodeLatin1,
  eventOf,
  type RawFrame,
  stringBehind,
  withData,
  withEvent,
} from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import { ownCopy } from '../../bytes/memory.ts'
import type { Usage } from '../../inference/usage.ts'
import { type ErrorFacts, faultOfError } from '../answers/faults.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import {
  callsIn,
  estimateTexts,
  isBelieved,
  mintAnswerId,
  mintCallId,
  renameInUsage,
  withoutTelling,
} from '../answers/native-answer.ts'
import { NativeStream } from '../answers/native-stream.ts'
import { objectsOf, parseAnswer, stringOf, ToldTexts, unreadable } from '../answers/read-answer.ts'
import { isFilledStart, UnsaidContents } from './empty-starts.ts'
import { ItemPlaces } from './item-places.ts'
import { fillItem, fillItems, MissingMembers, mayBeForeign } from './missing-members.ts'
import { responseForms } from './native-forms.ts'
import { calledBy, isUnread, partBreak, producedTexts, responseValues, wantedUsage } from './native-json.ts'
import { failedCode } from './output-item.ts'
import { callEnd, clientCall, inputDelta, mayLack, SaidCalls } from './said-calls.ts'
import { lastSealed } from './sealing.ts'
import { hasFailed } from './stop-reasons.ts'
import { decodeUsage, encodeUsage } from './usage.ts'

/** Events about the state of the whole response. The next two sets have the events that end a response. */
const lifecycle = new Set(['response.created', 'response.in_progress', 'response.queued'])
const terminal = new Set(['response.completed', 'response.incomplete'])
const failed = new Set(['response.failed', 'response.cancelled', 'error'])

/** Valid event names. A proxy before the upstream may have written other names into the event lines. */
const eventName = /^(?:response\.|error$|keepalive$)/

/** Matches the event that begins a reasoning item. Some models show nothing else of their reasoning. */
const reasoningItem = /"type"\s*:\s*"reasoning"/

/** Matches an event whose item is a message. */
const messageItem = /"type"\s*:\s*"message"/

/** For how many parts the content so far is kept, if deltas repeat it. */
const toldMax = 1_024

/** Matches a delta without text, which shows nothing yet. */
const emptyDelta = /"delta"\s*:\s*""/

/** Events that show nothing yet. An error right after them is still an ordinary HTTP refusal. */
const quiet = new Set([
  'response.output_item.added',
  'response.content_part.added',
  'response.reasoning_summary_part.added',
  'keepalive',
])

/**
 * A responses model's stream for a responses client. The client gets every event of the provider (spec 4.4). In the
 * first and the last event, the response object is edited (model, id, `store`). Events that SDKs could not read are
 * corrected (rulings Y3, Y5). The last event waits for the bill.
 */
export class ResponsesNativeStream extends NativeStream {
  protected readonly forms = responseForms
  readonly #places = new ItemPlaces()
  readonly #missing = new MissingMembers()
  #response: Record<string, unknown> = {}
  /** The id of the response as JSON, from its first event. SDKs throw if a later event has another id. */
  #id: string | undefined
  #lastFrame: RawFrame = ''
  /** The kind of reasoning received first, raw or summary. If a model sends both kinds, only this kind counts. */
  #reasoning: string | undefined
  /**
   * The name of the last delta event, and what deltas with this name contain. Kept, since most deltas have the name of
   * the previous one.
   */
  #delta = { name: '', isCounted: false, isInput: false }
  /** Whether the name and the text of the item that began last are counted as output already. */
  #item = { hasName: false, hasText: false }
  readonly #calls = new SaidCalls((place) => mintCallId('call_', this.head, place))
  readonly #unsaid = new UnsaidContents()
  /** The content so far, by item and part. */
  readonly #told = new ToldTexts(toldMax)
  #terminal: { frame: RawFrame; patch: JsonPatch; response: Record<string, unknown> } | undefined

  finish(usage: Usage): string {
    if (this.#terminal === undefined) return ''
    const { frame, patch, response } = this.#terminal
    const told = asObject(response['usage'])
    const wanted = wantedUsage(encodeUsage(usage), told)
    if (this.#missing.concerns('', frame)) this.#missing.fill(eventOf(frame)!, patch)
    patch.set([], withoutTelling(patch.value))
    patch.set(['response'], this.#valuesOf(response))
    fillItems(patch, ['response', 'output'], response['output'])
    patch.setMissing(['response', 'usage'], wanted, isBelieved(this.report, usage, told, wanted))
    renameInUsage(patch, ['response', 'usage'], told, this.head)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  keepAlive(): string {
    return ': ping\n\n'
  }

  /**
   * Writes `response.failed` with the next sequence number (ruling P2). Its code is in the vendor's words (ruling
   * T4).
   */
  failure(facts: ErrorFacts, usage: Usage): string {
    const sequence = /"sequence_number"\s*:\s*(\d+)/.exec(this.#lastFrame)?.[1]
    const event = {
      type: 'response.failed',
      sequence_number: this.#missing.nextNumber ?? (sequence === undefined ? 0 : Number(sequence) + 1),
      response: {
        id: mintAnswerId('resp_', this.head),
        object: 'response',
        created_at: this.head.createdSeconds,
        output: [],
        ...this.#response,
        model: this.head.model.id,
        status: 'failed',
        error: { code: failedCode(facts), message: facts.message },
        store: false,
        usage: encodeUsage(usage),
      },
    }
    return `event: response.failed\ndata: ${encodeLatin1(JSON.stringify(event))}\n\n`
  }

  /**
   * The last event repeats the whole output and may add text that no delta had. So the output is estimated from the
   * deltas and from the last event, and the larger estimate counts.
   */
  override estimateOutput(): number {
    const shown = super.estimateOutput()
    return this.isHushed ? shown : Math.max(shown, estimateTexts(producedTexts(this.#terminal?.response['output'])))
  }

  /** Reads the items in the last event. If the provider omits the items there, no sealed item is found. */
  override lastSealed(): string | undefined {
    return lastSealed(this.#terminal?.response['output'])
  }

  override compact(): void {
    super.compact()
    this.#lastFrame = ownCopy(this.#lastFrame)
    this.#delta.name = ownCopy(this.#delta.name)
  }

  /** On this wire, only a terminal event completes an answer. */
  protected isEnough(): boolean {
    return false
  }

  protected take(came: RawFrame): string {
    let frame = came
    let name = eventOf(frame)
    let named = frame
    if (name === undefined || (name !== this.#delta.name && !eventName.test(name))) {
      const data = dataOf(frame)
      if (data === undefined || data.trim() === '') return ''
      if (data.trim() === '[DONE]') return ''
      // The specification requires an event line. If the data names the event, the line gets that name.
      const type = typeOf(data)
      if (type === undefined) {
        this.break('an event is not JSON')
        return ''
      }
      name = type || name
      if (!name) return frame
      named = withEvent(frame, name)
    }
    const placed = this.#places.place(name, named)
    if (placed !== named) frame = named = placed
    if (name === this.#delta.name || name.endsWith('.delta')) {
      this.events++
      if (this.#isCumulative(name)) frame = named = this.#shortened(named)
      if (this.fault) return ''
      if (!this.hasShown && !emptyDelta.test(frame)) this.show()
      this.#lastFrame = frame
      if (!this.#unsaid.isEmpty) frame = named = this.#unsaid.say(named, (data) => this.parse(data))
      const isCounted = this.#isCounted(name)
      const words = isCounted || this.#delta.isInput ? stringBehind(frame, '"delta":') : ''
      if (isCounted) this.produced.addRaw(words)
      if (this.#delta.isInput) this.#calls.add(frame, words)
      return this.#completed(name, named)
    }
    if (name !== 'keepalive') this.events++
    // OpenAI's SDKs fail if another event comes before `response.created` (openai 7.57.0, `ResponseStream`).
    else if (this.events === 0) return ''
    if (lifecycle.has(name)) return this.#takeLifecycle(named)
    if (terminal.has(name)) return this.#takeTerminal(named)
    if (failed.has(name)) {
      this.#takeFailure(named)
      return ''
    }
    frame = named = this.#withCall(name, named)
    if (this.fault) return ''
    if (isFilledStart(name, frame)) frame = named = this.#emptied(named)
    else if (!this.#unsaid.isEmpty && name.endsWith('.done')) this.#unsaid.say(named, (data) => this.parse(data))
    this.#countFrame(name, frame)
    this.#lastFrame = frame
    // A client sees the announcement of a call. It does not see the announcement of an empty message or reasoning item.
    if (!quiet.has(name) || (name === 'response.output_item.added' && frame.includes('_call"'))) this.show()
    return this.#completed(name, named)
  }

  /** Whether deltas of this name repeat all deltas before them (ruling Y4). */
  #isCumulative(name: string): boolean {
    const { cumulative } = this.head.model.profile
    if (cumulative.length === 0) return false
    // If the events become one answer, `responseForms` compares the pieces of arguments.
    if (inputDelta.test(name)) return cumulative.includes('arguments') && !this.isFolding
    return cumulative.includes('reasoning') && name.startsWith('response.reasoning')
  }

  /** Leaves only the new part in a delta that repeats all deltas before it. */
  #shortened(frame: RawFrame): RawFrame {
    const patch = this.parse(dataOf(frame) ?? '')
    const piece = stringOf(patch?.value['delta'])
    if (patch === undefined || piece === undefined) return frame
    const { output_index, item_id, summary_index, content_index } = patch.value
    const key = JSON.stringify([output_index ?? item_id, summary_index, content_index])
    const news = this.#told.take(key, piece)
    if (news === piece) return frame
    patch.set([], new Map([['delta', JSON.stringify(news)]]))
    return withData(frame, patch.result().toString('latin1'))
  }

  /** Adds missing members to the start and the end event of a call, and to the end event of a message (Y3, Y5). */
  #withCall(name: string, frame: RawFrame): RawFrame {
    const isStart = name === 'response.output_item.added'
    const isItem = isStart || name === 'response.output_item.done'
    if (isItem && !isStart && messageItem.test(frame) && mayBeForeign.test(frame)) {
      const patch = this.parse(dataOf(frame) ?? '')
      if (patch === undefined) return ''
      fillItem(patch, ['item'], asObject(patch.value['item']) ?? {})
      return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
    }
    if (!(isItem ? clientCall.test(frame) : callEnd.test(name))) return frame
    if (!isStart && !mayLack(frame, isItem)) {
      const member = name.includes('custom_tool') ? '"input":' : '"arguments":'
      if (!isItem) this.#calls.add(frame, stringBehind(frame, member), true)
      return frame
    }
    const patch = this.parse(dataOf(frame) ?? '')
    if (patch === undefined) return ''
    const values = isStart ? this.#calls.begin(patch.value) : this.#calls.end({ type: name, ...patch.value })
    if (values === undefined) this.fail(unreadable())
    patch.set(isItem ? ['item'] : [], values ?? new Map())
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  /** Removes content from a start event. The deltas or the end event contain it as well. */
  #emptied(frame: RawFrame): RawFrame {
    const patch = this.parse(dataOf(frame) ?? '')
    if (patch === undefined) return ''
    this.#unsaid.take(patch)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  /** Adds the members that the provider left out of an event. */
  #completed(name: string, frame: RawFrame): string {
    if (!this.#missing.concerns(name, frame)) return frame
    const patch = this.parse(dataOf(frame) ?? '')
    if (patch === undefined) return ''
    const before = this.#missing.before(name, patch)
    this.#missing.fill(name, patch)
    return before + (patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame)
  }

  #isCounted(name: string): boolean {
    if (name !== this.#delta.name) {
      const isReasoning = name.startsWith('response.reasoning')
      this.enter(isReasoning ? 'reasoning' : 'speaking')
      if (isReasoning) this.#reasoning ??= name
      const isCounted = isReasoning ? name === this.#reasoning : !name.endsWith('audio.delta')
      this.#delta = { name, isCounted, isInput: inputDelta.test(name) }
    }
    if (this.#delta.isCounted) this.#item.hasText = true
    return this.#delta.isCounted
  }

  /** Counts text that no delta contains: a call's name, or, without deltas, the whole text of an item. */
  #countFrame(name: string, frame: RawFrame): void {
    if (name === 'response.reasoning_summary_part.added' && /"summary_index": ?[1-9]/.test(frame)) {
      this.produced.add(partBreak)
    } else if (name === 'response.output_item.added') {
      this.enter(reasoningItem.test(frame) ? 'reasoning' : 'speaking')
      const texts = textsOfItem(frame)
      this.#item = { hasName: texts.length > 0, hasText: texts.length > 1 }
      for (const text of texts) this.produced.add(text)
    } else if (name === 'response.output_item.done') {
      const texts = this.#item.hasText ? [] : textsOfItem(frame).slice(this.#item.hasName ? 1 : 0)
      for (const text of texts) this.produced.add(text)
      if (!this.#item.hasText) this.#item = { hasName: false, hasText: false }
      this.enter('speaking')
      if (this.seesCalls && frame.includes('_call"')) this.#seeCall(frame)
    }
  }

  #seeCall(frame: RawFrame): void {
    const item = asObject(parseAnswer(decodeUtf8(dataOf(frame) ?? ''))?.['item'])
    const kind = item && calledBy(item)
    if (kind !== undefined) this.see(kind)
  }

  #takeLifecycle(frame: RawFrame): string {
    const patch = this.parse(dataOf(frame) ?? '', 'response')
    const response = asObject(patch?.value['response'])
    if (patch === undefined || response === undefined) return frame
    this.#lastFrame = frame
    this.noteAnswer(response)
    const values = this.#valuesOf(response)
    this.#response = { ...response }
    for (const [name, text] of values) {
      if (text === undefined) delete this.#response[name]
      else this.#response[name] = JSON.parse(text)
    }
    if (this.#missing.concerns('', frame)) this.#missing.fill(eventOf(frame)!, patch)
    patch.set([], withoutTelling(patch.value))
    patch.set(['response'], values)
    renameInUsage(patch, ['response', 'usage'], response['usage'], this.head)
    return patch.isEdited ? withData(frame, patch.result().toString('latin1')) : frame
  }

  /** Returns new values for members of the response. All events of a stream have the same id (ruling P3). */
  #valuesOf(response: Record<string, unknown>): Map<string, string | undefined> {
    const values = responseValues(this.head, response)
    const id = values.get('id') ?? JSON.stringify(response['id'])
    this.#id ??= id
    return this.#id === id ? values : values.set('id', this.#id)
  }

  #takeTerminal(frame: RawFrame): string {
    const patch = this.parse(dataOf(frame) ?? '', 'response')
    const response = asObject(patch?.value['response'])
    if (patch === undefined || response === undefined) {
      this.break('a terminal event without a response')
      return ''
    }
    if (hasFailed(response)) {
      this.#takeFailure(frame)
      return ''
    }
    if (!this.#unsaid.isEmpty && objectsOf(response['output']).length === 0) this.break('content that only a start has')
    const output: unknown[] = Array.isArray(response['output']) ? response['output'] : []
    for (const [place, item] of output.entries()) {
      const values = this.#calls.final(asObject(item) ?? {}, place)
      if (values === undefined) this.fail(unreadable())
      else patch.set(['response', 'output', `${place}`], values)
    }
    if (!this.hasShown && isUnread(response['output'])) this.fail(unreadable())
    this.noteAnswer(response)
    this.learn(decodeUsage(response['usage'], this.head.model.profile.usageQuirk, response['tool_usage']))
    // The final event usually repeats all items. Then the hosted calls in this event replace the calls counted so far.
    const callsSeen = callsIn(this.head, response['output'], calledBy)
    if (callsSeen) this.report = { ...this.report, callsSeen }
    this.#terminal = { frame, patch, response }
    this.complete()
    if (this.state !== 'finished') return ''
    const ends = this.#missing.ends(patch, response['output'])
    return ends.map((end) => this.#withCall('response.output_item.done', end)).join('')
  }

  #takeFailure(frame: RawFrame): void {
    const patch = this.parse(dataOf(frame) ?? '', 'response')
    const response = asObject(patch?.value['response'])
    if (response) this.noteAnswer(response)
    this.learn(decodeUsage(response?.['usage'], this.head.model.profile.usageQuirk, response?.['tool_usage']))
    // The output reported before a failure is kept.
    if (Array.isArray(response?.['output'])) this.#response = { ...this.#response, output: response['output'] }
    const error = response?.['error'] ?? patch?.value['error'] ?? patch?.value
    this.fail(faultOfError(error))
  }
}

function textsOfItem(frame: RawFrame): string[] {
  return producedTexts([parseAnswer(decodeUtf8(dataOf(frame) ?? ''))?.['item']])
}

/**
 * The type of an event. It is usually the first member. Some proxies send an error object of the chat wire, without a
 * type.
 * @returns '' if the event does not tell its type; undefined if the data is not an object
 */
function typeOf(data: string): string | undefined {
  const [, first] = /^\s*\{\s*"type"\s*:\s*"([a-z_.]+)"/.exec(data) ?? []
  if (first) return first
  const event = parseAnswer(decodeUtf8(data))
  return event && (stringOf(event['type']) ?? (event['error'] ? 'error' : ''))
}
