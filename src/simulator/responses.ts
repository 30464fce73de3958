import { createHash } from 'node:crypto'
import { asObject } from '../bytes/json.ts'
import { writeOpenError } from './chat.ts'
import { isGiven, type Json } from './check.ts'
import type { Counts, Frame, Head, OfferedTool, Prompt, Reply, Segment, Turn, WireFormat } from './prompt.ts'
import { checkResponses } from './responses-rules.ts'
import { seal } from './seal.ts'
import { deltas } from './tokens.ts'

/** The responses wire as its vendor speaks it, stateless (wires/responses-wire). */
export const responses: WireFormat = {
  path: '/v1/responses',
  idPrefix: 'resp_',
  requestIdHeader: 'x-request-id',
  check: checkResponses,
  read,
  writeJson: (reply, head) => ended(reply, head, writeItems(reply, head)),
  writeFrames,
  writeFailure,
  writeError: writeOpenError,
}

const imageTokens = 100

function read(body: Json): Prompt {
  const tools = readTools(body['tools'])
  const instructions = isGiven(body['instructions']) ? [String(body['instructions'])] : []
  const toolSegments = list(body['tools']).map((tool) => ({ text: JSON.stringify(tool) }))
  const segments: Segment[] = [...toolSegments, ...instructions.map((text) => ({ text: `developer: ${text}` }))]
  let preambleSegments = segments.length
  let isPreamble = true
  const turns: Turn[] = []
  for (const item of itemsOf(body['input'])) {
    const turn = readItem(item, turns.at(-1))
    if (turn !== turns.at(-1)) turns.push(turn)
    isPreamble = isPreamble && turn.side === 'operator'
    if (isPreamble) preambleSegments++
    segments.push(segmentOf(item))
  }
  const reasoning = asObject(body['reasoning'])
  const isSealed = isSealAsked(body)
  const isThinking =
    reasoning?.['effort'] !== 'none' && (isGiven(reasoning?.['effort']) || isGiven(reasoning?.['summary']) || isSealed)
  const { choice, offered } = readChoice(body['tool_choice'], tools)
  return {
    model: String(body['model']),
    isStream: body['stream'] === true,
    segments,
    preambleSegments,
    turns,
    tools: offered,
    choice,
    isParallel: body['parallel_tool_calls'] !== false,
    format: readFormat(asObject(asObject(body['text'])?.['format'])),
    reasoning: isThinking ? (isGiven(reasoning?.['summary']) ? 'shown' : 'hidden') : 'none',
    stops: [],
    outputTokensMax: Number(body['max_output_tokens'] ?? Number.POSITIVE_INFINITY),
    cacheKey: String(body['prompt_cache_key'] ?? ''),
  }
}

function isSealAsked(body: Json): boolean {
  return Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content')
}

/** Function tools, those of namespaces included; custom and hosted ones are counted but never called. */
function readTools(value: unknown, namespace?: string): OfferedTool[] {
  return list(value).flatMap((tool) => {
    if (tool['type'] === 'namespace') return readTools(tool['tools'], String(tool['name']))
    if (tool['type'] !== 'function') return []
    const schema = tool['parameters'] ?? { type: 'object' }
    return [{ name: String(tool['name']), schema, ...(namespace === undefined ? {} : { namespace }) }]
  })
}

function readChoice(value: unknown, offered: OfferedTool[]): { choice: Prompt['choice']; offered: OfferedTool[] } {
  if (value === 'none') return { choice: { mode: 'none' }, offered }
  if (value === 'required') return { choice: { mode: 'required' }, offered }
  const choice = asObject(value)
  if (choice?.['type'] === 'function') return { choice: { mode: 'required', name: String(choice['name']) }, offered }
  if (choice?.['type'] !== 'allowed_tools') return { choice: { mode: 'auto' }, offered }
  const names = list(choice['tools']).map((tool) => tool['name'])
  const mode = choice['mode'] === 'required' ? 'required' : 'auto'
  return { choice: { mode }, offered: offered.filter((tool) => names.includes(tool.name)) }
}

function readFormat(format: Json | undefined): Prompt['format'] {
  if (format?.['type'] === 'json_object')
    return { schema: { type: 'object', properties: { answer: { type: 'string' } } } }
  return format?.['type'] === 'json_schema' ? { schema: format['schema'] } : undefined
}

function itemsOf(input: unknown): Json[] {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : list(input)
}

