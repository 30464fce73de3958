import { asObject } from '../../../bytes/json.ts'
import type { ProbedWire } from '../client-wire.ts'
import { count, join, list, parse } from '../json.ts'
import { bearer, description, outputTokens, parameters, result } from './question.ts'
import { findChatMistake } from './refusals.ts'

export const responses: ProbedWire = {
  path: '/v1/responses',
  keyHeaders: bearer,
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_output_tokens: outputTokens,
    input: [
      { role: 'user', content: text },
      ...(called ? called.turn : []),
      ...(called ? called.calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: result })) : []),
    ],
    stream,
    store: false,
    ...(isCall || called
      ? { tools: [{ type: 'function', name: 'report', description, parameters, strict: false }] }
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
  collect(frames) {
    const ends = ['response.completed', 'response.incomplete']
    const last = frames.map(({ data }) => parse(data)).find((event) => ends.includes(String(event['type'])))
    return asObject(last?.['response'])
  },
  findMistake: findChatMistake,
}
