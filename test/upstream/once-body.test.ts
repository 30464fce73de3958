import assert from 'node:assert/strict'
import test from 'node:test'
import { OnceBody } from '../../src/upstream/once-body.ts'

test('H-F4 a body that is given once is the same bytes the first time, and nothing from then on', () => {
  const bytes = Buffer.from('words')
  const body = new OnceBody(bytes)
  assert.deepEqual([...body], [bytes])
  assert.deepEqual([...body], [])
})

test('H-F4 a body is let go in the moment it is handed over, not when its reader asks for more', () => {
  const body = new OnceBody(Buffer.from('words'))
  body[Symbol.iterator]().next()
  assert.deepEqual([...body], [])
})
