import { dataOf, decodeUtf8, type RawFrame, withData } from '../../bytes/frame-cutter.ts'
import { asObject, type JsonObject } from '../../bytes/json.ts'
import type { JsonPatch } from '../answers/json-patch.ts'
import { parseAnswer, repeatsStart } from '../answers/read-answer.ts'

/** Signs that an event which begins an item, or a part of one, may hold content already. */
const filled: Record<string, RegExp> = {
  'response.output_item.added': /"(?:arguments|input)"\s*:\s*(?:"[^"]|\{)|"(?:content|summary)"\s*:\s*\[\s*[^\s\]]/,
  'response.content_part.added': /"text"\s*:\s*"[^"]/,
  'response.reasoning_summary_part.added': /"text"\s*:\s*"[^"]/,
}

/** The members of an item, or a part, that its deltas fill, by its type, as they are at first. */
const firstValues: Record<string, Readonly<Record<string, string>>> = {
  message: { content: '[]' },
  reasoning: { content: '[]', summary: '[]' },
  function_call: { arguments: '""' },
  custom_tool_call: { input: '""' },
  output_text: { text: '""' },
  reasoning_text: { text: '""' },
  summary_text: { text: '""' },
}

/** Whether an event begins an item or a part, and holds content that its deltas will bring (ruling Y3). */
export function isFilledStart(name: string, frame: string): boolean {
  return filled[name]?.test(frame) === true
}

/**
 * The members that such an event has to have instead: clients empty what begins, or read its content twice, and the
 * vendor's SDK throws. The events that follow say all of it, the last ones once more.
 * @returns the path of the item or part, and its new members
 */
function emptiedStart(event: JsonObject): { path: string[]; members: Map<string, string> } {
  const path = 'item' in event ? ['item'] : ['part']
  const begun = asObject(event[path[0]!]) ?? {}
  const first = Object.entries(firstValues[`${begun['type']}`] ?? {})
  return { path, members: new Map(first.filter(([name]) => begun[name] != null)) }
}

/** Content that was left out of a start, and that nothing has said since. */
type UnsaidContent = {
  index: unknown
  id: unknown
  /** The list with the part that had it, and its place there; undefined for the input of a call. */
  list: 'content' | 'summary' | undefined
  place: number | undefined
  text: string
  isJson: boolean
}

/**
 * The content that starts had (ruling Y3). The deltas of its own item say it once more, or only go on from it: then the
 * first of them gets it. Content that no delta and no end of the same place has said is lost for clients.
 */
export class UnsaidContents {
  #contents: UnsaidContent[] = []

  get isEmpty(): boolean {
    return this.#contents.length === 0
  }

  /** Empties the start of an item or a part, and keeps what it had. */
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
   * An event after such starts.
   * @param frame of a delta, or of an end
   * @returns the frame, with the beginning that its delta goes on from
   */
  say(frame: RawFrame, parse: (data: string) => JsonPatch | undefined): RawFrame {
    const event = parseAnswer(decodeUtf8(dataOf(frame) ?? ''))
    if (event === undefined) return frame
    const { delta } = event
    // An empty text says nothing of the content.
    if ([delta, event['text'], event['arguments'], event['input']].includes('')) return frame
    const said = this.#contents.filter((one) => isAbout(event, one))
    if (said.length === 0) return frame
    this.#contents = this.#contents.filter((one) => !said.includes(one))
    const [first] = said
    if (typeof delta !== 'string' || said.length > 1) return frame
    // An item that begins with a text has all of it, as a rule, and its deltas say it in pieces (Y3).
    const { text, isJson } = first!
    if (repeatsStart(text, delta, isJson) || (!isJson && text.startsWith(delta))) return frame
    const patch = parse(dataOf(frame) ?? '')
    patch?.set([], new Map([['delta', JSON.stringify(text + delta)]]))
    return patch ? withData(frame, patch.result().toString('latin1')) : ''
  }

  /** A part that begins with content replaces what the start of its item had there. */
  #keep(content: UnsaidContent): void {
    if (content.text === '') return
    const { index, id, list, place } = content
    const event = { output_index: index, item_id: id, [`${list}_index`]: place }
    this.#contents = [...this.#contents.filter((one) => one.list !== list || !isAbout(event, one)), content]
  }
}

/** The text of a part, or the input of a call; of others all that they have. */
function textOf(value: unknown): string {
  const part = asObject(value)
  const text = part?.['text'] ?? part?.['refusal'] ?? value
  return typeof text === 'string' ? text : JSON.stringify(text)
}

function placeIn(list: string, event: JsonObject): number | undefined {
  const place = event[list === 'summary' ? 'summary_index' : 'content_index']
  return typeof place === 'number' ? place : undefined
}

/** Some servers leave out places or ids, and some give one item several ids: what is not there is no difference. */
function isAbout(event: JsonObject, { index, id, list, place }: UnsaidContent): boolean {
  const isItem = (a: unknown, b: unknown) => (a == null || b == null ? undefined : a === b)
  const item = asObject(event['item'])
  if ((isItem(event['output_index'], index) ?? isItem(event['item_id'] ?? item?.['id'], id)) === false) return false
  const isOfSummary = event['summary_index'] != null
  if (!isOfSummary && event['content_index'] == null) return true
  return (list === 'summary') === isOfSummary && (isItem(placeIn(`${list}`, event), place) ?? true)
}
