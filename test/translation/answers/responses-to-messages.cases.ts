import assert from 'node:assert/strict'
import { type Case, type Json, outline } from '../cases.ts'
import type { Told } from '../pump.ts'
import {
  added,
  argumentsDone,
  created,
  events,
  functionCall,
  itemDone,
  message,
  responsesCounts,
  summary,
  summaryDelta,
  terminal,
  textDelta,
  wholeCall,
  wholeMessage,
} from '../upstreams.ts'

const shown = { showsReasoning: true }
const hello = [created, ...wholeMessage(0, 'Hel', 'lo'), terminal('completed', [message(0, 'Hello')])]
const reasoned = [
  created,
  added(0, { ...summary(0), summary: [] }),
  summaryDelta(0, 0, 'r'),
  itemDone(0, summary(0, 'r')),
  ...wholeMessage(1, 'a'),
  terminal('completed', [summary(0, 'r'), message(1, 'a')]),
]
const oneCall = (input: Json) => ({ content: [{ type: 'tool_use', name: 'f', input }], stop_reason: 'tool_use' })
const twoCalls = {
  content: [
    { type: 'tool_use', name: 'f', input: { a: 1 } },
    { type: 'tool_use', name: 'g', input: { b: 1 } },
  ],
  stop_reason: 'tool_use',
}
/** Items that are called by the `call_id` of the one at place 0. */
const shared = (list: Json[]): Json[] =>
  list.map((event) =>
    event['item'] ? { ...event, item: { ...event['item'], call_id: functionCall(0, 'f', '')['call_id'] } } : event,
  )
const openCall = added(0, functionCall(0, 'f', '', { status: 'in_progress' }))
const noMessageStop = (told: Told) => {
  assert.equal(outline(told).at(-1), 'error')
  assert.doesNotMatch(told.text, /message_stop|message_delta/)
}

/** A message of which nothing was told before its end. */
const mixed = {
  ...message(0),
  content: [
    { type: 'output_text', text: 'a' },
    { type: 'refusal', refusal: 'no' },
    { type: 'output_text', text: 'b' },
  ],
}
const mixedTexts = { content: [{ text: 'a' }, { text: 'no' }, { text: 'b' }] }

const whole = (output: Json[]) =>
  JSON.stringify({ id: 'resp_hosted', status: 'completed', output, usage: responsesCounts })

const row = (id: string, says: string, script: Json[], rest: Partial<Case> = {}): Case => ({
  id,
  says,
  upstream: 'responses',
  client: 'messages',
  script: events(...script),
  ...rest,
})

