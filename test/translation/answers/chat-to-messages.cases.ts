import assert from 'node:assert/strict'
import { type Case, dataOf, type Json, outline } from '../cases.ts'
import type { Told } from '../pump.ts'
import { call, chatError, completion, counts, delta, done, raw, reason, reasoning, text, usage } from '../upstreams.ts'

const end = usage(counts(9, 2)) + done
const hello = text('Hel') + text('lo') + reason('stop') + end
const helloAnswer = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 9, output_tokens: 2, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
}
const shown = { showsReasoning: true }
const thoughtful = {
  content: [
    { type: 'thinking', thinking: 'r', signature: '' },
    { type: 'text', text: 'a' },
  ],
}
const thinkTags = (implicitOpen = false) => ({
  showsReasoning: true,
  profile: { thinkTags: { open: '<think>', close: '</think>', implicitOpen } },
})
const oneCall = (input: Json, name = 'f') => ({ content: [{ type: 'tool_use', name, input }], stop_reason: 'tool_use' })
const noMessageStop = (told: Told) => {
  assert.equal(outline(told).at(-1), 'error')
  assert.doesNotMatch(told.text, /message_stop|message_delta/)
}

const row = (id: string, says: string, script: string, rest: Partial<Case> = {}): Case => ({
  id,
  says,
  upstream: 'chat',
  client: 'messages',
  script,
  ...rest,
})

