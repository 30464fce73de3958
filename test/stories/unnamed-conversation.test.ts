import assert from 'node:assert/strict'
import test from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { filler, type Shape, shapes } from '../support/agent-shapes.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'

/*
 * What six turns of an agent cost on a messages model, by the ledger, when the agent names no conversation and when it
 * does (A2, T5). Each plays a task as a real one was seen to (clients/unnamed.ts): the lengths of its system prompt, of its
 * tools, of the task and of the results are those of that agent, in characters.
 */

type Play = (gateway: TestGateway, shape: Shape, headers: Record<string, string>) => Promise<void>

const parameters = { type: 'object' as const, properties: { what: { type: 'string' as const } } }
const modelId = 'marked'

const chat: Play = async ({ url, key }, shape, defaultHeaders) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, defaultHeaders })
  const tools = shape.tools.map((size, index) => ({
    type: 'function' as const,
    function: { name: `tool_${index}`, description: filler(size), parameters },
  }))
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: filler(shape.system) },
    { role: 'user', content: filler(shape.task) },
  ]
  for (const results of [...shape.results, []]) {
    const { choices } = await client.chat.completions.create({ model: modelId, messages, tools })
    const { message } = choices[0]!
    const calls = message.tool_calls ?? []
    assert.equal(calls.length, results.length)
    messages.push(message)
    for (const [index, { id }] of calls.entries())
      messages.push({ role: 'tool', tool_call_id: id, content: filler(results[index]!) })
  }
}

const responses: Play = async ({ url, key }, shape, defaultHeaders) => {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, defaultHeaders })
  const tools = shape.tools.map((size, index) => ({
    type: 'function' as const,
    name: `tool_${index}`,
    description: filler(size),
    parameters,
    strict: false,
  }))
  const instructions = filler(shape.system)
  const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: filler(shape.task) }]
  for (const results of [...shape.results, []]) {
    const { output } = await client.responses.create({ model: modelId, instructions, input, tools })
    const calls = output.filter((item) => item.type === 'function_call')
    assert.equal(calls.length, results.length)
    input.push(...(output as OpenAI.Responses.ResponseInput))
    for (const [index, { call_id }] of calls.entries())
      input.push({ type: 'function_call_output', call_id, output: filler(results[index]!) })
  }
}

const messages: Play = async ({ url, key }, shape, defaultHeaders) => {
  const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0, defaultHeaders })
  const tools = shape.tools.map((size, index) => ({
    name: `tool_${index}`,
    description: filler(size),
    input_schema: parameters,
  }))
  const system = filler(shape.system)
  const turns: Anthropic.MessageParam[] = [{ role: 'user', content: filler(shape.task) }]
  for (const results of [...shape.results, []]) {
    const request = { model: modelId, max_tokens: 1_000, system, messages: turns, tools }
    const { content } = await client.messages.create(request)
    const calls = content.filter((block) => block.type === 'tool_use')
    assert.equal(calls.length, results.length)
    turns.push({ role: 'assistant', content })
    const told = calls.map(({ id }, index) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: filler(results[index]!),
    }))
    turns.push({ role: 'user', content: told })
  }
}

const cases: [agent: string, wire: string, play: Play, profile: Record<string, unknown>][] = [
  ['droid 0.215.0', 'chat', chat, {}],
  ['cn 1.5.47', 'chat', chat, {}],
  ['cline 3.0.65', 'chat', chat, {}],
  ['cline 3.0.65', 'responses', responses, {}],
  ['cline 3.0.65', 'messages, by auto_cache_same_wire', messages, { auto_cache_same_wire: true }],
]

/** In nano-credits. */
async function costOf(play: Play, shape: Shape, profile: object, headers: Record<string, string>): Promise<number> {
  const model = testModel(modelId, 'messages', { profile: { extends: 'simulator', ...profile } })
  const gateway = await startTestGateway({ models: [model] })
  const calls = shape.results.map((results, turn) => ({
    tool_calls: results.map((_, index) => ({ name: `tool_${index}`, arguments: { what: `turn ${turn}` } })),
  }))
  gateway.simulator.script('up-messages', { turns: [...calls, { reply: 'The task is done.' }] })
  await play(gateway, shape, headers)
  const entries = [...gateway.store.listEntries({ limit: 100 })].filter(({ bill }) => bill)
  assert.equal(entries.length, 6)
  await gateway.close()
  return entries.reduce((sum, { amountNanos }) => sum + Number(amountNanos), 0)
}

const named = { 'x-session-id': 'one-conversation' }

for (const [agent, wire, play, profile] of cases) {
  test(`A2 T5 six turns of ${agent} on ${wire}: without a name for the conversation they cost the same, within 15 %`, async (t) => {
    const shape = shapes[agent]!
    const [unnamed, withName] = [await costOf(play, shape, profile, {}), await costOf(play, shape, profile, named)]
    const onKey = await costOf(play, shape, { ...profile, auto_cache: 'on_key' }, {})
    const told = [unnamed, withName, onKey].map((nanos) => (nanos / 1e9).toFixed(4))
    t.diagnostic(`${agent}, ${wire}: ${told[0]} unnamed, ${told[1]} named, ${told[2]} unnamed with on_key`)
    assert.ok(unnamed <= 1.15 * withName, `${told[0]} without a name, ${told[1]} with one`)
    assert.ok(onKey > 2 * unnamed, 'without marks it is more than twice as much')
  })
}
