import type { Ask, AskTurn, Json, Wire } from './case.ts'
import { compact, type JsonObject } from './json.ts'

/** Writes a wire-neutral request as the body of a wire. The model is `$model`. */
export function writeAsk(wire: Wire, ask: Ask): JsonObject {
  const { system, text, turns, tools, toolChoice, maxTokens, reasoning, cacheKey, stream, body = {} } = ask
  const all: AskTurn[] = turns ?? [{ user: text ?? 'Hi' }]
  const written: JsonObject = {
    model: '$model',
    ...writers[wire]({ system, turns: all, maxTokens }),
    ...(toolChoice === undefined ? {} : { tool_choice: choices[wire](toolChoice) }),
    ...(reasoning === undefined ? {} : reasonings[wire](reasoning)),
    ...(cacheKey === undefined ? {} : cached[wire](cacheKey, system ?? '')),
    ...(stream ? { stream: true } : {}),
    ...(stream && wire === 'chat' ? { stream_options: { include_usage: true } } : {}),
    ...(tools ? { tools: tools.map((tool) => writeTool(wire, tool)) } : {}),
    ...body,
  }
  return Object.fromEntries(Object.entries(written).filter(([, value]) => value !== null))
}

const choices: { [wire in Wire]: (name: string) => JsonObject } = {
  chat: (name) => ({ type: 'function', function: { name } }),
  responses: (name) => ({ type: 'function', name }),
  messages: (name) => ({ type: 'tool', name }),
}

const reasonings: { [wire in Wire]: (effort: string) => JsonObject } = {
  chat: (effort) => ({ reasoning_effort: effort }),
  responses: (effort) => ({ reasoning: { effort, summary: 'auto' } }),
  messages: () => ({ thinking: { type: 'enabled', budget_tokens: 1_024 } }),
}

const cached: { [wire in Wire]: (key: string, system: string) => JsonObject } = {
  chat: (key) => ({ prompt_cache_key: key }),
  responses: (key) => ({ prompt_cache_key: key }),
  messages: (_, system) => ({ system: [{ type: 'text', text: system, cache_control: { type: 'ephemeral' } }] }),
}

type Turns = { system: string | undefined; turns: AskTurn[]; maxTokens: number | undefined }
type Call = { id: string; name: string; input: Json }

const writers: { [wire in Wire]: (ask: Turns) => JsonObject } = {
  chat: ({ system, turns, maxTokens }) => ({
    messages: [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      ...turns.flatMap((turn): JsonObject[] => {
        if ('native' in turn) return turn.native
        if ('user' in turn) return [{ role: 'user', content: turn.user }]
        if ('results' in turn) {
          return turn.results.map((result) => ({ role: 'tool', tool_call_id: result.id, content: result.text }))
        }
        const tool_calls = turn.calls?.map((call) => ({ id: call.id, type: 'function', function: functionOf(call) }))
        return [compact<JsonObject>({ role: 'assistant', content: turn.assistant || null, tool_calls: tool_calls! })]
      }),
    ],
    ...(maxTokens === undefined ? {} : { max_completion_tokens: maxTokens }),
  }),
  responses: ({ system, turns, maxTokens }) => ({
    ...(system === undefined ? {} : { instructions: system }),
    input: turns.flatMap((turn): JsonObject[] => {
      if ('native' in turn) return turn.native
      if ('user' in turn) return [{ role: 'user', content: turn.user }]
      if ('results' in turn) {
        return turn.results.map(({ id, text }) => ({ type: 'function_call_output', call_id: id, output: text }))
      }
      return [
        ...(turn.assistant ? [{ role: 'assistant', content: turn.assistant }] : []),
        ...(turn.calls ?? []).map((call) => ({ type: 'function_call', call_id: call.id, ...functionOf(call) })),
      ]
    }),
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
  }),
  messages: ({ system, turns, maxTokens }) => ({
    max_tokens: maxTokens ?? 1000,
    ...(system === undefined ? {} : { system }),
    messages: turns.map((turn): JsonObject => {
      if ('native' in turn) return { role: 'assistant', content: turn.native }
      if ('user' in turn) return { role: 'user', content: turn.user }
      if ('results' in turn) {
        const results = turn.results.map(({ id, text }) => ({ type: 'tool_result', tool_use_id: id, content: text }))
        return { role: 'user', content: results }
      }
      const calls = (turn.calls ?? []).map((call) => ({ type: 'tool_use', ...call }))
      return {
        role: 'assistant',
        content: [...(turn.assistant ? [{ type: 'text', text: turn.assistant }] : []), ...calls],
      }
    }),
  }),
}

function functionOf({ name, input }: Call): JsonObject {
  return { name, arguments: JSON.stringify(input) }
}

function writeTool(wire: Wire, { name, description, parameters }: NonNullable<Ask['tools']>[number]): JsonObject {
  const words = compact<JsonObject>({ name, description: description! })
  if (wire === 'messages') return { ...words, input_schema: parameters }
  if (wire === 'responses') return { type: 'function', ...words, parameters, strict: false }
  return { type: 'function', function: { ...words, parameters } }
}
