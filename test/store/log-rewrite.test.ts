import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs, { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import test, { type TestContext } from 'node:test'
import { rewriteLog } from '../../src/store/files/sync.ts'
import { createPath, freeDescriptor } from './fixtures.ts'

test('B8 a whole log is overwritten with itself once, even if it is long or the disk takes small pieces', (t) => {
  const path = createPath(t)
  for (const [bytes, takenBytes] of [
    [2_500_001, 1_048_576],
    [70_000, 999],
  ] as const) {
    const log = randomBytes(bytes)
    writeFileSync(`${path}-wal`, log)
    utimesSync(`${path}-wal`, 0, 0)
    const before = freeDescriptor()
    const written = takeAtMost(t, takenBytes)
    rewriteLog(path)
    assert.deepEqual(
      written.places,
      Array.from(written.places, (_, index) => index * takenBytes),
    )
    assert.equal(written.bytes, bytes)
    assert.ok(readFileSync(`${path}-wal`).equals(log))
    assert.ok(statSync(`${path}-wal`).mtimeMs > 0)
    assert.equal(freeDescriptor(), before)
  }
})

test('B8 a store without a log has nothing to rewrite', (t) => {
  assert.doesNotThrow(() => rewriteLog(createPath(t)))
})

/** A disk that takes so many bytes of a piece and says so, and what it was given. */
function takeAtMost(t: TestContext, max: number): { places: number[]; bytes: number } {
  const given = { places: [] as number[], bytes: 0 }
  const write = fs.writeSync
  const { mock } = t.mock.method(
    fs,
    'writeSync',
    (file: number, from: Buffer, at: number, length: number, to: number) => {
      given.places.push(to)
      const written = write(file, from, at, Math.min(length, max), to)
      given.bytes += written
      return written
    },
  )
  syncBuiltinESMExports()
  t.after(() => {
    mock.restore()
    syncBuiltinESMExports()
  })
  return given
}
