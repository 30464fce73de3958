import type { Asked } from './check-answer.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test breaks these bodies key by key.
export type Json = Record<string, any>

/** One body or event of ours that is right, and which of its keys may be missing or hold anything. */
export type Sample = {
  asked: Asked
  body: Json
  isEvent?: boolean
  status?: number
  /** Paths that may be left out. */
  optional?: string[]
  /** Paths of objects that hold what a client or a model put there. */
  open?: string[]
}

const usage = {
  input_tokens: 9,
  output_tokens: 2,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens_details: { thinking_tokens: 0 },
  server_tool_use: null,
  service_tier: null,
  inference_geo: null,
  speed: null,
}
const thinking = { type: 'thinking', thinking: 'hm', signature: '' }
const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: {}, caller: { type: 'direct' } }
const rest = { container: null, stop_details: null }
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: [{ type: 'text', text: 'Hi', citations: [] }, thinking, call],
  stop_reason: 'tool_use',
  stop_sequence: null,
  ...rest,
  diagnostics: null,
  usage,
}
const begunMessage = { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } }
const messagesError = { type: 'error', error: { type: 'rate_limit_error', message: 'Slower.' }, request_id: 'req_1' }

const counters = {
  prompt_tokens: 9,
  completion_tokens: 2,
  total_tokens: 11,
  prompt_tokens_details: { cached_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0 },
}
const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1_795_000_000, model: 'm' }
const fn = { name: 'f', arguments: '{}' }
const delta = (delta: Json) => ({ ...chunk, choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] })
const chatError = { error: { message: 'Slower.', type: 'rate_limit_error', param: null, code: 'rate_limit_exceeded' } }

const part = { type: 'output_text', text: 'Hi', annotations: [], logprobs: [] }
const items = {
  message: { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [part] },
  call: { id: 'fc_1', type: 'function_call', status: 'completed', call_id: 'c', name: 'f', arguments: '{}' },
  reasoning: { id: 'rs_1', type: 'reasoning', status: 'completed', summary: [{ type: 'summary_text', text: 'hm' }] },
}
const responsesUsage = {
  input_tokens: 9,
  input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
  output_tokens: 2,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 11,
}
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1_795_000_000,
  completed_at: 1_795_000_002,
  status: 'completed',
  error: null,
  incomplete_details: null,
  output: [items.message, items.call, items.reasoning],
  usage: responsesUsage,
  model: 'm',
  access_programs: null,
  background: false,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: null,
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  truncation: 'disabled',
  user: null,
}
const begun = { ...response, completed_at: null, status: 'in_progress', output: [], usage: null }
const incomplete = {
  ...response,
  completed_at: null,
  status: 'incomplete',
  incomplete_details: { reason: 'max_output_tokens' },
}
const failed = { ...begun, status: 'failed', error: { code: 'server_error', message: 'It broke.' } }
const openResponse = ['metadata', 'text.format']
const inItem = { sequence_number: 3, item_id: 'msg_1', output_index: 0 }
const inPart = { ...inItem, content_index: 0 }
const inSummary = { ...inItem, summary_index: 0 }

const event = (asked: Asked, type: string, rest: Json, more: Partial<Sample> = {}): Sample => ({
  asked,
  isEvent: true,
  body: { type, ...rest },
  ...more,
})
const responsesEvent = (type: string, rest: Json, more: Partial<Sample> = {}) =>
  event('responses', `response.${type}`, { sequence_number: 0, ...rest }, more)
const inResponse = { open: openResponse.map((path) => `response.${path}`) }

