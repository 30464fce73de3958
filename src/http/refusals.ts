import { failureTexts, GatewayError } from '../errors.ts'
import type { CallRecord } from '../gateway/record.ts'

/** What ended a walk, as its client is told. @property bug where it is no refusal: told as internal_error, logged whole */
export type Refused = { error: GatewayError; bug: unknown }

/** Writes down what a walk has thrown. */
export function noteRefusal(record: CallRecord, thrown: unknown): Refused {
  const isOurs = !(thrown instanceof GatewayError)
  const error = isOurs ? new GatewayError('internal_error', failureTexts.serviceFailed) : thrown
  record.code = error.code
  if (error.reason !== undefined) record.reason = error.reason
  const isFault = error.code === 'internal_error'
  record.outcome ??= isFault ? 'internal_error' : error.status === 408 ? 'client_timeout' : 'refused'
  return { error, bug: isOurs ? thrown : undefined }
}

/** @property isOver it was ended, or its connection is closed */
type LeftOpen = { readonly isOver: boolean; destroy(): void }

/** A walk that is over has ended its answer, or cut it: one that is left open is cut, and a bug of ours, which is returned. */
export function cutLeftOpen(answer: LeftOpen, { outcome }: CallRecord): Error | undefined {
  if (answer.isOver || outcome === 'client_abort') return undefined
  answer.destroy()
  return new Error(`an answer was left open: ${outcome ?? 'no outcome'}`)
}
