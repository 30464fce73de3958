import Anthropic from '@anthropic-ai/sdk'
import type { Ask, Client, Place, Told, Turn } from '../client.ts'
import { heardFetch } from '../client.ts'

type Params = Anthropic.MessageCreateParamsNonStreaming

/** The output cap of requests without one, because the wire requires it. */
const capDefault = 300

export function messagesClient(place: Place): Client {
  const sdk = new Anthropic({ baseURL: place.url, apiKey: place.key, maxRetries: 0, fetch: heardFetch(place) })
  return {
    wire: 'messages',
    can: { stop: true, countTokens: true },
    async ask(model, asked, isStreamed) {
      const params = paramsOf(model, asked)
      const options = { signal: asked.signal ?? null }
      if (!isStreamed) return toldOf(await sdk.messages.create(params, options))
      const stream = sdk.messages.stream(params, options)
      stream.on('text', () => asked.onText?.())
      return toldOf(await stream.finalMessage())
    },
    async countTokens(model, text) {
      // On a busy machine, the gateway refuses counts in favour of requests that pay (ruling R18).
      const counted = await sdk
        .withOptions({ maxRetries: 8 })
        .messages.countTokens({ model, messages: [{ role: 'user', content: text }] })
      return counted.input_tokens
    },
  }
}

function paramsOf(model: string, { turns, system, tools, choice, stops, cap, reasoning, schema }: Ask): Params {
  return {
    model,
    max_tokens: cap ?? capDefault,
    messages: turns.map(messageOf),
    ...(system && { system }),
    ...(tools && {
      tools: tools.map(({ name, schema }) => ({ name, input_schema: schema as Anthropic.Tool.InputSchema })),
    }),
    ...(choice && { tool_choice: choiceOf(choice) }),
    ...(stops && { stop_sequences: [...stops] }),
    ...(reasoning === 'shown' && { max_tokens: 2000, thinking: { type: 'enabled', budget_tokens: 1024 } }),
    ...(reasoning === 'off' && { thinking: { type: 'disabled' } }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema: schema as Record<string, unknown> } } }),
  }
}

function choiceOf(choice: NonNullable<Ask['choice']>): Anthropic.ToolChoice {
  if (typeof choice === 'object') return { type: 'tool', name: choice.name }
  return { type: choice === 'required' ? 'any' : 'none' }
}

function messageOf(turn: Turn): Anthropic.MessageParam {
  switch (turn.by) {
    case 'user': {
      if (turn.imageBase64 === undefined) return { role: 'user', content: turn.text }
      const source = { type: 'base64', media_type: 'image/png', data: turn.imageBase64 } as const
      return {
        role: 'user',
        content: [
          { type: 'image', source },
          { type: 'text', text: turn.text },
        ],
      }
    }
    case 'tool':
      return { role: 'user', content: [{ type: 'tool_result', tool_use_id: turn.id, content: turn.text }] }
    case 'model': {
      const calls = (turn.calls ?? []).map((call) => ({
        type: 'tool_use' as const,
        id: call.id,
        name: call.name,
        input: call.arguments,
      }))
      return {
        role: 'assistant',
        content: [...(turn.text ? [{ type: 'text' as const, text: turn.text }] : []), ...calls],
      }
    }
  }
}

const whys: Record<string, Told['why']> = { tool_use: 'calls', max_tokens: 'cap', stop_sequence: 'stop' }

function toldOf({ content, stop_reason, usage }: Anthropic.Message): Told {
  const read = usage.cache_read_input_tokens ?? 0
  return {
    text: content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
    reasoning: content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join(''),
    calls: content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, arguments: block.input }] : [],
    ),
    why: whys[stop_reason ?? ''] ?? 'end',
    usage: {
      input: usage.input_tokens + read + (usage.cache_creation_input_tokens ?? 0),
      cached: read,
      output: usage.output_tokens,
    },
  }
}
