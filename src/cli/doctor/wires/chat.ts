import { asObject, parseObject } from '../../../bytes/json.ts'
import { isDoneMark } from '../../../bytes/sse.ts'
import { asked, bearer, count, findChatMistake, list, type ProbedWire, type ProbeJson } from '../client-wire.ts'

export const chat: ProbedWire = {
  path: '/v1/chat/completions',
  keyHeaders: bearer,
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_completion_tokens: asked.outputTokens,
    messages: [
      ...(cached ? [{ role: 'system', content: cached.text }] : []),
      { role: 'user', content: text },
      ...(called ? called.turn : []),
      ...(called ? called.calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: asked.result })) : []),
    ],
    stream,
    // The gateway always sends usage in a stream; other servers send it on request.
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    ...(isCall || called
      ? {
          tools: [
            {
              type: 'function',
              function: { name: 'report', description: asked.description, parameters: asked.parameters },
            },
          ],
        }
      : {}),
    ...(isCall ? { tool_choice: { type: 'function', function: { name: 'report' } } } : {}),
    ...(isReasoning ? { reasoning_effort: 'low' } : {}),
    ...(cached ? { prompt_cache_key: cached.key } : {}),
  }),
  cacheHeaders: () => ({}),
  read(body) {
    const message = asObject(list(body['choices'])[0]?.['message']) ?? {}
    const usage = asObject(body['usage']) ?? {}
    return {
      text: String(message['content'] ?? ''),
      reasoning: String(message['reasoning_content'] ?? ''),
      calls: list(message['tool_calls'])
        .map((call) => ({ id: String(call['id']), ...asObject(call['function']) }) as ProbeJson)
        .filter(({ name }) => name === 'report')
        .map((call) => ({ id: String(call['id']), arguments: String(call['arguments']) })),
      turn: [message],
      inputTokens: count(usage['prompt_tokens']),
      outputTokens: count(usage['completion_tokens']),
      cachedTokens: count(asObject(usage['prompt_tokens_details'])?.['cached_tokens']),
    }
  },
  findDisorder: findChatDisorder,
  collect(frames) {
    let [content, reasoning] = ['', '']
    const calls: ProbeJson[] = []
    let usage: unknown
    for (const { data } of frames) {
      if (isDoneMark(data)) {
        const tool_calls = calls.map(({ id, ...call }) => ({ id, type: 'function', function: call }))
        const message = {
          role: 'assistant',
          content: content || null,
          ...(reasoning ? { reasoning_content: reasoning } : {}),
          ...(tool_calls.length > 0 ? { tool_calls } : {}),
        }
        return { choices: [{ message }], usage }
      }
      const chunk = parseObject(data) ?? {}
      usage = chunk['usage'] ?? usage
      const delta = asObject(list(chunk['choices'])[0]?.['delta']) ?? {}
      content += delta['content'] ?? ''
      reasoning += delta['reasoning_content'] ?? ''
      for (const call of list(delta['tool_calls'])) {
        const at = Number(call['index'])
        const piece = asObject(call['function']) ?? {}
        const before = calls[at] ?? { id: call['id'], name: piece['name'], arguments: '' }
        calls[at] = { ...before, arguments: `${before['arguments']}${piece['arguments'] ?? ''}` }
      }
    }
    return undefined
  },
  findMistake: findChatMistake,
}

function findChatDisorder(datas: readonly string[]): string | undefined {
  let [isFinished, hasUsage, isEnded] = [false, false, false]
  let id: unknown
  for (const data of datas) {
    if (isEnded) return 'an event comes after [DONE]'
    if (isDoneMark(data)) {
      if (!isFinished) return '[DONE] comes without a finish_reason'
      if (!hasUsage) return '[DONE] comes without a chunk of usage and no choices'
      isEnded = true
      continue
    }
    const chunk = parseObject(data)
    if (!chunk) return 'an event is not a JSON object'
    // A failure in a started stream is reported elsewhere.
    if (chunk['error'] !== undefined) continue
    if (chunk['object'] !== 'chat.completion.chunk') return `the object of an event is ${chunk['object']}`
    id ??= chunk['id']
    if (chunk['id'] !== id) return 'the id changes within the stream'
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'] : []
    if (hasUsage && choices.length > 0) return 'content comes after the usage'
    if (choices.some((choice) => asObject(choice)?.['finish_reason'])) isFinished = true
    if (choices.length === 0 && asObject(chunk['usage'])) hasUsage = true
  }
  return undefined
}
