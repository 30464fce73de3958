import { stringOf } from '../answers/read-answer.ts'

/** What an item's pieces are told as. */
export type ItemKind = 'text' | 'refusal' | 'reasoning' | 'tool_call'

/** An output item of the upstream: which block it is, and what of it has been told. */
export type Incoming = {
  type: string
  block: number | undefined
  kind: ItemKind | undefined
  /** Deltas may come before their item is announced (ruling U7). */
  isAnnounced: boolean
  isDone: boolean
  /** Told so far, by part; a call has the one part ''. */
  parts: Map<string, string>
  /** Reasoning comes as summary or raw; the kind that came first is told. */
  reasoningKind: 'summary' | 'content' | undefined
  lastPart: string | undefined
}

type Members = Record<string, unknown>

/** The items of an answer, and which of them an event means. */
export class IncomingItems {
  readonly #byId = new Map<string, Incoming>()
  readonly #byIndex = new Map<number, Incoming>()

  /**
   * By id, else by place: some providers change the ids between events.
   * @param place what names the item: an event, or where it stands in the whole output
   * @param item the item itself, where the event has it
   */
  find(place: Members, item?: Members): Incoming | undefined {
    const id = idOf(place, item)
    const known = id === undefined ? undefined : this.#byId.get(id)
    if (known) return known
    const atPlace = this.#byIndex.get(place['output_index'] as number)
    const type = item?.['type']
    return atPlace && (type === undefined || type === atPlace.type) ? atPlace : undefined
  }

  /** The item that is announced: the one whose deltas came already, else a new one. */
  announce(place: Members, item: Members): Incoming {
    const early = this.find(place, item)
    const incoming = early && !early.isAnnounced && !early.isDone ? early : this.add(place, item)
    incoming.isAnnounced = true
    const id = idOf(place, item)
    if (id !== undefined) this.#byId.set(id, incoming)
    return incoming
  }

  /** A new one, whatever stood under its id or at its place before. */
  add(place: Members, item: Members): Incoming {
    const incoming: Incoming = {
      type: stringOf(item['type']) ?? '',
      block: undefined,
      kind: undefined,
      isAnnounced: false,
      isDone: false,
      parts: new Map(),
      reasoningKind: undefined,
      lastPart: undefined,
    }
    const id = idOf(place, item)
    if (id !== undefined) this.#byId.set(id, incoming)
    if (typeof place['output_index'] === 'number') this.#byIndex.set(place['output_index'], incoming)
    return incoming
  }
}

function idOf(place: Members, item: Members | undefined): string | undefined {
  return stringOf(place['item_id']) ?? stringOf(item?.['id'])
}
