import assert from 'node:assert/strict'
import test, { after, before, type TestContext } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema'
import OpenAI from 'openai'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { chooseRows } from '../support/runs.ts'
import {
  checkStream,
  json,
  paths,
  type Reply,
  type ScriptedGateway,
  say,
  sse,
  startScriptedGateway,
  wires,
} from '../translation/support/scripted.ts'
import {
  call,
  completion,
  counts,
  created,
  delta,
  done,
  events,
  functionCall,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  terminal,
  toolBlock,
  usage,
  wholeCall,
} from '../translation/upstreams.ts'

/* What the helpers of the vendors' SDKs return is the judge (ruling Y5). */

let gateway: ScriptedGateway
let anthropic: Anthropic
let openai: OpenAI
before(async () => {
  gateway = await startScriptedGateway({ config: { limits: { requests_per_minute: 100_000 } } })
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
})
after(() => gateway.close())

type Json = Record<string, unknown>

/** A call as a client's program has it. */
type Called = { name: string; input: unknown }

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

const broken = [
  ...['{"path":"/srv/app', '{"path":', '{', '{"path":"/srv/app"', '{"path":"x\\', '{"path":"\\u12'],
  ...['{"a":1,}', '{"a":}', '{,}', '{"a" 1}', '{"a":1 "b":2}', '{a:1}', "{'a':1}", '{"a":01}', '{"a":.5}', '{"a":+1}'],
  ...['{"a":NaN}', '{"a":Infinity}', '{"a":undefined}', '{"a":True}', '{"a":"\t"}', '{"a":"\\x"}', '{"a":[1,2}'],
  ...['{"a":1}{"a":1}', '{"a":1}}', '{"a":1} and so on', '{"a":1}\u0000', '{}{"a":1}', '{} // none'],
  ...[
    '[1,2]',
    '[]',
    '"text"',
    '"{\\"a\\":1}"',
    '7',
    'true',
    'nothing',
    '}',
    ',',
    '```json\n{"a":1}\n```',
    '<path>/srv</path>',
  ],
  ...[deep(129), `{"a":[${'1,'.repeat(150_000)}1]}`],
]
const whole = [
  '{}',
  '{"path":"/srv/app"}',
  ' {"a":1}\n',
  '{"a":{"b":[1,"}{",null]},"ü":"\\ud83d\\ude00 \\" é"}',
  deep(128),
]
const blank = ['', ' ', '\n\t ']

/** What a model of a wire answers that calls `rm` with arguments of this text, in pieces of these many characters. */
const streams: Record<ClientWire, (pieces: readonly string[], reason?: string) => string> = {
  messages: (pieces, stop = 'tool_use') =>
    messageStart() + toolBlock(0, 'rm', ...pieces) + messageDelta(stop, { output_tokens: 7 }) + messageStop,
  chat: (pieces, stop = 'tool_calls') =>
    delta({ role: 'assistant', content: '' }) +
    call([0, 'a', 'rm', '']) +
    pieces.map((piece) => call([0, undefined, undefined, piece])).join('') +
    reason(stop) +
    usage(counts(9, 7)) +
    done,
  responses: (pieces, stop = 'completed') =>
    events(
      created,
      ...wholeCall(0, 'rm', ...pieces),
      terminal(stop, [functionCall(0, 'rm', pieces.join(''))], {
        ...(stop === 'incomplete' && { incomplete_details: { reason: 'max_output_tokens' } }),
        usage: { input_tokens: 9, output_tokens: 7, total_tokens: 16 },
      }),
    ),
}

const bodies: Record<ClientWire, (text: string) => string> = {
  // Here arguments are no text: one that is sent as a text is as it is.
  messages: (text) =>
    JSON.stringify({
      ...{
        id: 'msg_hosted',
        type: 'message',
        role: 'assistant',
        model: 'hosted-model',
        stop_reason: 'tool_use',
        stop_sequence: null,
      },
      content: [{ type: 'tool_use', id: 'toolu_hosted', name: 'rm', input: text }],
      usage: { input_tokens: 9, output_tokens: 7 },
    }),
  chat: (text) =>
    completion({ tool_calls: [{ id: 'a', type: 'function', function: { name: 'rm', arguments: text } }] }),
  responses: (text) => JSON.stringify(terminal('completed', [functionCall(0, 'rm', text)])['response']),
}

