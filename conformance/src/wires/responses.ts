import type { Json } from '../case.ts'
import { compact, countOf, isObject, type JsonObject, listOf, objectOf, parse, textOf } from '../json.ts'
import type { SeenError } from '../observation.ts'
import { bearer, type ClientWire, readSharedError } from './wire.ts'

const ends = new Set<Json | undefined>(['response.completed', 'response.incomplete', 'response.failed'])

/** The member of a `done` event that its deltas join to, by the kind of the event. */
const wholes: { [kind: string]: string } = {
  output_text: 'text',
  refusal: 'refusal',
  function_call_arguments: 'arguments',
  reasoning_summary_text: 'text',
  reasoning_text: 'text',
}

export const responses: ClientWire = {
  path: '/v1/responses',
  keyHeaders: bearer,
  read(body) {
    const items = listOf(body['output'])
    const of = (type: string) => items.filter((item) => item['type'] === type)
    const parts = of('message').flatMap((item) => listOf(item['content']))
    return compact({
      id: body['id'] as string,
      model: body['model'] as string,
      text: joined(parts, 'text'),
      reasoning: of('reasoning')
        .map(({ summary, content }) => joined(listOf(summary), 'text') || joined(listOf(content), 'text'))
        .join(''),
      refusal: joined(parts, 'refusal'),
      calls: of('function_call').map(({ call_id, name, arguments: text }) =>
        compact({ id: textOf(call_id), name: textOf(name), arguments: textOf(text), input: parse(textOf(text)) }),
      ),
      stop: readStop(body, of('function_call').length > 0),
      usage: readUsage(body['usage']),
    })
  },
  // Without a store, ids are useless, and of reasoning only the encrypted form could be sent back.
  readTurn: (body) =>
    listOf(body['output'])
      .filter(({ type }) => type !== 'reasoning')
      .map(({ id, ...item }) => item),
  collect(datas) {
    const end = datas.find((event) => isObject(event) && ends.has(event['type']))
    if (isObject(end)) return { body: objectOf(end['response']), isEnded: true }
    return { body: collectOpen(datas), isEnded: false }
  },
  readError(body): SeenError | undefined {
    if (body['type'] === 'error' && !isObject(body['error'])) {
      const { code, param, message } = body
      return { type: 'error', code, param, message } as SeenError
    }
    return readSharedError(body) ?? readSharedError(objectOf(body['response']))
  },
  findMissing(datas) {
    const unnumbered = datas.find(
      (event) => isObject(event) && event['type'] !== 'error' && !Number.isInteger(event['sequence_number']),
    )
    return isObject(unnumbered) ? `${unnumbered['type']} has no sequence_number` : undefined
  },
  findDisorder(datas) {
    const open = new Set<Json>()
    const joined = new Map<string, string>()
    let last = -1
    let end: Json | undefined
    for (const [at, event] of datas.entries()) {
      // Open Responses (2026-04-24) ends a stream with [DONE], and OpenAI does not.
      if (event === '[DONE]' && end !== undefined && at === datas.length - 1) continue
      if (!isObject(event)) return 'an event is not a JSON object'
      const { type, sequence_number: sequence, output_index: item } = event
      if (end !== undefined) return `${type} comes after ${end}`
      if (type === 'error') continue
      if (at === 0 && type !== 'response.created') return `${type} comes before response.created`
      if (typeof sequence === 'number') {
        if (sequence <= last) return `sequence_number ${sequence} comes after ${last}`
        last = sequence
      }
      if (type === 'response.output_item.added') open.add(item!)
      else if (item !== undefined && !open.has(item)) return `${type} comes for item ${item}, which is not open`
      if (type === 'response.output_item.done') open.delete(item!)
      const [, kind, part] = /^response\.(\w+)\.(delta|done)$/.exec(String(type)) ?? []
      const whole = kind && wholes[kind]
      if (whole) {
        const place = [kind, item, event['content_index'], event['summary_index']].join()
        const text = joined.get(place) ?? ''
        if (part === 'delta') joined.set(place, text + textOf(event['delta']))
        else if (text !== textOf(event[whole])) return `the deltas of item ${item} do not join to its ${whole}`
      }
      if (!ends.has(type)) continue
      if (open.size > 0 && type !== 'response.failed') return `${type} comes while item ${[...open][0]} is open`
      end = type
    }
    return undefined
  },
}

/** Puts an answer together that has no last event. */
function collectOpen(datas: readonly Json[]): JsonObject {
  let whole: JsonObject = {}
  const output: JsonObject[] = []
  for (const event of datas) {
    if (!isObject(event)) continue
    if (event['type'] === 'response.created') whole = { ...objectOf(event['response']) }
    const at = Number(event['output_index'])
    const item = output[at]
    if (event['type'] === 'response.output_item.added') output[at] = { ...objectOf(event['item']) }
    else if (event['type'] === 'response.output_item.done') output[at] = objectOf(event['item'])
    else if (!item) continue
    else if (event['type'] === 'response.function_call_arguments.delta')
      item['arguments'] = textOf(item['arguments']) + textOf(event['delta'])
    else if (event['type'] === 'response.output_text.delta') addText(item, 'content', 'output_text', event)
    else if (event['type'] === 'response.reasoning_summary_text.delta') addText(item, 'summary', 'summary_text', event)
  }
  return { ...whole, output: output.filter(Boolean) }
}

function addText(item: JsonObject, list: string, type: string, event: JsonObject): void {
  const parts = listOf(item[list])
  const at = Number(event['content_index'] ?? event['summary_index'] ?? 0)
  parts[at] = { type, text: textOf(parts[at]?.['text']) + textOf(event['delta']) }
  item[list] = parts
}

function readStop(body: JsonObject, hasCalls: boolean): string | null {
  const { status } = body
  if (status === 'completed') return hasCalls ? 'calls' : 'end'
  if (status !== 'incomplete') return typeof status === 'string' ? status : null
  const reason = textOf(objectOf(body['incomplete_details'])['reason'])
  return { max_output_tokens: 'length', content_filter: 'refusal' }[reason] ?? reason
}

function joined(parts: readonly JsonObject[], name: string): string {
  return parts.map((part) => textOf(part[name])).join('')
}

function readUsage(value: Json | undefined) {
  if (!isObject(value)) return undefined
  return compact({
    input: countOf(value['input_tokens']),
    output: countOf(value['output_tokens']),
    total: countOf(value['total_tokens']),
    cached: countOf(objectOf(value['input_tokens_details'])['cached_tokens']),
    reasoning: countOf(objectOf(value['output_tokens_details'])['reasoning_tokens']),
  })
}
