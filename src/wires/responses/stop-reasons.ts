import type { JsonObject } from '../../bytes/json.ts'
import type { StopReason } from '../../inference/answer.ts'

/** The meanings of `incomplete_details.reason`. A missing or unlisted reason means the output cap (translation 3.1). */
const decoded: Record<string, StopReason> = {
  max_output_tokens: 'max_tokens',
  content_filter: 'refused',
}

/** The reason for an incomplete answer, by stop reason; `null` if the answer is complete. */
const encoded: Record<StopReason, string | null> = {
  end: null,
  calls: null,
  max_tokens: 'max_output_tokens',
  window: 'max_output_tokens',
  stop_sequence: null,
  refused: 'content_filter',
  paused: null,
}

/** The stop reason of an incomplete answer. @param raw the upstream's `incomplete_details.reason` */
export function decodeIncomplete(raw: unknown): StopReason {
  return typeof raw === 'string' && Object.hasOwn(decoded, raw) ? decoded[raw]! : 'max_tokens'
}

/** The `incomplete_details` of an answer; `null` if it is complete. */
export function encodeIncomplete(reason: StopReason): { reason: string } | null {
  const word = encoded[reason]
  return word === null ? null : { reason: word }
}

/**
 * Whether the last event of a stream reports a failure. Its name and its response may contradict each other; then the
 * answer has failed too (I10).
 * @param name the status that the event's name means
 */
export function hasFailed({ status, error }: JsonObject, name?: string): boolean {
  return Boolean(error) || [status, name].some((one) => one === 'failed' || one === 'cancelled')
}
