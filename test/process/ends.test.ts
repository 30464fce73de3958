import assert from 'node:assert/strict'
import test from 'node:test'
import { endAll } from '../../src/process/drain.ts'

test('C13 F-S3 the store is closed, which spools waiting debits, although another part of the server fails to end', async () => {
  const ended: string[] = []
  const error = new Error('it cannot end')
  const fail = async () => {
    throw error
  }
  const close = async () => void ended.push('store')
  assert.deepEqual(await endAll([fail, () => undefined, close]), [error])
  assert.deepEqual(ended, ['store'])
  assert.deepEqual(await endAll([close]), [])
})