export const cases: readonly Case[] = [
  row('A01', 'text in two deltas becomes one text block with its counters', hello, { answer: helloAnswer }),
  row(
    'A02',
    'cached tokens are subtracted from the input',
    text('a') + reason('stop') + usage(counts(9, 2, { prompt_tokens_details: { cached_tokens: 6 } })) + done,
    {
      answer: { usage: { input_tokens: 3, cache_read_input_tokens: 6, output_tokens: 2 } },
    },
  ),
  row(
    'A03',
    'tokens read from and written to the cache are both subtracted from the input',
    text('a') +
      reason('stop') +
      usage(counts(100, 2, { prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 30 } })) +
      done,
    {
      answer: { usage: { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30 } },
    },
  ),
  row(
    'A04',
    'cache hits in a field of their own are read',
    text('a') + reason('stop') + usage(counts(9, 2, { prompt_cache_hit_tokens: 6 })) + done,
    {
      options: { profile: { usageQuirk: 'cache_hit_fields' } },
      answer: { usage: { input_tokens: 3, cache_read_input_tokens: 6 } },
    },
  ),
  row(
    'A05',
    'if every chunk has usage, the last one that is not zero counts',
    delta({ content: 'Hel' }, { usage: counts(0, 0) }) +
      delta({ content: 'lo' }, { usage: counts(9, 2) }) +
      reason('stop', { usage: counts(0, 0) }) +
      done,
    { answer: helloAnswer },
  ),
  row('A06', 'usage on the finish chunk counts', text('Hello') + reason('stop', { usage: counts(9, 2) }) + done, {
    answer: helloAnswer,
  }),
  row('A07', 'usage before the finish chunk counts', text('Hello') + usage(counts(9, 2)) + reason('stop') + done, {
    answer: helloAnswer,
  }),
  row(
    'A08',
    'without usage the counters are estimated and marked',
    text('Hello, how are you?') + reason('stop') + done,
    {
      check: (told, answer) => {
        assert.ok(answer['usage'].input_tokens > 0 && answer['usage'].output_tokens > 0)
        assert.equal(told.usage?.estimated, true)
      },
    },
  ),
  row(
    'A09',
    'reasoning tokens beyond the completion are added to it',
    text('a') +
      reason('stop') +
      usage({ prompt_tokens: 9, completion_tokens: 64, completion_tokens_details: { reasoning_tokens: 79 } }) +
      done,
    {
      answer: { usage: { output_tokens: 143 } },
    },
  ),
  row(
    'A10',
    'T10 reasoning becomes a thinking block with an empty signature and no signature_delta',
    reasoning('r') + text('a') + reason('stop') + end,
    {
      options: shown,
      answer: thoughtful,
      check: (told) => {
        assert.match(told.text, /"content_block":\{"type":"thinking","thinking":"","signature":""\}/)
        assert.doesNotMatch(told.text, /signature_delta/)
      },
    },
  ),
  row(
    'A11',
    'spec 2.2 without thinking there is only text, and the output counts the reasoning',
    reasoning('r') + text('a') + reason('stop') + usage(counts(9, 64)) + done,
    {
      answer: { content: [{ type: 'text', text: 'a' }], usage: { output_tokens: 64 } },
    },
  ),
  row('A12', 'the field reasoning is read too', delta({ reasoning: 'r' }) + text('a') + reason('stop') + end, {
    options: shown,
    answer: thoughtful,
  }),
  row(
    'A13',
    'mirrored reasoning fields are shown once',
    delta({ reasoning: 'r', reasoning_content: 'r' }) + text('a') + reason('stop') + end,
    { options: shown, answer: thoughtful },
  ),
  row(
    'A14',
    'reasoning_details are read',
    delta({ reasoning_details: [{ type: 'reasoning.text', text: 'r' }] }) + text('a') + reason('stop') + end,
    { options: shown, answer: thoughtful },
  ),
  row(
    'A15',
    'content in parts is thinking and text',
    delta({
      content: [
        { type: 'thinking', thinking: [{ type: 'text', text: 'r' }] },
        { type: 'text', text: 'a' },
      ],
    }) +
      reason('stop') +
      end,
    { options: shown, answer: thoughtful },
  ),
  row(
    'A16',
    'think tags that arrive in pieces are split off',
    text('<thi') + text('nk>r</th') + text('ink>a') + reason('stop') + end,
    { options: thinkTags(), answer: thoughtful },
  ),
  row('A17', 'a think tag after text is literal text', text('x <think>y') + reason('stop') + end, {
    options: thinkTags(),
    answer: { content: [{ type: 'text', text: 'x <think>y' }] },
  }),
  row(
    'A18',
    'with an implicit open tag the text begins as thinking',
    text('r</think>\n') + text('\na') + reason('stop') + end,
    { options: thinkTags(true), answer: thoughtful },
  ),
  row('A19', 'an end before the close tag leaves thinking only', text('<think>r') + reason('stop') + end, {
    options: thinkTags(),
    answer: { content: [{ type: 'thinking', thinking: 'r' }], stop_reason: 'end_turn' },
  }),
  row(
    'A20',
    'reasoning, text and reasoning again are three blocks in order',
    reasoning('r') + text('a') + reasoning('s') + reason('stop') + end,
    {
      options: shown,
      answer: { content: [{ thinking: 'r' }, { text: 'a' }, { thinking: 's' }] },
    },
  ),
  row(
    'A21',
    'a call is one tool_use block with a delta for each fragment',
    call([0, 'call_hosted', 'f', '{"a"']) +
      call([0, undefined, undefined, ':']) +
      call([0, undefined, undefined, '1}']) +
      reason('tool_calls') +
      end,
    {
      answer: oneCall({ a: 1 }),
      check: (told) =>
        assert.deepEqual(outline(told), [
          'message_start',
          'content_block_start',
          'content_block_delta',
          'content_block_delta',
          'content_block_delta',
          'content_block_stop',
          'message_delta',
          'message_stop',
        ]),
    },
  ),
  row(
    'A22',
    'arguments that come before the name wait for it',
    call([0, 'call_hosted']) +
      call([0, undefined, undefined, '{"a":']) +
      call([0, undefined, 'f']) +
      call([0, undefined, undefined, '1}']) +
      reason('tool_calls') +
      end,
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'U7',
    'a choice whose index is null is the first',
    (text('a') + reason('stop') + end).replaceAll('"index":0', '"index":null'),
    {
      answer: { content: [{ type: 'text', text: 'a' }], stop_reason: 'end_turn' },
    },
  ),
  row('A23', 'a call without an id gets one', call([0, undefined, 'f', '{}']) + reason('tool_calls') + end, {
    check: (_, answer) => assert.match(answer['content'][0].id, /^toolu_[0-9A-Za-z]{24}$/),
  }),
  row(
    'A24',
    "the upstream's call id is not visible",
    call([0, 'chatcmpl-tool-hosted', 'f', '{}']) + reason('tool_calls') + end,
    {
      check: (told) => assert.doesNotMatch(told.text, /chatcmpl-tool/),
    },
  ),
  row(
    'A25',
    'an empty name on continuations is ignored',
    call([0, 'c', 'f', '{"a"']) + call([0, undefined, '', ':1}']) + reason('tool_calls') + end,
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A26',
    'of two consecutive calls, the first stops before the second starts, and the second streams live',
    call([0, 'c', 'f', '{}']) +
      call([1, 'd', 'g', '{"y":']) +
      call([1, undefined, undefined, '2}']) +
      reason('tool_calls') +
      end,
    {
      answer: {
        content: [
          { name: 'f', input: {} },
          { name: 'g', input: { y: 2 } },
        ],
      },
      check: (told) => {
        const blocks = dataOf(told).filter((event) => event['type'].startsWith('content_block'))
        assert.deepEqual(
          blocks.map((event) => `${event['type'].slice(14)} ${event['index']}`),
          ['start 0', 'delta 0', 'stop 0', 'start 1', 'delta 1', 'delta 1', 'stop 1'],
        )
      },
    },
  ),
  row(
    'A27',
    'two interleaved calls: the second appears whole after the first',
    text('Look.') +
      call([0, 'a', 'f', '{"x":']) +
      call([1, 'b', 'g', '{"y":2}']) +
      call([0, undefined, undefined, '1}']) +
      reason('tool_calls') +
      usage(counts(10, 5)) +
      done,
    {
      answer: {
        content: [{ text: 'Look.' }, { name: 'f', input: { x: 1 } }, { name: 'g', input: { y: 2 } }],
        stop_reason: 'tool_use',
        usage: { input_tokens: 10, output_tokens: 5 },
      },
      check: (told) => {
        const pieces = dataOf(told).flatMap((event) => event['delta']?.partial_json ?? [])
        assert.deepEqual(pieces, ['{"x":', '1}', '{"y":2}'])
      },
    },
  ),
  row(
    'A28',
    'three calls that all have index 0 are distinguished by their ids',
    call([0, 'a', 'f', '{}']) + call([0, 'b', 'g', '{}']) + call([0, 'c', 'h', '{"z":3}']) + reason('tool_calls') + end,
    {
      answer: {
        content: [
          { name: 'f', input: {} },
          { name: 'g', input: {} },
          { name: 'h', input: { z: 3 } },
        ],
      },
    },
  ),
  row(
    'A29',
    'two calls without any index are two blocks',
    call([undefined, undefined, 'f', '{"a":1}']) +
      call([undefined, undefined, 'g', '{"b":2}']) +
      reason('tool_calls') +
      end,
    {
      answer: {
        content: [
          { name: 'f', input: { a: 1 } },
          { name: 'g', input: { b: 2 } },
        ],
      },
    },
  ),
  row(
    'A30',
    'two calls in one chunk are two blocks',
    call([0, 'a', 'f', '{"a":1}'], [1, 'b', 'g', '{"b":2}']) + reason('tool_calls') + end,
    {
      answer: {
        content: [
          { name: 'f', input: { a: 1 } },
          { name: 'g', input: { b: 2 } },
        ],
      },
    },
  ),
  row(
    'A31',
    'two fragments of one call in one chunk are applied in order',
    call([0, 'a', 'f', '{"a"'], [0, undefined, undefined, ':1}']) + reason('tool_calls') + end,
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A32',
    'an empty object before the real arguments is dropped',
    call([0, 'a', 'f', '{}']) + call([0, undefined, undefined, '{"a":1}']) + reason('tool_calls') + end,
    { answer: oneCall({ a: 1 }) },
  ),
  row('A33', 'a call whose arguments never come has an empty input', call([0, 'a', 'f']) + reason('tool_calls') + end, {
    answer: oneCall({}),
    check: (told) => assert.match(told.text, /"partial_json":"\{\}"/),
  }),
  row(
    'A34',
    'T16 arguments that come as an object keep their source',
    `${call([0, 'a', 'f', 'X']).replace('"X"', '{"n":12345678901234567890, "a":1.0}')}${reason('tool_calls')}${end}`,
    {
      check: (told) => {
        assert.match(told.text, /\{\\"n\\":12345678901234567890, \\"a\\":1\.0\}/)
        assert.match(told.json ?? '', /"input":\{"n":12345678901234567890, "a":1\.0\}/)
      },
    },
  ),
  row(
    'A35',
    'text, a call and text again are three blocks',
    text('a') + call([0, 'a', 'f', '{}']) + text('b') + reason('tool_calls') + end,
    {
      answer: { content: [{ text: 'a' }, { name: 'f' }, { text: 'b' }], stop_reason: 'tool_use' },
    },
  ),
  row(
    'A36',
    'text between two fragments of a call comes after the call',
    call([0, 'a', 'f', '{"a":']) + text('b') + call([0, undefined, undefined, '1}']) + reason('tool_calls') + end,
    {
      answer: { content: [{ name: 'f', input: { a: 1 } }, { text: 'b' }] },
    },
  ),
  row('A37', 'a stop with a call is tool_use', call([0, 'a', 'f', '{}']) + reason('stop') + end, {
    answer: oneCall({}),
  }),
  row('A38', 'tool_calls without a call is end_turn', text('a') + reason('tool_calls') + end, {
    answer: { stop_reason: 'end_turn' },
  }),
  row(
    'A39',
    'a cap within arguments leaves them partial, the block is stopped',
    call([0, 'a', 'f', '{"a":"b']) + reason('length') + end,
    {
      answer: { stop_reason: 'max_tokens' },
      check: (told) => {
        assert.match(told.text, /"partial_json":"\{\\"a\\":\\"b"/)
        assert.equal(outline(told).filter((name) => name === 'content_block_stop').length, 1)
      },
    },
  ),
  row(
    'A40',
    'the same in a JSON answer carries the broken text as it came',
    completion(
      { tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":"b' } }] },
      'length',
    ),
    {
      isJson: true,
      answer: { content: [{ name: 'f', input: { _raw_arguments: '{"a":"b' } }], stop_reason: 'max_tokens' },
    },
  ),
  row('A41', 'content_filter is a refusal', text('a') + reason('content_filter') + end, {
    answer: { stop_reason: 'refusal' },
  }),
  row(
    'A42',
    'refusal deltas become text, the reason is refusal',
    delta({ refusal: 'No' }) + delta({ refusal: '.' }) + reason('stop') + end,
    {
      answer: { content: [{ type: 'text', text: 'No.' }], stop_reason: 'refusal' },
    },
  ),
  row(
    'A43',
    'the legacy function_call is a tool_use',
    delta({ function_call: { name: 'f', arguments: '{"a"' } }) +
      delta({ function_call: { arguments: ':1}' } }) +
      reason('function_call') +
      end,
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A44',
    'a stop sequence that the upstream reports is returned',
    text('a') + reason('stop', { stop_reason: 'END' }) + end,
    {
      options: { stops: ['END'] },
      answer: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    },
  ),
  row(
    'A44',
    'a stop sequence that SGLang reports is returned',
    text('a') + reason('stop', { matched_stop: 'END' }) + end,
    {
      options: { stops: ['END'] },
      answer: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    },
  ),
  row(
    'A45',
    'T15 C12 a sixth stop sequence is found across two deltas; after it only usage figures are read',
    text('one ST') + text('OP6 two') + text('never') + reason('stop') + end,
    {
      options: { stops: ['1', '2', '3', '4', '5', 'STOP6'], localStops: ['5', 'STOP6'] },
      answer: { content: [{ type: 'text', text: 'one ' }], stop_reason: 'stop_sequence', stop_sequence: 'STOP6' },
      check: (told) => {
        assert.deepEqual([told.isCancelled, told.usage?.estimated], [false, false])
        assert.doesNotMatch(told.text, /two|never/)
      },
    },
  ),
  row(
    'A45b',
    'T15 C12 a model that breaks off after a stop of ours reported no usage: the evidence is billed',
    text('one ST') + text('OP6 two') + text('never'),
    {
      options: { stops: ['1', '2', '3', '4', '5', 'STOP6'], localStops: ['5', 'STOP6'] },
      answer: { content: [{ type: 'text', text: 'one ' }], stop_reason: 'stop_sequence', stop_sequence: 'STOP6' },
      check: (told) => {
        assert.deepEqual([told.isCancelled, told.usage?.estimated], [true, true])
        assert.doesNotMatch(told.text, /two|never/)
      },
    },
  ),
  row(
    'A46',
    'an alias becomes the name the client knows',
    call([0, 'a', 'alias_1', '{}']) + reason('tool_calls') + end,
    {
      options: { names: new Map([['alias_1', { name: 'a.long/name' }]]) },
      answer: oneCall({}, 'a.long/name'),
    },
  ),
  row(
    'A47',
    'a reason and a clean end are complete without [DONE]',
    text('Hello') + reason('stop', { usage: counts(9, 2) }),
    { answer: helloAnswer },
  ),
  row('A48', '[DONE] after text is complete without a reason', text('Hello') + end, { answer: helloAnswer }),
  row('A49', 'T4 an end after some text is an error event and no message_stop', text('a'), {
    fault: { kind: 'truncated' },
    check: noMessageStop,
  }),
  row('A50', 'a reset within arguments is an error event and no message_stop', call([0, 'a', 'f', '{"a":']), {
    arrival: { end: 'reset' },
    fault: { kind: 'truncated' },
    check: noMessageStop,
  }),
  row('A51', 'an error chunk after text is an error event', text('a') + chatError('busy', { code: 429 }) + hello, {
    fault: { kind: 'capacity', status: 429, text: 'busy' },
    check: (told) => {
      noMessageStop(told)
      assert.deepEqual(dataOf(told).at(-1), {
        type: 'error',
        error: {
          type: 'rate_limit_error',
          message: 'The model is overloaded right now (rate limit): try again in a moment.',
        },
        request_id: 'req_1',
      })
    },
  }),
  row(
    'A52',
    'an error as first chunk leaves the status open',
    chatError('no such field', { type: 'invalid_request_error' }),
    {
      fault: { kind: 'rejected', status: 400, text: 'no such field' },
      check: (told) => assert.ok(told.refusal),
    },
  ),
  row(
    'A53',
    'a JSON error body with status 200 is a failure',
    JSON.stringify({ error: { message: 'bad', code: 'context_length_exceeded' } }),
    {
      isJson: true,
      fault: { kind: 'rejected', status: 400, code: 'context_length_exceeded' },
      check: (told) => assert.ok(told.refusal),
    },
  ),
  row('A54', 'a line that is not JSON fails the answer and is not skipped', text('a') + raw('{"choices":[') + hello, {
    fault: { kind: 'broken' },
    check: noMessageStop,
  }),
  row(
    'A55',
    'comments are not forwarded',
    `: hosted PROCESSING\n\n${text('Hel')}: hosted PROCESSING\n\n${text('lo')}${reason('stop')}${end}`,
    { answer: helloAnswer },
  ),
  row(
    'A56',
    'carriage returns, split characters and a missing last blank line change nothing',
    `\uFEFF${text('Hé😀').replaceAll('\n', '\r\n')}${(text('llo') + reason('stop') + usage(counts(9, 2))).replaceAll('\n', '\r')}data: [DONE]`,
    {
      answer: { ...helloAnswer, content: [{ type: 'text', text: 'Hé😀llo' }] },
    },
  ),
  row(
    'A57',
    'roles in every chunk and empty deltas make no blocks',
    delta({ role: 'assistant', content: null }) +
      delta({ role: 'assistant', content: '' }) +
      delta({ role: 'assistant', content: 'Hello' }) +
      delta(null, { finish_reason: 'stop' }) +
      end,
    { answer: helloAnswer },
  ),
  row(
    'A58',
    'a first chunk without choices is ignored',
    raw('{"id":"","object":"","model":"","choices":[],"prompt_filter_results":[]}') + hello,
    { answer: helloAnswer },
  ),
  row(
    'A59',
    'another choice is ignored',
    text('Hel') + delta({ content: 'X' }, { index: 1 }) + text('lo') + reason('stop') + end,
    { answer: helloAnswer },
  ),
  row('A60', 'a JSON answer to a stream request becomes a stream', completion({ content: 'Hello' }), {
    isJson: true,
    answer: helloAnswer,
  }),
  row('A61', 'T1 message_start carries an id of ours, the estimate and no output', hello, {
    options: { inputTokensEstimate: 42 },
    check: (told) => {
      const { message } = dataOf(told)[0]!
      assert.match(message.id, /^msg_[0-9A-Za-z]{24}$/)
      assert.equal(message.stop_reason, null)
      assert.deepEqual(message.usage, {
        input_tokens: 42,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        output_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        service_tier: null,
        inference_geo: null,
        speed: null,
      })
    },
  }),
  row('A62', 'an answer with nothing in it has no blocks', reason('stop') + end, {
    answer: { content: [], stop_reason: 'end_turn' },
  }),
]
