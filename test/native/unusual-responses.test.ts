import assert from 'node:assert/strict'
import test from 'node:test'
import OpenAI from 'openai'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { framesOf } from '../translation/grammar.ts'
import {
  added,
  argumentsDelta,
  argumentsDone,
  created,
  events,
  functionCall,
  itemDone,
  message,
  terminal,
  textDelta,
} from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { playNatively } from './same-wire.ts'

/*
 * Clients of the responses wire run a call as the end of its item has it, and SDKs as the last event has it. On the
 * same wire both have what the deltas said (Y5), or the answer fails.
 */

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

const args = '{"a":"é"}'
const without = (member: string, one: Json) => Object.fromEntries(Object.entries(one).filter(([key]) => key !== member))
const call = (own: Json = {}, n = 0): Json => ({ ...functionCall(n, 'f', args), ...own })
const start = (own: Json = {}, n = 0) => added(n, { ...functionCall(n, 'f', ''), ...own })
const deltas = (n = 0) => [argumentsDelta(n, '{"a":'), argumentsDelta(n, '"é"}')]
const custom = (input: unknown) => ({ id: 'ctc_0', type: 'custom_tool_call', call_id: 'c', name: 'f', input })
const customEvent = (end: string, more: Json) => ({
  ...{ type: `response.custom_tool_call_input.${end}`, item_id: 'ctc_0', output_index: 0, ...more },
})
const whole = (list: Json[], item: Json, n = 0) => [
  ...list,
  argumentsDone(n, args),
  itemDone(n, item),
  terminal('completed', [item]),
]

type Empty = (one: Json) => Json
/** The forms of arguments that are empty or missing. */
const empties: [what: string, empty: Empty][] = [
  ['empty', (one) => ({ ...one, arguments: '' })],
  ['missing', (one) => without('arguments', one)],
  ['null', (one) => ({ ...one, arguments: null })],
  ['an empty object in a text', (one) => ({ ...one, arguments: '{}' })],
  ['an empty object', (one) => ({ ...one, arguments: {} })],
  ['blank', (one) => ({ ...one, arguments: ' ' })],
]

/** Events, and the calls that a client is shown: name and arguments; undefined if the answer fails. */
const streams: [what: string, list: Json[], said: string[] | undefined][] = [
  ...empties.map(([what, empty]): [string, Json[], string[]] => [
    `arguments that are ${what} in every end`,
    [
      start(),
      ...deltas(),
      empty(argumentsDone(0, '')),
      itemDone(0, empty(call())),
      terminal('completed', [empty(call())]),
    ],
    [`f ${args}`],
  ]),
  [
    'arguments that only the start has, and empty ends',
    [added(0, call()), argumentsDone(0, ''), itemDone(0, functionCall(0, 'f', '')), terminal('completed')],
    [`f ${args}`],
  ],
  [
    'arguments that only their own end has',
    [
      start(),
      argumentsDone(0, args),
      itemDone(0, functionCall(0, 'f', '')),
      terminal('completed', [call({ arguments: '' })]),
    ],
    [`f ${args}`],
  ],
  [
    'arguments of two calls in turn',
    [
      ...[start(), start({}, 1), argumentsDelta(1, '{"b":'), argumentsDelta(0, '{"a":'), argumentsDelta(1, '2}')],
      ...[argumentsDelta(0, '"é"}'), itemDone(0, functionCall(0, 'f', '')), itemDone(1, functionCall(1, 'f', ''))],
      terminal('completed', [functionCall(0, 'f', ''), functionCall(1, 'f', '')]),
    ],
    [`f ${args}`, 'f {"b":2}'],
  ],
  [
    'deltas that come before their item',
    [...deltas(), start(), itemDone(0, functionCall(0, 'f', '')), terminal('completed', [functionCall(0, 'f', '')])],
    [`f ${args}`],
  ],
  [
    'events without places',
    [start(), ...deltas(), itemDone(0, functionCall(0, 'f', ''))]
      .map((one) => without('output_index', one))
      .concat(terminal('completed', [functionCall(0, 'f', '')])),
    [`f ${args}`],
  ],
  [
    'events without ids',
    [start(), ...deltas(), argumentsDone(0, '')]
      .map((one) => without('item_id', one))
      .concat(itemDone(0, functionCall(0, 'f', '')), terminal('completed', [functionCall(0, 'f', '')])),
    [`f ${args}`],
  ],
  [
    'input of a custom call',
    [
      added(0, custom('')),
      ...[
        customEvent('delta', { delta: 'ls ' }),
        customEvent('delta', { delta: '-a' }),
        customEvent('done', { input: '' }),
      ],
      ...[itemDone(0, without('input', custom(''))), terminal('completed', [custom('')])],
    ],
    ['f ls -a'],
  ],
  [
    'arguments that are empty in the last event, and no end of the item',
    [start(), ...deltas(), terminal('completed', [call({ arguments: '' })])],
    [`f ${args}`],
  ],
  [
    'arguments as an object in every end, and no deltas',
    [
      ...[start(), { ...argumentsDone(0, ''), arguments: { a: 'é' } }, itemDone(0, call({ arguments: { a: 'é' } }))],
      terminal('completed', [call({ arguments: { a: 'é' } })]),
    ],
    [`f ${args}`],
  ],
  ['arguments as an object', whole([start(), ...deltas()], call({ arguments: { a: 'é' } })), [`f ${args}`]],
  ['a name that only the start has', whole([start(), ...deltas()], without('name', call())), [`f ${args}`]],
  ['a name that only the end has', whole([start({ name: '' }), ...deltas()], call()), [`f ${args}`]],
  [
    'no arguments at all',
    [start(), argumentsDone(0, '{}'), itemDone(0, call({ arguments: '{}' })), terminal('completed')],
    ['f {}'],
  ],
  ['no name', whole([start({ name: undefined }), ...deltas()], without('name', call())), undefined],
  ['a blank name', whole([start({ name: ' ' }), ...deltas()], call({ name: ' ' })), undefined],
  [
    'no name, and no end of the item',
    [start({ name: '' }), ...deltas(), terminal('completed', [call({ name: '' })])],
    undefined,
  ],
]

