import assert from 'node:assert/strict'
import { type Case, dataOf, type Json, outline } from '../cases.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  created,
  events,
  functionCall,
  message,
  messageDelta,
  messageStart,
  messageStop,
  messagesError,
  ping,
  responsesCounts,
  terminal,
  textBlock,
  textDelta,
  thinkingBlock,
  toolBlock,
  wholeCall,
  wholeMessage,
} from '../upstreams.ts'

const row = (id: string, says: string, script: string, rest: Partial<Case> = {}): Case => ({
  id,
  says,
  upstream: 'messages',
  client: 'chat',
  script,
  ...rest,
})
const fromResponses = (id: string, says: string, script: Json[], rest: Partial<Case> = {}): Case => ({
  ...row(id, says, events(...script), rest),
  upstream: 'responses',
})
const end = messageDelta('end_turn') + messageStop
const answered = (message: Json, finish_reason = 'stop') => ({ choices: [{ index: 0, message, finish_reason }] })
/** A call whose input begins as it is said, with what comes behind it. */
const oneCall = (input: unknown, ...pieces: unknown[]) =>
  messageStart() +
  blockStart(0, { type: 'tool_use', id: 'toolu_hosted', name: 'f', input }) +
  pieces.map((partial_json) => blockDelta(0, { type: 'input_json_delta', partial_json })).join('') +
  blockStop(0) +
  messageDelta('tool_use') +
  messageStop
const calledWithOne = answered({ tool_calls: [{ function: { arguments: '{"a":1}' } }] }, 'tool_calls')
const counted = {
  prompt_tokens: 100,
  completion_tokens: 12,
  total_tokens: 112,
  prompt_tokens_details: { cached_tokens: 90 },
}
const cached = { input_tokens: 3, cache_read_input_tokens: 90, cache_creation_input_tokens: 7, output_tokens: 1 }
const callIndexes = (chunks: Json[]) =>
  chunks.flatMap((chunk) => chunk['choices']?.[0]?.delta.tool_calls ?? []).map((call: Json) => call['index'])

