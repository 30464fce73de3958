import { type ErrorCode, type ErrorDetail, errorTable } from '../../errors.ts'

/** What an error envelope is made from; the message is the same in every wire's (spec 7.1). */
export type ErrorFacts = {
  status: number
  code: ErrorCode
  message: string
  param: string | null
  /** Told by the envelopes that have a place for it (ruling T22). */
  details?: ErrorDetail['details']
}

/** `{error: {message, type, param, code}}`: of every wire without an envelope of its own, and of unknown paths (spec 7.1). */
export function plainEnvelope(facts: ErrorFacts): string {
  const { message, param, code } = facts
  return JSON.stringify({ error: { message, type: errorTable[code].type, param, code } })
}
