import type { Answer, AnswerUsage, Json, ScriptedEvent, Wire } from './case.ts'
import { type JsonObject, listOf, objectOf, textOf } from './json.ts'

/** Writes a wire-neutral answer as the JSON body of a wire. */
export function writeAnswer(wire: Wire, answer: Answer, model: string): JsonObject {
  const { text = '', reasoning, stop = 'end', usage = { input: 10, output: 5 } } = answer
  const calls = (answer.calls ?? []).map(({ id, name, input, arguments: words }) => ({
    id,
    name,
    input: input ?? {},
    words: words ?? JSON.stringify(input ?? {}),
  }))
  return writers[wire]({ text, reasoning, stop, usage, calls, model })
}

type Words = {
  text: string
  reasoning: string | undefined
  stop: NonNullable<Answer['stop']>
  usage: AnswerUsage
  calls: { id: string; name: string; input: Json; words: string }[]
  model: string
}

const createdAt = 1_764_547_200

const writers: { [wire in Wire]: (words: Words) => JsonObject } = {
  chat({ text, reasoning, stop, usage, calls, model }) {
    const tool_calls = calls.map(({ id, name, words }) => ({
      id,
      type: 'function',
      function: { name, arguments: words },
    }))
    return {
      id: 'chatcmpl-bothsides',
      object: 'chat.completion',
      created: createdAt,
      model,
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: text || (calls.length > 0 ? null : ''),
            refusal: null,
            ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
            ...(calls.length > 0 ? { tool_calls } : {}),
          },
          logprobs: null,
          finish_reason: { end: 'stop', length: 'length', calls: 'tool_calls', refusal: 'content_filter' }[stop],
        },
      ],
      usage: {
        prompt_tokens: usage.input,
        completion_tokens: usage.output,
        total_tokens: usage.input + usage.output,
        ...(usage.cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: usage.cached } }),
        ...(usage.reasoning === undefined ? {} : { completion_tokens_details: { reasoning_tokens: usage.reasoning } }),
      },
    }
  },
  responses({ text, reasoning, stop, usage, calls, model }) {
    const isWhole = stop === 'end' || stop === 'calls'
    const status = isWhole ? 'completed' : 'incomplete'
    const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
    return {
      id: 'resp_bothsides',
      object: 'response',
      created_at: createdAt,
      status,
      error: null,
      incomplete_details: isWhole ? null : { reason: stop === 'length' ? 'max_output_tokens' : 'content_filter' },
      instructions: null,
      max_output_tokens: null,
      model,
      output: [
        ...given(reasoning, (words) => ({
          id: 'rs_1',
          type: 'reasoning',
          summary: [{ type: 'summary_text', text: words }],
        })),
        ...given(text || calls.length === 0 ? text : undefined, () => ({
          id: 'msg_1',
          type: 'message',
          status,
          role: 'assistant',
          content,
        })),
        ...calls.map(
          ({ id, name, words }, at): JsonObject => ({
            id: `fc_${at + 1}`,
            type: 'function_call',
            status: 'completed',
            call_id: id,
            name,
            arguments: words,
          }),
        ),
      ],
      parallel_tool_calls: true,
      previous_response_id: null,
      store: false,
      temperature: 1,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: usage.input,
        input_tokens_details: { cached_tokens: usage.cached ?? 0 },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
        total_tokens: usage.input + usage.output,
      },
      metadata: {},
    }
  },
  messages({ text, reasoning, stop, usage, calls, model }) {
    const { input, output, cached, cacheWrite } = usage
    return {
      id: 'msg_bothsides',
      type: 'message',
      role: 'assistant',
      model,
      content: [
        ...given(reasoning, (thinking) => ({ type: 'thinking', thinking, signature: 'Ym90aHNpZGVzLXNpZ25hdHVyZQ==' })),
        ...given(text || calls.length === 0 ? text : undefined, (words) => ({ type: 'text', text: words })),
        ...calls.map(({ id, name, input: value }): JsonObject => ({ type: 'tool_use', id, name, input: value })),
      ],
      stop_reason: { end: 'end_turn', length: 'max_tokens', calls: 'tool_use', refusal: 'refusal' }[stop],
      stop_sequence: null,
      usage: {
        input_tokens: input - (cached ?? 0) - (cacheWrite ?? 0),
        ...(cached === undefined ? {} : { cache_read_input_tokens: cached }),
        ...(cacheWrite === undefined ? {} : { cache_creation_input_tokens: cacheWrite }),
        output_tokens: output,
        ...(usage.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } }),
      },
    }
  },
}

function given(words: string | undefined, make: (words: string) => JsonObject): JsonObject[] {
  return words === undefined ? [] : [make(words)]
}

/** How a whole body is sent as a stream. @property pieces the number of deltas of each text */
type Streaming = { pieces?: number | undefined; hasUsage?: boolean }

/** Writes the events of a stream that brings a whole body. */
export function writeStream(wire: Wire, body: JsonObject, { pieces = 2, hasUsage = true }: Streaming): ScriptedEvent[] {
  const events = streamers[wire](body, pieces, hasUsage)
  return events.map((data) => ({ data }))
}

