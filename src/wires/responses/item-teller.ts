import type { JsonObject } from '../../bytes/json.ts'
import { isJsonObject } from '../../bytes/scan.ts'
import type { Profile } from '../../catalog/profile.ts'
import type { Narrator } from '../../inference/narrator.ts'
import {
  argumentsText,
  isEmptyArguments,
  mediaOf,
  newPart,
  objectsOf,
  readContent,
  repeatsStart,
  sourceOf,
  stringOf,
  unreadable,
} from '../answers/read-answer.ts'
import type { IncomingItem, ItemKind } from './incoming-items.ts'

/**
 * Reports the items of an answer as blocks. A delta is reported when it arrives. When an item ends, the text that no
 * delta contained is reported.
 */
export class ItemTeller {
  readonly #narrator: Narrator
  /** The item whose text, refusal or reasoning was reported last. */
  #current: IncomingItem | undefined

  readonly #cumulative: Profile['cumulative']

  /** @param cumulative the kinds of content in which each piece repeats the earlier text (see the model's profile) */
  constructor(narrator: Narrator, cumulative: Profile['cumulative']) {
    this.#narrator = narrator
    this.#cumulative = cumulative
  }

  /** Handles an announced item. A call may have its arguments already; other content arrives in deltas. */
  begin(incoming: IncomingItem, item: JsonObject) {
    if (incoming.type !== 'function_call') return
    if (!this.#openCall(incoming, item) || incoming.toldOf('tool_call').of('') !== undefined) return
    const args = argumentsText(item['arguments'])
    if (isJsonObject(args)) incoming.initial = args
    else this.writeStart(incoming, 'tool_call', '', args)
  }

  /**
   * Reports the text at the start of a part. The deltas that follow may continue this text. The first of them may also
   * repeat it (ruling Y4).
   */
  writeStart(incoming: IncomingItem, kind: ItemKind, part: string, text: string) {
    if (text === '' || incoming.toldOf(kind).of(part) !== undefined) return
    this.write(incoming, kind, part, text)
    if (kind === 'tool_call') incoming.shape.take(text, false)
    incoming.begun = text
  }

  writeDelta(incoming: IncomingItem, kind: ItemKind, part: string, piece: string) {
    let text = piece
    if (kind === 'tool_call') text = incoming.shape.take(piece, this.#cumulative.includes('arguments'))
    else if (kind === 'reasoning' && this.#cumulative.includes(kind))
      text = newPart(incoming.toldOf(kind).of(part) ?? '', piece)
    if (text !== '') this.write(incoming, kind, part, text)
  }

  write(incoming: IncomingItem, kind: ItemKind, part: string, text: string) {
    const isRepeated = repeatsStart(incoming.begun, text)
    incoming.begun = ''
    incoming.initial = ''
    if (isRepeated) return
    const told = incoming.toldOf(kind)
    told.add(part, text)
    // The call has no name yet. Its arguments are reported together with its name.
    if (kind === 'tool_call' && incoming.block === undefined) return
    if (incoming.kind !== kind || incoming.block === undefined) this.#openBlock(incoming, kind)
    this.#narrator.delta(incoming.block!, kind === 'reasoning' && isNextPart(incoming, part) ? `\n\n${text}` : text)
    incoming.lastPart = part
  }

  /**
   * Compares a part's whole text in a done event with its deltas. Reports the missing rest, or fails on a
   * contradiction.
   */
  writeRest(incoming: IncomingItem, kind: ItemKind, part: string, text: unknown) {
    incoming.begun = ''
    const whole = stringOf(text)
    const parts = incoming.toldOf(kind)
    const told = parts.of(part) ?? ''
    if (!whole || whole === told) return
    // Some servers end a call with `{}`, although its start or its deltas had arguments (ruling Y5).
    if (kind === 'tool_call' && isEmptyArguments(whole) && !isEmptyArguments(told || incoming.initial)) return
    // Some servers give each piece of a text a new index (ruling U7). Others repeat the whole item in an event. So
    // nothing is missing if this text equals all pieces so far, although they have other indexes.
    if (told === '' && whole.length === parts.length && whole === parts.joined()) return
    if (whole.startsWith(told)) this.write(incoming, kind, part, whole.slice(told.length))
    else this.#narrator.fail(unreadable())
  }

  /** Handles an item at its end. */
  complete(incoming: IncomingItem, item: JsonObject) {
    if (incoming.isDone) return
    incoming.begun = ''
    if (incoming.type === 'function_call') this.#completeCall(incoming, item)
    else if (incoming.type === 'message') this.#completeMessage(incoming, item)
    else if (incoming.type === 'reasoning') this.#completeReasoning(incoming, item)
    else this.#noteUnknown(item)
    if (incoming.block !== undefined) this.#narrator.stop(incoming.block, item['status'] === 'incomplete')
    incoming.isDone = true
  }

  /** Called when the answer has ended. @param calls the calls that no event has completed */
  end(calls: readonly IncomingItem[]) {
    for (const call of calls) {
      if (call.block === undefined) this.#narrator.miss('call', unreadable())
      else this.#writeWithheld(call)
    }
  }

  #writeWithheld(call: IncomingItem) {
    if (call.initial) this.write(call, 'tool_call', '', call.initial)
    this.#narrator.delta(call.block!, call.shape.rest())
  }

  /** Handles an item that is not translated: media, the work of a provider's own tool, or an unknown kind. */
  #noteUnknown(item: JsonObject) {
    const type = stringOf(item['type']) ?? ''
    const media = mediaOf(type)
    for (const part of readContent(item['outputs']))
      if (part.kind === 'media') this.#narrator.media(part.media, part.source)
    if (type === 'custom_tool_call') this.#narrator.miss('call', unreadable())
    else if (media && item['status'] !== 'failed' && type !== 'file_search_call')
      this.#narrator.media(media, sourceOf(item))
    else if (!providerWork.test(type)) this.#narrator.miss('part', unreadable())
  }

  /**
   * Opens a block and ends the previous block, since only one is open at a time (I4). Text that resumes later is a new
   * block (I7).
   */
  #openBlock(incoming: IncomingItem, kind: ItemKind) {
    const current = this.#current
    if (current?.block !== undefined) this.#narrator.stop(current.block)
    if (current) current.block = undefined
    this.#current = incoming
    incoming.kind = kind
    incoming.block = this.#narrator.open({ kind } as { kind: 'text' })
    incoming.lastPart = undefined
  }

