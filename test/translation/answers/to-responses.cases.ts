import assert from 'node:assert/strict'
import { type Case, dataOf, type Json, outline } from '../cases.ts'
import {
  blockStart,
  blockStop,
  call,
  completion,
  counts,
  delta,
  done,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  reasoning,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
  usage,
} from '../upstreams.ts'

const end = usage(counts(9, 2)) + done
const row = (id: string, says: string, script: string, rest: Partial<Case> = {}): Case => ({
  id,
  says,
  upstream: 'chat',
  client: 'responses',
  script,
  ...rest,
})
const fromMessages = (id: string, says: string, script: string, rest: Partial<Case> = {}): Case => ({
  ...row(id, says, messageStart() + script, rest),
  upstream: 'messages',
})
const types = (answer: Json) => answer['output'].map((item: Json) => item['type'])
const textItem = (words: string, status = 'completed') => ({
  type: 'message',
  status,
  role: 'assistant',
  content: [{ type: 'output_text', text: words, annotations: [] }],
})
const shown = { showsReasoning: true, echo: { reasoning: { summary: 'auto' } } }
const officialKeys =
  'access_programs background completed_at created_at error frequency_penalty id incomplete_details instructions max_output_tokens max_tool_calls metadata model object output parallel_tool_calls presence_penalty previous_response_id prompt_cache_key reasoning safety_identifier service_tier status store temperature text tool_choice tools top_logprobs top_p truncation usage user'

