import {
  chmodSync,
  closeSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from '../store/files/sync.ts'

/**
 * Writes a file so that at every moment the old text or the new one is there, whole: under another name first, then renamed. A link
 * stays a link, and a file keeps its mode; a new one has 0600.
 * @throws an error of the file system; the file is then as it was
 */
export function writeWhole(path: string, text: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  const real = stats ? realpathSync(path) : path
  const unfinished = `${real}.new`
  // A file that an earlier try has left may have any mode.
  rmSync(unfinished, { force: true })
  const file = openSync(unfinished, 'wx', 0o600)
  try {
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  if (stats) chmodSync(unfinished, stats.mode & 0o777)
  renameSync(unfinished, real)
  syncFolder(dirname(real))
}