const calls = (output: Json[]) => output.map(({ name, arguments: text, input }) => `${name} ${text ?? input}`)

for (const [what, list, said] of streams)
  test(`Y5 the calls of a responses stream of the same wire are whole at their end, or it fails: ${what}`, () => {
    for (const hasNumbers of [true, false]) {
      const script = events(created, ...list)
      const shown = playNatively('responses', hasNumbers ? script : script.replace(/,"sequence_number":\d+/g, ''))
      const told: Json[] = framesOf(shown).map(({ data }) => JSON.parse(data))
      const last = told.at(-1)!
      assert.equal(last['type'], said ? 'response.completed' : 'response.failed')
      const ends = told.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item)
      if (said === undefined) {
        assert.deepEqual(ends, [], 'no client runs the call')
        continue
      }
      if (last['response'].output.length > 0) assert.deepEqual(calls(last['response'].output), said)
      assert.deepEqual(calls(ends), said)
      for (const { type, ...event } of told)
        if (/(?:arguments|input)\.done$/.test(type))
          assert.equal(event['arguments'] ?? event['input'], said[event['output_index'] ?? 0]!.slice(2))
    }
  })

test('Y3 a call of a responses stream without its own id has the same one in each event', async () => {
  for (const empty of [(one: Json) => without('call_id', one), (one: Json) => ({ ...one, call_id: '' })]) {
    const items = [empty(call()), empty(call({}, 1))]
    const list = [added(0, empty(functionCall(0, 'f', ''))), ...deltas(), itemDone(0, items[0]!)]
    const second = [added(1, empty(functionCall(1, 'f', ''))), ...deltas(1), itemDone(1, items[1]!)]
    const shown = playNatively('responses', events(created, ...list, ...second, terminal('completed', items)))
    const told: Json[] = framesOf(shown).map(({ data }) => JSON.parse(data))
    const ids = told.filter(({ item }) => item).map(({ item }) => item.call_id)
    for (const id of ids) assert.match(id, /^call_[A-Za-z0-9]{24}$/)
    assert.deepEqual(ids, [ids[0], ids[0], ids[2], ids[2]])
    assert.notEqual(ids[0], ids[2])
    assert.deepEqual(
      told.at(-1)!['response'].output.map((item: Json) => item['call_id']),
      [ids[0], ids[2]],
    )
  }
})

const sdkOf = (body: string, type: string) =>
  new OpenAI({
    ...{ apiKey: 'k', maxRetries: 0, logLevel: 'off' },
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  })

const said = { type: 'output_text', text: 'Hi', annotations: [] }
/** Messages whose text SDKs would pass over. */
const contents: [what: string, content: unknown][] = [
  ['a text', 'Hi'],
  ['a list of texts', ['Hi']],
  ['a single part', said],
  ['a part of another wire', [{ type: 'text', text: 'Hi' }]],
  ['a part of a request', [{ type: 'input_text', text: 'Hi' }]],
  ['a part without a type', [{ text: 'Hi' }]],
]

