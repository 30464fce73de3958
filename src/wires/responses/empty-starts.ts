import { dataOf, decodeUtf8, type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { parseAnswer, repeatsStart } from '../answers/read-answer.ts'

/** For each type of start event, a pattern that matches if the item or part can already contain content. */
const filled = new Map<string, RegExp>([
  ['response.output_item.added', /"(?:arguments|input)"\s*:\s*(?:"[^"]|\{)|"(?:content|summary)"\s*:\s*\[\s*[^\s\]]/],
  ['response.content_part.added', /"text"\s*:\s*"[^"]/],
  ['response.reasoning_summary_part.added', /"text"\s*:\s*"[^"]/],
])

/** For each type of item or part: the members that deltas fill, with their initial values. */
const firstValues: Record<string, Readonly<Record<string, string>>> = {
  message: { content: '[]' },
  reasoning: { content: '[]', summary: '[]' },
  function_call: { arguments: '""' },
  custom_tool_call: { input: '""' },
  output_text: { text: '""' },
  reasoning_text: { text: '""' },
  summary_text: { text: '""' },
}

/** Whether an event begins an item or a part and contains content that its deltas will send again (ruling Y3). */
export function isFilledStart(name: string, frame: string): boolean {
  return filled.get(name)?.test(frame) === true
}

/**
 * Returns empty values for the content of an event that begins an item or a part, because later events send all content
 * again. If the start event kept it, clients would discard it or read it twice, and the vendor's SDK would throw.
 * @returns the path of the item or part, and its members to replace
 */
function emptiedStart(event: JsonObject): { path: string[]; members: Map<string, string> } {
  const path = 'item' in event ? ['item'] : ['part']
  const begun = asObject(event[path[0]!]) ?? {}
  const first = Object.entries(firstValues[`${begun['type']}`] ?? {})
  return { path, members: new Map(first.filter(([name]) => begun[name] != null)) }
}

/** Content that was removed from a start event and that no later event has contained yet. */
type UnsaidContent = {
  index: unknown
  id: unknown
  /** The content is part `place` of this list of the item. Both members are undefined for the input of a call. */
  list: 'content' | 'summary' | undefined
  place: number | undefined
  text: string
  isJson: boolean
}

/**
 * The content removed from start events (ruling Y3). Deltas of the same item repeat this content or continue it.
 * Content that the first delta continues is put before that delta. If no later event repeats the content and the last
 * event has no items, the answer fails, because clients would lose the content.
 */
export class UnsaidContents {
  #contents: UnsaidContent[] = []

  get isEmpty(): boolean {
    return this.#contents.length === 0
  }

  /** Removes the content from an event that begins an item or a part, and remembers the content. */
  take(patch: JsonPatch): void {
    const event = patch.value
    const { path, members } = emptiedStart(event)
    patch.set(path, members)
    const begun = asObject(event[path[0]!]) ?? {}
    const index = event['output_index']
    const id = event['item_id'] ?? begun['id']
    for (const name of members.keys()) {
      const value = begun[name]
      const ofItem = { index, id, isJson: name === 'arguments' }
      if (name === 'content' || name === 'summary') {
        const parts = Array.isArray(value) ? value : [value]
        for (const [place, part] of parts.entries()) this.#keep({ ...ofItem, list: name, place, text: textOf(part) })
      } else {
        const list = name !== 'text' ? undefined : begun['type'] === 'summary_text' ? 'summary' : 'content'
        this.#keep({ ...ofItem, list, place: list && placeIn(list, event), text: textOf(value) })
      }
    }
  }

  /**
   * Handles a later event of an item whose start event had content that was removed.
   * @param frame the frame of a delta or of an end event
   * @returns the frame. If it has a delta that continues the removed content, the content is put before the delta
   */
  say(frame: RawFrame, parse: (data: string) => JsonPatch | undefined): RawFrame {
    const event = parseAnswer(decodeUtf8(dataOf(frame) ?? ''))
    if (event === undefined) return frame
    const { delta } = event
    // An empty text does not tell whether the deltas repeat the removed content or continue it.
    if ([delta, event['text'], event['arguments'], event['input']].includes('')) return frame
    const said = this.#contents.filter((one) => isAbout(event, one))
    if (said.length === 0) return frame
    this.#contents = this.#contents.filter((one) => !said.includes(one))
    const [first] = said
    if (typeof delta !== 'string' || said.length > 1) return frame
    // A text in the start event of an item is usually the whole text, which the deltas then repeat in pieces (Y3).
    const { text, isJson } = first!
    if (repeatsStart(text, delta, isJson) || (!isJson && text.startsWith(delta))) return frame
    const patch = parse(dataOf(frame) ?? '')
    patch?.set([], new Map([['delta', JSON.stringify(text + delta)]]))
    return patch ? withData(frame, patch.result().toString('latin1')) : ''
  }

  /** Stores content that was removed. It replaces content that was stored before for the same part. */
  #keep(content: UnsaidContent): void {
    if (content.text === '') return
    const { index, id, list, place } = content
    const event = { output_index: index, item_id: id, [`${list}_index`]: place }
    this.#contents = [...this.#contents.filter((one) => one.list !== list || !isAbout(event, one)), content]
  }
}

/** The text of a part, or the input of a call. Other content is returned as JSON. */
function textOf(value: unknown): string {
  const part = asObject(value)
  const text = part?.['text'] ?? part?.['refusal'] ?? value
  return typeof text === 'string' ? text : JSON.stringify(text)
}

function placeIn(list: string, event: JsonObject): number | undefined {
  const place = event[list === 'summary' ? 'summary_index' : 'content_index']
  return typeof place === 'number' ? place : undefined
}

/**
 * Whether an event is about this content. A missing index or id counts as equal, because some servers omit them. If the
 * event has an index, its id is not compared, because some servers give an item several ids.
 */
function isAbout(event: JsonObject, { index, id, list, place }: UnsaidContent): boolean {
  const isItem = (a: unknown, b: unknown) => (a == null || b == null ? undefined : a === b)
  const item = asObject(event['item'])
  if ((isItem(event['output_index'], index) ?? isItem(event['item_id'] ?? item?.['id'], id)) === false) return false
  const isOfSummary = event['summary_index'] != null
  if (!isOfSummary && event['content_index'] == null) return true
  return (list === 'summary') === isOfSummary && (isItem(placeIn(`${list}`, event), place) ?? true)
}