const helpers: Record<ClientWire, (body: Json, stream: boolean) => Promise<Called[]>> = {
  async messages(body, stream) {
    const params = body as unknown as Anthropic.MessageCreateParamsNonStreaming
    const message = await (stream
      ? anthropic.messages.stream(params).finalMessage()
      : anthropic.messages.create(params))
    return message.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [],
    )
  },
  async chat(body, stream) {
    const params = body as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
    const answer = await (stream
      ? openai.chat.completions.stream({ ...params, stream: true }).finalChatCompletion()
      : openai.chat.completions.create(params))
    const calls = answer.choices[0]!.message.tool_calls ?? []
    return calls.flatMap((one) =>
      one.type === 'function' ? [{ name: one.function.name, input: one.function.arguments }] : [],
    )
  },
  async responses(body, stream) {
    const params = body as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming
    const answer = await (stream
      ? openai.responses.stream({ ...params, stream: true }).finalResponse()
      : openai.responses.create(params))
    return answer.output.flatMap((item) =>
      item.type === 'function_call' ? [{ name: item.name, input: item.arguments }] : [],
    )
  },
}

/** What a helper made of a call: the text itself, what it means, a text under the key of R-ARGS, an error, or something else. */
async function judge(client: ClientWire, wire: ClientWire, text: string, stream: boolean): Promise<string> {
  gateway.play(replyOf(wire, text, stream))
  let called: Called[]
  try {
    called = await helpers[client](say(client, wire), stream)
    // A helper may parse arguments when they are looked at.
    called = structuredClone(called)
  } catch (error) {
    // It came within a stream that had begun.
    assert.ok(error instanceof Anthropic.AnthropicError || error instanceof OpenAI.OpenAIError, String(error))
    assert.equal((error as { status?: number }).status, undefined, String(error))
    return 'error'
  }
  const [one] = called
  if (one === undefined || called.length > 1 || one.name !== 'rm') return `other calls: ${JSON.stringify(called)}`
  if (one.input === text) return 'text'
  if (equals(one.input, { _raw_arguments: text })) return 'raw'
  if (text.trim() === '' && (equals(one.input, {}) || one.input === '{}')) return 'empty'
  return equals(one.input, meaningOf(text)) ? 'object' : `another call: ${JSON.stringify(one)}`
}

function replyOf(wire: ClientWire, text: string, stream: boolean): Reply {
  const pieces = text.match(/[\s\S]{1,5}/g) ?? []
  // Of the longest a few pieces are enough.
  return stream ? sse(streams[wire](text.length > 1_000 ? [text] : pieces)) : json(bodies[wire](text))
}

function meaningOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function equals(one: unknown, other: unknown): boolean {
  return other !== undefined && JSON.stringify(one) === JSON.stringify(other)
}

const rows = broken.flatMap((text) =>
  wires.flatMap((wire) => wires.flatMap((client) => [true, false].map((stream) => ({ text, wire, client, stream })))),
)
const chosen = chooseRows(rows, ({ text, wire, client, stream }) => [text, wire, `${client} ${stream}`])

for (const wire of wires) {
  for (const client of wires) {
    for (const stream of [true, false]) {
      const title = `${client} client, ${wire} model, ${stream ? 'stream' : 'JSON'}`

      test(`Y5 R-ARGS broken arguments never become an empty or different call in a helper (${title})`, async (t) => {
        const found = new Map<string, number>()
        const here = chosen.filter((one) => one.wire === wire && one.client === client && one.stream === stream)
        for (const { text } of here) {
          const got = await judge(client, wire, text, stream)
          found.set(got, (found.get(got) ?? 0) + 1)
        }
        report(t, here.length, found)
        // A model of the client's own wire breaks its types.
        if (client === wire) gateway.takeViolations()
        const right = client !== 'messages' ? 'text' : stream ? 'error' : 'raw'
        assert.deepEqual([...found], [[right, here.length]])
      })

      test(`R-ARGS whole arguments stay unchanged, and blank ones mean no arguments (${title})`, async () => {
        for (const text of whole) assert.match(await judge(client, wire, text, stream), /^(text|object)$/, text)
        for (const text of blank) {
          // What one wire sends to a client of its own, that client reads as it always did.
          const isNative = client === wire && text !== ''
          assert.match(await judge(client, wire, text, stream), isNative ? /^(text|empty|error)$/ : /^(text|empty)$/)
        }
        if (client === wire) gateway.takeViolations()
      })
    }
  }
}

function report(t: TestContext, count: number, found: ReadonlyMap<string, number>): void {
  t.diagnostic(`${count} texts: ${[...found].map(([got, times]) => `${times} ${got}`).join(', ')}`)
}

