import type { StopReason } from '../../inference/answer.ts'

/**
 * The meanings of a model's `finish_reason`, in upper or lower case. An unlisted word means an ordinary end
 * (translation 3.1). So this table must list all words for an incomplete answer, including words of other wires that
 * servers pass on.
 */
const decoded: Record<string, StopReason | 'failed'> = {
  stop: 'end',
  eos: 'end',
  end_turn: 'end',
  tool_calls: 'calls',
  tool_use: 'calls',
  function_call: 'calls',
  length: 'max_tokens',
  model_length: 'max_tokens',
  max_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  model_context_window_exceeded: 'window',
  content_filter: 'refused',
  refusal: 'refused',
  sensitive: 'refused',
  safety: 'refused',
  image_safety: 'refused',
  recitation: 'refused',
  blocklist: 'refused',
  prohibited_content: 'refused',
  spii: 'refused',
  error: 'failed',
  abort: 'failed',
  insufficient_system_resource: 'failed',
  network_error: 'failed',
  malformed_function_call: 'failed',
  malformed_response: 'failed',
}

const encoded: Record<StopReason, string> = {
  end: 'stop',
  calls: 'tool_calls',
  max_tokens: 'length',
  window: 'length',
  stop_sequence: 'stop',
  refused: 'content_filter',
  paused: 'stop',
}

export function decodeStopReason(raw: string | undefined): StopReason | 'failed' {
  const word = raw?.toLowerCase() ?? ''
  return Object.hasOwn(decoded, word) ? decoded[word]! : 'end'
}

export function encodeStopReason(reason: StopReason): string {
  return encoded[reason]
}
