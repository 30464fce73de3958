import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { chooseRows } from '../support/runs.ts'
import {
  directions,
  json,
  paths,
  type ScriptedGateway,
  say,
  sse,
  startScriptedGateway,
  wires,
  wishes,
} from '../translation/support/scripted.ts'
import {
  added,
  argumentsDelta,
  call,
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
  reason,
  reasoning,
  summary,
  summaryDelta,
  terminal,
  text,
  textBlock,
  thinkingBlock,
  toolBlock,
  usage,
  wholeMessage,
} from '../translation/upstreams.ts'
import { checkAnswer } from './check-answer.ts'

/*
 * Every answer of the nine pairs against the types of the vendors' SDKs. `types.test-d.ts` holds the schemas of `check-answer.ts`
 * to these types, so that a required member that is missing here is one that the types require.
 */

let gateway: ScriptedGateway
before(async () => {
  gateway = await startScriptedGateway({ config: { limits: { requests_per_minute: 10_000 } } })
})
after(() => gateway.close())

/** The blocks that an answer of each wire can be made of, and the ends that its models tell. */
const contents = ['text', 'reasoning', 'call', 'refusal', 'nothing'] as const
type Content = (typeof contents)[number]
const ends: Record<ClientWire, readonly string[]> = {
  messages: [
    ...['end_turn', 'tool_use', 'max_tokens', 'stop_sequence', 'refusal', 'pause_turn'],
    'model_context_window_exceeded',
  ],
  chat: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'],
  responses: ['completed', 'max_output_tokens', 'content_filter'],
}

const messagesBlocks: Record<Content, string> = {
  text: textBlock(0, 'Hel', 'lo'),
  reasoning: thinkingBlock(0, 'hm') + textBlock(1, 'Hi'),
  call: toolBlock(0, 'f', '{"a":', '1}'),
  refusal: textBlock(0, 'No.'),
  nothing: '',
}
const chatDeltas: Record<Content, string> = {
  text: text('Hel') + text('lo'),
  reasoning: reasoning('hm') + text('Hi'),
  call: call([0, 'c', 'f', '{"a":']) + call([0, undefined, undefined, '1}']),
  refusal: delta({ refusal: 'No.' }),
  nothing: '',
}
const refused = { ...message(0), content: [{ type: 'refusal', refusal: 'No.' }] }
const called = functionCall(0, 'f', '{"a":1}')
const responsesItems: Record<Content, [events: Record<string, unknown>[], output: Record<string, unknown>[]]> = {
  text: [wholeMessage(0, 'Hel', 'lo'), [message(0, 'Hello')]],
  reasoning: [
    [added(0, summary(0)), summaryDelta(0, 0, 'hm'), itemDone(0, summary(0, 'hm')), ...wholeMessage(1, 'Hi')],
    [summary(0, 'hm'), message(1, 'Hi')],
  ],
  call: [[added(0, functionCall(0, 'f', '')), argumentsDelta(0, '{"a":1}'), itemDone(0, called)], [called]],
  refusal: [[added(0, message(0)), itemDone(0, refused)], [refused]],
  nothing: [[], []],
}
const scripts: Record<ClientWire, (content: Content, end: string) => string> = {
  messages: (content, end) => messageStart() + messagesBlocks[content] + messageDelta(end) + messageStop,
  chat: (content, end) => chatDeltas[content] + reason(end) + usage(counts(9, 2)) + done,
  responses: (content, end) => {
    const [items, output] = responsesItems[content]
    const isWhole = end === 'completed'
    const rest = isWhole ? {} : { incomplete_details: { reason: end } }
    return events(created, ...items, terminal(isWhole ? end : 'incomplete', output, rest))
  },
}

/** An answer of the gateway that is right by the types. */
async function answerOf(client: ClientWire, wire: ClientWire, stream: boolean, what: string): Promise<string> {
  const body = say(client, wire, { ...wishes[client], stream })
  const response = await gateway.post(paths[client], body)
  const answer = await response.text()
  assert.equal(response.status, 200, `${what}: ${answer}`)
  const type = response.headers.get('content-type')!
  assert.deepEqual(checkAnswer(client, 'translated', type, answer), [], `${what}: ${answer}`)
  return answer
}

const rows = directions.flatMap(({ client, wire }) =>
  [true, false].flatMap((stream) =>
    contents.flatMap((content) => ends[wire].map((end) => ({ client, wire, stream, content, end }))),
  ),
)
const chosen = chooseRows(rows, ({ client, wire, stream, content, end }) => [
  ...[`${client} ${wire}`, stream, content],
  `${wire} ${end}`,
])

for (const { client, wire } of directions) {
  for (const stream of [true, false]) {
    const form = stream ? 'stream' : 'JSON'
    test(`Y3 no member that the vendor’s types require is missing (${client} client, ${wire} model, ${form})`, async () => {
      const here = chosen.filter((one) => one.client === client && one.wire === wire && one.stream === stream)
      assert.ok(here.length > 0)
      for (const { content, end } of here) {
        gateway.play(sse(scripts[wire](content, end)))
        const answer = await answerOf(client, wire, stream, `${content} ${end}`)
        // The same as an answer of a model of the client's wire: nothing that is required is taken out of it.
        gateway.play(stream ? sse(answer) : json(answer))
        await answerOf(client, client, stream, `${content} ${end} on the same wire`)
      }
    })
  }
}

test('Y3 a stream that fails has the members that the types require, on all pairs', async () => {
  for (const { client, wire } of directions) {
    const whole = scripts[wire]('text', ends[wire][0]!)
    gateway.play(sse(whole.slice(0, whole.indexOf('"lo"')), 'reset'))
    const answer = await answerOf(client, wire, true, `cut ${client} ${wire}`)
    assert.match(answer, /"error"/)
  }
  assert.equal(wires.length, 3)
})
