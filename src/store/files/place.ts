import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statfsSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { spoolPath } from './spool.ts'
import { StoreError } from './store-error.ts'

/** Whether a path exists. @throws StoreError if this user may not look into a folder of the path */
export function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EACCES') throw cause
    throw new StoreError(`${path} cannot be read by this user: run the command as the user who owns the store`, {
      cause,
    })
  }
}

/** Requires that a path, if it exists, is a regular file. @throws StoreError for a folder, a device or the like */
export function refuseNoFile(path: string): void {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat || stat.isFile()) return
  throw new StoreError(
    stat.isDirectory()
      ? `${path} is a folder: name a file in it with --store, such as ${join(path, 'triwire.db')}`
      : `${path} is not a regular file: name another one with --store`,
  )
}

/**
 * Makes a folder for its owner only, and the folders above it.
 * @param cure the option or key that names another place
 * @throws StoreError as `refuseNoRoom`; the system's error for a full disk
 */
export function makeFolder(path: string, cure = '--store'): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
  } catch (error) {
    // The system's error is not enough: on a read-only file system, Node reports that a folder is missing.
    refuseNoRoom(path, cure)
    throw error
  }
}

/**
 * Checks that a file or folder can be created.
 * @param path a file that does not exist, or a folder that may exist
 * @param cure the option or key that names another place
 * @throws StoreError if this user cannot write to the nearest existing folder of the path
 */
export function refuseNoRoom(path: string, cure = '--store'): void {
  let folder = path
  while (!isThere(folder)) folder = dirname(folder)
  const why = statSync(folder).isDirectory() ? whyNotWritable(folder) : 'is a file'
  if (why === undefined) return
  const failed = folder === path ? '' : `${path} cannot be created: `
  throw new StoreError(`${failed}${folder} ${why}; choose another place with ${cure}`)
}

function whyNotWritable(folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK)
    return undefined
  } catch (error) {
    const isReadOnly = (error as NodeJS.ErrnoException).code === 'EROFS'
    return isReadOnly ? 'is on a read-only file system' : 'may not be written to by this user'
  }
}

/**
 * The real path of the store, after all links. The files that SQLite adds are beside this path, and so are ours. So a
 * store has one lock and one spool, whatever name a server was started with (B15).
 */
export function realPath(path: string): string {
  if (isThere(path)) return realpathSync(path)
  // If a link leads to a file that does not exist yet, the path of that file is returned.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    return realPath(resolve(dirname(path), readlinkSync(path)))
  const folder = dirname(path)
  return folder === path ? path : join(realPath(folder), basename(path))
}

/**
 * Moves a spool (debits not yet posted) to the store's real path. If the store was opened through a symbolic link, an
 * earlier release kept the spool beside that link. @throws StoreError if the spool cannot be moved
 */
export function bringSpool(linkPath: string, path: string): void {
  const [from, to] = [spoolPath(linkPath), spoolPath(path)]
  if (linkPath === path || !existsSync(from)) return
  const cure = `${from} has debits that are not in the ledger yet: append it to ${to}, remove it, and start again`
  if (existsSync(to)) throw new StoreError(cure)
  try {
    renameSync(from, to)
  } catch (cause) {
    throw new StoreError(cure, { cause })
  }
}

type Space = { bavail: number; bsize: number; blocks: number }

/** Space for some dozens of debits in the write-ahead log, in bytes. */
const roomBytes = 262_144

/**
 * Refuses a disk with little space. On such a disk the commit of a small change may succeed, and the commit of a debit
 * may fail. A file system that does not report its size is accepted.
 * @throws Error with SQLite's code for a full disk
 */
export function refuseNarrowDisk(folder: string, statfs: (path: string) => Space = statfsSync): void {
  const { bavail, bsize, blocks } = statfs(folder)
  if (blocks === 0 || bavail * bsize >= roomBytes) return
  const message = `the disk is full: ${bavail * bsize} bytes are left, and debits need ${roomBytes}`
  throw Object.assign(new Error(message), { errcode: 13 })
}

/** Refuses files that other users can read; missing files pass. @throws StoreError with the first such file */
export function refuseWideMode(paths: readonly string[]): void {
  if (process.platform === 'win32') return
  for (const file of paths) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    if (mode & 0o077) {
      const octal = (mode & 0o777).toString(8).padStart(4, '0')
      throw new StoreError(`${file} can be read by other users (mode ${octal}): run chmod 600 ${file}`)
    }
  }
}
