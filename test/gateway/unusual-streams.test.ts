import assert from 'node:assert/strict'
import test from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { answers, frames } from '../support/native.ts'
import {
  added,
  blockDelta,
  blockStart,
  counts,
  created,
  delta,
  done,
  events,
  message,
  messageStart,
  reason,
  terminal,
  text,
  textDelta,
  usage,
  wholeMessage,
} from '../translation/upstreams.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

/* Streams of upstreams that are unusual but legal, through a whole delivery, for clients of every wire. */

const sse = new Map([['content-type', 'text/event-stream']])

/** The delivery of a stream, frame by frame, to a client that asked for a stream or for JSON. */
async function deliver(wire: ClientWire, client: ClientWire, script: string, options: RigOptions = {}): Promise<Rig> {
  const rig = startRig({ wire, client, stream: true, ...options })
  const { listener } = rig.sent[0]!
  listener.onHead(200, 'text/event-stream', sse)
  for (const frame of script.split(/(?<=\n\n)/)) if (!rig.end) listener.onData(Buffer.from(frame))
  listener.onEnd()
  await rig.turn()
  return rig
}

test('I9 C6 cached tokens that only an earlier usage has are a part of the last prompt, and not billed twice', async () => {
  const early = counts(100, 1, { prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 } })
  const late = [counts(100, 2), counts(100, 2, { prompt_tokens_details: null })]
  const tails = late.flatMap((one) => [
    delta({ content: 'Hi' }, { usage: early }) + reason('stop') + usage(one),
    text('Hi') +
      delta({}, { finish_reason: 'stop' }).replace('"delta"', `"usage":${JSON.stringify(early)},"delta"`) +
      usage(one),
  ])
  for (const tail of tails)
    for (const client of clientWireNames)
      for (const stream of [true, false]) {
        const { debits } = await deliver('chat', client, tail + done, { stream })
        const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = debits[0]!.usage
        assert.deepEqual([inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens], [30, 60, 10, 2], client)
      }
  // If the cached tokens of before are more than the prompt, the whole prompt is cached.
  const smaller = tails[0]!.replace(
    '"prompt_tokens":100,"completion_tokens":2',
    '"prompt_tokens":50,"completion_tokens":2',
  )
  const { inputTokens, cacheReadTokens, cacheWriteTokens } = (await deliver('chat', 'chat', smaller + done)).debits[0]!
    .usage
  assert.deepEqual([inputTokens, cacheReadTokens, cacheWriteTokens], [0, 50, 0])
})

test('U2 U3 an error object without a type fails a stream of every wire, in words that reveal nothing', async () => {
  for (const error of [{ message: 'Rate limit of org-7 at https://hosted.example', code: 429 }, 'rate_limit_exceeded'])
    for (const event of ['', 'event: message\n'])
      for (const wire of clientWireNames)
        for (const client of clientWireNames)
          for (const told of [0, 3]) {
            const script = `${frames[wire].slice(0, told === 0 ? 0 : -2).join('')}${event}data: ${JSON.stringify({ error })}\n\n`
            const rig = await deliver(wire, client, script)
            const what = `${client} of ${wire}, ${told}`
            assert.doesNotMatch(rig.client.text, /hosted|org-7|message_stop|\[DONE\]|response\.completed/, what)
            assert.equal(rig.record.code, 'rate_limit_exceeded', what)
            assert.equal(rig.record.cause, 'upstream_error_event', what)
            assert.deepEqual([rig.debits.length, rig.client.isBegun], told === 0 ? [0, false] : [1, true], what)
          }
})

