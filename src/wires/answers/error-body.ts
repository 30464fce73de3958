import { asObject } from '../../bytes/json.ts'
import type { Fault } from '../../inference/answer.ts'
import { faultOfError, kindOfStatus, wordsOf } from './faults.ts'

/** The fault of an HTTP refusal with a JSON body of any vendor's shape. */
export function decodeRefusal(status: number, bodyText: string): Fault {
  let body: unknown
  try {
    body = JSON.parse(bodyText)
  } catch {
    return { kind: kindOfStatus(status), status, text: '' }
  }
  const object = asErrorObject(body)
  const error = object?.['error'] ?? object?.['detail'] ?? object
  const { code, threadCode } = faultOfError(error)
  const said = [asObject(error)?.['message'], error, object?.['message']].find((text) => typeof text === 'string')
  return {
    kind: kindOfStatus(status),
    status,
    text: wordsOf((said as string | undefined) ?? ''),
    ...(code && { code }),
    ...(threadCode && { threadCode }),
  }
}

/** The fault that a JSON body with an error tells of, or undefined. */
export function readErrorBody(body: Buffer): Fault | undefined {
  try {
    const error = asErrorObject(JSON.parse(body.toString('utf8')))?.['error']
    return error == null ? undefined : faultOfError(error)
  } catch {
    return undefined
  }
}

/** Some servers answer a request for a stream with an array that has one error in it (ruling U7). */
function asErrorObject(body: unknown): Record<string, unknown> | undefined {
  return asObject(Array.isArray(body) && body.length === 1 ? body[0] : body)
}
