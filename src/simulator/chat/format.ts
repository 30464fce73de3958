import { asObject } from '../../bytes/json.ts'
import type { SimulatorJson } from '../check.ts'
import type { Frame, ReplyHead, SimulatedError, SimulatedReply, UsageCounts, WireFormat } from '../prompt.ts'
import { deltas } from '../tokens.ts'
import { checkChat } from './check.ts'
import { read } from './read.ts'

/** The chat wire with the vendor's form of answers and errors (wires/chat-wire). */
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

/** Makes the error body of the chat and responses wires, which have the same vendor. It always has all four keys. */
export function writeOpenError(problem: SimulatedError): SimulatorJson {
  const fallback = { type: problem.status < 500 ? 'invalid_request_error' : 'server_error', code: null }
  const known = errorTypes[problem.status] ?? fallback
  const { message, param = null } = problem
  return { error: { message, type: known.type, param, code: problem.code ?? known.code } }
}

const finishReasons = { stop: 'stop', stop_sequence: 'stop', length: 'length', tool_calls: 'tool_calls' }

function writeJson(reply: SimulatedReply, head: ReplyHead): SimulatorJson {
  const message: SimulatorJson = {
    role: 'assistant',
    content: reply.text === '' && reply.calls.length > 0 ? null : reply.text,
  }
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

function* writeFrames(reply: SimulatedReply, head: ReplyHead): Iterable<Frame> {
  const isUsageWanted = asObject(head.body['stream_options'])?.['include_usage'] === true && reply.rawUsage !== 'none'
  const base = { ...shell(head, 'chat.completion.chunk'), ...(isUsageWanted ? { usage: null } : {}) }
  const indexes = choiceIndexes(head)
  for (const index of indexes) yield* writeChoice(reply, head, base, index)
  if (isUsageWanted) yield frame({ ...base, choices: [], usage: usageOf(reply, indexes.length) })
  yield { data: '[DONE]' }
}

/**
 * Writes a choice. The first chunk of a call has its id, type and name. Each later chunk has a piece of the arguments.
 */
function* writeChoice(reply: SimulatedReply, head: ReplyHead, base: SimulatorJson, choice: number): Iterable<Frame> {
  const chunk = (delta: SimulatorJson, finish_reason: string | null = null): Frame =>
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

function choiceIndexes(head: ReplyHead): number[] {
  return Array.from({ length: Number(head.body['n'] ?? 1) }, (_, index) => index)
}

function shell(head: ReplyHead, object: string): SimulatorJson {
  return { id: head.id, object, created: head.createdSeconds, model: head.model, service_tier: 'default' }
}

function finishReason(reply: SimulatedReply): string {
  return reply.rawFinish ?? finishReasons[reply.finish]
}

/** Makes `usage`. On this wire, prompt tokens include cached tokens, and completion tokens include reasoning tokens. */
function usageOf(reply: SimulatedReply, choices: number): SimulatorJson | undefined {
  if (reply.rawUsage === 'none') return undefined
  return reply.rawUsage ?? countersOf(reply.counts, choices)
}

function countersOf(counts: UsageCounts, choices: number): SimulatorJson {
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

function frame(data: SimulatorJson): Frame {
  return { data: JSON.stringify(data) }
}
