import { type ErrorCode, type ErrorDetail, errorTable } from '../../errors.ts'

/** The facts of an error envelope. The message is the same on every wire (spec 7.1). */
export type ErrorFacts = {
  status: number
  code: ErrorCode
  message: string
  param: string | null
  /** Shown by the envelopes that have a place for it (ruling T22). */
  details?: ErrorDetail['details']
}

/** `{error: {message, type, param, code}}`: of every wire without an envelope of its own, and of unknown paths (spec 7.1). */
export function plainEnvelope(facts: ErrorFacts): string {
  const { message, param, code } = facts
  return JSON.stringify({ error: { message, type: errorTable[code].type, param, code } })
}
