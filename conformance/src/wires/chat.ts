import type { Json } from '../case.ts'
import { compact, countOf, isObject, type JsonObject, listOf, objectOf, parse, textOf } from '../json.ts'
import { bearer, type ClientWire, readSharedError } from './wire.ts'

const stops: { [word: string]: string } = {
  stop: 'end',
  length: 'length',
  tool_calls: 'calls',
  function_call: 'calls',
  content_filter: 'refusal',
}

export const chat: ClientWire = {
  path: '/v1/chat/completions',
  keyHeaders: bearer,
  read(body) {
    const choice = listOf(body['choices'])[0] ?? {}
    const message = objectOf(choice['message'])
    const finish = choice['finish_reason']
    return compact({
      id: body['id'] as string,
      model: body['model'] as string,
      text: textOf(message['content']),
      reasoning: textOf(message['reasoning_content']) || textOf(message['reasoning']),
      refusal: textOf(message['refusal']),
      calls: listOf(message['tool_calls']).map((call) => {
        const { name, arguments: text } = objectOf(call['function'])
        return compact({
          id: textOf(call['id']),
          name: textOf(name),
          arguments: textOf(text),
          input: parse(textOf(text)),
        })
      }),
      stop: typeof finish === 'string' ? (stops[finish] ?? finish) : null,
      usage: readUsage(body['usage']),
    })
  },
  readTurn: (body) => [objectOf(listOf(body['choices'])[0]?.['message'])],
  collect(datas) {
    const body: JsonObject = {}
    const choices: { finish_reason: Json; index: number; message: JsonObject; calls: JsonObject[] }[] = []
    for (const chunk of datas) {
      if (chunk === '[DONE]') return { body: finish(), isEnded: true }
      if (!isObject(chunk)) continue
      for (const name of ['id', 'model', 'created', 'usage', 'service_tier']) {
        if (chunk[name] !== undefined && chunk[name] !== null) body[name] = chunk[name]
      }
      for (const { index, delta, finish_reason } of listOf(chunk['choices'])) {
        const at = Number(index ?? 0)
        choices[at] ??= { index: at, finish_reason: null, message: { role: 'assistant', content: null }, calls: [] }
        choices[at].finish_reason = finish_reason ?? choices[at].finish_reason
        addDelta(choices[at], objectOf(delta))
      }
    }
    return { body: finish(), isEnded: false }

    function finish(): JsonObject {
      const whole = choices.filter(Boolean).map(({ calls, message, ...choice }) => ({
        ...choice,
        message: { ...message, ...(calls.length > 0 ? { tool_calls: calls.filter(Boolean) } : {}) },
      }))
      return { object: 'chat.completion', ...body, choices: whole }
    }
  },
  findMissing(datas) {
    const hasUsage = datas.some(
      (chunk) => isObject(chunk) && isObject(chunk['usage']) && listOf(chunk['choices']).length === 0,
    )
    const isWhole = datas.at(-1) === '[DONE]' && !datas.some((chunk) => isObject(chunk) && chunk['error'] !== undefined)
    return isWhole && !hasUsage ? '[DONE] comes without a chunk of usage and no choices' : undefined
  },
  readError: readSharedError,
  findDisorder(datas) {
    let isFinished = false
    let hasUsage = false
    let isEnded = false
    let hasFailed = false
    let id: Json | undefined
    for (const chunk of datas) {
      if (isEnded) return 'an event comes after [DONE]'
      if (chunk === '[DONE]') {
        if (!isFinished && !hasFailed) return '[DONE] comes without a finish_reason'
        isEnded = true
        continue
      }
      if (!isObject(chunk)) return 'an event is not a JSON object'
      // A failure in a started stream is reported elsewhere.
      if (chunk['error'] !== undefined) {
        hasFailed = true
        continue
      }
      if (chunk['object'] !== 'chat.completion.chunk') return `the object of an event is ${chunk['object']}`
      id ??= chunk['id']
      if (chunk['id'] !== id) return 'the id changes within the stream'
      const choices = listOf(chunk['choices'])
      if (hasUsage && choices.length > 0) return 'content comes after the usage'
      if (choices.some(({ finish_reason }) => finish_reason)) isFinished = true
      if (choices.length === 0 && isObject(chunk['usage'])) hasUsage = true
    }
    return undefined
  },
}

function addDelta(choice: { message: JsonObject; calls: JsonObject[] }, delta: JsonObject): void {
  for (const [name, value] of Object.entries(delta)) {
    if (name === 'role' || name === 'tool_calls' || value === null) continue
    const before = choice.message[name]
    choice.message[name] = typeof value === 'string' && typeof before === 'string' ? before + value : value
  }
  for (const { index, id, function: piece } of listOf(delta['tool_calls'])) {
    const { name, arguments: text } = objectOf(piece)
    const at = Number(index ?? choice.calls.length)
    choice.calls[at] ??= { id: id ?? null, type: 'function', function: { name: name ?? null, arguments: '' } }
    const made = objectOf(choice.calls[at]['function'])
    made['arguments'] = textOf(made['arguments']) + textOf(text)
  }
}

function readUsage(value: Json | undefined) {
  if (!isObject(value)) return undefined
  return compact({
    input: countOf(value['prompt_tokens']),
    output: countOf(value['completion_tokens']),
    total: countOf(value['total_tokens']),
    cached: countOf(objectOf(value['prompt_tokens_details'])['cached_tokens']),
    reasoning: countOf(objectOf(value['completion_tokens_details'])['reasoning_tokens']),
  })
}