const streamers: {
  [wire in Wire]: (body: JsonObject, pieces: number, hasUsage: boolean) => (JsonObject | string)[]
} = {
  chat(body, pieces, hasUsage) {
    const { choices, usage, object, ...rest } = body
    const head = { ...rest, object: 'chat.completion.chunk' }
    const chunk = (index: number, delta: JsonObject, finish_reason: string | null = null) => ({
      ...head,
      choices: [{ index, delta, logprobs: null, finish_reason }],
    })
    const chunks = listOf(choices).flatMap(({ index, message, finish_reason }) => {
      const at = Number(index ?? 0)
      const { role, content, tool_calls, refusal, ...others } = objectOf(message)
      return [
        chunk(at, { role: role ?? 'assistant', content: '' }),
        ...Object.entries(others).flatMap(([name, value]) =>
          typeof value === 'string'
            ? cut(value, pieces).map((piece) => chunk(at, { [name]: piece }))
            : [chunk(at, { [name]: value })],
        ),
        ...cut(textOf(content), pieces).map((piece) => chunk(at, { content: piece })),
        ...(typeof refusal === 'string' ? [chunk(at, { refusal })] : []),
        ...listOf(tool_calls).flatMap((call, place) => {
          const { name, arguments: words } = objectOf(call['function'])
          const start = { index: place, id: call['id']!, type: 'function', function: { name: name!, arguments: '' } }
          return [
            chunk(at, { tool_calls: [start] }),
            ...cut(textOf(words), pieces).map((piece) =>
              chunk(at, { tool_calls: [{ index: place, function: { arguments: piece } }] }),
            ),
          ]
        }),
        chunk(at, {}, textOf(finish_reason)),
      ]
    })
    return [...chunks, ...(hasUsage && usage ? [{ ...head, choices: [], usage }] : []), '[DONE]']
  },
  messages(body, pieces) {
    const { content, stop_reason, stop_sequence, usage, ...rest } = body
    const { output_tokens, output_tokens_details, ...input } = objectOf(usage)
    const start = {
      ...rest,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...input, output_tokens: 1 },
    }
    const events = listOf(content).flatMap((block, index): JsonObject[] => {
      const delta = (value: JsonObject) => ({ type: 'content_block_delta', index, delta: value })
      const { text, thinking, signature, input: value, ...kind } = block
      const open: JsonObject = { ...kind }
      const deltas: JsonObject[] = []
      if (typeof text === 'string') {
        open['text'] = ''
        deltas.push(...cut(text, pieces).map((piece) => delta({ type: 'text_delta', text: piece })))
      }
      if (typeof thinking === 'string') {
        Object.assign(open, { thinking: '', signature: '' })
        deltas.push(...cut(thinking, pieces).map((piece) => delta({ type: 'thinking_delta', thinking: piece })))
        deltas.push(delta({ type: 'signature_delta', signature: textOf(signature) }))
      }
      if (value !== undefined) {
        open['input'] = {}
        const pieced = cut(JSON.stringify(value), pieces)
        deltas.push(...pieced.map((piece) => delta({ type: 'input_json_delta', partial_json: piece })))
      }
      return [
        { type: 'content_block_start', index, content_block: open },
        ...deltas,
        { type: 'content_block_stop', index },
      ]
    })
    const sent: JsonObject[] = [
      { type: 'message_start', message: start },
      { type: 'ping' },
      ...events,
      {
        type: 'message_delta',
        delta: { stop_reason: stop_reason ?? null, stop_sequence: stop_sequence ?? null },
        usage: {
          ...input,
          output_tokens: output_tokens ?? 0,
          ...(output_tokens_details === undefined ? {} : { output_tokens_details }),
        },
      },
      { type: 'message_stop' },
    ]
    return sent
  },
  responses(body, pieces) {
    const begun = { ...body, status: 'in_progress', output: [], usage: null, incomplete_details: null }
    const events: JsonObject[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      ...listOf(body['output']).flatMap((item, output_index) => streamItem(item, output_index, pieces)),
      { type: body['status'] === 'incomplete' ? 'response.incomplete' : 'response.completed', response: body },
    ]
    return events.map((event, sequence_number) => ({ ...event, sequence_number }))
  },
}

function streamItem(item: JsonObject, output_index: number, pieces: number): JsonObject[] {
  const place = { item_id: item['id'] ?? null, output_index }
  const events: JsonObject[] = []
  const open: JsonObject = { ...item, ...(item['status'] ? { status: 'in_progress' } : {}) }
  if (item['type'] === 'message') {
    open['content'] = []
    for (const [content_index, part] of listOf(item['content']).entries()) {
      const at = { ...place, content_index }
      const text = textOf(part['text'])
      events.push({ type: 'response.content_part.added', ...at, part: { ...part, text: '' } })
      events.push(
        ...cut(text, pieces).map((delta) => ({ type: 'response.output_text.delta', ...at, delta, logprobs: [] })),
      )
      events.push({ type: 'response.output_text.done', ...at, text, logprobs: [] })
      events.push({ type: 'response.content_part.done', ...at, part })
    }
  } else if (item['type'] === 'function_call') {
    const words = textOf(item['arguments'])
    open['arguments'] = ''
    events.push(
      ...cut(words, pieces).map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
    )
    events.push({ type: 'response.function_call_arguments.done', ...place, arguments: words })
  } else if (item['type'] === 'reasoning') {
    open['summary'] = []
    for (const [summary_index, part] of listOf(item['summary']).entries()) {
      const at = { ...place, summary_index }
      const text = textOf(part['text'])
      events.push({ type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } })
      events.push(
        ...cut(text, pieces).map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...at, delta })),
      )
      events.push({ type: 'response.reasoning_summary_text.done', ...at, text })
      events.push({ type: 'response.reasoning_summary_part.done', ...at, part })
    }
  }
  return [
    { type: 'response.output_item.added', output_index, item: open },
    ...events,
    { type: 'response.output_item.done', output_index, item },
  ]
}

/** Cuts a text into at most so many pieces, between characters. */
function cut(text: string, pieces: number): string[] {
  const characters = [...text]
  const size = Math.max(1, Math.ceil(characters.length / pieces))
  const found: string[] = []
  for (let at = 0; at < characters.length; at += size) found.push(characters.slice(at, at + size).join(''))
  return found
}
