import type { StopReason } from '../../inference/answer.ts'

/**
 * The meanings of a model's `finish_reason`, in upper or lower case. An unlisted word means an ordinary end
 * (translation 3.1). So this table must list all words for an incomplete answer, including words of other wires that
 * servers pass on. Bedrock's words come from gateways in front of it. Gemini's chat endpoint adds its own word:
 * `content_filter: PROHIBITED_CONTENT`. A text that repeats itself ends with `repetition` (vLLM) or
 * `repetition_truncation` (Xiaomi MiMo, Tencent).
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
  repetition: 'max_tokens',
  repetition_truncation: 'max_tokens',
  model_context_window_exceeded: 'window',
  content_filter: 'refused',
  content_filtered: 'refused',
  guardrail_intervened: 'refused',
  refusal: 'refused',
  sensitive: 'refused',
  safety: 'refused',
  image_safety: 'refused',
  image_prohibited_content: 'refused',
  image_recitation: 'refused',
  recitation: 'refused',
  blocklist: 'refused',
  prohibited_content: 'refused',
  spii: 'refused',
  model_armor: 'refused',
  error: 'failed',
  abort: 'failed',
  aborted: 'failed',
  insufficient_system_resource: 'failed',
  network_error: 'failed',
  function_call_filter: 'failed',
  malformed_function_call: 'failed',
  malformed_tool_use: 'failed',
  malformed_model_output: 'failed',
  unexpected_tool_call: 'failed',
  too_many_tool_calls: 'failed',
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
  const word = (raw ?? '').split(':', 1)[0]!.trim().toLowerCase()
  return Object.hasOwn(decoded, word) ? decoded[word]! : 'end'
}

/**
 * Whether a choice may have no message, because the model stopped before it wrote any. Gemini sends such a choice for a
 * refusal.
 */
export function explainsSilence(raw: unknown): boolean {
  const reason = decodeStopReason(typeof raw === 'string' ? raw : undefined)
  return reason === 'refused' || reason === 'max_tokens' || reason === 'window'
}

export function encodeStopReason(reason: StopReason): string {
  return encoded[reason]
}