export const cases: readonly Case[] = [
  row('A64', 'a message item becomes text, and cached tokens are subtracted from the input', hello, {
    answer: {
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 3, cache_read_input_tokens: 6, cache_creation_input_tokens: 0, output_tokens: 2 },
    },
  }),
  row('A65', 'a reasoning summary is a thinking block before the text when thinking is on', reasoned, {
    options: shown,
    answer: {
      content: [
        { type: 'thinking', thinking: 'r', signature: '' },
        { type: 'text', text: 'a' },
      ],
    },
  }),
  row('A65', 'a reasoning summary is left out when thinking is off', reasoned, {
    answer: { content: [{ type: 'text', text: 'a' }] },
  }),
  row(
    'A66',
    'two summary parts are one thinking block with a blank line between',
    [
      created,
      added(0, { ...summary(0), summary: [] }),
      summaryDelta(0, 0, 'r'),
      summaryDelta(0, 1, 's'),
      itemDone(0, summary(0, 'r', 's')),
      terminal('completed'),
    ],
    { options: shown, answer: { content: [{ type: 'thinking', thinking: 'r\n\ns' }] } },
  ),
  row(
    'A67',
    'two calls are two tool_use blocks with ids of ours',
    [created, ...wholeCall(0, 'f', '{"a":', '1}'), ...wholeCall(1, 'g', '{}'), terminal('completed')],
    {
      answer: {
        content: [
          { name: 'f', input: { a: 1 } },
          { name: 'g', input: {} },
        ],
        stop_reason: 'tool_use',
      },
      check: (_, answer) => {
        const [first, second] = answer['content']
        assert.match(first.id, /^toolu_[0-9A-Za-z]{24}$/)
        assert.notEqual(first.id, second.id)
      },
    },
  ),
  row(
    'A68',
    'arguments that come only in their done event are sent',
    [
      created,
      openCall,
      argumentsDone(0, '{"a":1}'),
      itemDone(0, functionCall(0, 'f', '{"a":1}')),
      terminal('completed'),
    ],
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A69',
    'arguments that come only with the done item are sent',
    [created, openCall, itemDone(0, functionCall(0, 'f', '{"a":1}')), terminal('completed')],
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A70',
    'a call that is only in the terminal event is sent',
    [created, terminal('completed', [functionCall(0, 'f', '{"a":1}')])],
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A71',
    'arguments sent by deltas are not sent again',
    [created, ...wholeCall(0, 'f', '{"a"', ':1}'), terminal('completed', [functionCall(0, 'f', '{"a":1}')])],
    {
      answer: oneCall({ a: 1 }),
      check: (told) => assert.equal(told.text.match(/input_json_delta/g)?.length, 2),
    },
  ),
  row(
    'A72',
    'text of a done event that the deltas lack is sent',
    [
      created,
      openCall,
      { type: 'response.function_call_arguments.delta', item_id: 'fc_hosted_0', output_index: 0, delta: '{"a"' },
      argumentsDone(0, '{"a":1}'),
      terminal('completed'),
    ],
    { answer: oneCall({ a: 1 }) },
  ),
  row(
    'A72',
    'a done event that contradicts the deltas fails the answer',
    [created, textDelta(0, 'a'), itemDone(0, message(0, 'b')), terminal('completed')],
    { fault: { kind: 'broken' }, check: noMessageStop },
  ),
  row(
    'A73',
    'incomplete by the cap is max_tokens',
    [
      created,
      ...wholeMessage(0, 'a'),
      terminal('incomplete', [], { incomplete_details: { reason: 'max_output_tokens' } }),
    ],
    { answer: { stop_reason: 'max_tokens' } },
  ),
  row(
    'A73',
    'incomplete by a content filter is a refusal',
    [
      created,
      ...wholeMessage(0, 'a'),
      terminal('incomplete', [], { incomplete_details: { reason: 'content_filter' } }),
    ],
    { answer: { stop_reason: 'refusal' } },
  ),
  row(
    'A74',
    'T4 response.failed mid-stream is an error event and no message_stop',
    [created, textDelta(0, 'a'), terminal('failed', [], { error: { code: 'server_error', message: 'oops' } })],
    {
      fault: { kind: 'broken', text: 'oops' },
      check: noMessageStop,
    },
  ),
  row(
    'A75',
    'response.failed for an over-long prompt is the fault of the request',
    [created, terminal('failed', [], { usage: null, error: { code: 'context_length_exceeded', message: 'too long' } })],
    {
      fault: { kind: 'rejected', status: 400, code: 'context_length_exceeded' },
      check: (told) => assert.ok(told.refusal),
    },
  ),
  row('A76', 'an end without the terminal event is a failure', [created, ...wholeMessage(0, 'a')], {
    fault: { kind: 'truncated' },
    check: noMessageStop,
  }),
  row(
    'A77',
    'a namespace on a returned call is ignored',
    [created, itemDone(0, functionCall(0, 'f', '{}', { namespace: 'ns' })), terminal('completed')],
    {
      answer: oneCall({}),
      check: (told) => assert.doesNotMatch(told.text, /namespace/),
    },
  ),
  row(
    'R-ID',
    'calls that share a call_id are two where their places tell',
    [created, ...wholeCall(0, 'f', '{"a":1}'), ...shared(wholeCall(1, 'g', '{"b":1}')), terminal('completed')],
    { answer: twoCalls },
  ),
  row(
    'R-ID',
    'calls that share a call_id and were never announced are two',
    [
      created,
      itemDone(0, functionCall(0, 'f', '{"a":1}')),
      ...shared([itemDone(1, functionCall(1, 'g', '{"b":1}'))]),
      terminal('completed'),
    ],
    { answer: twoCalls },
  ),
  row(
    'R-ID',
    'calls that share a call_id and are under way at once are two',
    [
      created,
      openCall,
      ...shared([added(1, functionCall(1, 'g', '', { status: 'in_progress' }))]),
      argumentsDone(0, '{"a":1}'),
      argumentsDone(1, '{"b":1}'),
      itemDone(0, functionCall(0, 'f', '{"a":1}')),
      ...shared([itemDone(1, functionCall(1, 'g', '{"b":1}'))]),
      terminal('completed'),
    ],
    { answer: twoCalls },
  ),
  row(
    'I7',
    'text and refusal of a message that comes only at its end are in the order of its parts',
    [created, itemDone(0, mixed), terminal('completed', [mixed])],
    { answer: mixedTexts },
  ),
  {
    id: 'I7',
    says: 'text and refusal of a JSON answer come in the order of its parts',
    upstream: 'responses',
    client: 'messages',
    isJson: true,
    script: whole([mixed]),
    answer: mixedTexts,
  },
  row(
    'T24',
    'behind an item that is done as incomplete the next one is told as it comes, and not at the end',
    [
      created,
      textDelta(0, 'a'),
      itemDone(0, { ...message(0, 'a'), status: 'incomplete' }),
      added(1, functionCall(1, 'f', '')),
      terminal('failed', [], { error: { code: 'server_error', message: 'oops' } }),
    ],
    {
      fault: { kind: 'broken', text: 'oops' },
      check: (told) =>
        assert.deepEqual(outline(told).slice(-3), ['content_block_stop', 'content_block_start', 'error']),
    },
  ),
  {
    id: 'R-ID',
    says: 'all items of a JSON answer that share an id are sent',
    upstream: 'responses',
    client: 'messages',
    isJson: true,
    script: whole([summary(0, 'r'), message(1, 'a'), message(2, 'b')].map((item) => ({ ...item, id: 'same' }))),
    options: shown,
    answer: { content: [{ thinking: 'r' }, { text: 'a' }, { text: 'b' }], stop_reason: 'end_turn' },
  },
  row(
    'R-ARGS',
    'arguments that come as an object are told, and never as none',
    [created, itemDone(0, functionCall(0, 'f', { a: 1 } as unknown as string)), terminal('completed')],
    { answer: oneCall({ a: 1 }) },
  ),
  {
    id: 'A119',
    says: 'a JSON answer of a responses model has the same result as its stream',
    upstream: 'responses',
    client: 'messages',
    isJson: true,
    script: whole([summary(0, 'r'), message(1, 'a'), functionCall(2, 'f', '{"a":1}')]),
    options: shown,
    answer: { content: [{ thinking: 'r' }, { text: 'a' }, { name: 'f', input: { a: 1 } }], stop_reason: 'tool_use' },
  },
]