/** Items of the assistant side that follow each other are one turn, as are outputs that follow each other. */
function readItem(item: Json, last: Turn | undefined): Turn {
  const type = item['type'] ?? 'message'
  const role = item['role']
  const isOperator = type === 'message' && (role === 'system' || role === 'developer')
  const isResult = String(type).endsWith('_output')
  const side = isOperator ? 'operator' : isResult || role === 'user' ? 'user' : 'assistant'
  const isContinued = last?.side === side && (side === 'assistant' || (isResult && last.results.length > 0))
  const turn: Turn = isContinued ? last : { side, texts: [], images: 0, files: 0, results: [], calls: [] }
  const parts = partsOf(type === 'message' ? item['content'] : item['output'])
  const texts = parts.filter((part) => 'text' in part).map((part) => String(part['text']))
  turn.images += parts.filter((part) => part['type'] === 'input_image').length
  turn.files += parts.filter((part) => part['type'] === 'input_file').length
  if (isResult) turn.results.push({ callId: String(item['call_id']), text: texts.join('\n') })
  else turn.texts.push(...texts)
  if (type === 'function_call') turn.calls.push({ id: String(item['call_id']), name: String(item['name']) })
  return turn
}

/** An item as the model sees it: without ids and states, a string and its one text part alike, pictures by their hash. */
function segmentOf(item: Json): Segment {
  const { id: _id, status: _status, type = 'message', content, output, ...rest } = item
  const parts = partsOf(content ?? output)
  const media = parts.filter((part) => !('text' in part))
  const words = parts.map((part) =>
    'text' in part ? String(part['text']) : createHash('sha256').update(JSON.stringify(part)).digest('hex').slice(0, 8),
  )
  const head = type === 'message' ? `${item['role']}: ` : `${type}: ${JSON.stringify(rest)} `
  return { text: head + words.join('\n'), extraTokens: media.length * imageTokens }
}

function partsOf(content: unknown): Json[] {
  return typeof content === 'string' ? [{ text: content }] : list(content)
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.map((one) => asObject(one) ?? {}) : []
}

type Item = Json & { id: string; type: string }

/** The output items as they stand when they are whole. */
function writeItems(reply: Reply, head: Head): Item[] {
  const items: Item[] = []
  if (reply.reasoning !== undefined) {
    const text = reply.reasoning
    const summary = reply.isReasoningShown && text !== '' ? [{ type: 'summary_text', text }] : []
    const sealed = isSealAsked(head.body) ? { encrypted_content: seal(text) } : {}
    items.push({ id: head.newId('rs_'), type: 'reasoning', summary, ...sealed })
  }
  const isTextLast = reply.calls.length === 0
  if (reply.text !== '') {
    const status = reply.finish === 'length' && isTextLast ? 'incomplete' : 'completed'
    const content = [{ type: 'output_text', text: reply.text, annotations: [], logprobs: [] }]
    items.push({ id: head.newId('msg_'), type: 'message', status, role: 'assistant', content })
  }
  for (const call of reply.calls) {
    items.push({
      id: head.newId('fc_'),
      type: 'function_call',
      status: call.isCut ? 'incomplete' : 'completed',
      call_id: call.id ?? head.newId('call_'),
      name: call.name,
      ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
      arguments: call.arguments,
    })
  }
  return items
}

/** The response object with all its keys, echoing what the request said. */
function responseObject(head: Head, status: string, output: Item[]): Json {
  const { body } = head
  const text = asObject(body['text'])
  return {
    id: head.id,
    object: 'response',
    created_at: head.createdSeconds,
    completed_at: status === 'completed' ? head.createdSeconds : null,
    status,
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body['instructions'] ?? null,
    max_output_tokens: body['max_output_tokens'] ?? null,
    max_tool_calls: body['max_tool_calls'] ?? null,
    model: head.model,
    output,
    parallel_tool_calls: body['parallel_tool_calls'] ?? true,
    presence_penalty: 0,
    frequency_penalty: 0,
    previous_response_id: null,
    prompt_cache_key: body['prompt_cache_key'] ?? null,
    reasoning: { effort: null, summary: null, ...asObject(body['reasoning']) },
    safety_identifier: body['safety_identifier'] ?? null,
    service_tier: 'default',
    store: body['store'] ?? true,
    temperature: body['temperature'] ?? 1,
    text: { format: { type: 'text' }, verbosity: 'medium', ...text },
    tool_choice: body['tool_choice'] ?? 'auto',
    tools: body['tools'] ?? [],
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: null,
    user: body['user'] ?? null,
    metadata: body['metadata'] ?? {},
  }
}

