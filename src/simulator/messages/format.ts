import { asObject } from '../../bytes/json.ts'
import type { SimulatorJson } from '../check.ts'
import type { Frame, ReplyHead, SimulatedError, SimulatedReply, UsageCounts, WireFormat } from '../prompt.ts'
import { seal } from '../seal.ts'
import { deltas } from '../tokens.ts'
import { checkMessages } from './check.ts'
import { read } from './read.ts'

/** The messages wire with the vendor's form of answers and errors (wires/message-wire). */
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

function errorType({ status }: SimulatedError): string {
  return errorTypes[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

const stopReasons = { stop: 'end_turn', stop_sequence: 'stop_sequence', length: 'max_tokens', tool_calls: 'tool_use' }

function writeJson(reply: SimulatedReply, head: ReplyHead): SimulatorJson {
  const content: SimulatorJson[] = []
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

/** Parses arguments. If they are not a JSON object, as in a call that was cut, the result is an empty object. */
function inputOf(text: string): unknown {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}

/**
 * Writes the start, a ping, and one block after the other. The signature of reasoning is the last delta of its block.
 */
function* writeFrames(reply: SimulatedReply, head: ReplyHead): Iterable<Frame> {
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

/** Returns the usage of the first event, in which the output has one token. */
function atStart(usage: SimulatorJson): SimulatorJson {
  return 'output_tokens' in usage ? { ...usage, output_tokens: 1 } : usage
}

function shell(head: ReplyHead): SimulatorJson {
  return { id: head.id, type: 'message', role: 'assistant', model: head.model }
}

function stopReason(reply: SimulatedReply): string {
  return reply.rawFinish ?? stopReasons[reply.finish]
}

/** Makes `usage`. On this wire, `input_tokens` do not include tokens that were read from or written to the cache. */
function usageOf(reply: SimulatedReply): SimulatorJson | undefined {
  if (reply.rawUsage === 'none') return undefined
  return reply.rawUsage ?? countersOf(reply.counts)
}

function countersOf(counts: UsageCounts): SimulatorJson {
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

function blockStart(index: number, content_block: SimulatorJson): Frame {
  return frame({ type: 'content_block_start', index, content_block })
}

function blockDelta(index: number, delta: SimulatorJson): Frame {
  return frame({ type: 'content_block_delta', index, delta })
}

function blockStop(index: number): Frame {
  return frame({ type: 'content_block_stop', index })
}

function frame(data: SimulatorJson & { type: string }): Frame {
  return { event: data.type, data: JSON.stringify(data) }
}