  /**
   * Opens a call once its name is known, which is at the call's first or last event. Until then, the arguments wait.
   */
  #openCall(incoming: IncomingItem, item: JsonObject): boolean {
    const name = stringOf(item['name'])
    if (incoming.block !== undefined) return true
    if (!name?.trim()) return false
    incoming.kind = 'tool_call'
    incoming.block = this.#narrator.open({ kind: 'tool_call', callId: stringOf(item['call_id']) ?? '', name })
    const early = incoming.toldOf('tool_call').of('')
    if (early) this.#narrator.delta(incoming.block, early)
    return true
  }

  #completeCall(incoming: IncomingItem, item: JsonObject) {
    if (!this.#openCall(incoming, item)) {
      this.#narrator.miss('call', unreadable())
      return
    }
    if (isEmptyArguments(argumentsText(item['arguments']))) this.#writeWithheld(incoming)
    const told = incoming.toldOf('tool_call').of('')
    this.writeRest(incoming, 'tool_call', '', told ? item['arguments'] : argumentsText(item['arguments']))
  }

  #completeMessage(incoming: IncomingItem, item: JsonObject) {
    const parts = readContent(item['content'] ?? item['text']).flatMap((part, index) => {
      if (part.kind === 'media') this.#narrator.media(part.media, part.source)
      else if (part.kind === 'unread') this.#narrator.miss('part', unreadable())
      else if (part.kind === 'tool_call') this.#narrator.miss('call', unreadable())
      else if (part.kind !== 'reasoning' && part.text) return [{ kind: part.kind, place: `${index}`, text: part.text }]
      return []
    })
    // An item without content cannot be read as a message, whatever its type is.
    if (item['content'] === undefined && item['text'] === undefined) this.#narrator.miss('part', unreadable())
    if (incoming.told.size === 0) {
      for (const { kind, place, text } of parts) this.write(incoming, kind, place, text)
      return
    }
    // The text that the deltas lacked is reported for all text parts first, then for all refusals. So the order of the
    // parts in the message can be lost.
    for (const kind of ['text', 'refusal'] as const) {
      const ofKind = parts.filter((part) => part.kind === kind)
      this.#writeParts(incoming, kind, ofKind)
    }
  }

  #completeReasoning(incoming: IncomingItem, item: JsonObject) {
    const kinds = ['summary', 'content'] as const
    incoming.reasoningKind ??= kinds.find((kind) => objectsOf(item[kind]).some((part) => stringOf(part['text'])))
    const parts = incoming.reasoningKind ? objectsOf(item[incoming.reasoningKind]) : []
    const texts = parts.map((part, index) => ({ place: `${index}`, text: stringOf(part['text']) ?? '' }))
    this.#writeParts(incoming, 'reasoning', texts)
  }

  /**
   * Reports text of the final parts that no delta had (ruling U7). Deltas and final parts may number the parts
   * differently. So the joined deltas are compared with the joined parts. If the parts begin with the deltas, the rest
   * of the parts is reported. Otherwise each part is compared alone.
   */
  #writeParts(incoming: IncomingItem, kind: ItemKind, parts: readonly PlacedText[]) {
    const told = incoming.toldOf(kind).joined()
    const whole = parts.map(({ text }) => text).join('')
    if (!whole.startsWith(told)) {
      for (const { place, text } of parts) this.writeRest(incoming, kind, place, text)
      return
    }
    let left = told.length
    for (const { place, text } of parts) {
      if (text.length > left) this.write(incoming, kind, place, text.slice(left))
      left = Math.max(0, left - text.length)
    }
  }
}

/** Types of items that record a provider's own work. They are no part of the answer itself. */
const providerWork = /_call$|^mcp_|^compaction|_output$/

/** The text of a part of an item. @property place the part's place in its item */
type PlacedText = { place: string; text: string }

/**
 * Whether a piece of reasoning begins another part. Raw reasoning has a single part, although some servers increase
 * its index (vLLM #35184).
 */
function isNextPart({ lastPart, reasoningKind }: IncomingItem, part: string): boolean {
  return reasoningKind === 'summary' && lastPart !== undefined && part !== lastPart
}
