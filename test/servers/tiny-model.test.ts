import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { makeTinyModel } from '../../servers/model/tiny-model.ts'

test('the tiny model of the servers’ suite is small, and the same bytes every time', () => {
  const [first, second] = [makeTinyModel(), makeTinyModel()]
  assert.equal(digest(first), digest(second))
  assert.equal(first.toString('latin1', 0, 4), 'GGUF')
  assert.ok(first.length < 8_000_000)
})

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
