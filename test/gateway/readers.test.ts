import assert from 'node:assert/strict'
import test from 'node:test'
import { Readers } from '../../src/gateway/fairness/places.ts'

test('C12 a returned place is free once, for its account and in total', () => {
  const readers = new Readers()
  for (let i = 0; i < 20; i++) assert.ok(readers.enter('one'))
  assert.equal(readers.enter('one'), false)
  readers.leave('one')
  assert.deepEqual([readers.enter('one'), readers.enter('one')], [true, false])
  for (let i = 0; i < 20; i++) readers.leave('one')
  assert.equal(readers.count, 0)
  for (let i = 0; i < 200; i++) assert.ok(readers.enter(`account ${i}`))
  assert.equal(readers.enter('one'), false)
  readers.leave('account 7')
  assert.deepEqual([readers.enter('one'), readers.enter('other')], [true, false])
})
