import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWires } from '../../conformance/src/wires/index.ts'

type Case = [what: string, wire: 'messages' | 'chat' | 'responses', datas: unknown[], disorder: string | undefined]

const start = { type: 'message_start' }
const open = (index: number) => ({ type: 'content_block_start', index })
const delta = (index: number) => ({ type: 'content_block_delta', index })
const close = (index: number) => ({ type: 'content_block_stop', index })
const last = { type: 'message_delta' }
const stop = { type: 'message_stop' }
const ping = { type: 'ping' }

const chunk = (more: object = {}) => ({ id: 'c', object: 'chat.completion.chunk', choices: [{ delta: {} }], ...more })
const finish = chunk({ choices: [{ delta: {}, finish_reason: 'stop' }] })
const usage = chunk({ choices: [], usage: {} })

const numbered = (...events: [type: string, item?: number][]) =>
  events.map(([type, item], at) => {
    return { type: `response.${type}`, sequence_number: at, ...(item === undefined ? {} : { output_index: item }) }
  })
const added = 'output_item.added'
const done = 'output_item.done'

const cases: Case[] = [
  [
    'two blocks and pings',
    'messages',
    [start, ping, open(0), delta(0), close(0), open(1), ping, close(1), last, stop],
    undefined,
  ],
  ['a stream that breaks off', 'messages', [start, open(0)], undefined],
  ['no start', 'messages', [open(0)], 'content_block_start comes before message_start'],
  ['two starts', 'messages', [start, start], 'message_start comes twice'],
  ['two open blocks', 'messages', [start, open(0), open(1)], 'block 1 starts while block 0 is open'],
  ['a hole', 'messages', [start, open(1)], 'block 1 starts where block 0 is due'],
  [
    'a second stop',
    'messages',
    [start, open(0), close(0), close(0)],
    'content_block_stop comes for block 0, which is not open',
  ],
  ['an open block', 'messages', [start, open(0), last], 'message_delta comes while block 0 is open'],
  ['no delta', 'messages', [start, stop], 'message_stop comes without message_delta'],
  ['a late event', 'messages', [start, last, stop, last], 'message_delta comes after message_stop'],
  ['no JSON', 'messages', ['[DONE]'], 'an event is not a JSON object'],

  ['content, finish, usage', 'chat', [chunk(), finish, usage, '[DONE]'], undefined],
  ['another object', 'chat', [chunk({ object: 'x' })], 'the object of an event is x'],
  ['another id', 'chat', [chunk(), chunk({ id: 'd' })], 'the id changes within the stream'],
  ['no finish', 'chat', [chunk(), usage, '[DONE]'], '[DONE] comes without a finish_reason'],
  ['no usage', 'chat', [chunk(), finish, '[DONE]'], '[DONE] comes without a chunk of usage and no choices'],
  ['late content', 'chat', [finish, usage, chunk()], 'content comes after the usage'],
  ['a late event', 'chat', [finish, usage, '[DONE]', usage], 'an event comes after [DONE]'],

  [
    'items at once',
    'responses',
    numbered(['created'], [added, 0], [added, 1], [done, 0], [done, 1], ['completed']),
    undefined,
  ],
  ['no created', 'responses', numbered(['in_progress']), 'response.in_progress comes before response.created'],
  ['no number', 'responses', [{ type: 'response.created' }], 'response.created has no sequence_number'],
  [
    'a repeated number',
    'responses',
    [...numbered(['created']), ...numbered(['in_progress'])],
    'sequence_number 0 comes after 0',
  ],
  [
    'a delta of no item',
    'responses',
    numbered(['created'], ['output_text.delta', 0]),
    'response.output_text.delta comes for item 0, which is not open',
  ],
  [
    'an open item',
    'responses',
    numbered(['created'], [added, 0], ['completed']),
    'response.completed comes while item 0 is open',
  ],
  ['a failure within an item', 'responses', numbered(['created'], [added, 0], ['failed']), undefined],
  [
    'a late event',
    'responses',
    numbered(['created'], ['completed'], ['completed']),
    'response.completed comes after response.completed',
  ],
]

for (const [what, wire, datas, disorder] of cases) {
  test(`spec 6 doctor judges the order of a ${wire} stream: ${what}`, () => {
    const { findDisorder, findMissing } = clientWires[wire]
    assert.equal(findDisorder(datas as never) ?? findMissing(datas as never), disorder)
  })
}
