/*
 * What upstreams send, written from the documented facts of each wire. The ids and names in it must never be seen by a
 * client (case A120): they all carry the word "hosted".
 */

type Json = Record<string, unknown>

const line = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`
const named = (event: Json) => `event: ${event['type']}\n${line(event)}`

export const done = 'data: [DONE]\n\n'

const chatHead = {
  id: 'chatcmpl-hosted-7',
  object: 'chat.completion.chunk',
  created: 1700000000,
  model: 'hosted-model',
}

/** One chunk with a delta; `rest` goes beside the delta or, for `usage`, beside the choices. */
export function delta(content: unknown, rest: Json = {}): string {
  const { usage, ...choice } = rest
  const choices = [{ index: 0, delta: content, finish_reason: null, ...choice }]
  return line({
    ...chatHead,
    system_fingerprint: 'fp_hosted',
    provider: 'hosted',
    choices,
    ...(usage !== undefined && { usage }),
  })
}

export const text = (content: string) => delta({ content })
export const reasoning = (reasoning_content: string) => delta({ reasoning_content })
export const reason = (finish_reason: string | null, rest: Json = {}) => delta({}, { finish_reason, ...rest })

/** Tool call fragments of one chunk: index, id, name, arguments; undefined leaves the key out. */
export type Fragment = [index?: number | undefined, id?: string | undefined, name?: string | undefined, args?: unknown]
export function call(...fragments: Fragment[]): string {
  return delta({
    tool_calls: fragments.map(([index, id, name, args]) => ({
      index,
      id,
      type: 'function',
      function: { name, arguments: args },
    })),
  })
}

export const counts = (prompt: number, completion: number, rest: Json = {}): Json => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...rest,
})
export const usage = (counters: Json) => line({ ...chatHead, choices: [], usage: counters })
export const chatError = (message: string, rest: Json = {}) => line({ error: { message, ...rest } })
export const raw = (data: string) => `data: ${data}\n\n`

/** A whole JSON answer of a chat model. */
export function completion(message: Json, finish_reason: string | null = 'stop', rest: Json = {}): string {
  const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }]
  return JSON.stringify({ ...chatHead, object: 'chat.completion', choices, usage: counts(9, 2), ...rest })
}

// Messages

export const messageStart = (usage: Json = { input_tokens: 9, output_tokens: 1 }) =>
  named({
    type: 'message_start',
    message: {
      id: 'msg_hosted',
      type: 'message',
      role: 'assistant',
      model: 'hosted-model',
      content: [],
      stop_reason: null,
      usage,
    },
  })
export const blockStart = (index: number, content_block: Json) =>
  named({ type: 'content_block_start', index, content_block })
export const blockDelta = (index: number, delta: Json) => named({ type: 'content_block_delta', index, delta })
export const blockStop = (index: number) => named({ type: 'content_block_stop', index })
export const messageDelta = (
  stop_reason: string | null,
  usage: Json | undefined = { output_tokens: 2 },
  stop_sequence: string | null = null,
) => named({ type: 'message_delta', delta: { stop_reason, stop_sequence }, usage })
export const messageStop = named({ type: 'message_stop' })
export const ping = named({ type: 'ping' })
export const messagesError = (type: string, message: string) => named({ type: 'error', error: { type, message } })

export const textBlock = (index: number, ...pieces: string[]) =>
  blockStart(index, { type: 'text', text: '' }) +
  pieces.map((piece) => blockDelta(index, { type: 'text_delta', text: piece })).join('') +
  blockStop(index)
export const thinkingBlock = (index: number, thinking: string, signature = 'c2lnbmVk') =>
  blockStart(index, { type: 'thinking', thinking: '', signature: '' }) +
  blockDelta(index, { type: 'thinking_delta', thinking }) +
  (signature && blockDelta(index, { type: 'signature_delta', signature })) +
  blockStop(index)
export const toolBlock = (index: number, name: string, ...pieces: string[]) =>
  blockStart(index, { type: 'tool_use', id: `toolu_hosted_${index}`, name, input: {} }) +
  pieces.map((partial_json) => blockDelta(index, { type: 'input_json_delta', partial_json })).join('') +
  blockStop(index)

// Responses

/** Events of a responses model, numbered as they come. */
export function events(...list: Json[]): string {
  return list.map((event, sequence_number) => named({ ...event, sequence_number })).join('')
}
const responseHead: Json = {
  id: 'resp_hosted',
  object: 'response',
  created_at: 1_795_000_000,
  model: 'hosted-model',
  error: null,
  incomplete_details: null,
}
export const created: Json = {
  type: 'response.created',
  response: { ...responseHead, status: 'in_progress', output: [] },
}
export const added = (output_index: number, item: Json): Json => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
export const itemDone = (output_index: number, item: Json): Json => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
export const message = (n: number, ...texts: string[]): Json => ({
  id: `msg_hosted_${n}`,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: texts.map((words) => ({ type: 'output_text', text: words, annotations: [] })),
})
export const functionCall = (n: number, name: string, args: string, rest: Json = {}): Json => ({
  id: `fc_hosted_${n}`,
  type: 'function_call',
  status: 'completed',
  call_id: `call_hosted_${n}`,
  name,
  arguments: args,
  ...rest,
})
export const summary = (n: number, ...texts: string[]): Json => ({
  id: `rs_hosted_${n}`,
  type: 'reasoning',
  summary: texts.map((words) => ({ type: 'summary_text', text: words })),
  encrypted_content: 'hosted-sealed',
})
export const textDelta = (output_index: number, words: string): Json => ({
  type: 'response.output_text.delta',
  item_id: `msg_hosted_${output_index}`,
  output_index,
  content_index: 0,
  delta: words,
})
export const argumentsDelta = (output_index: number, words: string): Json => ({
  type: 'response.function_call_arguments.delta',
  item_id: `fc_hosted_${output_index}`,
  output_index,
  delta: words,
})
export const argumentsDone = (output_index: number, args: string): Json => ({
  type: 'response.function_call_arguments.done',
  item_id: `fc_hosted_${output_index}`,
  output_index,
  arguments: args,
})
export const summaryDelta = (output_index: number, summary_index: number, words: string): Json => ({
  type: 'response.reasoning_summary_text.delta',
  item_id: `rs_hosted_${output_index}`,
  output_index,
  summary_index,
  delta: words,
})
export const responsesCounts: Json = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 6 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 11,
}
export const terminal = (status: string, output: Json[] = [], rest: Json = {}): Json => ({
  type: `response.${status}`,
  response: {
    ...responseHead,
    status,
    output,
    usage: responsesCounts,
    ...rest,
  },
})
/** A message item with all that belongs to it. */
export const wholeMessage = (n: number, ...pieces: string[]): Json[] => [
  added(n, { ...message(n), status: 'in_progress' }),
  {
    type: 'response.content_part.added',
    item_id: `msg_hosted_${n}`,
    output_index: n,
    content_index: 0,
    part: { type: 'output_text', text: '' },
  },
  ...pieces.map((piece) => textDelta(n, piece)),
  {
    type: 'response.output_text.done',
    item_id: `msg_hosted_${n}`,
    output_index: n,
    content_index: 0,
    text: pieces.join(''),
  },
  itemDone(n, message(n, pieces.join(''))),
]
export const wholeCall = (n: number, name: string, ...pieces: string[]): Json[] => [
  added(n, functionCall(n, name, '', { status: 'in_progress' })),
  ...pieces.map((piece) => argumentsDelta(n, piece)),
  argumentsDone(n, pieces.join('')),
  itemDone(n, functionCall(n, name, pieces.join(''))),
]
