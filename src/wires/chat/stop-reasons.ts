import type { StopReason } from '../../inference/answer.ts'

/** What a model's `finish_reason` means. Any other word is an ordinary end (translation 3.1). */
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
  content_filter: 'refused',
  error: 'failed',
  abort: 'failed',
  insufficient_system_resource: 'failed',
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
  return raw !== undefined && Object.hasOwn(decoded, raw) ? decoded[raw]! : 'end'
}

export function encodeStopReason(reason: StopReason): string {
  return encoded[reason]
}
