import { createHash } from 'node:crypto'
import { asObject } from '../bytes/json.ts'
import { checkChat } from './chat-rules.ts'
import { isGiven, type Json } from './check.ts'
import type { Counts, Frame, Head, OfferedTool, Problem, Prompt, Reply, Segment, Turn, WireFormat } from './prompt.ts'
import { deltas } from './tokens.ts'

/** The chat wire as its vendor speaks it (wires/chat-wire). */
export const chat: WireFormat = {
  path: '/v1/chat/completions',
  idPrefix: 'chatcmpl-',
  requestIdHeader: 'x-request-id',
  check: checkChat,
  read,
  writeJson,
  writeFrames,
  writeFailure: (error) => [
    frame({ error: { message: 'The server had an error.', type: 'server_error', param: null, code: null, ...error } }),
  ],
  writeError: writeOpenError,
}

const errorTypes: Record<number, { type: string; code: string | null }> = {
  401: { type: 'invalid_request_error', code: 'invalid_api_key' },
  402: { type: 'insufficient_quota', code: 'insufficient_quota' },
  404: { type: 'invalid_request_error', code: 'model_not_found' },
  429: { type: 'rate_limit_error', code: 'rate_limit_exceeded' },
  500: { type: 'server_error', code: null },
  503: { type: 'service_unavailable_error', code: null },
}

/** The error body of the chat and responses wires: one vendor, all four keys. */
export function writeOpenError(problem: Problem): Json {
  const fallback = { type: problem.status < 500 ? 'invalid_request_error' : 'server_error', code: null }
  const known = errorTypes[problem.status] ?? fallback
  const { message, param = null } = problem
  return { error: { message, type: known.type, param, code: problem.code ?? known.code } }
}

const imageTokens = 100

function read(body: Json): Prompt {
  const tools = list(body['tools'])
  const toolSegments = tools.map((tool) => ({ text: JSON.stringify(tool) }))
  const turns: Turn[] = []
  const segments: Segment[] = [...toolSegments]
  let preambleSegments = segments.length
  let isPreamble = true
  for (const message of list(body['messages'])) {
    const turn = readMessage(message)
    isPreamble = isPreamble && turn.side === 'operator'
    if (isPreamble) preambleSegments++
    segments.push(segmentOf(message, turn))
    turns.push(turn)
  }
  const effort = body['reasoning_effort']
  const { choice, offered } = readChoice(body['tool_choice'], tools)
  const caps = [body['max_tokens'], body['max_completion_tokens']].filter(isGiven).map(Number)
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    preambleSegments,
    turns,
    tools: offered,
    choice,
    isParallel: body['parallel_tool_calls'] !== false,
    format: readFormat(asObject(body['response_format'])),
    reasoning: isGiven(effort) && effort !== 'none' ? 'shown' : 'none',
    stops: isGiven(body['stop']) ? [body['stop']].flat().map(String) : [],
    outputTokensMax: Math.min(...caps, Number.POSITIVE_INFINITY),
    cacheKey: String(body['prompt_cache_key'] ?? ''),
  }
}

function readChoice(value: unknown, tools: Json[]): { choice: Prompt['choice']; offered: OfferedTool[] } {
  // Custom tools take free text in a grammar of theirs: they are counted but never called.
  const offered = tools
    .filter((tool) => tool['type'] === 'function')
    .map((tool) => asObject(tool['function']) ?? {})
    .map((inner) => ({ name: String(inner['name']), schema: inner['parameters'] ?? { type: 'object' } }))
  if (value === 'none') return { choice: { mode: 'none' }, offered }
  if (value === 'required') return { choice: { mode: 'required' }, offered }
  const named = asObject(asObject(value)?.['function'])
  if (named) return { choice: { mode: 'required', name: String(named['name']) }, offered }
  const allowed = asObject(asObject(value)?.['allowed_tools'])
  if (!allowed) return { choice: { mode: 'auto' }, offered }
  const names = list(allowed['tools']).map((one) => asObject(one['function'])?.['name'])
  const mode = allowed['mode'] === 'required' ? 'required' : 'auto'
  return { choice: { mode }, offered: offered.filter((tool) => names.includes(tool.name)) }
}

function readFormat(format: Json | undefined): Prompt['format'] {
  if (format?.['type'] === 'json_object')
    return { schema: { type: 'object', properties: { answer: { type: 'string' } } } }
  if (format?.['type'] !== 'json_schema') return undefined
  return { schema: asObject(format['json_schema'])?.['schema'] }
}