export const samples: readonly Sample[] = [
  { asked: 'messages', body: message, open: ['content.2.input'] },
  { asked: 'messages', body: messagesError, status: 429 },
  { asked: 'count_tokens', body: { input_tokens: 9 } },
  event('messages', 'message_start', { message: begunMessage }),
  event('messages', 'content_block_start', { index: 0, content_block: { type: 'text', text: '', citations: [] } }),
  event('messages', 'content_block_start', { index: 0, content_block: { ...thinking, thinking: '' } }),
  event('messages', 'content_block_start', { index: 0, content_block: call }),
  event('messages', 'content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
  event('messages', 'content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } }),
  event('messages', 'content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json: '{' } }),
  event('messages', 'content_block_stop', { index: 0 }),
  event('messages', 'message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null, ...rest }, usage }),
  event('messages', 'message_stop', {}),
  event('messages', 'ping', {}),
  { asked: 'messages', isEvent: true, body: messagesError },

  {
    asked: 'chat',
    body: {
      ...chunk,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: null,
            refusal: null,
            annotations: [],
            reasoning_content: 'hm',
            tool_calls: [{ id: 'c', type: 'function', function: fn }],
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: counters,
    },
    optional: ['choices.0.message.reasoning_content', 'choices.0.message.tool_calls'],
  },
  { asked: 'chat', body: chatError, status: 429 },
  { asked: 'chat', isEvent: true, body: chatError },
  {
    asked: 'chat',
    isEvent: true,
    body: delta({ role: 'assistant', content: '' }),
    optional: ['choices.0.delta.role', 'choices.0.delta.content'],
  },
  {
    asked: 'chat',
    isEvent: true,
    body: delta({ role: 'assistant', refusal: null, annotations: [] }),
    optional: ['role', 'refusal', 'annotations'].map((key) => `choices.0.delta.${key}`),
  },
  { asked: 'chat', isEvent: true, body: delta({ refusal: 'No.' }), optional: ['choices.0.delta.refusal'] },
  {
    asked: 'chat',
    isEvent: true,
    body: delta({ reasoning_content: 'hm' }),
    optional: ['choices.0.delta.reasoning_content'],
  },
  {
    asked: 'chat',
    isEvent: true,
    body: delta({ tool_calls: [{ index: 0, id: 'c', type: 'function', function: fn }] }),
    optional: ['choices.0.delta.tool_calls'],
  },
  {
    asked: 'chat',
    isEvent: true,
    body: delta({ tool_calls: [{ index: 0, function: { arguments: '{' } }] }),
    optional: ['choices.0.delta.tool_calls'],
  },
  { asked: 'chat', isEvent: true, body: { ...chunk, choices: [], usage: counters } },
  {
    asked: 'models',
    body: { object: 'list', data: [{ id: 'm', object: 'model', created: 1_795_000_000, owned_by: 'o' }] },
  },

  { asked: 'responses', body: response, open: openResponse },
  { asked: 'responses', body: incomplete, open: openResponse },
  { asked: 'responses', body: chatError, status: 429 },
  responsesEvent('created', { response: begun }, inResponse),
  responsesEvent('in_progress', { response: begun }, inResponse),
  responsesEvent('output_item.added', {
    output_index: 0,
    item: { ...items.message, status: 'in_progress', content: [] },
  }),
  responsesEvent('output_item.added', { output_index: 0, item: { ...items.call, status: 'in_progress' } }),
  responsesEvent('content_part.added', { ...inPart, part }),
  responsesEvent('output_text.delta', { ...inPart, delta: 'Hi', logprobs: [] }),
  responsesEvent('output_text.done', { ...inPart, text: 'Hi', logprobs: [] }),
  responsesEvent('refusal.delta', { ...inPart, delta: 'No.' }),
  responsesEvent('refusal.done', { ...inPart, refusal: 'No.' }),
  responsesEvent('content_part.done', { ...inPart, part: { type: 'refusal', refusal: 'No.' } }),
  responsesEvent('reasoning_summary_part.added', { ...inSummary, part: { type: 'summary_text', text: '' } }),
  responsesEvent('reasoning_summary_text.delta', { ...inSummary, delta: 'hm' }),
  responsesEvent('reasoning_summary_text.done', { ...inSummary, text: 'hm' }),
  responsesEvent('reasoning_summary_part.done', { ...inSummary, part: { type: 'summary_text', text: 'hm' } }),
  responsesEvent('function_call_arguments.delta', { ...inItem, delta: '{' }),
  responsesEvent('function_call_arguments.done', { ...inItem, name: 'f', arguments: '{}' }),
  responsesEvent('output_item.done', { output_index: 0, item: items.message }),
  responsesEvent('output_item.done', { output_index: 0, item: items.call }),
  responsesEvent('output_item.done', { output_index: 0, item: items.reasoning }),
  responsesEvent('completed', { response }, inResponse),
  responsesEvent('incomplete', { response: incomplete }, inResponse),
  responsesEvent('failed', { response: failed }, inResponse),
]
