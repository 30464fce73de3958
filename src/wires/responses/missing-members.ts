import { encodeLatin1 } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { listOf, stringOf, wordsIn } from '../answers/read-answer.ts'

/**
 * Adds members that a server omits from its events, although spec 6.3 and SDK helpers require them (ruling P2). These
 * are the type and the number of the event, and the indexes of its item and part. An unknown index becomes 0 (ruling
 * U7). The first event and the first item show what the server omits.
 */
export class MissingMembers {
  #lacksNumbers: boolean | undefined
  #lacksPlaces: boolean | undefined
  #lacksTypes: boolean | undefined
  #numbered = 0
  #placed = 0
  #lastPlace = 0
  readonly #places = new Map<string, number>()
  /**
   * The `output_index` of items that have a part (`#begun`), lack a part that they need (`#bare`), or have not ended
   * (`#open`).
   */
  readonly #begun = new Set<number>()
  readonly #bare = new Set<number>()
  readonly #open = new Set<number>()

  /** The number of the next event, if the gateway numbers the events; else undefined. */
  get nextNumber(): number | undefined {
    return this.#lacksNumbers ? this.#numbered : undefined
  }

  /** Whether an event must be parsed. @param frame the frame as received */
  concerns(name: string, frame: string): boolean {
    this.#lacksNumbers ??= !/"sequence_number"\s*:/.test(frame)
    if (name === 'response.output_item.added') this.#lacksPlaces ??= !/"output_index"\s*:/.test(frame)
    this.#lacksTypes ??= !/"type"\s*:\s*"response\./.test(frame)
    if (name.endsWith('.added') || name === 'response.output_item.done') this.#note(name, frame)
    const isBare = this.#bare.size > 0 && hasPart(name) && !name.endsWith('.added')
    return isBare || this.#lacksNumbers || this.#lacksTypes || this.#lacksPlaces === true
  }

