import type { JsonObject } from '../../bytes/json.ts'
import { blocksMax } from '../../inference/narrator.ts'
import { createArgumentShape } from '../answers/argument-shape.ts'
import { stringOf } from '../answers/read-answer.ts'

/** The kinds of blocks that the deltas of an item can become. */
export type ItemKind = 'text' | 'refusal' | 'reasoning' | 'tool_call'

/** The texts of one item for one kind of block. Each part of the item has its own text. */
class ToldParts {
  length = 0
  readonly #texts = new Map<string, string>()

  of(part: string): string | undefined {
    return this.#texts.get(part)
  }

  add(part: string, text: string): void {
    this.length += text.length
    this.#texts.set(part, (this.#texts.get(part) ?? '') + text)
  }

  joined(): string {
    return [...this.#texts.values()].join('')
  }
}

/** An output item of the upstream, with its block and its text reported so far. */
export class IncomingItem {
  readonly type: string
  /** The item's `output_index`; undefined if its events have none. */
  readonly index: number | undefined
  readonly ids = new Set<string>()
  block: number | undefined
  kind: ItemKind | undefined
  /** Whether an event has announced the item. Deltas may arrive before the announcement (ruling U7). */
  isAnnounced = false
  isDone = false
  /** Whether the terminal event has contained the item. */
  isFinal = false
  /** The parts of the item that were reported so far, by kind. A call has a single part with the key ''. */
  readonly told = new Map<ItemKind, ToldParts>()
  /** Models send reasoning as summary, raw, or both. Only the kind received first is reported. */
  reasoningKind: 'summary' | 'content' | undefined
  lastPart: string | undefined
  /** Tracks whether a call's arguments are a whole object, from their deltas. */
  readonly shape = createArgumentShape()
  /** The whole arguments in the event that announces the item. They count only if no deltas repeat them (ruling Y4). */
  initial = ''
  /** The text in the start event of the part or call. A first delta with the same text is a repetition (ruling Y4). */
  begun = ''

  constructor(type: string, index: number | undefined) {
    this.type = type
    this.index = index
  }

  /** Returns the parts of one kind that were reported so far. */
  toldOf(kind: ItemKind): ToldParts {
    const known = this.told.get(kind)
    if (known) return known
    const parts = new ToldParts()
    this.told.set(kind, parts)
    return parts
  }
}

/**
 * The items of an answer. An event names its item by id, or else by index. An event with neither belongs to the only
 * open item of its kind. If several such items are open, the item is unknown (ruling U7).
 */
export class IncomingItems {
  /**
   * The items by type, in order of arrival. The terminal event has already named the first `named` items of the list.
   */
  readonly #byType = new Map<string, { items: IncomingItem[]; named: number }>()
  readonly #open = new Set<IncomingItem>()
  readonly #byId = new Map<string, IncomingItem>()
  readonly #byIndex = new Map<number, IncomingItem>()
  #count = 0

  get isFull(): boolean {
    return this.#count > blocksMax
  }

  /**
   * Finds the item of an event.
   * @param place the event itself, with the id and the index of the item as far as the provider sends them
   * @param type the type of the item
   * @param item the item itself, if the event contains it
   */
  find(place: JsonObject, type: string, item?: JsonObject): IncomingItem | 'several' | undefined {
    const known = this.#identified(place, type, item)
    if (known && !(known.isDone && isElsewhere(known, place))) return known
    const atPlace = this.#at(place)
    if (atPlace) return item === undefined || atPlace.type === type ? atPlace : undefined
    if (indexOf(place) !== undefined) return undefined
    if (idsOf(place, item).length === 0) return this.#onlyOpen(type)
    if (item !== undefined) return undefined
    // A piece with an unknown id belongs to the only announced, open item of its kind.
    const only = this.#onlyOpen(type)
    return only === 'several' || !only?.isAnnounced ? undefined : only
  }

