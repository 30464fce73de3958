import { asObject } from '../../bytes/json.ts'
import { writeOpenError } from '../chat/format.ts'
import { list, type SimulatorJson } from '../check.ts'
import type { Frame, ReplyHead, SimulatedReply, UsageCounts, WireFormat } from '../prompt.ts'
import { seal } from '../seal.ts'
import { deltas } from '../tokens.ts'
import { checkResponses } from './check.ts'
import { isSealAsked, read } from './read.ts'

/**
 * The responses wire (docs: wires/responses-wire). Answers and errors have the form of the vendor. Responses are not
 * stored.
 */
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

type WrittenItem = SimulatorJson & { id: string; type: string }

/** Returns the complete output items. */
function writeItems(reply: SimulatedReply, head: ReplyHead): WrittenItem[] {
  const items: WrittenItem[] = []
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

/** Makes the response object with all its keys, many of which repeat the request. */
function responseObject(head: ReplyHead, status: string, output: WrittenItem[]): SimulatorJson {
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
    tools: Array.isArray(body['tools']) ? body['tools'].map(echoTool) : [],
    top_logprobs: body['top_logprobs'] ?? 0,
    top_p: body['top_p'] ?? 1,
    truncation: body['truncation'] ?? 'disabled',
    usage: null,
    user: body['user'] ?? null,
    metadata: body['metadata'] ?? {},
  }
}

/** Repeats a tool as the vendor does: all members, `strict` true by default (openai 7.57.0, FunctionTool). */
function echoTool(tool: unknown): unknown {
  const { type } = asObject(tool) ?? {}
  return type === 'function' ? { description: null, parameters: null, strict: true, ...asObject(tool) } : tool
}

/** Makes the final response object. A script's `finish` is a status, or the reason of an incomplete response. */
function ended(reply: SimulatedReply, head: ReplyHead, output: WrittenItem[]): SimulatorJson {
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

/** Makes `usage`. On this wire, input tokens include cached ones, and output tokens include reasoning. */
function countersOf(counts: UsageCounts): SimulatorJson {
  return {
    input_tokens: counts.promptTokens,
    input_tokens_details: { cached_tokens: counts.readTokens, cache_write_tokens: 0 },
    output_tokens: counts.outputTokens,
    output_tokens_details: { reasoning_tokens: counts.reasoningTokens },
    total_tokens: counts.promptTokens + counts.outputTokens,
  }
}

function* writeFrames(reply: SimulatedReply, head: ReplyHead): Iterable<Frame> {
  let sequence = 0
  const frame = (data: SimulatorJson): Frame => numbered(data, sequence++)
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

function begun(item: WrittenItem): SimulatorJson {
  if (item.type === 'reasoning') return { ...item, summary: [] }
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] }
  return { ...item, status: 'in_progress', arguments: '' }
}

function* writeItemEvents(
  item: WrittenItem,
  place: { item_id: string; output_index: number },
): Iterable<SimulatorJson> {
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

/** Writes a failure. The vendor reports it twice: in an `error` event and in the failed response. */
function* writeFailure(error: SimulatorJson, head: ReplyHead, sequence: number): Iterable<Frame> {
  const said = { ...serverError, ...error }
  yield numbered({ type: 'error', error: { type: 'server_error', param: null, ...said } }, sequence)
  const { code, message } = said
  const response = { ...responseObject(head, 'failed', []), error: { code, message } }
  yield numbered({ type: 'response.failed', response }, sequence + 1)
}

function numbered(data: SimulatorJson, sequence_number: number): Frame {
  return { event: String(data['type']), data: JSON.stringify({ ...data, sequence_number }) }
}
