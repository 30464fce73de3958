import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import test from 'node:test'
import { watchFiles } from '../../src/store/sqlite/file-watch.ts'
import { createPath } from './fixtures.ts'

const pageBytes = 4_096
const salts = Buffer.from('0102030405060708', 'hex')

/** A write-ahead log as the file format has it, of which one frame is a hole. */
function logOf(frames: number, hole?: number): Buffer {
  const header = Buffer.alloc(32)
  header.writeUInt32BE(0x377f0682, 0)
  header.writeUInt32BE(pageBytes, 8)
  salts.copy(header, 16)
  const all = Array.from({ length: frames }, (_, i) => {
    const frame = Buffer.alloc(24 + pageBytes)
    if (i + 1 !== hole) salts.copy(frame, 8)
    return frame
  })
  return Buffer.concat([header, ...all])
}

test('B15 a hole is found in whichever frame it is, among those written since the last check', (t) => {
  const path = createPath(t)
  writeFileSync(path, '')
  for (const [known, frames] of [
    [3, 40],
    [1, 16],
    [16, 17],
    [5, 5],
  ] as const)
    for (let hole = known; hole <= frames; hole++) {
      writeFileSync(`${path}-wal`, logOf(frames))
      const watch = watchFiles(path)
      watch.note()
      assert.ok(watch.isLogWhole(() => known))
      assert.ok(watch.isLogWhole(() => frames))
      writeFileSync(`${path}-wal`, logOf(known))
      watch.note()
      assert.ok(watch.isLogWhole(() => known))
      writeFileSync(`${path}-wal`, logOf(frames, hole))
      assert.equal(
        watch.isLogWhole(() => frames),
        false,
        `${hole} of ${frames}`,
      )
    }
})

test('B15 a log that ends before a frame that the database has is incomplete', (t) => {
  const path = createPath(t)
  writeFileSync(path, '')
  writeFileSync(`${path}-wal`, logOf(20))
  const watch = watchFiles(path)
  watch.note()
  assert.equal(
    watch.isLogWhole(() => 21),
    false,
  )
})
