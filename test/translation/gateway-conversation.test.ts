import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { memberText } from '../../src/bytes/json.ts'
import { scanObject } from '../../src/bytes/scan.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { fateOf } from '../../src/wires/requests/scalars.ts'
import { wires as wireTable } from '../../src/wires/wires.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import type { Json } from './cases.ts'
import { png } from './support/exchange.ts'
import { paths, wires } from './support/scripted.ts'
import { transcripts } from './support/transcript.ts'

/*
 * One conversation of five requests with parallel calls, reasoning and an image in a tool result, held by each vendor's
 * SDK with a model of each wire. The simulator judges every request as the model's vendor would.
 */

let gateway: TestGateway
let anthropic: Anthropic
let openai: OpenAI
before(async () => {
  const reasoning = { style: 'effort', levels: ['low', 'medium', 'high'], can_disable: true }
  gateway = await startTestGateway({
    models: [
      testModel('talks-messages', 'messages', {
        upstream_model: 'talk',
        profile: { reasoning: { ...reasoning, style: 'adaptive' } },
      }),
      testModel('talks-chat', 'chat', { upstream_model: 'talk', profile: { reasoning } }),
      testModel('talks-responses', 'responses', { upstream_model: 'talk', profile: { reasoning } }),
    ],
  })
  gateway.simulator.script('talk', {
    turns: [
      {
        reasoning: 'Two cities.',
        tool_calls: [
          { name: 'weather', arguments: '{"city":"Paris","n":12345678901234567890}' },
          { name: 'weather', arguments: '{"city":"Rome","n":1.0}' },
        ],
      },
      { reasoning: 'A map too.', reply: 'Now a map.', tool_calls: [{ name: 'map', arguments: { city: 'Rome' } }] },
      { reasoning: 'All is there.', reply: 'It is sunny in both.' },
      { reasoning: 'One more.', tool_calls: [{ name: 'weather', arguments: { city: 'Oslo' } }] },
      { reply: 'It rains in Oslo.' },
    ],
  })
  anthropic = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
  openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
})
after(() => gateway.close())

/** What the user's side adds before each of the five requests: results in the order of the calls, then words. */
type Said = { results: { text: string; hasImage?: boolean }[]; words?: string }
const said: Said[] = [
  { results: [], words: 'What about Paris and Rome?' },
  { results: [{ text: 'sunny in Paris' }, { text: 'sunny in Rome', hasImage: true }] },
  { results: [{ text: 'a map of Rome' }] },
  { results: [], words: 'And Oslo?' },
  { results: [{ text: 'rain in Oslo' }] },
]

const weather = {
  type: 'object',
  properties: { city: { type: 'string' }, n: { type: 'number' } },
  required: ['city'],
} as const
const dataUrl = `data:image/png;base64,${png}`

/** Each client: one request with the list so far, and what its user's side adds to the list. */
const clients: Record<
  ClientWire,
  {
    ask: (model: string, list: Json[], stream: boolean) => Promise<{ added: Json[]; callIds: string[] }>
    say: (said: Said, callIds: string[]) => Json[]
  }