/** The first of two calls is `ok`, the second `rm`. */
const pairs: Record<ClientWire, (first: string, second: string, reason?: string) => string> = {
  messages: (first, second, stop = 'tool_use') =>
    messageStart({ input_tokens: 9, output_tokens: 0 }) +
    toolBlock(0, 'ok', first) +
    toolBlock(1, 'rm', second) +
    messageDelta(stop, { output_tokens: 7 }) +
    messageStop,
  chat: (first, second, stop = 'tool_calls') =>
    call([0, 'a', 'ok', first]) + call([1, 'b', 'rm', second]) + reason(stop) + usage(counts(9, 7)) + done,
  responses: (first, second, stop = 'completed') =>
    events(created, ...wholeCall(0, 'ok', first), ...wholeCall(1, 'rm', second), terminal(stop)),
}

/** The words for a cap, a full window and a refusal; a responses model has none but the status. */
const cuts: Record<ClientWire, readonly string[]> = {
  messages: ['max_tokens', 'MAX_TOKENS', 'length', 'max_output_tokens', 'model_context_window_exceeded', 'refusal'],
  chat: ['length', 'LENGTH', 'max_tokens', 'max_output_tokens', 'model_length', 'content_filter', 'refusal'],
  responses: ['incomplete'],
}
const ends: Record<ClientWire, readonly string[]> = {
  messages: ['tool_use', 'end_turn', 'stop_sequence', 'pause_turn', 'other'],
  chat: ['tool_calls', 'function_call', 'stop', 'STOP', 'eos', 'other'],
  responses: ['completed'],
}

const cut = '{"path":"/srv/app'
const good = '{"path":"/tmp"}'

for (const wire of wires) {
  const ask = async (script: string) => {
    gateway.play(sse(script))
    const response = await gateway.post(paths.messages, say('messages', wire, { stream: true }))
    const told = await response.text()
    assert.deepEqual(checkStream.messages(told), [])
    const types = [...told.matchAll(/^event: (.*)$/gm)].map(([, type]) => type)
    const stops = types.filter((type) => type === 'content_block_stop').length
    return { told, last: types.at(-1), stops, id: response.headers.get('x-request-id')! }
  }

  test(`Y5 T24 C4 a broken call of a ${wire} model is not stopped, and its answer is billed by its evidence`, async () => {
    const { told, last, stops, id } = await ask(pairs[wire](good, cut))
    assert.deepEqual([last, stops], ['error', 1])
    assert.doesNotMatch(told, /message_delta/)
    assert.match(told, /api_error.*server error.*try again/)
    const { outcome, cause, usage, cost } = await gateway.logOf(id)
    assert.deepEqual([outcome, cause], ['upstream_cut', 'upstream_protocol'])
    assert.ok(Number((usage as Json)['output']) > 0 && Number(cost) > 0)
  })

  test(`Y5 nothing that follows a broken call of a ${wire} model makes it whole`, async () => {
    for (const end of ends[wire]) {
      assert.equal((await ask(pairs[wire](cut, good, end))).last, 'error', end)
      assert.equal((await ask(pairs[wire](good, cut, end))).last, 'error', end)
      assert.equal((await ask(pairs[wire](good, good, end))).last, 'message_stop', end)
    }
  })

  test(`Y5 A39 a ${wire} model that was cut leaves its last call partial, and no other one`, async () => {
    for (const end of cuts[wire]) {
      const { last, stops, told } = await ask(pairs[wire](good, cut, end))
      assert.deepEqual([last, stops], ['message_stop', 2], end)
      assert.match(told, /\{\\"path\\":\\"\/srv\/app/)
      for (const second of [good, cut]) {
        assert.equal((await ask(pairs[wire](cut, second, end))).last, 'error', end)
      }
    }
  })

  test(`Y5 the tool runner of @anthropic-ai/sdk never runs a broken call of a ${wire} model`, async () => {
    const ran: unknown[] = []
    const input_schema = { type: 'object', properties: { path: { type: 'string' } } } as const
    const tools = ['ok', 'rm'].map((name) =>
      betaTool({ name, description: '', inputSchema: input_schema, run: (input) => `${ran.push([name, input])}` }),
    )
    const scripts = [pairs[wire](good, cut), pairs[wire](cut, good), pairs[wire](cut, good, cuts[wire][0])]
    for (const script of scripts) {
      gateway.play(sse(script))
      const body = { ...say('messages', wire), tools, max_iterations: 1, stream: true } as const
      const runner = anthropic.beta.messages.toolRunner(
        body as Parameters<typeof anthropic.beta.messages.toolRunner>[0],
      )
      await assert.rejects(async () => await runner.runUntilDone())
    }
    // It runs a whole call as soon as the next one begins.
    for (const [name, input] of ran as [string, unknown][]) assert.deepEqual([name, input], ['ok', { path: '/tmp' }])
  })
}
