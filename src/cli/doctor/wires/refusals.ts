import { asObject } from '../../../bytes/json.ts'
import type { ProbeJson } from '../json.ts'

/** The error names by status: `type` on the messages wire, `code` on the others (spec 7). */
export const refusals: Readonly<Record<number, { type: string; code: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_body' },
  401: { type: 'authentication_error', code: 'invalid_api_key' },
  404: { type: 'not_found_error', code: 'model_not_found' },
}

/** Finds a fault in the body of a refusal, in the envelope that chat and responses share. */
export function findChatMistake(body: ProbeJson, status: number): string | undefined {
  const error = asObject(body['error'])
  if (!error || typeof error['message'] !== 'string') return 'it is not {error: {…}}'
  const missing = ['type', 'param', 'code'].find((field) => error[field] === undefined)
  if (missing) return `error.${missing} is missing`
  const { code } = refusals[status]!
  return error['code'] === code ? undefined : `error.code is ${error['code']} and not ${code}`
}