/** Reads a whole answer of the same wire that has one item. */
function readWhole(item: Json) {
  const head = {
    requestId: 'req_1',
    createdSeconds: 1_795_000_000,
    inputTokensEstimate: 11,
    model: modelOf('responses'),
  }
  const body = JSON.stringify({ id: 'resp_x', object: 'response', status: 'completed', model: 'up', output: [item] })
  return wires.responses.native.readAnswer(Buffer.from(body), head)
}

for (const [what, content] of contents)
  test(`Y5 the SDK of the vendor reads a responses message of the same wire whose content is ${what}`, async () => {
    const item = { ...message(0), content, role: undefined }
    const answer = readWhole(item)
    assert.equal(answer.state, 'finished')
    if (answer.state !== 'finished') return
    const shown = `${answer.encode({ ...noUsage, inputTokens: 9, outputTokens: 7 })}`
    const asked = { model: 'm', input: 'x' }
    const told: Json = await sdkOf(shown, 'application/json').responses.create(asked)
    assert.equal(told['output_text'], 'Hi')
    assert.equal(told['output'][0].role, 'assistant')
    for (const list of [[textDelta(0, 'Hi')], []]) {
      const script = events(created, added(0, message(0)), ...list, itemDone(0, item), terminal('completed', [item]))
      const streamed = playNatively('responses', script)
      const final: Json = await sdkOf(streamed, 'text/event-stream').responses.stream(asked).finalResponse()
      assert.equal(final['output_text'], 'Hi')
      const end = framesOf(streamed)
        .map(({ data }): Json => JSON.parse(data))
        .find(({ type }) => type === 'response.output_item.done')
      assert.deepEqual(end!['item'].content, [said])
    }
  })

test('Y3 items of a responses stream of the same wire that have the same index get their own', async () => {
  // As gateways send them: the first call has the index of the message, whose end then has the index of the call.
  const at = (output_index: number, list: Json[]) => list.map((event) => ({ ...event, output_index }))
  const items = [message(0, 'Hi'), call({}, 1), call({}, 2)]
  const callEvents = (n: number) => [start({}, n), ...deltas(n), argumentsDone(n, args), itemDone(n, items[n]!)]
  const script = (first: number, second: number) =>
    events(
      ...[created, added(0, message(0)), textDelta(0, 'Hi'), ...at(first, callEvents(1))],
      ...[...at(first === 0 ? 1 : 0, [itemDone(0, items[0]!)]), ...at(second, callEvents(2))],
      terminal('completed', items),
    )
  const places = (text: string) =>
    framesOf(text).map(({ data }) => /"output_index":(-?\d+),.*?"(?:item_)?id":"(\w+)"/.exec(data)?.slice(1).join(' '))
  for (const second of [0, 1]) {
    const shown = playNatively('responses', script(0, second))
    const final: Json = await sdkOf(shown, 'text/event-stream')
      .responses.stream({ model: 'm', input: 'x' })
      .finalResponse()
    assert.deepEqual(calls(final['output'].slice(1)), [`f ${args}`, `f ${args}`])
    assert.deepEqual(places(shown), places(playNatively('responses', script(1, 2))))
  }
})

test('Y3 an event without the id of its item keeps the index of the newest item', () => {
  const at = (event: Json) => ({ ...event, output_index: 0 })
  const nameless = [...deltas(1), argumentsDone(1, args)].map((event) => at({ ...event, item_id: '' }))
  const script = events(
    ...[created, added(0, message(0)), textDelta(0, 'Hi'), at(start({}, 1)), ...nameless, at(itemDone(1, call({}, 1)))],
    terminal('completed', [message(0, 'Hi'), call({}, 1)]),
  )
  const shown = framesOf(playNatively('responses', script)).map(({ data }) => JSON.parse(data ?? '') as Json)
  assert.deepEqual(
    shown.filter(({ item_id }) => item_id === '').map(({ output_index }) => output_index),
    nameless.map(() => 1),
  )
})

/** Calls of a whole answer, and what is shown of them. */
const wholes: [what: string, item: Json, said: string | undefined][] = [
  ['arguments as an object', call({ arguments: { a: 'é' } }), `f ${args}`],
  ['no arguments', without('arguments', call()), 'f {}'],
  ['no id', without('call_id', call()), `f ${args}`],
  ['no name', without('name', call()), undefined],
  ['a custom call without a name', without('name', custom('ls')), undefined],
]

