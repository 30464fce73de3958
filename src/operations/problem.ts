import { withoutKeys } from '../accounts/keys.ts'

/** The name of each refusal, with its status and its title (RFC 9457). */
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

/** A mistake in a request. @property pointer to the field, as in a JSON document of all fields: `/limit` */
export type Mistake = { pointer: string; detail: string }

/** A refusal by an operation. Programs get it as a problem object, people as its text. */
export class ProblemError extends Error {
  readonly problem: ProblemName
  /** The status of the problem, unless the refusal came from the HTTP server with another one. */
  readonly status: number
  readonly mistakes: readonly Mistake[]
  /** The current state, for a client that edited an older one. */
  readonly current: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(
    problem: ProblemName,
    detail: string,
    more: {
      mistakes?: readonly Mistake[]
      current?: unknown
      headers?: Record<string, string>
      cause?: unknown
      status?: number
    } = {},
  ) {
    // A typed text may be a key (ruling U5).
    super(withoutKeys(detail), more.cause === undefined ? undefined : { cause: more.cause })
    this.problem = problem
    this.status = more.status ?? problems[problem][0]
    this.mistakes = (more.mistakes ?? []).map(({ pointer, detail }) => ({
      pointer: withoutKeys(pointer),
      detail: withoutKeys(detail),
    }))
    this.current = more.current
    this.headers = more.headers ?? {}
  }
}

/** Makes the problem of one wrong field. */
export function wrongField(field: string, detail: string, cause?: unknown): ProblemError {
  return new ProblemError('invalid_request', detail, { mistakes: [{ pointer: `/${field}`, detail }], cause })
}
