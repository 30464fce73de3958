import assert from 'node:assert/strict'
import { bodyOf } from './wires.ts'

/* Requests other than inference. During every attack, one is sent each half second, and its answer is checked. */

export const probesEveryMs = 500

type Said = { status: number; headers: Headers; text: string }
type Probe = (ask: (path: string, key?: string, body?: string) => Promise<Said>, key: string) => Promise<void>

let list: string | undefined
let count: unknown

const probes: Probe[] = [
  // Spec 4.5: needs no key, and returns the same bytes each time. A reload may add or remove models of an attack.
  async (ask) => {
    const { status, text } = await ask('/v1/models')
    assert.equal(status, 200, 'models')
    const rows = JSON.parse(text).data as { id: string }[]
    const lasting = JSON.stringify(rows.filter(({ id }) => !id.startsWith('passing-')))
    list ??= lasting
    assert.equal(lasting, list, 'the models list is another one')
  },
  // Spec 4.2: the count is deterministic.
  async (ask, key) => {
    const { status, headers, text } = await ask(
      '/v1/messages/count_tokens',
      key,
      bodyOf('messages', 'payer-chat', 'Hello there'),
    )
    // Token counts have lower priority than paid requests, so they can be refused (R18).
    if (status === 429) {
      assert.equal(headers.get('retry-after'), '1')
      return
    }
    assert.equal(status, 200, 'count_tokens')
    count ??= JSON.parse(text).input_tokens
    assert.equal(JSON.parse(text).input_tokens, count, 'another count')
  },
  // Spec 7.1 and 7.3: error envelopes and codes.
  async (ask, key) => {
    const { status, headers, text } = await ask('/v1/messages', key, bodyOf('messages', 'nobody', 'Hello'))
    const { type, error, request_id: id } = JSON.parse(text)
    assert.deepEqual([status, type, error.type, id], [404, 'error', 'not_found_error', headers.get('x-request-id')])
  },
  async (ask, key) => {
    const { status, text } = await ask('/v1/chat/completions', key, bodyOf('chat', 'nobody', 'Hello'))
    const { type, param, code } = JSON.parse(text).error
    assert.deepEqual([status, type, param, code], [404, 'invalid_request_error', 'model', 'model_not_found'])
  },
  async (ask, key) => {
    const { status, text } = await ask('/v1/responses', key, 'no JSON')
    assert.deepEqual([status, JSON.parse(text).error.code], [400, 'invalid_body'])
  },
  async (ask, key) => {
    const body = bodyOf('responses', 'payer-chat', 'Hello', { previous_response_id: 'resp_1' })
    const { status, text } = await ask('/v1/responses', key, body)
    const { code, param } = JSON.parse(text).error
    assert.deepEqual([status, code, param], [400, 'unsupported_parameter', 'previous_response_id'])
  },
  async (ask, key) => {
    const { status, text } = await ask('/v1/embeddings', key, '{}')
    assert.deepEqual([status, JSON.parse(text).error.code], [404, 'unknown_url'])
  },
]

let next = 0

/** Runs one of the probes, in turns. @throws if the answer is not as it must be */
export async function askProbe(url: string, key: string): Promise<void> {
  await probes[next++ % probes.length]!(async (path, bearer, body) => {
    const response = await fetch(url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: bearer ? { authorization: `Bearer ${bearer}` } : {},
      ...(body === undefined ? {} : { body }),
      signal: AbortSignal.timeout(10_000),
    })
    assert.match(response.headers.get('x-request-id') ?? '', /^req_/, `${path} has an id`)
    return { status: response.status, headers: response.headers, text: await response.text() }
  }, key)
}
