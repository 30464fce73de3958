import { asObject, parseObject } from '../../../bytes/json.ts'
import {
  asked,
  bearer,
  count,
  findChatMistake,
  findInEvents,
  join,
  list,
  type ProbedWire,
  type ProbeJson,
} from '../client-wire.ts'

export const responses: ProbedWire = {
  path: '/v1/responses',
  keyHeaders: bearer,
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_output_tokens: asked.outputTokens,
    input: [
      { role: 'user', content: text },
      ...(called ? called.turn : []),
      ...(called
        ? called.calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: asked.result }))
        : []),
    ],
    stream,
    store: false,
    ...(isCall || called
      ? {
          tools: [
            {
              type: 'function',
              name: 'report',
              description: asked.description,
              parameters: asked.parameters,
              strict: false,
            },
          ],
        }
      : {}),
    ...(isCall ? { tool_choice: { type: 'function', name: 'report' } } : {}),
    ...(isReasoning ? { reasoning: { effort: 'low', summary: 'auto' } } : {}),
    ...(cached ? { instructions: cached.text, prompt_cache_key: cached.key } : {}),
  }),
  cacheHeaders: () => ({}),
  read(body) {
    const items = list(body['output'])
    const usage = asObject(body['usage']) ?? {}
    const of = (type: string) => items.filter((item) => item['type'] === type)
    return {
      text: of('message')
        .map((item) => join(list(item['content']), 'text'))
        .join(''),
      reasoning: of('reasoning')
        .map((item) => join(list(item['summary']), 'text'))
        .join(''),
      calls: of('function_call')
        .filter((item) => item['name'] === 'report')
        .map((item) => ({ id: String(item['call_id']), arguments: String(item['arguments']) })),
      // Nothing is stored, so ids are useless. Reasoning is left out, because only its encrypted form could be sent back.
      turn: items.filter((item) => item['type'] !== 'reasoning').map(({ id, ...item }) => item),
      inputTokens: count(usage['input_tokens']),
      outputTokens: count(usage['output_tokens']),
      cachedTokens: count(asObject(usage['input_tokens_details'])?.['cached_tokens']),
    }
  },
  findDisorder: (datas) => findInEvents(datas, findResponsesDisorder),
  collect(frames) {
    const ends = ['response.completed', 'response.incomplete']
    const last = frames.map(({ data }) => parseObject(data)).find((event) => ends.includes(String(event?.['type'])))
    return asObject(last?.['response'])
  },
  findMistake: findChatMistake,
}

const responsesEnds = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function findResponsesDisorder(events: readonly ProbeJson[]): string | undefined {
  const open = new Set<unknown>()
  let last = -1
  let end: unknown
  for (const [at, { type, sequence_number: sequence, output_index: item }] of events.entries()) {
    if (end !== undefined) return `${type} comes after ${end}`
    if (type === 'error') continue
    if (at === 0 && type !== 'response.created') return `${type} comes before response.created`
    if (!Number.isInteger(sequence)) return `${type} has no sequence_number`
    if ((sequence as number) <= last) return `sequence_number ${sequence} comes after ${last}`
    last = sequence as number
    if (type === 'response.output_item.added') open.add(item)
    else if (item !== undefined && !open.has(item)) return `${type} comes for item ${item}, which is not open`
    if (type === 'response.output_item.done') open.delete(item)
    if (!responsesEnds.has(String(type))) continue
    if (open.size > 0 && type !== 'response.failed') return `${type} comes while item ${[...open][0]} is open`
    end = type
  }
  return undefined
}
