import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { findHolder, holderPathOf, noteHolder } from '../../src/store/files/holder.ts'
import { isLocked, lockStore } from '../../src/store/files/lock.ts'
import { testFolder } from '../support/folder.ts'

/* Who holds a store's lock, for `triwire reload` (N-F18). */

test('the holder of a lock is found while it lives, and only by its own process id and start time', () => {
  const path = join(testFolder('holder'), 's.db')
  assert.deepEqual([isLocked(path), findHolder(path)], [false, undefined])
  const unlock = lockStore(path)
  const forget = noteHolder(path)
  assert.deepEqual([isLocked(path), findHolder(path)], [true, process.pid])
  const file = holderPathOf(path)
  const { begun } = JSON.parse(readFileSync(file, 'utf8'))
  for (const written of [
    { pid: process.pid, begun: `${begun}1` },
    { pid: 1, begun: null },
    { pid: 'x', begun },
    { pid: 2 ** 22, begun },
  ]) {
    writeFileSync(file, JSON.stringify(written))
    assert.equal(findHolder(path), undefined, JSON.stringify(written))
  }
  // What another server has written since is not taken away.
  forget()
  assert.ok(readFileSync(file))
  unlock()
  assert.equal(isLocked(path), false)
})

test('a server that cannot record that it holds the lock still runs', () => {
  const path = join(testFolder('holder'), 's.db')
  mkdirSync(holderPathOf(path))
  noteHolder(path)()
  assert.equal(findHolder(path), undefined)
})
