import { asObject } from '../../bytes/json.ts'
import { parseUpstreamJson } from '../../bytes/scan.ts'
import { type ErrorCode, type ErrorDetail, errorTable } from '../../errors.ts'
import type { Fault } from '../../inference/answer.ts'

/**
 * The HTTP statuses of the error types and codes of all three wires. They are for errors that come with status 200, in
 * a stream or a body, and name no status themselves.
 */
const statuses: Record<string, number> = {
  invalid_request_error: 400,
  invalid_request: 400,
  invalid_prompt: 400,
  invalid_value: 400,
  unsupported_parameter: 400,
  context_length_exceeded: 400,
  exceed_context_size_error: 400,
  string_above_max_length: 400,
  invalid_encrypted_content: 400,
  content_policy_violation: 400,
  // Codes of a failed response (openai 7.57.0, `ResponseError`). OpenAI also sends `cyber_policy`, which its types lack.
  bio_policy: 400,
  cyber_policy: 400,
  misalignment_policy_violation: 400,
  image_content_policy_violation: 400,
  invalid_image: 400,
  invalid_image_format: 400,
  invalid_base64_image: 400,
  invalid_image_url: 400,
  invalid_image_mode: 400,
  image_too_large: 400,
  image_too_small: 400,
  image_parse_error: 400,
  image_file_too_large: 400,
  unsupported_image_media_type: 400,
  empty_image_file: 400,
  failed_to_download_image: 400,
  image_file_not_found: 400,
  content_filter: 400,
  data_inspection_failed: 400,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  rate_limit_reached: 429,
  slow_down: 429,
  too_many_requests: 429,
  overloaded_error: 529,
  server_is_overloaded: 529,
  authentication_error: 401,
  invalid_api_key: 401,
  billing_error: 402,
  insufficient_quota: 402,
  permission_error: 403,
  timeout_error: 504,
  api_error: 500,
  server_error: 500,
  // Exceptions of Bedrock (botocore 1.44.8). In streams they have no status.
  ValidationException: 400,
  AccessDeniedException: 403,
  ResourceNotFoundException: 404,
  ModelTimeoutException: 408,
  ModelErrorException: 424,
  ModelStreamErrorException: 424,
  ServiceQuotaExceededException: 429,
  ThrottlingException: 429,
  ModelNotReadyException: 429,
  InternalServerException: 500,
  ServiceUnavailableException: 503,
}

/** The most characters of an upstream's error text that are kept, relayed and searched (ruling U11). */
const wordsMax = 1_000

/** Cuts an upstream's error text to the length that a fault may have. */
function wordsOf(text: string): string {
  return text.slice(0, wordsMax)
}

/**
 * Makes a fault from an error object. A fault describes a failure of an upstream. Any member of the object may be
 * missing or of any type. The fault's kind and status hold only if the response itself had status 200.
 */
export function faultOfError(raw: unknown): Fault {
  // Some servers send only the code instead of an object.
  const error = asObject(raw) ?? { message: raw, ...(statusOf({ code: raw }) && { code: raw }) }
  const classes = classesOf(error)
  const [code] = classes
  const status = [error['status'], error['status_code'], error['code']].map(toStatus).find(Boolean) ?? statusOf(error)
  const threadCode = asObject(error['details'])?.['error_code']
  const text = typeof error['message'] === 'string' ? error['message'] : ''
  return {
    kind: status === undefined ? 'broken' : kindOfStatus(status),
    ...(status !== undefined && { status }),
    text: wordsOf(text) || 'The model reported an error.',
    ...(code !== undefined && { code, classes }),
    ...(threadCodes.includes(threadCode as string) && { threadCode: threadCode as string }),
  }
}

const threadCodes = ['thread_not_found', 'thread_already_continued', 'thread_continue_in_flight']