> = {
  messages: {
    async ask(model, list, stream) {
      const body = {
        model,
        max_tokens: 4_000,
        system: 'Be brief.',
        thinking: { type: 'enabled', budget_tokens: 2_000 },
        tools: ['weather', 'map'].map((name) => ({ name, input_schema: weather })),
        messages: list,
      } as unknown as Anthropic.MessageCreateParamsNonStreaming
      const message = await (stream ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body))
      const calls = message.content.filter((block) => block.type === 'tool_use')
      return { added: [{ role: 'assistant', content: message.content }], callIds: calls.map(({ id }) => id) }
    },
    say({ results, words }, callIds) {
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
      const blocks = results.map(({ text, hasImage }, i) => ({
        type: 'tool_result',
        tool_use_id: callIds[i],
        content: hasImage ? [{ type: 'text', text }, image] : text,
      }))
      return [{ role: 'user', content: [...blocks, ...(words ? [{ type: 'text', text: words }] : [])] }]
    },
  },
  chat: {
    async ask(model, list, stream) {
      const body = {
        model,
        reasoning_effort: 'medium',
        prompt_cache_key: 'talk',
        tools: ['weather', 'map'].map((name) => ({ type: 'function', function: { name, parameters: weather } })),
        messages: [{ role: 'system', content: 'Be brief.' }, ...list],
      } as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming
      const { choices } = await (stream
        ? openai.chat.completions.stream(body as never).finalChatCompletion()
        : openai.chat.completions.create(body))
      const { content, tool_calls } = choices[0]!.message
      const calls = (tool_calls ?? []).flatMap((call) =>
        call.type === 'function'
          ? [
              {
                id: call.id,
                type: call.type,
                function: { name: call.function.name, arguments: call.function.arguments },
              },
            ]
          : [],
      )
      const turn = { role: 'assistant', content: content || null, ...(calls.length > 0 && { tool_calls: calls }) }
      return { added: [turn], callIds: calls.map(({ id }) => id) }
    },
    say({ results, words }, callIds) {
      // This wire has images in user messages only.
      const images = results
        .filter(({ hasImage }) => hasImage)
        .map(() => ({ type: 'image_url', image_url: { url: dataUrl } }))
      const parts = [...images, ...(words ? [{ type: 'text', text: words }] : [])]
      return [
        ...results.map(({ text }, i) => ({ role: 'tool', tool_call_id: callIds[i], content: text })),
        ...(parts.length > 0 ? [{ role: 'user', content: parts }] : []),
      ]
    },
  },
  responses: {
    async ask(model, list, stream) {
      const body = {
        model,
        instructions: 'Be brief.',
        reasoning: { effort: 'medium', summary: 'auto' },
        include: ['reasoning.encrypted_content'],
        store: false,
        prompt_cache_key: 'talk',
        tools: ['weather', 'map'].map((name) => ({ type: 'function', name, parameters: weather, strict: false })),
        input: list,
      } as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming
      const { output } = await (stream
        ? openai.responses.stream(body as never).finalResponse()
        : openai.responses.create(body))
      const added = output.map((item) =>
        JSON.parse(JSON.stringify(item), (key, value: unknown) => (key === 'parsed_arguments' ? undefined : value)),
      )
      return { added, callIds: output.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : [])) }
    },
    say({ results, words }, callIds) {
      const image = { type: 'input_image', image_url: dataUrl, detail: 'auto' }
      return [
        ...results.map(({ text, hasImage }, i) => ({
          type: 'function_call_output',
          call_id: callIds[i],
          output: hasImage ? [{ type: 'input_text', text }, image] : text,
        })),
        ...(words ? [{ role: 'user', content: [{ type: 'input_text', text: words }] }] : []),
      ]
    },
  },
}

/** The conversation as every upstream must see it in the fifth request; reasoning only where it can be given back. */
const whole = [
  'system: Be brief.',
  'user: What about Paris and Rome?',
  'reasoning: Two cities.',
  'call 1: weather {"city":"Paris","n":12345678901234567890}',
  'call 2: weather {"city":"Rome","n":1.0}',
  'result 1: sunny in Paris',
  'result 2: sunny in Rome',
  'image',
  'reasoning: A map too.',
  'assistant: Now a map.',
  'call 3: map {"city":"Rome"}',
  'result 3: a map of Rome',
  'reasoning: All is there.',
  'assistant: It is sunny in both.',
  'user: And Oslo?',
  'reasoning: One more.',
  'call 4: weather {"city":"Oslo"}',
  'result 4: rain in Oslo',
]

/** Which pairs give a model its own reasoning back: those of its wire whose items hold it, and sealed ones (T7). */
const keepsReasoning = new Set(['messages→messages', 'responses→responses', 'responses→messages'])

