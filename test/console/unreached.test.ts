import assert from 'node:assert/strict'
import test from 'node:test'
import { findUnreached } from '../../console/src/pure/unreached.ts'

test('X9 the console names the servers missing in a combined answer, until an answer includes all', () => {
  assert.equal(findUnreached('/requests?limit=50', 'two (2)', undefined), 'two (2)')
  assert.equal(findUnreached('/status', null, 'two (2)'), 'two (2)')
  assert.equal(findUnreached('/accounts/acc_1', 'three (3)', 'two (2)'), 'three (3)')
  assert.equal(findUnreached('/requests/req_1/explain', null, 'two (2)'), undefined)
})