function statusOf(error: Record<string, unknown>): number | undefined {
  for (const word of [error['code'], error['type']]) {
    if (typeof word !== 'string') continue
    // DashScope spells its codes in two ways: `data_inspection_failed` and `DataInspectionFailed`.
    const spellings = [word, word.replace(/(?<=[a-z])-?(?=[A-Z])/g, '_').toLowerCase()]
    const known = spellings.find((one) => Object.hasOwn(statuses, one))
    if (known !== undefined) return statuses[known]
  }
  return undefined
}

/** Reads a status. Some servers write the number as a string. */
function toStatus(value: unknown): number | undefined {
  return /^[45]\d\d$/.test(String(value)) ? Number(value) : undefined
}

/**
 * Returns all words that classify an error: code and type, then members that only some providers send. These are
 * Anthropic's and Google's details, OpenRouter's metadata, and AWS's exception.
 */
function classesOf({ code, type, details, metadata, __type: exception }: Record<string, unknown>): string[] {
  const reasons = Array.isArray(details) ? details.map((detail) => asObject(detail)?.['reason']) : []
  const more = [
    asObject(details)?.['error_code'],
    asObject(metadata)?.['limit_source'],
    ...reasons,
    exceptionOf(exception),
  ]
  return [code, type, ...more].filter((word) => typeof word === 'string' && word !== '') as string[]
}

/** Returns the plain name of an AWS exception. The raw name may have a namespace before `#`, and a URL after `:`. */
function exceptionOf(name: unknown): string | undefined {
  return typeof name === 'string' ? name.slice(name.indexOf('#') + 1).split(':')[0] : undefined
}

/** The kind of fault that a status means, for an HTTP refusal or an error in a stream (ruling U2). */
export function kindOfStatus(status: number): Fault['kind'] {
  if (status === 400 || status === 404 || status === 413 || status === 422) return 'rejected'
  if (status === 401 || status === 402 || status === 403) return 'account'
  if (status === 429 || status === 529) return 'capacity'
  return 'broken'
}

/** The fault of an unreadable answer. @param text for tests only; clients never see it */
export function brokenFault(text: string, unread: NonNullable<Fault['unread']> = 'no_answer'): Fault {
  return { kind: 'broken', text, unread }
}

export function truncatedFault(): Fault {
  return { kind: 'truncated', text: 'The model ended its answer before it was complete.' }
}

const codes: Record<Fault['kind'], ErrorCode> = {
  rejected: 'invalid_request',
  capacity: 'rate_limit_exceeded',
  account: 'no_upstream_account',
  broken: 'upstream_error',
  truncated: 'upstream_error',
}

/** Makes the error for a client whose stream has started (ruling T4). The caller has removed what reveals the host. */
export function factsOfFault(fault: Fault): ErrorFacts {
  const code = fault.isOurs ? 'internal_error' : codes[fault.kind]
  const isModelStatus = fault.kind === 'rejected' && (fault.status === 404 || fault.status === 422)
  return { status: isModelStatus ? fault.status! : errorTable[code].status, code, message: fault.text, param: null }
}

/**
 * Converts the facts of an error back to a fault, because encoders take faults. The message no longer reveals the host.
 */
export function faultOfFacts({ status, code, message }: ErrorFacts): Fault {
  const kind = (Object.keys(codes) as Fault['kind'][]).find((candidate) => codes[candidate] === code) ?? 'broken'
  return { kind, status, text: message, isOurs: code === 'internal_error' }
}

/** The facts of an error envelope. The message is the same on every wire (spec 7.1). */
export type ErrorFacts = {
  status: number
  code: ErrorCode
  message: string
  param: string | null
  /** Details of the error. Only envelopes that have a member for details contain them (ruling T22). */
  details?: ErrorDetail['details']
}

/**
 * The envelope `{error: {message, type, param, code}}`, for unknown paths and for wires that define no envelope of
 * their own (spec 7.1).
 */
export function plainEnvelope(facts: ErrorFacts): string {
  const { message, param, code } = facts
  return JSON.stringify({ error: { message, type: errorTable[code].type, param, code } })
}

