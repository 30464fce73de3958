import type { ClientWire } from './pump.ts'
import {
  added,
  argumentsDelta,
  blockDelta,
  blockStart,
  blockStop,
  call,
  completion,
  counts,
  created,
  delta,
  done,
  events,
  functionCall,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  ping,
  reason,
  reasoning,
  responsesCounts,
  summary,
  summaryDelta,
  terminal,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
  usage,
  wholeCall,
  wholeMessage,
} from './upstreams.ts'

/** Sound streams of each wire, to be cut and damaged. */
export const streamSeeds: Record<ClientWire, string[]> = {
  chat: [
    text('Hel') + text('lo a b') + reason('stop') + usage(counts(9, 2)) + done,
    `: ping\n\n${reasoning('r')}${text('<think>x</think>é😀')}${call([0, 'a', 'f', '{"x":'])}${call([1, 'b', 'g', '{"y":2}'])}${call([0, undefined, undefined, '1}'])}${reason('tool_calls')}${usage(counts(10, 5, { prompt_tokens_details: { cached_tokens: 4 } }))}${done}`,
    call([0, 'a', 'f', '{}']) +
      call([0, 'b', 'g', '{"z":3}']) +
      text('lo') +
      reason('length', { usage: counts(9, 2) }) +
      done,
    delta({ refusal: 'No' }) + delta({ function_call: { name: 'f', arguments: '{"a":1}' } }) + reason('stop') + done,
    delta({ reasoning_details: [{ type: 'reasoning.text', text: 'r' }], content: [{ type: 'text', text: 'a' }] }) +
      call([undefined, undefined, 'f', { n: 1 }]) +
      reason('tool_calls') +
      done,
  ],
  messages: [
    messageStart({ input_tokens: 3, cache_read_input_tokens: 90, cache_creation_input_tokens: 7, output_tokens: 1 }) +
      thinkingBlock(0, 'r') +
      textBlock(1, 'Hel', 'lo') +
      ping +
      toolBlock(2, 'f', '{"q":', '1}') +
      messageDelta('tool_use', { output_tokens: 12 }) +
      messageStop,
    messageStart() +
      blockStart(0, { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } }) +
      blockStart(1, { type: 'tool_use', id: 'b', name: 'g', input: {} }) +
      blockDelta(1, { type: 'input_json_delta', partial_json: '{"b":2}' }) +
      blockStop(1) +
      blockStop(0) +
      blockStart(2, { type: 'redacted_thinking', data: 'x' }) +
      blockStop(2) +
      textBlock(3, 'a') +
      textBlock(4, 'b') +
      messageDelta('max_tokens') +
      messageStop,
  ],
  responses: [
    events(
      created,
      added(0, { ...summary(0), summary: [] }),
      summaryDelta(0, 0, 'r'),
      summaryDelta(0, 1, 's'),
      itemDone(0, summary(0, 'r', 's')),
      ...wholeMessage(1, 'Hel', 'lo'),
      ...wholeCall(2, 'f', '{"a":', '1}'),
      terminal('completed', [message(1, 'Hello'), functionCall(2, 'f', '{"a":1}')]),
    ),
    events(
      created,
      added(0, functionCall(0, 'f', '', { status: 'in_progress' })),
      added(1, functionCall(1, 'g', '', { status: 'in_progress' })),
      argumentsDelta(0, '{"a"'),
      argumentsDelta(1, '{"b":2}'),
      itemDone(0, functionCall(0, 'f', '{"a":1}')),
      itemDone(1, functionCall(1, 'g', '{"b":2}')),
      terminal('incomplete', [message(7, 'tail')], { incomplete_details: { reason: 'max_output_tokens' } }),
    ),
  ],
}

/** Sound whole answers of each wire. */
export const jsonSeeds: Record<ClientWire, string[]> = {
  chat: [
    completion({ content: 'Hello', reasoning_content: 'r' }),
    completion(
      { content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
      'tool_calls',
    ),
  ],
  messages: [
    JSON.stringify({
      type: 'message',
      content: [
        { type: 'thinking', thinking: 'r', signature: 's' },
        { type: 'text', text: 'a' },
        { type: 'tool_use', id: 'a', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 9, output_tokens: 2 },
    }),
  ],
  responses: [
    JSON.stringify({
      status: 'completed',
      output: [summary(0, 'r'), message(1, 'a'), functionCall(2, 'f', '{"a":1}')],
      usage: responsesCounts,
    }),
  ],
}
