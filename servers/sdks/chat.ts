import OpenAI from 'openai'
import type { Ask, Client, Place, Told, Turn } from '../client.ts'
import { heardFetch } from '../client.ts'

type Params = OpenAI.Chat.ChatCompletionCreateParamsNonStreaming

export function chatClient(place: Place): Client {
  const sdk = new OpenAI({ baseURL: `${place.url}/v1`, apiKey: place.key, maxRetries: 0, fetch: heardFetch(place) })
  return {
    wire: 'chat',
    can: { stop: true, countTokens: false },
    async ask(model, asked, isStreamed) {
      const params = paramsOf(model, asked)
      const options = { signal: asked.signal ?? null }
      if (!isStreamed) return toldOf(await sdk.chat.completions.create(params, options))
      const usage = { include_usage: true }
      const stream = sdk.chat.completions.stream({ ...params, stream: true, stream_options: usage }, options)
      // Of a field that it does not know, the SDK keeps only the last piece.
      let reasoning = ''
      stream.on('chunk', ({ choices }) => {
        reasoning += (choices[0]?.delta as Reasoning | undefined)?.reasoning_content ?? ''
      })
      stream.on('content', () => asked.onText?.())
      return { ...toldOf(await stream.finalChatCompletion()), reasoning }
    },
  }
}

/** Servers of reasoning models add this field. */
type Reasoning = { reasoning_content?: string }

function paramsOf(model: string, { turns, system, tools, choice, stops, cap, reasoning, schema }: Ask): Params {
  return {
    model,
    messages: [...(system ? [{ role: 'system' as const, content: system }] : []), ...turns.map(messageOf)],
    ...(tools && {
      tools: tools.map(({ name, schema }) => ({
        type: 'function' as const,
        function: { name, parameters: schema as OpenAI.FunctionParameters },
      })),
    }),
    ...(choice && {
      tool_choice: typeof choice === 'object' ? { type: 'function' as const, function: { name: choice.name } } : choice,
    }),
    ...(stops && { stop: [...stops] }),
    ...(cap && { max_completion_tokens: cap }),
    ...(reasoning && { reasoning_effort: reasoning === 'off' ? 'none' : 'medium' }),
    ...(schema && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: schema as Record<string, unknown>, strict: true },
      },
    }),
  }
}

function messageOf(turn: Turn): OpenAI.Chat.ChatCompletionMessageParam {
  switch (turn.by) {
    case 'user': {
      if (turn.imageBase64 === undefined) return { role: 'user', content: turn.text }
      const image_url = { url: `data:image/png;base64,${turn.imageBase64}` }
      return {
        role: 'user',
        content: [
          { type: 'image_url', image_url },
          { type: 'text', text: turn.text },
        ],
      }
    }
    case 'tool':
      return { role: 'tool', tool_call_id: turn.id, content: turn.text }
    case 'model': {
      const tool_calls = turn.calls?.map((call) => ({
        type: 'function' as const,
        id: call.id,
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      }))
      return { role: 'assistant', content: turn.text ?? null, ...(tool_calls && { tool_calls }) }
    }
  }
}

const whys: Record<string, Told['why']> = { tool_calls: 'calls', length: 'cap' }

function toldOf({ choices, usage }: OpenAI.Chat.ChatCompletion): Told {
  const { message, finish_reason } = choices[0]!
  return {
    text: message.content ?? '',
    reasoning: (message as Reasoning).reasoning_content ?? '',
    calls: (message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function'
        ? [{ id: call.id, name: call.function.name, arguments: JSON.parse(call.function.arguments) }]
        : [],
    ),
    why: whys[finish_reason] ?? 'end',
    usage: {
      input: usage?.prompt_tokens ?? 0,
      cached: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      output: usage?.completion_tokens ?? 0,
    },
  }
}
