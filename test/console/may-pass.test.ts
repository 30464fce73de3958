import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mayPass } from '../../console/src/pure/may-pass.ts'

test('a page loads again by itself when the gateway did not answer or was asked too often, not after a refusal', () => {
  assert.deepEqual([0, 400, 401, 403, 404, 409, 429, 500, 502, 503, 504].filter(mayPass), [0, 429, 500, 502, 503, 504])
})
