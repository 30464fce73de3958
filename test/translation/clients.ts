import { framesOf } from './grammar.ts'
import type { ClientWire } from './pump.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test reaches into JSON it has just checked.
type Json = Record<string, any>

/** What a plain client makes of a stream: the same JSON answer it would have got without streaming (fold parity). */
export function accumulate(wire: ClientWire, text: string): Json {
  const data = framesOf(text).map((frame) => frame.data)
  const events: Json[] = data.filter((piece) => piece !== '[DONE]').map((piece) => JSON.parse(piece))
  if (wire === 'messages') return accumulateMessage(events)
  if (wire === 'chat') return accumulateCompletion(events)
  return events.at(-1)!['response']
}

function accumulateMessage(events: Json[]): Json {
  const message: Json = structuredClone(events.find((event) => event['type'] === 'message_start')?.['message'] ?? {})
  const inputs = new Map<number, string>()
  for (const event of events) {
    const block = message['content']?.[event['index']]
    if (event['type'] === 'content_block_start') message['content'].push(structuredClone(event['content_block']))
    else if (event['type'] === 'content_block_delta') {
      const { type, text, thinking, partial_json } = event['delta']
      if (type === 'text_delta') block['text'] += text
      else if (type === 'thinking_delta') block['thinking'] += thinking
      else inputs.set(event['index'], (inputs.get(event['index']) ?? '') + partial_json)
    } else if (event['type'] === 'message_delta') {
      Object.assign(message, event['delta'], { usage: event['usage'] })
    }
  }
  for (const [index, input] of inputs) message['content'][index]['input'] = inputOf(input)
  return message
}

/** Broken arguments stand in a whole answer as R-ARGS says. */
function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {}
  return text.trim() === '' ? {} : { _raw_arguments: text }
}

function accumulateCompletion(events: Json[]): Json {
  const { id, created, model } = events[0]!
  const message: Json = { role: 'assistant', content: '', refusal: null, annotations: [] }
  let finish_reason: string | null = null
  let usage: unknown
  for (const event of events) {
    if (event['usage']) usage = event['usage']
    const choice = event['choices']?.[0]
    if (!choice) continue
    const { content, refusal, reasoning_content, tool_calls } = choice['delta']
    message['content'] += content ?? ''
    if (refusal) message['refusal'] = (message['refusal'] ?? '') + refusal
    if (reasoning_content) message['reasoning_content'] = (message['reasoning_content'] ?? '') + reasoning_content
    for (const piece of tool_calls ?? []) {
      message['tool_calls'] ??= []
      const { index, ...call } = piece
      const known = message['tool_calls'][index]
      if (known) known['function']['arguments'] += call['function']['arguments']
      else message['tool_calls'][index] = structuredClone(call)
    }
    finish_reason = choice['finish_reason'] ?? finish_reason
  }
  if (message['content'] === '' && (message['tool_calls'] || message['refusal'])) message['content'] = null
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason }],
    usage,
  }
}
