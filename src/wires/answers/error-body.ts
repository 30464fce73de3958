import { asObject } from '../../bytes/json.ts'
import { parseUpstreamJson } from '../../bytes/scan.ts'
import type { Fault } from '../../inference/answer.ts'
import { faultOfError, kindOfStatus, wordsOf } from './faults.ts'

/**
 * Reads the fault of an HTTP refusal. Its body is JSON of any vendor's shape, or the server's sentence as plain text
 * (mlflow/mlflow#26036). Of a page in HTML or XML nothing is read.
 */
export function decodeRefusal(status: number, bodyText: string): Fault {
  let body: unknown
  try {
    body = parseUpstreamJson(bodyText)
  } catch {
    // JSON that is cut is no sentence. A router writes a 404 as plain text, and means our address.
    const isSentence = status !== 404 && /^\s*[^\s<{["]/.test(bodyText)
    return { kind: kindOfStatus(status), status, text: isSentence ? wordsOf(bodyText.trim()) : '' }
  }
  const object = asErrorObject(body)
  const error =
    object?.['error'] ??
    object?.['detail'] ??
    (Array.isArray(object?.['errors']) ? object['errors'][0] : undefined) ??
    object ??
    body
  const { code, classes, threadCode } = faultOfError(error)
  const message = asObject(error)?.['message']
  const places = [
    message,
    error,
    object?.['message'],
    ...sentenceKeys.map((key) => asObject(error)?.[key] ?? object?.[key]),
    wordsOfChecks(error),
    wordsOfChecks(asObject(message)?.['detail']),
  ]
  const said = places.find((text) => typeof text === 'string')
  return {
    kind: kindOfStatus(status),
    status,
    text: wordsOf(said ?? ''),
    ...(code && classes && { code, classes }),
    ...(threadCode && { threadCode }),
  }
}

/** Places for a server's sentence if it is not in `message`, in an error object or beside it. */
const sentenceKeys = ['error', 'msg', 'error_msg', 'error_message', 'reason', 'title']

/** Servers in Python list what their checks of a body have found (FastAPI's `detail`), the names of the field apart. */
function wordsOfChecks(list: unknown): string | undefined {
  if (!Array.isArray(list)) return undefined
  const words = list.flatMap((one) => {
    const { loc, msg } = asObject(one) ?? {}
    if (typeof msg !== 'string') return []
    const place = Array.isArray(loc) ? loc.filter((step) => step !== 'body').join('.') : ''
    return [place === '' ? msg : `${place}: ${msg}`]
  })
  return words.length === 0 ? undefined : words.join('; ')
}

/** The fault that a JSON body with an error tells of, or undefined. */
export function readErrorBody(body: Buffer): Fault | undefined {
  try {
    const error = asErrorObject(parseUpstreamJson(body))?.['error']
    return error == null ? undefined : faultOfError(error)
  } catch {
    return undefined
  }
}

/** Some servers answer a request for a stream with an array that has one error in it (ruling U7). */
function asErrorObject(body: unknown): Record<string, unknown> | undefined {
  return asObject(Array.isArray(body) && body.length === 1 ? body[0] : body)
}