for (const [what, item, shown] of wholes)
  test(`Y3 Y5 a call of a whole responses answer of the same wire is whole, or the answer fails: ${what}`, () => {
    const answer = readWhole(item)
    assert.equal(answer.state, shown ? 'finished' : 'failed')
    if (answer.state !== 'finished') return
    const [told] = JSON.parse(`${answer.encode({ ...noUsage, inputTokens: 9, outputTokens: 7 })}`).output
    assert.deepEqual(calls([told]), [shown])
    assert.match(told.call_id, /^call_/)
  })

test('Y5 a response of the same wire whose only items have no type fails', () => {
  for (const item of [{}, { id: 'msg_0' }, null]) {
    assert.equal(readWhole(item as Json).state, 'failed')
    const last = framesOf(playNatively('responses', events(created, terminal('completed', [item as Json])))).at(-1)!
    assert.equal(JSON.parse(last.data).type, 'response.failed')
  }
})

test('Y1 Y5 arguments that are an object are a text in each event of a stream made from JSON', () => {
  const body = { id: 'resp_x', object: 'response', status: 'completed', output: [call({ arguments: { a: 'é' } })] }
  const head = { requestId: 'req_1', createdSeconds: 1, inputTokensEstimate: 11, model: modelOf('responses') }
  const relay = wires.responses.native.openStream(head)
  const begun = relay.pushWhole(Buffer.from(JSON.stringify(body)))
  const told: Json[] = framesOf(Buffer.from(begun, 'latin1').toString()).map(({ data }) => JSON.parse(data))
  const said = told.flatMap(({ delta, arguments: text, item }) => delta ?? text ?? (item?.arguments || []))
  assert.deepEqual(said, [args, args, args])
})

test('Y5 arguments that begin with very many blanks are read in linear time', () => {
  const blank = `${' '.repeat(100_000)}${args}`
  const item = call({ arguments: blank })
  const ends = [argumentsDelta(0, blank), argumentsDone(0, blank), itemDone(0, item), terminal('completed', [item])]
  const beganMs = performance.now()
  const shown = framesOf(playNatively('responses', events(created, start(), ...ends)))
  assert.equal(JSON.parse(shown.at(-1)!.data).response.output[0].arguments, blank)
  // A search that is quadratic takes a minute.
  assert.ok(performance.now() - beganMs < 8_000)
})

test('F-U36 a type may be the name of a member that every object has', () => {
  for (const type of ['constructor', 'toString', '__proto__']) {
    const item = { id: 'x_0', type, content: [{ type, text: 'Hi' }] }
    const list = [added(0, item), { type, item_id: 'x_0', output_index: 0 }, itemDone(0, item)]
    const last = terminal('completed', [item, { ...message(1, 'Hi'), content: [{ type, text: 'Hi' }] }])
    const shown = framesOf(playNatively('responses', events(created, ...list, last))).map(({ data }) =>
      JSON.parse(data),
    )
    assert.deepEqual([shown.at(-1).type, shown.at(-1).response.output[0]], ['response.completed', item])
    const head = { requestId: 'req_1', createdSeconds: 1, inputTokensEstimate: 11, model: modelOf('responses') }
    const relay = wires.responses.native.openStream(head)
    relay.pushWhole(Buffer.from(JSON.stringify(last['response'])))
    assert.equal(relay.state, 'finished')
  }
})

test('P3 P7 all events of a responses stream have the id of the first, and the SDK of the vendor reads them', async () => {
  const item = message(0, 'Hi')
  const list = [added(0, message(0)), textDelta(0, 'Hi'), itemDone(0, item)]
  for (const [first, last] of [
    ['resp_a', 'resp_b'],
    ['resp_a', 'chatcmpl-b'],
    ['resp_a', undefined],
    ['a', 'resp_b'],
    [undefined, 'resp_b'],
  ]) {
    const begun = { ...created, response: { ...(created['response'] as Json), id: first } }
    const going = { ...begun, type: 'response.in_progress' }
    const ended = terminal('completed', [item], { id: last })
    const shown = playNatively('responses', events(begun, going, ...list, ended))
    const told: Json[] = framesOf(shown).map(({ data }) => JSON.parse(data))
    const ids = told.filter(({ response }) => response).map(({ response }) => response.id)
    assert.equal(ids.length, 3)
    assert.deepEqual(new Set(ids).size, 1)
    if (first === 'resp_a') assert.equal(ids[0], 'resp_a')
    const stream = sdkOf(shown, 'text/event-stream').responses.stream({ model: 'm', input: 'x' })
    assert.equal((await stream.finalResponse()).id, ids[0])
  }
})
