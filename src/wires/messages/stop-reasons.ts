import type { StopReason } from '../../inference/answer.ts'

/**
 * The meanings of `stop_reason`, in upper or lower case, including words of other wires. An unlisted word means an
 * ordinary end (translation 3.1).
 */
const decoded: Record<string, StopReason> = {
  end_turn: 'end',
  tool_use: 'calls',
  max_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  length: 'max_tokens',
  model_context_window_exceeded: 'window',
  stop_sequence: 'stop_sequence',
  refusal: 'refused',
  content_filter: 'refused',
  content_filtered: 'refused',
  guardrail_intervened: 'refused',
  pause_turn: 'paused',
}

const encoded: Record<StopReason, string> = {
  end: 'end_turn',
  calls: 'tool_use',
  max_tokens: 'max_tokens',
  window: 'model_context_window_exceeded',
  stop_sequence: 'stop_sequence',
  refused: 'refusal',
  paused: 'pause_turn',
}

export function decodeStopReason(raw: string | undefined): StopReason {
  const word = raw?.toLowerCase() ?? ''
  return Object.hasOwn(decoded, word) ? decoded[word]! : 'end'
}

/**
 * Returns the `stop_reason` for a client.
 * @param refuses whether the answer has a refusal block. This wire has no such block, so the stop reason must show
 * the refusal.
 */
export function encodeStopReason(reason: StopReason, refuses: boolean): string {
  return refuses && reason === 'end' ? encoded.refused : encoded[reason]
}
