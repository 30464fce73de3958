import type { JsonObject } from '../../bytes/json.ts'
import { blocksMax } from '../../inference/narrator.ts'
import { createArgumentShape } from '../answers/argument-shape.ts'
import { stringOf } from '../answers/read-answer.ts'

/** The kinds of blocks that an item's pieces become. */
export type ItemKind = 'text' | 'refusal' | 'reasoning' | 'tool_call'

/** The parts of one kind of an item that have been reported. */
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

/** An output item of the upstream: its block, and the part of it that has been reported. */
export class IncomingItem {
  readonly type: string
  /** Its `output_index`, if it has one. */
  readonly index: number | undefined
  readonly ids = new Set<string>()
  block: number | undefined
  kind: ItemKind | undefined
  /** Deltas may come before their item is announced (ruling U7). */
  isAnnounced = false
  isDone = false
  /** The terminal event has named it. */
  isFinal = false
  /** The parts reported so far, by kind and part; a call has the one part ''. */
  readonly told = new Map<ItemKind, ToldParts>()
  /** Reasoning comes as summary or raw; the kind that came first is reported. */
  reasoningKind: 'summary' | 'content' | undefined
  lastPart: string | undefined
  /** Of a call's arguments, as their deltas came. */
  readonly shape = createArgumentShape()
  /** Whole arguments that stood in the announcement: deltas repeat and replace them (ruling Y4). */
  initial = ''
  /** Text that stood where its part or call began: a first delta that is exactly this repeats it (ruling Y4). */
  begun = ''

  constructor(type: string, index: number | undefined) {
    this.type = type
    this.index = index
  }

  /** The parts of one kind. */
  toldOf(kind: ItemKind): ToldParts {
    const known = this.told.get(kind)
    if (known) return known
    const parts = new ToldParts()
    this.told.set(kind, parts)
    return parts
  }
}

/**
 * The items of an answer, and the item that an event means: by id, else by place. Some providers change the ids between
 * events, and others leave either out. An event with neither means the only item of its kind that is not done. If there
 * are several, the item is unknown (ruling U7).
 */
export class IncomingItems {
  /** In the order in which they came, and up to where the terminal event has named them. */
  readonly #byType = new Map<string, { items: IncomingItem[]; named: number }>()
  readonly #open = new Set<IncomingItem>()
  readonly #byId = new Map<string, IncomingItem>()
  readonly #byIndex = new Map<number, IncomingItem>()
  #count = 0

  get isFull(): boolean {
    return this.#count > blocksMax
  }

  /**
   * @param place what names the item: an event, or where it stands in the whole output
   * @param type of the items that are meant
   * @param item the item itself, where the event has it
   */
  find(place: JsonObject, type: string, item?: JsonObject): IncomingItem | 'several' | undefined {
    const known = this.#identified(place, type, item)
    if (known && !(known.isDone && isElsewhere(known, place))) return known
    const atPlace = this.#at(place)
    if (atPlace) return item === undefined || atPlace.type === type ? atPlace : undefined
    if (indexOf(place) !== undefined) return undefined
    if (idsOf(place, item).length === 0) return this.#onlyOpen(type)
    if (item !== undefined) return undefined
    // A piece under an id of its own: of what was announced and is not done, if that is one.
    const only = this.#onlyOpen(type)
    return only === 'several' || !only?.isAnnounced ? undefined : only
  }

  /**
   * An item of the whole output that the terminal event has: one of those before, else one that was never announced. Where
   * neither id nor place tells, the items of a kind come in the order in which they came before.
   */
  final(place: JsonObject, type: string, item: JsonObject): IncomingItem {
    const atPlace = this.#at(place)
    const isNamed = atPlace?.type === type && !atPlace.isFinal
    // Its place in the whole output need not be its index in the events, so that an id is better evidence.
    const known = this.#identified({}, type, item)
    const isKnown = known && !known.isFinal
    const found = (isKnown ? known : isNamed ? atPlace : this.#nextOf(type)) ?? this.add(place, type, item)
    found.isFinal = true
    return found
  }

  /** Whether a message said anything, or there is a call. */
  hasSpoken(): boolean {
    const messages = this.#byType.get('message')?.items ?? []
    const hasText = messages.some(({ told }) => [...told.values()].some(({ length }) => length > 0))
    return hasText || this.#byType.has('function_call')
  }

  unfinished(): IncomingItem[] {
    return (this.#byType.get('function_call')?.items ?? []).filter(({ isDone }) => !isDone)
  }

  /** The item that is announced: the one whose deltas came already, or that is announced again, else a new one. */
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

  /** A new one, whatever stood under its id or at its place before. */
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

  /** Of several items that share an id the one at the given place, else the last. */
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

/** Both have a place, and not the same: they share an id, and are two. */
function isElsewhere(known: IncomingItem, place: JsonObject): boolean {
  const index = indexOf(place)
  return index !== undefined && known.index !== undefined && known.index !== index
}

/** A call is known by its own id too. Some servers give an item that is done its id as `item_id`. */
function idsOf(place: JsonObject, item: JsonObject | undefined): string[] {
  const id = stringOf(place['item_id']) ?? stringOf(item?.['id']) ?? stringOf(item?.['item_id'])
  const ids = [id, stringOf(item?.['call_id'])]
  return ids.filter((id) => id !== undefined)
}