export const cases: readonly Case[] = [
  row(
    'A78',
    'text is a role chunk, contents, the reason, a usage chunk and [DONE]',
    messageStart() + textBlock(0, 'Hel', 'lo') + end,
    {
      answer: { object: 'chat.completion', ...answered({ role: 'assistant', content: 'Hello' }) },
      check: (told, answer) => {
        assert.deepEqual(outline(told), ['role', 'content', 'content', 'stop', 'usage', '[DONE]'])
        assert.match(answer['id'], /^chatcmpl-[0-9A-Za-z]{24}$/)
      },
    },
  ),
  row(
    'A79',
    'the prompt includes what was read from and written to the cache',
    messageStart(cached) + textBlock(0, 'a') + messageDelta('end_turn', { ...cached, output_tokens: 12 }) + messageStop,
    { answer: { usage: counted } },
  ),
  row(
    'A80',
    'counters that are only in message_start are kept',
    messageStart(cached) + textBlock(0, 'a') + messageDelta('end_turn', { output_tokens: 12 }) + messageStop,
    { answer: { usage: counted } },
  ),
  row(
    'A81',
    'message_delta overrides counters and adds nothing',
    messageStart({ ...cached, input_tokens: 50 }) +
      textBlock(0, 'a') +
      messageDelta('end_turn', { input_tokens: 3, output_tokens: 12 }) +
      messageStop,
    { answer: { usage: counted } },
  ),
  row(
    'A82',
    'a second message_delta without usage keeps the first',
    messageStart(cached) +
      textBlock(0, 'a') +
      messageDelta(null, { output_tokens: 12 }) +
      messageDelta('end_turn', {}) +
      messageStop,
    { answer: { usage: counted, ...answered({ content: 'a' }) } },
  ),
  row(
    'A83',
    'thinking is reasoning_content and no empty content',
    messageStart() + thinkingBlock(0, 'r') + textBlock(1, 'a') + end,
    {
      options: { showsReasoning: true },
      answer: answered({ content: 'a', reasoning_content: 'r' }),
      check: (told) =>
        assert.deepEqual(outline(told), ['role', 'reasoning_content', 'content', 'stop', 'usage', '[DONE]']),
    },
  ),
  row(
    'A84',
    'signatures and redacted thinking are not sent',
    messageStart() +
      thinkingBlock(0, 'r', 'hosted-signature') +
      blockStart(1, { type: 'redacted_thinking', data: 'hosted-data' }) +
      blockStop(1) +
      textBlock(2, 'a') +
      end,
    {
      options: { showsReasoning: true },
      answer: answered({ content: 'a', reasoning_content: 'r' }),
    },
  ),
  row(
    'A85',
    'tool indexes are dense and not those of the blocks',
    messageStart() +
      textBlock(0, 'a') +
      toolBlock(1, 'f', '{}') +
      toolBlock(2, 'g', '{"b":2}') +
      messageDelta('tool_use') +
      messageStop,
    {
      answer: answered(
        {
          content: 'a',
          tool_calls: [
            { type: 'function', function: { name: 'f', arguments: '{}' } },
            { function: { name: 'g', arguments: '{"b":2}' } },
          ],
        },
        'tool_calls',
      ),
      check: (told, answer) => {
        assert.deepEqual(callIndexes(dataOf(told)), [0, 0, 1, 1])
        assert.match(answer['choices'][0].message.tool_calls[0].id, /^call_[0-9A-Za-z]{24}$/)
      },
    },
  ),
  row(
    'A86',
    'a tool_use without input has arguments {}',
    messageStart() + toolBlock(0, 'f') + messageDelta('tool_use') + messageStop,
    {
      answer: answered({ content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }, 'tool_calls'),
    },
  ),
  row('A87', 'input in the start event is sent once', oneCall({ a: 1 }), { answer: calledWithOne }),
  row('R-ARGS', 'input that came as a text stays that text, and is never dropped', oneCall('{"a":1}'), {
    answer: calledWithOne,
  }),
  row('R-ARGS', 'a piece of arguments that came as an object is sent, and never dropped', oneCall({}, { a: 1 }), {
    answer: calledWithOne,
  }),
  row(
    'A88',
    'interleaved input_json_delta go to the right calls by index',
    messageStart() +
      blockStart(0, { type: 'tool_use', id: 'toolu_hosted_0', name: 'f', input: {} }) +
      blockStart(1, { type: 'tool_use', id: 'toolu_hosted_1', name: 'g', input: {} }) +
      blockDelta(0, { type: 'input_json_delta', partial_json: '{"a":' }) +
      blockDelta(1, { type: 'input_json_delta', partial_json: '{"b":2}' }) +
      blockDelta(0, { type: 'input_json_delta', partial_json: '1}' }) +
      blockStop(0) +
      blockStop(1) +
      messageDelta('tool_use') +
      messageStop,
    {
      answer: answered(
        {
          tool_calls: [
            { function: { name: 'f', arguments: '{"a":1}' } },
            { function: { name: 'g', arguments: '{"b":2}' } },
          ],
        },
        'tool_calls',
      ),
      check: (told) => assert.deepEqual(callIndexes(dataOf(told)), [0, 1, 0, 1, 0]),
    },
  ),
  row('A89', 'two text blocks are one content', messageStart() + textBlock(0, 'Hel') + textBlock(1, 'lo') + end, {
    answer: answered({ content: 'Hello' }),
  }),
  ...Object.entries({
    end_turn: 'stop',
    stop_sequence: 'stop',
    max_tokens: 'length',
    model_context_window_exceeded: 'length',
    refusal: 'content_filter',
    pause_turn: 'stop',
    compaction: 'stop',
    tool_use: 'stop',
  }).map(([from, to]) =>
    row(
      'A90',
      `stop_reason ${from} without calls is ${to}`,
      messageStart() + textBlock(0, 'a') + messageDelta(from) + messageStop,
      {
        answer: answered({ content: 'a' }, to),
      },
    ),
  ),
  row('A90', 'end_turn with a call is tool_calls', messageStart() + toolBlock(0, 'f', '{}') + end, {
    answer: answered({ content: null }, 'tool_calls'),
  }),
  row(
    'A91',
    'an unknown stop reason is stop',
    messageStart() + textBlock(0, 'a') + messageDelta('brand_new') + messageStop,
    { answer: answered({ content: 'a' }, 'stop') },
  ),
  row(
    'A92',
    'T4 an error event mid-stream is an error frame, no reason and no [DONE]',
    messageStart() + blockStart(0, { type: 'text', text: 'a' }) + messagesError('overloaded_error', 'Overloaded'),
    {
      fault: { kind: 'capacity', status: 529, text: 'Overloaded' },
      check: (told) => {
        assert.deepEqual(outline(told), ['role', 'content', 'error'])
        assert.deepEqual(dataOf(told).at(-1), {
          error: {
            message: 'The model is overloaded right now (rate limit): try again in a moment.',
            type: 'rate_limit_error',
            param: null,
            code: 'rate_limit_exceeded',
          },
        })
      },
    },
  ),
  row('A93', 'an end without message_stop and without a reason is a failure', messageStart() + textBlock(0, 'a'), {
    fault: { kind: 'truncated' },
    check: (told) => {
      assert.deepEqual(outline(told), ['role', 'content', 'error'])
      assert.equal(dataOf(told).at(-1)!['error'].code, 'upstream_error')
    },
  }),
  row(
    'A93',
    'a stop reason and a clean end are complete',
    messageStart() + textBlock(0, 'a') + messageDelta('end_turn'),
    { answer: answered({ content: 'a' }) },
  ),
  row(
    'A94',
    'pings make no chunks',
    messageStart() +
      ping +
      blockStart(0, { type: 'text', text: '' }) +
      ping +
      blockDelta(0, { type: 'text_delta', text: 'a' }) +
      blockStop(0) +
      ping +
      end,
    {
      check: (told) => assert.deepEqual(outline(told), ['role', 'content', 'stop', 'usage', '[DONE]']),
    },
  ),
  row(
    'A95',
    'a JSON answer with text and a call has both',
    JSON.stringify({
      type: 'message',
      content: [
        { type: 'text', text: 'a' },
        { type: 'tool_use', id: 'toolu_hosted', name: 'f', input: { a: 1 } },
      ],
      stop_reason: 'tool_use',
      usage: cached,
    }),
    {
      isJson: true,
      answer: answered({ content: 'a', tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] }, 'tool_calls'),
    },
  ),
  row(
    'A95',
    'a JSON answer with only a call has content null',
    JSON.stringify({
      type: 'message',
      content: [{ type: 'tool_use', id: 'toolu_hosted', name: 'f', input: {} }],
      stop_reason: 'tool_use',
      usage: cached,
    }),
    {
      isJson: true,
      answer: answered({ content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }, 'tool_calls'),
    },
  ),
  row(
    'A96',
    'T16 digits of a JSON answer are kept',
    '{"type":"message","content":[{"type":"tool_use","id":"toolu_hosted","name":"f","input":{"n":12345678901234567890}}],"stop_reason":"tool_use","usage":{"input_tokens":9,"output_tokens":2}}',
    {
      isJson: true,
      answer: answered({ tool_calls: [{ function: { arguments: '{"n":12345678901234567890}' } }] }, 'tool_calls'),
    },
  ),
  row(
    'A96',
    'T16 digits of a stream are kept',
    messageStart() + toolBlock(0, 'f', '{"n":1234567890', '1234567890}') + messageDelta('tool_use') + messageStop,
    {
      answer: answered({ tool_calls: [{ function: { arguments: '{"n":12345678901234567890}' } }] }, 'tool_calls'),
    },
  ),
  fromResponses(
    'A97',
    'text and a call of a responses model',
    [created, ...wholeMessage(0, 'a'), ...wholeCall(1, 'f', '{"a":', '1}'), terminal('completed')],
    {
      answer: answered({ content: 'a', tool_calls: [{ function: { name: 'f', arguments: '{"a":1}' } }] }, 'tool_calls'),
      check: (told) => assert.deepEqual(callIndexes(dataOf(told)), [0, 0, 0]),
    },
  ),
  fromResponses(
    'A98',
    'a refusal part is refusal deltas, the reason stays stop',
    [
      created,
      { type: 'response.refusal.delta', item_id: 'msg_hosted_0', output_index: 0, content_index: 0, delta: 'No' },
      terminal('completed'),
    ],
    {
      answer: answered({ content: null, refusal: 'No' }),
      check: (told) => assert.deepEqual(outline(told), ['role', 'refusal', 'stop', 'usage', '[DONE]']),
    },
  ),
  fromResponses(
    'A99',
    'T4 response.failed is an error frame and no [DONE]',
    [
      created,
      textDelta(0, 'a'),
      terminal('failed', [], { error: { code: 'rate_limit_exceeded', message: 'slow down' } }),
    ],
    {
      fault: { kind: 'capacity', text: 'slow down' },
      check: (told) => assert.deepEqual(outline(told), ['role', 'content', 'error']),
    },
  ),
  fromResponses(
    'A100',
    'reasoning tokens are reported',
    [
      created,
      ...wholeMessage(0, 'a'),
      terminal('completed', [], {
        usage: {
          ...responsesCounts,
          output_tokens: 7,
          total_tokens: 16,
          output_tokens_details: { reasoning_tokens: 5 },
        },
      }),
    ],
    {
      answer: { usage: { completion_tokens: 7, completion_tokens_details: { reasoning_tokens: 5 } } },
    },
  ),
  {
    id: 'A119',
    says: 'a JSON answer of a responses model has the same result for a chat client as its stream',
    upstream: 'responses',
    client: 'chat',
    isJson: true,
    script: JSON.stringify({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [message(0, 'a'), functionCall(1, 'f', '{"a"', { status: 'incomplete' })],
      usage: responsesCounts,
    }),
    answer: answered({ content: 'a', tool_calls: [{ function: { name: 'f', arguments: '{"a"' } }] }, 'length'),
  },
]
