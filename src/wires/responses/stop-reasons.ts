import type { StopReason } from '../../inference/answer.ts'

/** What `incomplete_details.reason` means; without one, or with another, it was the cap (translation 3.1). */
const decoded: Record<string, StopReason> = {
  max_output_tokens: 'max_tokens',
  content_filter: 'refused',
}

/** Why an answer is incomplete; a reason that is not here completes it. */
const encoded: Partial<Record<StopReason, string>> = {
  max_tokens: 'max_output_tokens',
  window: 'max_output_tokens',
  refused: 'content_filter',
}

export function decodeIncomplete(raw: unknown): StopReason {
  return typeof raw === 'string' && Object.hasOwn(decoded, raw) ? decoded[raw]! : 'max_tokens'
}

export function encodeIncomplete(reason: StopReason): { reason: string } | null {
  const word = encoded[reason]
  return word === undefined ? null : { reason: word }
}