/** What each pair loses in the fifth request, as its access line lists it (ruling T9); its page has no other verdict. */
const lost: Record<string, string[]> = {
  // Reasoning stays behind: unsigned, or another model's.
  'messages→chat': ['messages'],
  'messages→responses': ['messages'],
  'responses→chat': ['store', 'input'],
  'responses→messages': ['store', 'image detail'],
}

for (const client of wires) {
  for (const wire of wires) {
    for (const stream of [false, true]) {
      const pair = `${client}→${wire}`
      test(`T7 T8 T9 A122 five turns with calls, reasoning and an image, ${stream ? 'streamed' : 'JSON'} (${pair})`, async () => {
        gateway.simulator.requests.length = 0
        const list: Json[] = []
        let callIds: string[] = []
        for (const turn of said) {
          list.push(...clients[client].say(turn, callIds))
          const answer = await clients[client].ask(`talks-${wire}`, list, stream)
          list.push(...answer.added)
          callIds = answer.callIds
        }
        const bodies = gateway.simulator.requests.map(({ body }) => body)
        assert.equal(bodies.length, 5)
        assert.ok(gateway.simulator.requests.every(({ path, status }) => path === paths[wire] && status === 200))
        const seen = transcripts[wire](JSON.parse(bodies[4]!), bodies[4]!)
        const expected = keepsReasoning.has(pair) ? whole : whole.filter((line) => !line.startsWith('reasoning'))
        // A number beyond 2^53 survives wherever neither an SDK nor the simulator's JSON has parsed it.
        const keepsDigits = client !== 'messages' && (wire !== 'messages' || stream)
        assert.deepEqual(seen, keepsDigits ? expected : expected.map(asParsed))
        if (wire === 'messages' && client !== 'messages') assert.match(bodies[4]!, /cache_control/)
        for (let i = 1; i < 5; i++) assertGrown(wire, bodies[i - 1]!, bodies[i]!)
        const lines = (await gateway.logLines()).filter(
          (line) => line['model'] === `talks-${wire}` && line['wire'] === client,
        )
        assert.deepEqual(lines.at(-1)!['losses'] ?? [], lost[pair] ?? [])
        for (const field of lost[pair] ?? []) assert.ok(isLossOfPage(client, wire, field), field)
      })
    }
  }
}

/** Whether the page of the pair says of the field that it is dropped, or that it reaches the model in another form. */
function isLossOfPage(client: ClientWire, wire: ClientWire, field: string): boolean {
  if (field === 'image detail') return true // A member of a part; pages tell of fields.
  const facts = wireTable[client].client.fields.get(field)
  const [fate] = facts ? fateOf(facts, client, wireTable[wire]) : []
  return fate === 'dropped' || fate === 'mapped'
}

/** Arguments as values that were parsed: their numbers are JavaScript's. */
function asParsed(line: string): string {
  const call = /^(call \d: \w+ )(.*)$/.exec(line)
  return call ? call[1] + JSON.stringify(JSON.parse(call[2]!)) : line
}

/** T8: the later body is the earlier one with more at the end of the conversation, cache marks aside. */
function assertGrown(wire: ClientWire, earlier: string, later: string): void {
  const [before, now] = [earlier, later].map((text) => {
    const plain = Buffer.from(text.replaceAll(/,"cache_control":\{[^}]*\}/g, ''))
    return new Map(scanObject(plain).map((member) => [member.key, memberText(plain, member)]))
  })
  const conversation = wire === 'responses' ? 'input' : 'messages'
  assert.deepEqual([...now!.keys()], [...before!.keys()])
  for (const [key, value] of before!) {
    if (key !== conversation) assert.equal(now!.get(key), value)
    else assert.ok(now!.get(key)!.startsWith(value.slice(0, -1)), `${value}\n${now!.get(key)}`)
  }
}
