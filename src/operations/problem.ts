import type { z } from 'zod'
import { withoutKeys } from '../accounts/keys.ts'

/** The problems by name, each with its status and title (RFC 9457). */
export const problems = {
  invalid_request: [400, 'Invalid request'],
  cursor_invalid: [400, 'Invalid cursor'],
  range_too_large: [400, 'Range too large'],
  unauthenticated: [401, 'Not signed in'],
  forbidden: [403, 'Not allowed'],
  cross_site: [403, 'From another site'],
  not_found: [404, 'Not found'],
  method_not_allowed: [405, 'Method not allowed'],
  conflict: [409, 'Conflict'],
  reference_conflict: [409, 'Reference used for another credit'],
  idempotency_mismatch: [409, 'Idempotency key used for another request'],
  precondition_failed: [412, 'Changed meanwhile'],
  payload_too_large: [413, 'Body too large'],
  unsupported_media_type: [415, 'Body is not JSON'],
  misdirected: [421, 'Misdirected request'],
  precondition_required: [428, 'If-Match required'],
  rate_limited: [429, 'Too many requests'],
  internal: [500, 'Internal error'],
  store_unavailable: [503, 'Store unavailable'],
} as const satisfies Record<string, readonly [status: number, title: string]>

export type ProblemName = keyof typeof problems

/** A mistake in a request. @property pointer a JSON pointer to the field in path, query or body, such as `/limit` */
type Mistake = { pointer: string; detail: string }

/** An error of an operation. Programs get it as a problem object, and people get its message. */
export class ProblemError extends Error {
  readonly problem: ProblemName
  /** The HTTP status: that of the problem, or the status with which the HTTP server refused the request. */
  readonly status: number
  readonly mistakes: readonly Mistake[]
  /** The current version of the object, for a client that edited an older version. */
  readonly current: unknown
  readonly headers: Readonly<Record<string, string>>
  /** Whether an unauthenticated request counts as a failed authentication. */
  readonly isGuess: boolean

  constructor(
    problem: ProblemName,
    detail: string,
    more: {
      mistakes?: readonly Mistake[]
      current?: unknown
      headers?: Record<string, string>
      cause?: unknown
      status?: number
      isGuess?: boolean
    } = {},
  ) {
    // The message can quote a text that a person has typed. Such a text can be a key (ruling U5).
    super(withoutKeys(detail), more.cause === undefined ? undefined : { cause: more.cause })
    this.problem = problem
    this.status = more.status ?? problems[problem][0]
    this.mistakes = (more.mistakes ?? []).map(({ pointer, detail }) => ({
      pointer: withoutKeys(pointer),
      detail: withoutKeys(detail),
    }))
    this.current = more.current
    this.headers = more.headers ?? {}
    this.isGuess = more.isGuess ?? true
  }
}

/** The header of a 401, for the errors that have it. */
export const challenge = { headers: { 'www-authenticate': 'Bearer realm="triwire"' } }

/** Makes the problem for one invalid field. */
export function wrongField(field: string, detail: string, cause?: unknown): ProblemError {
  return new ProblemError('invalid_request', detail, { mistakes: [{ pointer: `/${field}`, detail }], cause })
}

type InputIssue = z.core.$ZodRawIssue

const kinds: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
}

/**
 * Returns the error text of a field whose schema has no such text. The text names what is valid, and never the value.
 */
export function sayIssue(issue: InputIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing'
      return `must be ${kinds[issue.expected] ?? issue.expected}`
    case 'too_small':
      return `must ${sayBound(issue.origin, 'at least', Number(issue.minimum))}`
    case 'too_big':
      return `must ${sayBound(issue.origin, 'at most', Number(issue.maximum))}`
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`
    case 'unrecognized_keys':
      return 'is not known here'
  }
  return undefined
}

function sayBound(origin: string, how: string, bound: number): string {
  if (origin === 'string') return how === 'at least' && bound === 1 ? 'not be empty' : `have ${how} ${bound} characters`
  return origin === 'array' || origin === 'map' ? `have ${how} ${bound} members` : `be ${how} ${bound}`
}

/** Makes the problem for all mistakes of a request, each with its field. Each unknown field is a separate mistake. */
export function invalidFields(issues: readonly z.core.$ZodIssue[]): ProblemError {
  const mistakes = issues.flatMap((issue): Mistake[] => {
    const paths = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [issue.path]
    return paths.map((path) => ({ pointer: pointerTo(path), detail: issue.message }))
  })
  const { pointer, detail } = mistakes[0]!
  return new ProblemError('invalid_request', pointer === '' ? detail : `${pointer.slice(1)}: ${detail}`, { mistakes })
}

/** Writes a JSON pointer (RFC 6901). */
export function pointerTo(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