export const cases: readonly Case[] = [
  row(
    'A101',
    'T12 text is the full official sequence, numbered from 0',
    text('Hel') + text('lo') + reason('stop') + end,
    {
      answer: {
        object: 'response',
        status: 'completed',
        output: [textItem('Hello')],
        error: null,
        incomplete_details: null,
      },
      check: (told, answer) => {
        assert.deepEqual(outline(told), [
          'response.created',
          'response.in_progress',
          'response.output_item.added',
          'response.content_part.added',
          'response.output_text.delta',
          'response.output_text.delta',
          'response.output_text.done',
          'response.content_part.done',
          'response.output_item.done',
          'response.completed',
        ])
        assert.deepEqual(
          dataOf(told).map((event) => event['sequence_number']),
          [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        )
        assert.match(answer['id'], /^resp_[0-9A-Za-z]{24}$/)
        assert.match(answer['output'][0].id, /^msg_[0-9A-Za-z]{24}$/)
      },
    },
  ),
  row('A102', 'a call alone has no message item', call([0, 'a', 'f', '{}']) + reason('tool_calls') + end, {
    answer: {
      output: [{ type: 'function_call', status: 'completed', name: 'f', arguments: '{}' }],
      status: 'completed',
    },
  }),
  row(
    'A103',
    'spec 2.7 without a summary there is no reasoning anywhere',
    reasoning('secret') + text('a') + reason('stop') + end,
    {
      answer: { output: [textItem('a')] },
      check: (told) => assert.doesNotMatch(told.text, /secret|"type":"reasoning"/),
    },
  ),
  row(
    'A104',
    'with a summary, the reasoning is item 0 and the message is item 1',
    reasoning('r') + text('a') + reason('stop') + end,
    {
      options: shown,
      answer: { output: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'r' }] }, textItem('a')] },
      check: (told) => {
        assert.deepEqual(outline(told).slice(2, 9), [
          'response.output_item.added',
          'response.reasoning_summary_part.added',
          'response.reasoning_summary_text.delta',
          'response.reasoning_summary_text.done',
          'response.reasoning_summary_part.done',
          'response.output_item.done',
          'response.output_item.added',
        ])
      },
    },
  ),
  row(
    'A105',
    'text, a call and text are three items with two message ids',
    text('a') + call([0, 'c', 'f', '{}']) + text('b') + reason('tool_calls') + end,
    {
      check: (_, answer) => {
        assert.deepEqual(types(answer), ['message', 'function_call', 'message'])
        assert.notEqual(answer['output'][0].id, answer['output'][2].id)
      },
    },
  ),
  row(
    'A106',
    'interleaved calls: every delta names its own item',
    call([0, 'a', 'f', '{"x":']) +
      call([1, 'b', 'g', '{"y":']) +
      call([0, undefined, undefined, '1}']) +
      call([1, undefined, undefined, '2}']) +
      reason('tool_calls') +
      end,
    {
      answer: {
        output: [
          { name: 'f', arguments: '{"x":1}' },
          { name: 'g', arguments: '{"y":2}' },
        ],
      },
      check: (told, answer) => {
        const deltas = dataOf(told).filter((event) => event['type'] === 'response.function_call_arguments.delta')
        assert.deepEqual(
          deltas.map((event) => [event['output_index'], event['delta']]),
          [
            [0, '{"x":'],
            [1, '{"y":'],
            [0, '1}'],
            [1, '2}'],
          ],
        )
        for (const event of deltas) assert.equal(event['item_id'], answer['output'][event['output_index']].id)
      },
    },
  ),
  row('A107', 'a cap within text makes the item and the response incomplete', text('a') + reason('length') + end, {
    answer: {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [textItem('a', 'incomplete')],
    },
    check: (told) => assert.equal(outline(told).at(-1), 'response.incomplete'),
  }),
  row(
    'A108',
    'a cap within arguments makes the call incomplete',
    text('a') + call([0, 'c', 'f', '{"a":']) + reason('length') + end,
    {
      answer: {
        status: 'incomplete',
        output: [textItem('a'), { type: 'function_call', status: 'incomplete', arguments: '{"a":' }],
      },
    },
  ),
  row('A109', 'a content filter makes the response incomplete', text('a') + reason('content_filter') + end, {
    answer: { status: 'incomplete', incomplete_details: { reason: 'content_filter' } },
  }),
  row(
    'A110',
    'T4 T24 an end within text is only response.failed; its item is incomplete and was never done',
    text('a'),
    {
      fault: { kind: 'truncated' },
      check: (told) => {
        assert.doesNotMatch(told.text, /\.done/)
        const last = dataOf(told).at(-1)!
        assert.equal(last['type'], 'response.failed')
        assert.equal(last['response'].output[0].status, 'incomplete')
        assert.equal(last['response'].error.code, 'server_error')
      },
    },
  ),
  row(
    'A111',
    'T2 a namespaced call has the bare name and its namespace, another call has none',
    call([0, 'a', 'ns__f', '{}']) + call([1, 'b', 'g', '{}']) + reason('tool_calls') + end,
    {
      options: { names: new Map([['ns__f', { name: 'f', namespace: 'ns' }]]) },
      answer: { output: [{ name: 'f', namespace: 'ns' }, { name: 'g' }] },
      check: (_, answer) => assert.equal('namespace' in answer['output'][1], false),
    },
  ),
  row('A112', 'item id and call id differ', call([0, 'a', 'f', '{}']) + reason('tool_calls') + end, {
    check: (_, answer) => {
      assert.match(answer['output'][0].id, /^fc_[0-9A-Za-z]{24}$/)
      assert.match(answer['output'][0].call_id, /^call_[0-9A-Za-z]{24}$/)
    },
  }),
  row(
    'A113',
    'without usage the counters are estimated, with both details',
    text('Hello there') + reason('stop') + done,
    {
      check: (told, answer) => {
        assert.equal(told.usage?.estimated, true)
        assert.ok(answer['usage'].output_tokens > 0)
        assert.deepEqual(answer['usage'].input_tokens_details, { cached_tokens: 0, cache_write_tokens: 0 })
        assert.deepEqual(answer['usage'].output_tokens_details, { reasoning_tokens: 0 })
      },
    },
  ),
  row('A114', 'T12 a JSON answer has every official key, store false and error null', completion({ content: 'a' }), {
    isJson: true,
    options: {
      echo: {
        store: true,
        service_tier: 'priority',
        instructions: 'Be brief.',
        temperature: 0.5,
        metadata: { a: 'b' },
        tools: [{ type: 'function', name: 'f' }],
        text: { verbosity: 'low' },
      },
    },
    answer: {
      store: false,
      error: null,
      parallel_tool_calls: true,
      service_tier: null,
      instructions: 'Be brief.',
      temperature: 0.5,
      metadata: { a: 'b' },
      tools: [{ type: 'function', name: 'f', description: null, parameters: null, strict: null }],
      text: { verbosity: 'low', format: { type: 'text' } },
    },
    check: (_, answer) => assert.equal(Object.keys(answer).sort().join(' '), officialKeys),
  }),
  fromMessages(
    'A115',
    'thinking, text and a call are three items, nothing sealed',
    thinkingBlock(0, 'r') + textBlock(1, 'a') + toolBlock(2, 'f', '{}') + messageDelta('tool_use') + messageStop,
    {
      options: shown,
      answer: {
        output: [
          { type: 'reasoning', summary: [{ text: 'r' }] },
          textItem('a'),
          { type: 'function_call', name: 'f', arguments: '{}' },
        ],
      },
      check: (told) => assert.doesNotMatch(told.text, /encrypted_content/),
    },
  ),
  fromMessages(
    'A116',
    'without a summary the same is two items at 0 and 1',
    thinkingBlock(0, 'r') + textBlock(1, 'a') + toolBlock(2, 'f', '{}') + messageDelta('tool_use') + messageStop,
    {
      check: (told, answer) => {
        assert.deepEqual(types(answer), ['message', 'function_call'])
        const added = dataOf(told).filter((event) => event['type'] === 'response.output_item.added')
        assert.deepEqual(
          added.map((event) => event['output_index']),
          [0, 1],
        )
      },
    },
  ),
  fromMessages(
    'A117',
    'text and two calls are items 0, 1 and 2',
    textBlock(0, 'a') + toolBlock(1, 'f', '{}') + toolBlock(2, 'g', '{"b":2}') + messageDelta('tool_use') + messageStop,
    {
      check: (_, answer) => assert.deepEqual(types(answer), ['message', 'function_call', 'function_call']),
    },
  ),
  fromMessages(
    'A118',
    'max_tokens makes the last block incomplete, and only that',
    textBlock(0, 'a') + toolBlock(1, 'f', '{"a":') + messageDelta('max_tokens') + messageStop,
    {
      answer: {
        status: 'incomplete',
        output: [textItem('a'), { type: 'function_call', status: 'incomplete', arguments: '{"a":' }],
      },
    },
  ),
  fromMessages(
    'T7',
    'signatures and redacted thinking travel in encrypted_content where they were asked for',
    thinkingBlock(0, 'r', 'sig') +
      blockStart(1, { type: 'redacted_thinking', data: 'red' }) +
      blockStop(1) +
      textBlock(2, 'a') +
      messageDelta('end_turn') +
      messageStop,
    {
      options: { ...shown, seal: ({ kind, data }) => `sealed:${kind}:${data}` },
      answer: {
        output: [
          { type: 'reasoning', summary: [{ text: 'r' }], encrypted_content: 'sealed:signature:sig' },
          { type: 'reasoning', summary: [], encrypted_content: 'sealed:redacted:red' },
          textItem('a'),
        ],
      },
    },
  ),
  row('A42', 'refusal deltas become a refusal part', delta({ refusal: 'No' }) + reason('stop') + end, {
    answer: { status: 'completed', output: [{ type: 'message', content: [{ type: 'refusal', refusal: 'No' }] }] },
  }),
]