/** A script's `finish` is a status, or the reason why the response is incomplete. */
function ended(reply: Reply, head: Head, output: Item[]): Json {
  const raw = reply.rawFinish
  const isStatus = raw === 'completed' || raw === 'failed'
  const reason = raw === undefined || raw === 'incomplete' ? 'max_output_tokens' : raw
  const status = isStatus ? raw : raw !== undefined || reply.finish === 'length' ? 'incomplete' : 'completed'
  return {
    ...responseObject(head, status, output),
    ...(status === 'incomplete' ? { incomplete_details: { reason } } : {}),
    ...(status === 'failed' ? { error: serverError } : {}),
    usage: reply.rawUsage === 'none' ? null : (reply.rawUsage ?? countersOf(reply.counts)),
  }
}

const serverError = { code: 'server_error', message: 'The server had an error.' }

/** On this wire the input's tokens include the cached ones, and the output's include reasoning. */
function countersOf(counts: Counts): Json {
  return {
    input_tokens: counts.promptTokens,
    input_tokens_details: { cached_tokens: counts.readTokens, cache_write_tokens: 0 },
    output_tokens: counts.outputTokens,
    output_tokens_details: { reasoning_tokens: counts.reasoningTokens },
    total_tokens: counts.promptTokens + counts.outputTokens,
  }
}

function* writeFrames(reply: Reply, head: Head): Iterable<Frame> {
  let sequence = 0
  const frame = (data: Json): Frame => numbered(data, sequence++)
  const items = writeItems(reply, head)
  const response = responseObject(head, 'in_progress', [])
  yield frame({ type: 'response.created', response })
  yield frame({ type: 'response.in_progress', response })
  for (const [output_index, item] of items.entries()) {
    const place = { item_id: item.id, output_index }
    yield frame({ type: 'response.output_item.added', output_index, item: begun(item) })
    for (const data of writeItemEvents(item, place)) yield frame(data)
    yield frame({ type: 'response.output_item.done', output_index, item })
  }
  const whole = ended(reply, head, items)
  yield frame({ type: `response.${whole['status']}`, response: whole })
}

function begun(item: Item): Json {
  if (item.type === 'reasoning') return { ...item, summary: [] }
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] }
  return { ...item, status: 'in_progress', arguments: '' }
}

function* writeItemEvents(item: Item, place: { item_id: string; output_index: number }): Iterable<Json> {
  if (item.type === 'function_call') {
    const { name, arguments: text } = item
    for (const delta of deltas(String(text))) yield { type: 'response.function_call_arguments.delta', ...place, delta }
    yield { type: 'response.function_call_arguments.done', ...place, name, arguments: text }
    return
  }
  const [part] = list(item.type === 'reasoning' ? item['summary'] : item['content'])
  if (!part) return
  const text = String(part['text'])
  if (item.type === 'reasoning') {
    const at = { ...place, summary_index: 0 }
    yield { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } }
    for (const delta of deltas(text)) yield { type: 'response.reasoning_summary_text.delta', ...at, delta }
    yield { type: 'response.reasoning_summary_text.done', ...at, text }
    yield { type: 'response.reasoning_summary_part.done', ...at, part }
    return
  }
  const at = { ...place, content_index: 0 }
  yield { type: 'response.content_part.added', ...at, part: { ...part, text: '' } }
  for (const delta of deltas(text)) yield { type: 'response.output_text.delta', ...at, delta, logprobs: [] }
  yield { type: 'response.output_text.done', ...at, text, logprobs: [] }
  yield { type: 'response.content_part.done', ...at, part }
}

/** The vendor says it twice: an `error` event, then the failed response. */
function* writeFailure(error: Json, head: Head, sequence: number): Iterable<Frame> {
  const said = { ...serverError, ...error }
  yield numbered({ type: 'error', error: { type: 'server_error', param: null, ...said } }, sequence)
  const { code, message } = said
  const response = { ...responseObject(head, 'failed', []), error: { code, message } }
  yield numbered({ type: 'response.failed', response }, sequence + 1)
}

function numbered(data: Json, sequence_number: number): Frame {
  return { event: String(data['type']), data: JSON.stringify({ ...data, sequence_number }) }
}
