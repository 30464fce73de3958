import OpenAI from 'openai'
import type { Ask, Client, Place, Told, Turn } from '../client.ts'
import { heardFetch } from '../client.ts'

type Params = OpenAI.Responses.ResponseCreateParamsNonStreaming

export function responsesClient(place: Place): Client {
  const sdk = new OpenAI({ baseURL: `${place.url}/v1`, apiKey: place.key, maxRetries: 0, fetch: heardFetch(place) })
  return {
    wire: 'responses',
    can: { stop: false, countTokens: false },
    async ask(model, asked, isStreamed) {
      const params = paramsOf(model, asked)
      const options = { signal: asked.signal ?? null }
      if (!isStreamed) return toldOf(await sdk.responses.create(params, options))
      const stream = sdk.responses.stream({ ...params, stream: true }, options)
      stream.on('response.output_text.delta', () => asked.onText?.())
      return toldOf(await stream.finalResponse())
    },
  }
}

function paramsOf(model: string, { turns, system, tools, choice, cap, reasoning, schema }: Ask): Params {
  return {
    model,
    input: turns.flatMap(itemsOf),
    ...(system && { instructions: system }),
    ...(tools && {
      tools: tools.map(({ name, schema }) => ({
        type: 'function' as const,
        name,
        parameters: schema as Record<string, unknown>,
        strict: false,
      })),
    }),
    ...(choice && {
      tool_choice: typeof choice === 'object' ? { type: 'function' as const, name: choice.name } : choice,
    }),
    ...(cap && { max_output_tokens: cap }),
    ...(reasoning && {
      reasoning:
        reasoning === 'off' ? { effort: 'none' as const } : { effort: 'medium' as const, summary: 'auto' as const },
    }),
    ...(schema && {
      text: {
        format: { type: 'json_schema', name: 'answer', schema: schema as Record<string, unknown>, strict: true },
      },
    }),
  }
}

function itemsOf(turn: Turn): OpenAI.Responses.ResponseInputItem[] {
  switch (turn.by) {
    case 'user': {
      if (turn.imageBase64 === undefined) return [{ role: 'user', content: turn.text }]
      const image_url = `data:image/png;base64,${turn.imageBase64}`
      const image = { type: 'input_image' as const, detail: 'auto' as const, image_url }
      return [{ role: 'user', content: [image, { type: 'input_text', text: turn.text }] }]
    }
    case 'tool':
      return [{ type: 'function_call_output', call_id: turn.id, output: turn.text }]
    case 'model': {
      const said = turn.text ? [{ role: 'assistant' as const, content: turn.text }] : []
      const calls = (turn.calls ?? []).map((call) => ({
        type: 'function_call' as const,
        call_id: call.id,
        name: call.name,
        arguments: JSON.stringify(call.arguments),
      }))
      return [...said, ...calls]
    }
  }
}

function toldOf({ output, status, incomplete_details, usage, error }: OpenAI.Responses.Response): Told {
  if (status === 'failed') throw new Error(error?.message ?? 'it failed')
  const calls = output.flatMap((item) =>
    item.type === 'function_call' ? [{ id: item.call_id, name: item.name, arguments: JSON.parse(item.arguments) }] : [],
  )
  const texts = output.flatMap((item) => (item.type === 'message' ? item.content : []))
  const thoughts = output.flatMap((item) =>
    item.type === 'reasoning' ? [...item.summary, ...(item.content ?? [])] : [],
  )
  const isCapped = status === 'incomplete' && incomplete_details?.reason === 'max_output_tokens'
  return {
    text: texts.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    reasoning: thoughts.map(({ text }) => text).join(''),
    calls,
    why: isCapped ? 'cap' : calls.length > 0 ? 'calls' : 'end',
    usage: {
      input: usage?.input_tokens ?? 0,
      cached: usage?.input_tokens_details?.cached_tokens ?? 0,
      output: usage?.output_tokens ?? 0,
    },
  }
}