function readMessage(message: Json): Turn {
  const role = String(message['role'])
  const side = role === 'assistant' ? 'assistant' : role === 'system' || role === 'developer' ? 'operator' : 'user'
  const turn: Turn = { side, texts: [], images: 0, files: 0, results: [], calls: [] }
  const parts = partsOf(message['content'])
  const texts = parts.filter((part) => part['type'] === 'text').map((part) => String(part['text']))
  if (role === 'tool') turn.results.push({ callId: String(message['tool_call_id']), text: texts.join('\n') })
  else turn.texts = texts
  turn.images = parts.filter((part) => part['type'] === 'image_url').length
  turn.files = parts.filter((part) => part['type'] === 'file').length
  turn.calls = list(message['tool_calls']).map((call) => ({
    id: String(call['id']),
    name: String(asObject(call['function'])?.['name'] ?? ''),
  }))
  return turn
}

/** A message as the model sees it: a string and its one text part render alike, pictures and files by their hash. */
function segmentOf(message: Json, turn: Turn): Segment {
  const parts = partsOf(message['content']).map((part) => {
    if (part['type'] === 'text') return String(part['text'])
    return createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 8)
  })
  const calls = isGiven(message['tool_calls']) ? JSON.stringify(message['tool_calls']) : ''
  const text = `${message['role']}: ${parts.join('\n')}${calls}${message['tool_call_id'] ?? ''}`
  return { text, extraTokens: (turn.images + turn.files) * imageTokens }
}

function partsOf(content: unknown): Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}

const finishReasons = { stop: 'stop', stop_sequence: 'stop', length: 'length', tool_calls: 'tool_calls' }

function writeJson(reply: Reply, head: Head): Json {
  const message: Json = { role: 'assistant', content: reply.text === '' && reply.calls.length > 0 ? null : reply.text }
  message['refusal'] = null
  if (reply.reasoning !== undefined && reply.isReasoningShown) message['reasoning_content'] = reply.reasoning
  if (reply.calls.length > 0) {
    message['tool_calls'] = reply.calls.map((call) => ({
      id: call.id ?? head.newId('call_'),
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    }))
  }
  const finish_reason = finishReason(reply)
  const choices = choiceIndexes(head).map((index) => ({ index, message, logprobs: null, finish_reason }))
  const completion = { ...shell(head, 'chat.completion'), choices }
  const usage = usageOf(reply, choices.length)
  return usage ? { ...completion, usage } : completion
}

function* writeFrames(reply: Reply, head: Head): Iterable<Frame> {
  const isUsageWanted = asObject(head.body['stream_options'])?.['include_usage'] === true && reply.rawUsage !== 'none'
  const base = { ...shell(head, 'chat.completion.chunk'), ...(isUsageWanted ? { usage: null } : {}) }
  const indexes = choiceIndexes(head)
  for (const index of indexes) yield* writeChoice(reply, head, base, index)
  if (isUsageWanted) yield frame({ ...base, choices: [], usage: usageOf(reply, indexes.length) })
  yield { data: '[DONE]' }
}

/** The first fragment of a call has its id, type and name; all later ones only its index and a piece of arguments. */
function* writeChoice(reply: Reply, head: Head, base: Json, choice: number): Iterable<Frame> {
  const chunk = (delta: Json, finish_reason: string | null = null): Frame =>
    frame({ ...base, choices: [{ index: choice, delta, logprobs: null, finish_reason }] })
  const isCallsOnly = reply.text === '' && reply.calls.length > 0
  yield chunk({ role: 'assistant', content: isCallsOnly ? null : '', refusal: null })
  if (reply.reasoning !== undefined && reply.isReasoningShown) {
    for (const reasoning_content of deltas(reply.reasoning)) yield chunk({ reasoning_content })
  }
  for (const content of deltas(reply.text)) yield chunk({ content })
  for (const [index, call] of reply.calls.entries()) {
    const id = call.id ?? head.newId('call_')
    yield chunk({ tool_calls: [{ index, id, type: 'function', function: { name: call.name, arguments: '' } }] })
    for (const piece of deltas(call.arguments)) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] })
  }
  yield chunk({}, finishReason(reply))
}

function choiceIndexes(head: Head): number[] {
  return Array.from({ length: Number(head.body['n'] ?? 1) }, (_, index) => index)
}

function shell(head: Head, object: string): Json {
  return { id: head.id, object, created: head.createdSeconds, model: head.model, service_tier: 'default' }
}

function finishReason(reply: Reply): string {
  return reply.rawFinish ?? finishReasons[reply.finish]
}

/** On this wire the prompt's tokens include the cached ones, and the completion's include reasoning. */
function usageOf(reply: Reply, choices: number): Json | undefined {
  if (reply.rawUsage === 'none') return undefined
  return reply.rawUsage ?? countersOf(reply.counts, choices)
}

function countersOf(counts: Counts, choices: number): Json {
  const completion_tokens = counts.outputTokens * choices
  return {
    prompt_tokens: counts.promptTokens,
    completion_tokens,
    total_tokens: counts.promptTokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: counts.readTokens, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: counts.reasoningTokens * choices,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  }
}

function frame(data: Json): Frame {
  return { data: JSON.stringify(data) }
}
