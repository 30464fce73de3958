import assert from 'node:assert/strict'
import OpenAI from 'openai'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { longKey, longText, model } from './stories.ts'

/** What openai says of a refusal: its class, and the fields of the envelope (spec 7.3). */
export type Says = { status: number; type: string; code: string; param: string | null }

type ErrorClass = new (...args: never[]) => InstanceType<typeof OpenAI.APIError>
type Refusal = { name: string; rule: string; error: ErrorClass; says: Says; body: object }

/** What is put into a good request, and the error that openai throws for it. */
export function refusals(wire: ClientWire): Refusal[] {
  return [
    {
      name: 'of an unknown model',
      rule: 'spec 7.3',
      error: OpenAI.NotFoundError,
      says: { status: 404, type: 'invalid_request_error', code: 'model_not_found', param: 'model' },
      body: { model: 'nobody' },
    },
    {
      name: 'of a prompt_cache_key that is too long',
      rule: 'P6',
      error: OpenAI.BadRequestError,
      says: { status: 400, type: 'invalid_request_error', code: 'invalid_cache_key', param: 'prompt_cache_key' },
      body: { prompt_cache_key: longKey },
    },
    {
      name: 'of the model itself',
      rule: 'spec 7.4',
      error: OpenAI.BadRequestError,
      says: { status: 400, type: 'invalid_request_error', code: 'invalid_request', param: null },
      body: { model: model('fussy', wire) },
    },
    {
      name: 'of a body that is too large',
      rule: 'R2',
      error: OpenAI.APIError,
      says: { status: 413, type: 'invalid_request_error', code: 'request_too_large', param: null },
      body: { user: longText },
    },
    {
      name: 'of a busy model',
      rule: 'U2',
      error: OpenAI.RateLimitError,
      says: { status: 429, type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null },
      body: { model: model('busy', wire) },
    },
    {
      name: 'of a model that is down',
      rule: 'U2',
      error: OpenAI.InternalServerError,
      says: { status: 502, type: 'api_error', code: 'upstream_error', param: null },
      body: { model: model('down', wire) },
    },
  ]
}

/** Whether what was thrown is this error, with a request id and, of a busy model, with the time to wait. */
export function isRefusal(error: ErrorClass, says: Says): (thrown: unknown) => true {
  return (thrown) => {
    assert.ok(thrown instanceof error, String(thrown))
    const { status, type, code, param, requestID, headers } = thrown
    assert.deepEqual({ status, type, code, param }, says)
    assert.match(requestID!, /^req_/)
    assert.equal(headers?.get('retry-after'), status === 429 ? '7' : null)
    return true
  }
}
