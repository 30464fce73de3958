import { isUtf8 } from 'node:buffer'
import {
  chmodSync,
  closeSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { syncFolder } from '../store/files/sync.ts'

/**
 * Reads a text file that a command will write again. Returns undefined if there is no file.
 * @throws an error of the file system, or an Error if the path is not a text file
 */
export function readWhole(path: string): string | undefined {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  // Reading from a pipe might never end.
  if (!stats.isFile()) throw new Error('it is no file')
  const bytes = readFileSync(path)
  // Bytes that are not UTF-8 would be lost when the text is written again.
  if (!isUtf8(bytes)) throw new Error('it is not UTF-8')
  return bytes.toString()
}

/**
 * Writes a file by writing another one and renaming it. At every moment the path has either the whole old text or the
 * whole new text. A link stays a link. A file keeps its mode, and a new file has mode 0600.
 * @throws an error of the file system; the file is then unchanged
 */
export function writeWhole(path: string, text: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  const real = behindLinks(path)
  const unfinished = `${real}.triwire-new`
  // An earlier try may have left this file, with other access rights.
  rmSync(unfinished, { force: true })
  try {
    const file = openSync(unfinished, 'wx', 0o600)
    try {
      if (stats) keepOwner(file, stats)
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (stats) chmodSync(unfinished, stats.mode & 0o777)
    renameSync(unfinished, real)
  } catch (error) {
    rmSync(unfinished, { force: true })
    throw error
  }
  syncFolder(dirname(real))
}

/** Follows links to the last target, even if that does not exist. */
function behindLinks(path: string): string {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()
  return isLink ? behindLinks(resolve(dirname(path), readlinkSync(path))) : path
}

/** Gives a file the owner and group of another. Mostly only root may do so, and not every file system can. */
function keepOwner(file: number, { uid, gid }: Stats): void {
  try {
    fchownSync(file, uid, gid)
  } catch {}
}