  #note(name: string, frame: string): void {
    const place = Number(/"output_index"\s*:\s*(\d+)/.exec(frame)?.[1] ?? Number.NaN)
    if (Number.isNaN(place)) return
    if (name === 'response.output_item.added') {
      this.#open.add(place)
      if (itemOfParts.test(frame)) this.#bare.add(place)
    } else this.#bare.delete(place)
    if (name === 'response.output_item.done') this.#open.delete(place)
    else if (name !== 'response.output_item.added') this.#begun.add(place)
  }

  /** Writes the missing end events of items, before the last event. @param patch the last event */
  ends(patch: JsonPatch, output: unknown): string[] {
    const events: string[] = []
    for (const output_index of this.#open) {
      const item = Array.isArray(output) ? asObject(output[output_index]) : undefined
      if (item) events.push(this.#write('response.output_item.done', patch.value, { output_index, item }))
    }
    this.#open.clear()
    return events
  }

  /** Writes an event of our own, which is sent before the event `next`. From then on the gateway numbers all events. */
  #write(type: string, next: JsonObject, members: object): string {
    if (!this.#lacksNumbers) this.#numbered = typeof next['sequence_number'] === 'number' ? next['sequence_number'] : 0
    this.#lacksNumbers = true
    const event = { type, sequence_number: this.#numbered++, ...members }
    return `event: ${type}\ndata: ${encodeLatin1(JSON.stringify(event))}\n\n`
  }

  /** Returns the event that announces a part, if the server has left this event out; otherwise ''. */
  before(name: string, patch: JsonPatch): string {
    const isSummary = name.includes('summary')
    const type = `response.${isSummary ? 'reasoning_summary' : 'content'}_part.added`
    if (!hasPart(name)) return ''
    const { output_index: told } = patch.value
    const output_index = typeof told === 'number' ? told : this.#placeOf(name, patch.value)
    if (this.#begun.has(output_index)) return ''
    this.#begun.add(output_index)
    this.#bare.delete(output_index)
    if (name === type) return ''
    const { item_id } = patch.value
    const kind = isSummary ? 'summary_text' : name.includes('reasoning') ? 'reasoning_text' : 'output_text'
    const part = name.includes('refusal') ? { type: 'refusal', refusal: '' } : { type: kind, text: '' }
    const index = isSummary ? 'summary_index' : 'content_index'
    const shown = { ...part, ...(part.type === 'output_text' && { annotations: [], logprobs: [] }) }
    return this.#write(type, patch.value, { item_id, output_index, [index]: patch.value[index] ?? 0, part: shown })
  }

  /** Adds the members that an event lacks. @param patch an event for which `concerns` returned true */
  fill(name: string, patch: JsonPatch): void {
    const event = patch.value
    const values = new Map<string, string>()
    if (name !== '' && event['type'] === undefined) values.set('type', JSON.stringify(name))
    const add = (member: string, value: number) => {
      if (typeof event[member] !== 'number') values.set(member, `${value}`)
    }
    // If the first event has no sequence number, all events get our numbers. LiteLLM numbers only a few events, in a
    // count of its own.
    if (this.#lacksNumbers) values.set('sequence_number', `${this.#numbered++}`)
    if (name.startsWith('response.output_item.') || event['item_id'] !== undefined || hasPart(name)) {
      add('output_index', this.#placeOf(name, event))
    }
    if (hasPart(name)) add(name.includes('summary') ? 'summary_index' : 'content_index', 0)
    patch.set([], values)
    const part = asObject(event['part'])
    if (part?.['type'] === 'output_text' && !part['annotations']) patch.set(['part'], new Map([['annotations', '[]']]))
    const item = asObject(event['item'])
    if (item) fillItem(patch, ['item'], item)
  }

  #placeOf(name: string, event: Record<string, unknown>): number {
    const item = asObject(event['item'])
    const id = stringOf(event['item_id']) ?? stringOf(item?.['id'])
    const known = id === undefined ? undefined : this.#places.get(id)
    if (known !== undefined) this.#lastPlace = known
    else if (name === 'response.output_item.added' || id !== undefined) {
      this.#lastPlace = this.#placed++
      if (id !== undefined) this.#places.set(id, this.#lastPlace)
    }
    return this.#lastPlace
  }
}

/** Adds the missing members of the items in a whole response. @param path the path of the list of items */
export function fillItems(patch: JsonPatch, path: readonly string[], output: unknown): void {
  for (const [place, item] of placesOf(path, output)) fillItem(patch, place, item)
}

/** Types of text that SDKs ignore in a message (ruling Y5). */
const foreignText = new Set(['text', 'input_text'])

/**
 * Converts the content of a message whose text SDKs would ignore: a string, a single part, or parts of another wire.
 * @returns undefined if the content has this wire's own form
 */
function plainContent(content: unknown): string | undefined {
  const isForeign = (part: unknown) =>
    typeof part === 'string' || foreignText.has(`${asObject(part)?.['type'] ?? 'text'}`)
  if (content == null || (Array.isArray(content) && !content.some(isForeign))) return undefined
  const parts = listOf(content).map((part) => {
    if (!isForeign(part)) return part
    const own = { type: 'output_text', text: wordsIn(part) ?? '', annotations: [] }
    return typeof part === 'string' ? own : { ...asObject(part), ...own }
  })
  return JSON.stringify(parts)
}

/** Matches a frame whose message may have content that SDKs ignore. Only matching frames are parsed. */
export const mayBeForeign = /"content"\s*:\s*(?:["{]|\[\s*(?:"|\{\s*"text"))|"type"\s*:\s*"(?:text|input_text)"/

/**
 * Adds missing members to a message or a reasoning item. A reasoning item must have a summary, even an empty one. Some
 * servers (LiteLLM) mark its raw text as `output_text`, which becomes `reasoning_text`.
 */
export function fillItem(patch: JsonPatch, path: readonly string[], item: Record<string, unknown>): void {
  if (item['type'] === 'message') {
    const content = plainContent(item['content'] ?? item['text'])
    if (content !== undefined) patch.set(path, new Map([['content', content]]))
    if (!stringOf(item['role'])) patch.set(path, new Map([['role', '"assistant"']]))
  }
  if (item['type'] !== 'reasoning') return
  if (!Array.isArray(item['summary'])) patch.set(path, new Map([['summary', '[]']]))
  for (const [place, part] of placesOf([...path, 'content'], item['content'])) {
    if (part['type'] === 'output_text') patch.set(place, new Map([['type', '"reasoning_text"']]))
  }
}

/** The objects in a list, each with its path. */
function* placesOf(path: readonly string[], list: unknown): Iterable<[string[], Record<string, unknown>]> {
  if (!Array.isArray(list)) return
  for (const [index, one] of list.entries()) {
    const object = asObject(one)
    if (object) yield [[...path, `${index}`], object]
  }
}

/** Matches items that have parts. */
const itemOfParts = /"type"\s*:\s*"(?:message|reasoning)"/

/** Whether an event is about a part of an item. */
function hasPart(name: string): boolean {
  return /^response\.(?:output_text|refusal|content_part|reasoning_(?:summary_)?(?:text|part))\./.test(name)
}