  /**
   * Finds the item that an entry in the output of the terminal event describes. It looks for the entry's id first, and
   * then for its place in the output. If neither is known, the next item of this type that has no entry is taken. If
   * there is no such item, a new item is added.
   */
  final(place: JsonObject, type: string, item: JsonObject): IncomingItem {
    const atPlace = this.#at(place)
    const isNamed = atPlace?.type === type && !atPlace.isFinal
    // The id takes precedence, because an item's place in the output may differ from its index in earlier events.
    const known = this.#identified({}, type, item)
    const isKnown = known && !known.isFinal
    const found = (isKnown ? known : isNamed ? atPlace : this.#nextOf(type)) ?? this.add(place, type, item)
    found.isFinal = true
    return found
  }

  /** Whether the answer has a message with text, or a function call. */
  hasSpoken(): boolean {
    const messages = this.#byType.get('message')?.items ?? []
    const hasText = messages.some(({ told }) => [...told.values()].some(({ length }) => length > 0))
    return hasText || this.#byType.has('function_call')
  }

  unfinished(): IncomingItem[] {
    return (this.#byType.get('function_call')?.items ?? []).filter(({ isDone }) => !isDone)
  }

  /**
   * Finds the item that an event announces, or adds a new item. The item is known already if its deltas arrived
   * earlier, or if it was announced before.
   */
  announce(place: JsonObject, type: string, item: JsonObject): IncomingItem | 'several' {
    const known = this.#identified(place, type, item)
    const isAnother = known && (known.isDone || (known.isAnnounced && isElsewhere(known, place)))
    if (known && !isAnother) return this.#note(known, place, item)
    const early = known ? undefined : this.find(place, type, item)
    if (early === 'several') return early
    return early && !early.isAnnounced && !early.isDone
      ? this.#note(early, place, item)
      : this.#note(this.add(place, type, item), place, item)
  }

  /** Adds an item, even if its id or place belonged to another item before. */
  add(place: JsonObject, type: string, item?: JsonObject): IncomingItem {
    this.#count++
    const incoming = new IncomingItem(type, indexOf(place))
    const ofType = this.#byType.get(type) ?? { items: [], named: 0 }
    ofType.items.push(incoming)
    this.#byType.set(type, ofType)
    this.#open.add(incoming)
    this.#name(incoming, place, item)
    if (incoming.index !== undefined) this.#byIndex.set(incoming.index, incoming)
    return incoming
  }

  #note(incoming: IncomingItem, place: JsonObject, item: JsonObject): IncomingItem {
    incoming.isAnnounced = true
    this.#name(incoming, place, item)
    return incoming
  }

  #name(incoming: IncomingItem, place: JsonObject, item: JsonObject | undefined) {
    for (const id of idsOf(place, item)) {
      incoming.ids.add(id)
      this.#byId.set(id, incoming)
    }
  }

  #onlyOpen(type: string): IncomingItem | 'several' | undefined {
    let only: IncomingItem | undefined
    for (const incoming of this.#open) {
      if (incoming.isDone) this.#open.delete(incoming)
      else if (incoming.type !== type) continue
      else if (only) return 'several'
      else only = incoming
    }
    return only
  }

  #nextOf(type: string): IncomingItem | undefined {
    const ofType = this.#byType.get(type)
    while (ofType?.items[ofType.named]?.isFinal) ofType.named++
    return ofType?.items[ofType.named]
  }

  /**
   * Finds the item of an event by its ids. The item at the event's place is chosen if it has one of the ids. Otherwise
   * the last item with such an id is chosen.
   */
  #identified(place: JsonObject, type: string, item: JsonObject | undefined): IncomingItem | undefined {
    const ids = idsOf(place, item)
    const atPlace = this.#at(place)
    if (atPlace?.type === type && ids.some((id) => atPlace.ids.has(id))) return atPlace
    for (const id of ids) {
      const known = this.#byId.get(id)
      if (known?.type === type) return known
    }
    return undefined
  }

  #at(place: JsonObject): IncomingItem | undefined {
    const index = indexOf(place)
    return index === undefined ? undefined : this.#byIndex.get(index)
  }
}

function indexOf(place: JsonObject): number | undefined {
  const index = place['output_index']
  return typeof index === 'number' ? index : undefined
}

/** Whether a known item and an event have different places. Then two items share an id. */
function isElsewhere(known: IncomingItem, place: JsonObject): boolean {
  const index = indexOf(place)
  return index !== undefined && known.index !== undefined && known.index !== index
}

/**
 * The ids that identify an item. A call is also identified by its call id. Some servers write the id of a finished
 * item as `item_id`.
 */
function idsOf(place: JsonObject, item: JsonObject | undefined): string[] {
  const id = stringOf(place['item_id']) ?? stringOf(item?.['id']) ?? stringOf(item?.['item_id'])
  const ids = [id, stringOf(item?.['call_id'])]
  return ids.filter((id) => id !== undefined)
}