/**
 * Reads the fault of an HTTP refusal. The body is JSON in any vendor's form, or a sentence as plain text
 * (mlflow/mlflow#26036). The text of an HTML or XML page is ignored.
 * @param exception the exception's name in the response header `x-amzn-errortype`
 */
export function decodeRefusal(status: number, bodyText: string, exception?: string): Fault {
  const fault = readRefusal(status, bodyText)
  const name = exceptionOf(exception)
  if (!name || fault.classes?.includes(name)) return fault
  return { ...fault, code: fault.code ?? name, classes: [...(fault.classes ?? []), name] }
}

function readRefusal(httpStatus: number, text: string): Fault {
  // Some servers refuse a streaming request with an SSE event.
  const bodyText = /^(?:event:.*[\r\n]\s*)?data:(?=\s*\{)(.*)/.exec(text)?.[1] ?? text
  let body: unknown
  try {
    body = parseUpstreamJson(bodyText)
  } catch {
    // Truncated JSON is not shown to the client. A plain text with status 404 comes from a router that does not know
    // our path. The client cannot correct that, so the text is ignored.
    const isSentence = httpStatus !== 404 && /^\s*[^\s<{["]/.test(bodyText)
    return {
      kind: kindOfStatus(httpStatus),
      status: httpStatus,
      text: isSentence ? wordsOf(bodyText.trim()) : '',
      ...(/^\s*</.test(bodyText) && { isPage: true }),
    }
  }
  const object = asErrorObject(body)
  const error =
    object?.['error'] ??
    object?.['detail'] ??
    (Array.isArray(object?.['errors']) ? object['errors'][0] : object?.['errors']) ??
    object ??
    body
  const { code, classes, threadCode } = faultOfError(error)
  // Bedrock sends 424 if the model failed. The model's own status is in `originalStatusCode` (botocore 1.44.8,
  // `ModelErrorException`).
  const status = toStatus(asObject(error)?.['originalStatusCode']) ?? httpStatus
  const message = asObject(error)?.['message']
  const places = [
    message,
    object?.['error_description'],
    asObject(object?.['base_resp'])?.['status_msg'],
    ...(Array.isArray(object?.['message']) ? [wordsOfList(object['message'])] : []),
    asObject(asObject(error)?.['error'])?.['message'],
    error,
    object?.['message'],
    ...sentenceKeys.map((key) => asObject(error)?.[key] ?? object?.[key]),
    wordsOfChecks(error),
    wordsOfChecks(asObject(message)?.['detail']),
    ...[error, ...Object.values(asObject(object?.['errors']) ?? {})].map(wordsOfList),
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

/** Members with the message of a server that sends no `message`. They are in the error object or beside it. */
const sentenceKeys = [
  ...['error', 'msg', 'error_msg', 'error_message', 'description', 'details', 'Message'],
  ...['reason', 'title'],
]

/**
 * Joins a list of sentences. Some servers send a list instead of one sentence (NestJS), or a list for each field
 * (Rails).
 */
function wordsOfList(list: unknown): string | undefined {
  const words = Array.isArray(list) ? list.filter((one) => typeof one === 'string') : []
  return words.length === 0 ? undefined : words.join('; ')
}

/**
 * Joins the messages of failed checks of a body, which Python servers send as a list (FastAPI's `detail`). Each check
 * names its field in a separate member.
 */
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

/** The fault in a JSON body with an error; undefined if there is none. */
export function readErrorBody(body: Buffer): Fault | undefined {
  try {
    const error = asErrorObject(parseUpstreamJson(body))?.['error']
    return error ? faultOfError(error) : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the object with the error. Some servers answer a streaming request with an array that contains one error
 * (ruling U7).
 */
function asErrorObject(body: unknown): Record<string, unknown> | undefined {
  return asObject(Array.isArray(body) && body.length === 1 ? body[0] : body)
}
