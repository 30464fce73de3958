import { failureTexts, GatewayError } from '../errors.ts'
import { ClientGone } from '../gateway/call.ts'
import type { CallRecord, RecordListener } from '../gateway/record.ts'

type RecordParts = {
  /** @property isOver the answer was ended, or its connection is closed */
  exchange: { readonly isBegun: boolean; readonly isOver: boolean; destroy(): void }
  record: CallRecord
  listeners: readonly RecordListener[]
  /** Time since the request began, in ms by the monotonic clock. */
  sinceMs: () => number
  /** Sends an error to a client that has nothing of its answer yet. */
  answer: (error: GatewayError) => void
}

/**
 * Ends a request: completes its record and calls the listeners. `finish`: it is answered. `refuse`: an error was thrown.
 * `follow`: a walk will answer it, or throw.
 */
export function endRecord({ exchange, record, listeners, sinceMs, answer }: RecordParts) {
  return { finish, refuse, follow }

  function follow(walk: Promise<void>): void {
    walk.then(() => finish(cutLeftOpen()), refuse)
  }

  function finish(bug?: unknown): void {
    record.endMs = sinceMs()
    for (const listen of listeners) listen(record, bug)
  }

  function refuse(thrown: unknown): void {
    if (thrown instanceof ClientGone) {
      record.outcome = 'client_abort'
      finish()
      return
    }
    const { error, bug } = noteRefusal(record, thrown)
    if (exchange.isBegun || exchange.isOver) exchange.destroy()
    else {
      record.status = error.status
      record.firstByteMs = sinceMs()
      answer(error)
    }
    finish(bug)
  }

  /** Cuts an answer that the walk has left open. @returns an error for the log, because a walk must end its answer or cut it */
  function cutLeftOpen(): Error | undefined {
    const { outcome } = record
    if (exchange.isOver || outcome === 'client_abort') return undefined
    exchange.destroy()
    return new Error(`an answer was left open: ${outcome ?? 'no outcome'}`)
  }
}

/** Writes an error into the record. @returns the error for the client, and the thrown value if it is a bug of ours */
function noteRefusal(record: CallRecord, thrown: unknown): { error: GatewayError; bug: unknown } {
  const isOurs = !(thrown instanceof GatewayError)
  const error = isOurs ? new GatewayError('internal_error', failureTexts.serviceFailed) : thrown
  record.code = error.code
  record.message ??= error.message
  record.param = error.param
  if (error.reason !== undefined) record.reason = error.reason
  const isFault = error.code === 'internal_error'
  record.outcome ??= isFault ? 'internal_error' : error.status === 408 ? 'client_timeout' : 'refused'
  return { error, bug: isOurs ? thrown : undefined }
}
