import { encodeLatin1, type RawFrame } from '../../bytes/frame-cutter.ts'
import { asObject } from '../../bytes/json.ts'
import { ArgumentPieces } from '../../inference/raw-arguments.ts'
import type { AnswerForms } from '../answers/native-stream.ts'
import { argumentsText, objectsOf } from '../answers/read-answer.ts'
import { isEnded, isUnread } from './native-json.ts'

/**
 * For each type of part: four names.
 * `text`: the events that bring the text. `member`: the member of these events that holds the text.
 * `part`: the events that begin and end the part. `number`: the member of these events that holds the part's index.
 */
const partEvents = new Map<unknown, readonly [text: string, member: string, part: string, number: string]>([
  ['output_text', ['output_text', 'text', 'content_part', 'content_index']],
  ['refusal', ['refusal', 'refusal', 'content_part', 'content_index']],
  ['summary_text', ['reasoning_summary_text', 'text', 'reasoning_summary_part', 'summary_index']],
  ['reasoning_text', ['reasoning_text', 'text', 'content_part', 'content_index']],
])

/** For each type of call: the name of its events, and the member with the call's input. */
const callEvents = new Map<unknown, readonly [name: string, member: string]>([
  ['function_call', ['function_call_arguments', 'arguments']],
  ['custom_tool_call', ['custom_tool_call_input', 'input']],
])

/**
 * Converts a whole response to a stream, and a stream to a whole response. The last event of a stream contains the
 * response, except that its items may be missing.
 */
export const responseForms: AnswerForms = {
  unfold(response, body) {
    const { output, status } = response
    if (!Array.isArray(output) || !isEnded(status) || isUnread(output)) return undefined
    const frames: RawFrame[] = []
    const write = (name: string, members: string) => {
      const head = `"type":"response.${name}","sequence_number":${frames.length}`
      frames.push(`event: response.${name}\ndata: {${head},${members}}\n\n`)
    }
    const tell = (name: string, members: object) => write(name, encodeLatin1(JSON.stringify(members)).slice(1, -1))
    const begun = { status: 'in_progress', completed_at: null, incomplete_details: null, output: [], usage: null }
    tell('created', { response: { ...response, ...begun } })
    for (const [output_index, item] of objectsOf(output).entries()) {
      const place = { item_id: item['id'], output_index }
      tell('output_item.added', { output_index, item: { ...item, status: 'in_progress' } })
      const [call, input = ''] = callEvents.get(item['type']) ?? []
      const words = argumentsText(item[input])
      if (call && words) {
        tell(`${call}.delta`, { ...place, delta: words })
        tell(`${call}.done`, { ...place, name: item['name'], [input]: words })
      }
      for (const list of ['summary', 'content'])
        for (const [at, part] of objectsOf(item[list]).entries()) {
          const [text, member = '', kind, number = ''] = partEvents.get(part['type']) ?? []
          if (!text) continue
          const own = { ...place, [number]: at, ...(kind === 'content_part' && { logprobs: [] }) }
          tell(`${kind}.added`, { ...own, part: { ...part, [member]: '' } })
          tell(`${text}.delta`, { ...own, delta: part[member] })
          tell(`${text}.done`, { ...own, [member]: part[member] })
          tell(`${kind}.done`, { ...own, part })
        }
      tell('output_item.done', { output_index, item })
    }
    write(status === 'incomplete' ? status : 'completed', `"response":${body}`)
    return frames
  },
  fold(events) {
    const last = asObject(events.at(-1)?.['response']) ?? {}
    const calls = new Map<unknown, ArgumentPieces>()
    for (const [id, piece] of responseForms.argumentsIn(events)) {
      const pieces = calls.get(id) ?? new ArgumentPieces()
      pieces.add(`${piece}`)
      calls.set(id, pieces)
    }
    const items = events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item] : []))
    const whole = objectsOf(last['output'])
    const output = objectsOf(whole.length > 0 ? whole : items).map((item) => {
      const pieces = item['type'] === 'function_call' ? calls.get(item['id']) : undefined
      return pieces ? { ...item, arguments: pieces.read(`${item['arguments']}`) } : item
    })
    return JSON.stringify({ ...last, output })
  },
  argumentsIn: (events) =>
    events.flatMap(({ type, item_id, delta }) =>
      type === 'response.function_call_arguments.delta' ? [[item_id, delta] as const] : [],
    ),
}
