import { createHash } from 'node:crypto'
import { asObject } from '../bytes/json.ts'
import { isGiven, type Json } from './check.ts'
import { checkMessages } from './messages-rules.ts'
import type { Counts, Frame, Head, Problem, Prompt, Reply, Segment, Turn, WireFormat } from './prompt.ts'
import { seal } from './seal.ts'
import { deltas } from './tokens.ts'

/** The messages wire as its vendor speaks it (wires/message-wire). */
export const messages: WireFormat = {
  path: '/v1/messages',
  idPrefix: 'msg_01',
  requestIdHeader: 'request-id',
  check: checkMessages,
  read,
  writeJson,
  writeFrames,
  writeFailure: (error) => [
    frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded', ...error } }),
  ],
  writeError: (problem, requestId) => ({
    type: 'error',
    error: { type: errorType(problem), message: problem.message },
    request_id: requestId,
  }),
}

const errorTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

function errorType({ status }: Problem): string {
  return errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

/** What an image or a document counts as, whatever its size. */
const imageTokens = 100

function read(body: Json): Prompt {
  const tools = list(body['tools']).filter((tool) => !isGiven(tool['type']) || tool['type'] === 'custom')
  const toolSegments = list(body['tools']).map((tool) =>
    segment(JSON.stringify({ ...tool, cache_control: undefined }), tool),
  )
  const systemSegments = blocksOf(body['system']).map((block) => segment(`system: ${block['text']}`, block))
  const turns: Turn[] = []
  const turnSegments: Segment[] = []
  for (const message of list(body['messages'])) {
    const turn = emptyTurn(String(message['role']))
    for (const block of blocksOf(message['content'])) turnSegments.push(readBlock(block, turn))
    turns.push(turn)
  }
  const segments = [...toolSegments, ...systemSegments, ...turnSegments]
  if (isGiven(body['cache_control'])) {
    const last = segments.at(-1)
    if (last) last.mark = markOf(body)!
  }
  const thinking = asObject(body['thinking'])
  const isThinking = thinking?.['type'] === 'enabled' || thinking?.['type'] === 'adaptive'
  const choice = asObject(body['tool_choice'])
  const format = asObject(asObject(body['output_config'])?.['format'])
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    preambleSegments: toolSegments.length + systemSegments.length,
    turns,
    tools: tools.map((tool) => ({ name: String(tool['name']), schema: tool['input_schema'] })),
    choice: readChoice(choice),
    isParallel: choice?.['disable_parallel_tool_use'] !== true,
    format: format ? { schema: format['schema'] } : undefined,
    reasoning: isThinking ? (thinking['display'] === 'omitted' ? 'hidden' : 'shown') : 'none',
    stops: Array.isArray(body['stop_sequences']) ? body['stop_sequences'].map(String) : [],
    outputTokensMax: Number(body['max_tokens'] ?? Number.POSITIVE_INFINITY),
    cacheKey: '',
  }
}

function readChoice(choice: Json | undefined): Prompt['choice'] {
  switch (choice?.['type']) {
    case 'any':
      return { mode: 'required' }
    case 'tool':
      return { mode: 'required', name: String(choice['name']) }
    case 'none':
      return { mode: 'none' }
    default:
      return { mode: 'auto' }
  }
}

/** Adds what the block says to its turn and renders it. */
function readBlock(block: Json, turn: Turn): Segment {
  const type = block['type']
  if (type === 'text') turn.texts.push(String(block['text']))
  if (type === 'image') turn.images++
  if (type === 'document') turn.files++
  if (type === 'tool_use') turn.calls.push({ id: String(block['id']), name: String(block['name']) })
  let extraTokens = type === 'image' || type === 'document' ? imageTokens : 0
  if (type === 'tool_result') {
    const inner = blocksOf(block['content'])
    const images = inner.filter((one) => one['type'] === 'image').length
    turn.images += images
    extraTokens += images * imageTokens
    const text = inner
      .filter((one) => one['type'] === 'text')
      .map((one) => one['text'])
      .join('\n')
    turn.results.push({ callId: String(block['tool_use_id']), text })
  }
  return { ...segment(`${turn.side}: ${render(block)}`, block), extraTokens }
}

/** A block as text: its own words for text and thinking, JSON for others, pictures and files by their hash. */
function render(block: Json): string {
  if (block['type'] === 'text') return String(block['text'])
  return JSON.stringify(block, (key, value: unknown) => {
    if (key === 'cache_control' || key === 'signature') return undefined
    return key === 'data' && typeof value === 'string'
      ? createHash('sha256').update(value).digest('hex').slice(0, 8)
      : value
  })
}

function segment(text: string, marked: Json): Segment {
  const mark = markOf(marked)
  return mark ? { text, mark } : { text }
}

function markOf(marked: Json): '5m' | '1h' | undefined {
  const control = asObject(marked['cache_control'])
  return control ? (control['ttl'] === '1h' ? '1h' : '5m') : undefined
}

