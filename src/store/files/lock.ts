import { closeSync, existsSync, fchownSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isThere, makeFolder, realPath } from './place.ts'
import { cureOf, isDamage, resultCode, StoreError } from './store-error.ts'

/** Thrown if another server runs on the store. */
export class LockedError extends StoreError {}

export function lockPathOf(storePath: string): string {
  return `${storePath}.lock`
}

/**
 * Locks a store for one server, because two servers would each keep their own balances (F-P16). The lock is an open
 * transaction on a separate file, so the command line can still use the store. The lock ends with the process, even if
 * the process is killed.
 * @returns a function that releases the lock
 * @throws LockedError; StoreError if the disk is full or fails
 */
export function lockStore(path: string): () => void {
  // A link to the store leads to the same lock as the store's own path.
  const lockPath = lockPathOf(realPath(path))
  makeFolder(dirname(path))
  let db: DatabaseSync | undefined
  try {
    // The file is not opened a second time here, because closing a descriptor would release this process's own lock
    // (POSIX, see sqlite/file-watch.ts).
    if (!existsSync(lockPath)) makeLock(lockPath, path)
    db = new DatabaseSync(lockPath, { timeout: 0 })
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db?.close()
    if (resultCode(error) === 5)
      throw new LockedError(
        `Another triwire server is running on ${path}: stop it first, or name another store with --store`,
      )
    // For a damaged file, `cureOf` advises to restore a backup. A backup does not repair a lock file, so this advice is
    // left out.
    const cure = isDamage(error) ? undefined : cureOf(error)
    throw cure ? new StoreError(`${lockPath} ${cure}`, { cause: error }) : error
  }
  const lock = db
  return () => lock.close()
}

/** Creates the lock file for the store's owner, as SQLite does. So a command of root does not lock out a server. */
function makeLock(lockPath: string, storePath: string): void {
  const descriptor = openSync(lockPath, 'a', 0o600)
  try {
    if (process.geteuid?.() !== 0) return
    const { uid, gid } = statSync(existsSync(storePath) ? storePath : dirname(storePath))
    fchownSync(descriptor, uid, gid)
  } catch {
    // If root may not change the owner, root keeps the file.
  } finally {
    closeSync(descriptor)
  }
}

/** Locks a store as `lockStore` does, but only if the store exists. @returns undefined if there is no store */
export function lockIfThere(path: string): (() => void) | undefined {
  return isThere(path) ? lockStore(path) : undefined
}

/**
 * Locks a store.
 * @returns as `lockStore`; undefined if another server runs on the store
 * @throws StoreError as `lockStore`
 */
export function tryLockStore(path: string): (() => void) | undefined {
  try {
    return lockStore(path)
  } catch (error) {
    if (error instanceof LockedError) return undefined
    throw error
  }
}

/** Whether a server runs on the store. To find out, this function takes the lock for a moment. */
export function isLocked(path: string): boolean {
  if (!existsSync(lockPathOf(realPath(path)))) return false
  const unlock = tryLockStore(path)
  unlock?.()
  return unlock === undefined
}