const busy = { message: 'busy', type: 'rate_limit_error', code: 'rate_limit_exceeded' }
const beginnings: [wire: ClientWire, frames: string[]][] = [
  ...[
    { tool_calls: [] },
    { annotations: [], refusal: null },
    { name: 'assistant', audio_content: '' },
    { function_call: {} },
    { content: [] },
    { reasoning_details: [] },
  ].map((more): [ClientWire, string[]] => ['chat', [delta({ role: 'assistant', content: '', ...more })]]),
  ...[
    { type: 'text_delta', text: '' },
    { type: 'thinking_delta', thinking: '' },
  ].map(({ type, ...empty }): [ClientWire, string[]] => [
    'messages',
    [
      messageStart(),
      blockStart(0, { type: type.slice(0, -6), ...empty, ...(type === 'thinking_delta' && { signature: '' }) }),
      blockDelta(0, { type, ...empty }),
    ],
  ]),
  ['responses', [events(created, added(0, { ...message(0), content: [] }), textDelta(0, ''))]],
]

test('U1 C4 translation 4.1 a stream that begins with empty deltas has shown nothing: its status may change', async () => {
  for (const [wire, begun] of beginnings)
    for (const client of clientWireNames) {
      const rig = await deliver(wire, client, `${begun.join('')}data: ${JSON.stringify({ error: busy })}\n\n`)
      const what = `${client} of ${wire}: ${begun.at(-1)}`
      assert.deepEqual([rig.client.isBegun, rig.debits.length], [false, 0], what)
      assert.equal(rig.record.code, 'rate_limit_exceeded', what)
    }
})

test('T19 a stream that ends inside an event is complete if a finish reason came before that event', async () => {
  const chat = text('Hi') + reason('stop')
  const rows: [wire: ClientWire, script: string, isWhole: boolean][] = [
    ['chat', `${chat}data: {"choices":[],"usa`, true],
    ['chat', `${text('Hi')}data: {"choices":[],"usa`, false],
    ['messages', `${frames.messages.slice(0, -1).join('')}event: message_stop\ndata: {"type":"mess`, true],
    ['messages', `${frames.messages.slice(0, -2).join('')}event: message_delta\ndata: {"type":"mess`, false],
    ['responses', `${frames.responses.slice(0, -1).join('')}event: response.completed\ndata: {"type":"resp`, false],
  ]
  for (const [wire, script, isWhole] of rows)
    for (const client of clientWireNames)
      for (const stream of [true, false]) {
        const { record } = await deliver(wire, client, script, { stream })
        assert.equal(record.outcome === 'ok', isWhole, `${client} of ${wire}: ${record.outcome}`)
      }
})

test('I10 a last event of a responses stream whose response has failed is no end, whatever its name', async () => {
  const error = { code: 'server_error', message: 'x' }
  const responses = [
    { status: 'failed', error },
    { status: 'failed' },
    { status: 'cancelled' },
    { status: 'completed', error },
  ]
  for (const { status, ...rest } of responses)
    for (const name of ['completed', 'incomplete'])
      for (const client of clientWireNames)
        for (const stream of [true, false]) {
          const { type: _, ...last } = terminal(status, [], { error: null, ...rest })
          const script = events(created, ...wholeMessage(0, 'Hi'), { type: `response.${name}`, ...last })
          const { record, client: seen } = await deliver('responses', client, script, { stream })
          assert.equal(record.code, 'upstream_error', `${client} of ${status} in ${name}`)
          assert.doesNotMatch(seen.text, /message_stop|\[DONE\]|response\.(?:completed|incomplete)/)
        }
})

test('Y5 an empty value in `error` is no error, in whole answers and in streams', async () => {
  const script = text('Hi') + reason('stop') + done
  for (const error of ['""', 'false', '0', 'null'])
    for (const client of clientWireNames) {
      for (const chunks of [
        script.replaceAll('"choices"', `"error":${error},"choices"`),
        script.replaceAll('"delta"', `"error":${error},"delta"`),
      ])
        assert.equal((await deliver('chat', client, chunks)).record.outcome, 'ok', `${client} of chat: ${chunks}`)
      for (const wire of clientWireNames) {
        const rig = startRig({ wire, client })
        const { listener } = rig.sent[0]!
        listener.onHead(200, 'application/json', new Map())
        listener.onData(Buffer.from(JSON.stringify(answers[wire]).replace('{', `{"error":${error},`)))
        listener.onEnd()
        await rig.turn()
        assert.equal(rig.record.outcome, 'ok', `${client} of ${wire}: ${error}`)
      }
    }
})
