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
 * Writes a file by writing another one and renaming it. At every moment the path has either the whole old text or the
 * whole new one. A link stays a link, and a file keeps its mode; a new file has mode 0600.
 * @throws an error of the file system; the file is then unchanged
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
