import { z } from 'zod'
import { someText } from './mode.ts'

/** Spec 7.3: the statuses and the type that go with each code; 408, 413, 417, 426 and 431 are below HTTP (rulings R3, R11). */
const codes = {
  invalid_body: { type: 'invalid_request_error', statuses: [400, 408, 413, 417, 431] },
  invalid_cache_key: { type: 'invalid_request_error', statuses: [400] },
  invalid_request: { type: 'invalid_request_error', statuses: [400, 404, 422] },
  unsupported_parameter: { type: 'invalid_request_error', statuses: [400] },
  invalid_api_key: { type: 'invalid_request_error', statuses: [401] },
  account_suspended: { type: 'invalid_request_error', statuses: [401] },
  insufficient_credits: { type: 'insufficient_quota', statuses: [402] },
  model_not_found: { type: 'invalid_request_error', statuses: [404] },
  unknown_url: { type: 'invalid_request_error', statuses: [404, 426] },
  request_too_large: { type: 'invalid_request_error', statuses: [413] },
  rate_limit_exceeded: { type: 'rate_limit_error', statuses: [429] },
  too_many_failed_auth: { type: 'rate_limit_error', statuses: [429] },
  internal_error: { type: 'api_error', statuses: [500] },
  upstream_error: { type: 'api_error', statuses: [502] },
  no_upstream_account: { type: 'api_error', statuses: [503] },
} as const

/** Spec 7.2: every other status is `api_error`. */
const messagesTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
}

/** Spec 7.1, everywhere but on the messages wire. Errors are ours in both modes. @param status undefined in a stream */
export function chatError(status?: number) {
  const code = z.enum(Object.keys(codes) as (keyof typeof codes)[])
  const type = z.enum(['invalid_request_error', 'insufficient_quota', 'rate_limit_error', 'api_error'])
  const error = z
    .strictObject({ message: someText, type, param: someText.nullable(), code })
    .refine(({ type, code }) => codes[code].type === type, 'type and code do not go together')
    .refine(
      ({ code }) => status === undefined || (codes[code].statuses as readonly number[]).includes(status),
      `code and status ${status} do not go together`,
    )
  return z.strictObject({ error })
}

/** Spec 7.1, on the messages wire. @param status undefined in a stream */
export function messagesError(status?: number) {
  const type = z
    .enum([
      'invalid_request_error',
      'authentication_error',
      'billing_error',
      'permission_error',
      'not_found_error',
      'request_too_large',
      'rate_limit_error',
      'api_error',
    ])
    .refine(
      (type) => status === undefined || type === (messagesTypes[status] ?? 'api_error'),
      `type and status ${status} do not go together`,
    )
  const details = z.union([
    z.strictObject({
      error_code: z.literal('thread_unsupported_request'),
      unsupported: z.tuple([z.literal('thread')]),
    }),
    z.strictObject({
      error_code: z.enum(['thread_not_found', 'thread_already_continued', 'thread_continue_in_flight']),
    }),
  ])
  // Ruling T22.
  const error = z.strictObject({ type, message: someText, details: details.optional() })
  return z.strictObject({ type: z.literal('error'), error, request_id: z.string().regex(/^req_/) })
}
