import assert from 'node:assert/strict'
import test from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { wires as spoken } from '../../src/wires/wires.ts'
import type { Json } from './cases.ts'
import { modelOf } from './page.ts'
import { type ClientWire, pump } from './pump.ts'
import { streamSeeds } from './seeds.ts'
import {
  call,
  created,
  done,
  events,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  terminal,
  toolBlock,
  wholeCall,
} from './upstreams.ts'

/** Each wire's model calls f twice, with ids of its own. */
const twoCalls: Record<ClientWire, string> = {
  chat: call([0, 'up_1', 'f', '{"n":1}']) + call([1, 'up_2', 'f', '{"n":2}']) + reason('tool_calls') + done,
  messages:
    messageStart() +
    toolBlock(0, 'f', '{"n":1}') +
    toolBlock(1, 'f', '{"n":2}') +
    messageDelta('tool_use') +
    messageStop,
  responses: events(created, ...wholeCall(0, 'f', '{"n":1}'), ...wholeCall(1, 'f', '{"n":2}'), terminal('completed')),
}

/** What a client sends as its next turn: the answer it got, and a result for each call, the second one first. */
const nextTurns: Record<ClientWire, (answer: Json) => Json> = {
  messages: ({ content }) => ({
    max_tokens: 100,
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages: [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content },
      {
        role: 'user',
        content: [1, 0].map((i) => ({ type: 'tool_result', tool_use_id: content[i].id, content: `result ${i + 1}` })),
      },
    ],
  }),
  chat: ({ choices: [{ message }] }) => ({
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    messages: [
      { role: 'user', content: 'Go' },
      message,
      ...[1, 0].map((i) => ({ role: 'tool', tool_call_id: message.tool_calls[i].id, content: `result ${i + 1}` })),
    ],
  }),
  responses: ({ output }) => ({
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object' } }],
    input: [
      { role: 'user', content: 'Go' },
      ...output,
      ...[1, 0].map((i) => ({ type: 'function_call_output', call_id: output[i].call_id, output: `result ${i + 1}` })),
    ],
  }),
}

/** Which result a call's id has in an upstream request: `arguments → result` for each call. */
const pairings: Record<ClientWire, (body: Json) => string[]> = {
  messages: ({ messages }) => {
    const blocks: Json[] = messages.flatMap((message: Json) =>
      Array.isArray(message['content']) ? message['content'] : [],
    )
    return blocks
      .filter((block) => block['type'] === 'tool_use')
      .map(({ id, input }) => `${input.n} → ${textOf(blocks.find((block) => block['tool_use_id'] === id)!['content'])}`)
  },
  chat: ({ messages }) =>
    messages
      .flatMap((message: Json) => message['tool_calls'] ?? [])
      .map(
        (one: Json) =>
          `${JSON.parse(one['function'].arguments).n} → ${messages.find((message: Json) => message['tool_call_id'] === one['id']).content}`,
      ),
  responses: ({ input }) =>
    input
      .filter((item: Json) => item['type'] === 'function_call')
      .map(
        (one: Json) =>
          `${JSON.parse(one['arguments']).n} → ${input.find((item: Json) => item['type'] === 'function_call_output' && item['call_id'] === one['call_id']).output}`,
      ),
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : (content as Json[]).map((part) => part['text']).join('')
}

const names: ClientWire[] = ['messages', 'chat', 'responses']
for (const client of names) {
  for (const upstream of names.filter((name) => name !== client)) {
    test(`A122 ${client} to ${upstream}: calls are sent, results come back, and the second request pairs their ids`, () => {
      const told = pump(client, upstream, twoCalls[upstream])
      const body = { model: 'catalog/model', ...nextTurns[client](JSON.parse(told.json!)) }
      const request = spoken[client].client.decodeRequest(new ClientBody(Buffer.from(JSON.stringify(body))), {
        cacheKey: undefined,
        unseal: () => undefined,
      })
      const encoded = spoken[upstream].model.encodeRequest(request, modelOf(upstream, undefined))
      assert.deepEqual(pairings[upstream](JSON.parse(encoded.body.toString())), ['1 → result 1', '2 → result 2'])
    })
  }
}

test("A120 the upstream's ids, names and comments are not visible, and the model is the catalog's", () => {
  for (const client of names) {
    for (const upstream of names) {
      if (client === upstream) continue
      for (const script of streamSeeds[upstream]) {
        const told = pump(client, upstream, `: hosted comment\n\n${script}`, { showsReasoning: true })
        assert.doesNotMatch(told.text + told.json, /hosted/)
        assert.match(told.text, /"model":"catalog\/model"/)
      }
    }
  }
})

/** A fetch that answers with this stream, so that an SDK's own reader judges it. */
const answering = (text: string) => async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
const seeds = { messages: streamSeeds.messages[0]!, chat: streamSeeds.chat[1]!, responses: streamSeeds.responses[0]! }

for (const upstream of ['chat', 'responses'] as const) {
  test(`T10 T12 the messages SDK reads an answer of a ${upstream} model`, async () => {
    const told = pump('messages', upstream, seeds[upstream], { showsReasoning: true })
    const sdk = new Anthropic({ apiKey: 'x', fetch: answering(told.text), maxRetries: 0 })
    const message = await sdk.messages
      .stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })
      .finalMessage()
    assert.deepEqual(JSON.parse(JSON.stringify(message.content)), JSON.parse(told.json!).content)
    assert.equal(message.stop_reason, 'tool_use')
  })
}

for (const upstream of ['messages', 'responses'] as const) {
  test(`T12 the chat SDK reads an answer of a ${upstream} model`, async () => {
    const told = pump('chat', upstream, seeds[upstream], { showsReasoning: true })
    const sdk = new OpenAI({ apiKey: 'x', fetch: answering(told.text), maxRetries: 0 })
    const chat = await sdk.chat.completions
      .stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
      .finalChatCompletion()
    assert.equal(chat.choices[0]!.finish_reason, 'tool_calls')
    assert.equal(chat.choices[0]!.message.tool_calls?.length, 1)
  })
}

for (const upstream of ['messages', 'chat'] as const) {
  test(`T12 the responses SDK reads an answer of a ${upstream} model`, async () => {
    const told = pump('responses', upstream, seeds[upstream], { showsReasoning: true })
    const sdk = new OpenAI({ apiKey: 'x', fetch: answering(told.text), maxRetries: 0 })
    const response = await sdk.responses.stream({ model: 'm', input: 'x' }).finalResponse()
    assert.deepEqual(
      response.output.map((item) => item.id),
      JSON.parse(told.json!).output.map((item: Json) => item['id']),
    )
    assert.ok(response.output_text.length > 0)
  })
}