function emptyTurn(role: string): Turn {
  const side = role === 'system' ? 'operator' : role === 'assistant' ? 'assistant' : 'user'
  return { side, texts: [], images: 0, files: 0, results: [], calls: [] }
}

function blocksOf(content: unknown): Json[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}

const stopReasons = { stop: 'end_turn', stop_sequence: 'stop_sequence', length: 'max_tokens', tool_calls: 'tool_use' }

function writeJson(reply: Reply, head: Head): Json {
  const content: Json[] = []
  if (reply.reasoning !== undefined) {
    const thinking = reply.isReasoningShown ? reply.reasoning : ''
    content.push({ type: 'thinking', thinking, signature: seal(reply.reasoning) })
  }
  if (reply.text !== '') content.push({ type: 'text', text: reply.text })
  for (const call of reply.calls) {
    content.push({
      type: 'tool_use',
      id: call.id ?? head.newId('toolu_01'),
      name: call.name,
      input: inputOf(call.arguments),
    })
  }
  const message = { ...shell(head), content, stop_reason: stopReason(reply), stop_sequence: reply.stopSequence ?? null }
  const usage = usageOf(reply)
  return usage ? { ...message, usage } : message
}

/** Arguments that are no JSON object, as in a call that the cap cut, cannot be said in a whole answer. */
function inputOf(text: string): unknown {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}

/** One block at a time, a ping behind the start, the signature just before its block ends. */
function* writeFrames(reply: Reply, head: Head): Iterable<Frame> {
  const usage = usageOf(reply)
  const start = { ...shell(head), content: [], stop_reason: null, stop_sequence: null }
  yield frame({ type: 'message_start', message: usage ? { ...start, usage: atStart(usage) } : start })
  yield frame({ type: 'ping' })
  let index = 0
  if (reply.reasoning !== undefined) {
    yield blockStart(index, { type: 'thinking', thinking: '', signature: '' })
    if (reply.isReasoningShown) {
      for (const thinking of deltas(reply.reasoning)) yield blockDelta(index, { type: 'thinking_delta', thinking })
    }
    yield blockDelta(index, { type: 'signature_delta', signature: seal(reply.reasoning) })
    yield blockStop(index++)
  }
  if (reply.text !== '') {
    yield blockStart(index, { type: 'text', text: '' })
    for (const text of deltas(reply.text)) yield blockDelta(index, { type: 'text_delta', text })
    yield blockStop(index++)
  }
  for (const call of reply.calls) {
    yield blockStart(index, { type: 'tool_use', id: call.id ?? head.newId('toolu_01'), name: call.name, input: {} })
    yield blockDelta(index, { type: 'input_json_delta', partial_json: '' })
    for (const partial_json of deltas(call.arguments))
      yield blockDelta(index, { type: 'input_json_delta', partial_json })
    yield blockStop(index++)
  }
  const delta = { stop_reason: stopReason(reply), stop_sequence: reply.stopSequence ?? null }
  yield frame(usage ? { type: 'message_delta', delta, usage } : { type: 'message_delta', delta })
  yield frame({ type: 'message_stop' })
}

/** The first counters: the prompt is counted, of the output there is one token. */
function atStart(usage: Json): Json {
  return 'output_tokens' in usage ? { ...usage, output_tokens: 1 } : usage
}

function shell(head: Head): Json {
  return { id: head.id, type: 'message', role: 'assistant', model: head.model }
}

function stopReason(reply: Reply): string {
  return reply.rawFinish ?? stopReasons[reply.finish]
}

/** On this wire the counters are disjoint: `input_tokens` is what was neither read from the cache nor written to it. */
function usageOf(reply: Reply): Json | undefined {
  if (reply.rawUsage === 'none') return undefined
  return reply.rawUsage ?? countersOf(reply.counts)
}

function countersOf(counts: Counts): Json {
  return {
    input_tokens: counts.promptTokens - counts.readTokens - counts.writtenTokens,
    cache_creation_input_tokens: counts.writtenTokens,
    cache_read_input_tokens: counts.readTokens,
    cache_creation: {
      ephemeral_5m_input_tokens: counts.writtenTokens - counts.written1hTokens,
      ephemeral_1h_input_tokens: counts.written1hTokens,
    },
    output_tokens: counts.outputTokens,
    ...(counts.reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: counts.reasoningTokens } } : {}),
    service_tier: 'standard',
  }
}

function blockStart(index: number, content_block: Json): Frame {
  return frame({ type: 'content_block_start', index, content_block })
}

function blockDelta(index: number, delta: Json): Frame {
  return frame({ type: 'content_block_delta', index, delta })
}

function blockStop(index: number): Frame {
  return frame({ type: 'content_block_stop', index })
}

function frame(data: Json & { type: string }): Frame {
  return { event: data.type, data: JSON.stringify(data) }
}
