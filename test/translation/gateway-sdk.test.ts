import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { takeTurn } from '../support/runs.ts'
import { cases as chatToMessages } from './answers/chat-to-messages.cases.ts'
import { cases as responsesToMessages } from './answers/responses-to-messages.cases.ts'
import { cases as toChat } from './answers/to-chat.cases.ts'
import { cases as toResponses } from './answers/to-responses.cases.ts'
import type { Json } from './cases.ts'
import { streamSeeds } from './seeds.ts'
import { type ScriptedGateway, say, sse, startScriptedGateway, wires, wishes } from './support/scripted.ts'

/*
 * Every stream of the answer cases, played by the upstream of the gateway and read by the vendors' own SDKs: what their
 * stream helpers make of it is the JSON answer. A broken stream is an error on messages and chat; the SDK of the
 * responses wire resolves with status `failed`.
 */

let gateway: ScriptedGateway
let anthropic: Anthropic
let openai: OpenAI
before(async () => {
  gateway = await startScriptedGateway({ config: { limits: { requests_per_minute: 10_000 } } })
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
})
after(() => gateway.close())

/** Of each client's SDK: the JSON answer, and what its helper makes of the stream. */
const sdks: Record<
  ClientWire,
  { whole: (body: never) => Promise<unknown>; streamed: (body: never) => Promise<unknown> }
> = {
  messages: {
    whole: (body) => anthropic.messages.create(body),
    streamed: (body) => anthropic.messages.stream(body).finalMessage(),
  },
  chat: {
    whole: (body) => openai.chat.completions.create(body),
    streamed: (body) => openai.chat.completions.stream(body).finalChatCompletion(),
  },
  responses: {
    whole: (body) => openai.responses.create(body),
    streamed: (body) => openai.responses.stream(body).finalResponse(),
  },
}

const rows = [...chatToMessages, ...responsesToMessages, ...toChat, ...toResponses]

/** Every stream that a model of the wire tells in the cases, once; those whose connection is lost are told apart. */
const scripts: Record<ClientWire, Map<string, { script: string; isReset: boolean }>> = {
  messages: scriptsOf('messages'),
  chat: scriptsOf('chat'),
  responses: scriptsOf('responses'),
}

function scriptsOf(wire: ClientWire): Map<string, { script: string; isReset: boolean }> {
  const found = new Map<string, { script: string; isReset: boolean }>()
  for (const row of rows.filter((one) => one.upstream === wire && !one.isJson)) {
    const isReset = row.arrival?.end === 'reset'
    found.set(`${isReset} ${row.script}`, { script: row.script, isReset })
  }
  for (const script of streamSeeds[wire]) found.set(`false ${script}`, { script, isReset: false })
  return found
}

for (const client of wires) {
  for (const wire of wires.filter((name) => name !== client)) {
    // Two clients share the streams of a wire.
    const turn = wires.filter((name) => name !== wire).indexOf(client)
    const played = takeTurn([...scripts[wire].values()], turn, 2)
    test(`A119 T12 the ${client} SDK turns each of ${played.length} streams of ${wire} models into the JSON answer, or fails`, async () => {
      const outcomes = { answers: 0, failures: 0, resolvedAsFailed: 0 }
      for (const { script, isReset } of played) {
        // Only where there is reasoning does it matter whether it was asked for.
        for (const wish of /reason|think/.test(script) ? [{}, wishes[client]] : [wishes[client]]) {
          gateway.play(sse(script, isReset ? 'reset' : 'end'))
          const body = say(client, wire, wish) as never
          const [whole, streamed] = await Promise.allSettled([sdks[client].whole(body), sdks[client].streamed(body)])
          if (whole.status === 'fulfilled') {
            outcomes.answers++
            assert.equal(streamed.status, 'fulfilled', `${String((streamed as Json)['reason'])}\n${script}`)
            const read = (streamed as Json)['value']
            assert.deepEqual(comparable(client, read), comparable(client, whole.value), script)
          } else {
            outcomes.failures++
            if (streamed.status === 'fulfilled') outcomes.resolvedAsFailed++
            assertFailed(client, whole.reason, streamed, script)
          }
        }
      }
      assert.ok(outcomes.answers > 6 && outcomes.failures >= 1, JSON.stringify(outcomes))
      assert.equal(outcomes.resolvedAsFailed > 0, client === 'responses')
    })
  }
}

/** The JSON answer failed with a status; so does the stream, before it began or within it. */
function assertFailed(client: ClientWire, reason: Json, streamed: PromiseSettledResult<unknown>, script: string): void {
  const isBusy = reason['status'] === 429 && /The model is overloaded/.test(String(reason))
  assert.ok(isBusy || [400, 502].includes(reason['status']), `${String(reason)}\n${script}`)
  if (streamed.status === 'rejected') {
    const vendor = client === 'messages' ? Anthropic.AnthropicError : OpenAI.OpenAIError
    assert.ok(streamed.reason instanceof vendor, String(streamed.reason))
    return
  }
  assert.equal(client, 'responses', script)
  assert.equal((streamed.value as Json)['status'], 'failed', script)
}

/** What an SDK adds to an answer, and what is new in every answer, aside. */
function comparable(client: ClientWire, answer: unknown): unknown {
  const own = [
    'id',
    'call_id',
    'created',
    'created_at',
    'completed_at',
    'usage',
    'parsed',
    'parsed_arguments',
    'parsed_output',
    'output_parsed',
    '_request_id',
  ]
  if (client === 'messages' && (answer as Json)['stop_reason'] === 'max_tokens') {
    // The SDK makes what it can of arguments that a cap has cut; in JSON they stand as they are (R-ARGS).
    own.push('input')
  }
  const plain: Json = JSON.parse(JSON.stringify(answer), (key, value: unknown) =>
    own.includes(key) ? undefined : value,
  )
  if (client === 'responses') delete plain['output_text']
  // The first chunk of a stream has an empty text, which is what the SDK starts from (translation 4.3).
  if (client === 'chat') {
    for (const { message } of plain['choices']) {
      message.content ||= null
      // Of a field that the SDK does not know it keeps the last piece only.
      delete message.reasoning_content
    }
  }
  return plain
}
