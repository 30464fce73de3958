import { closeSync, existsSync, fchownSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isThere, realPath } from './place.ts'
import { cureOf, isDamage, resultCode, StoreError } from './store-error.ts'

/** Another server runs on the store. */
export class LockedError extends StoreError {}

export function lockPathOf(storePath: string): string {
  return `${storePath}.lock`
}

/**
 * One server per store (F-P16): two would each have their own balances. The lock is an open transaction on a file of its
 * own. So the command line can share the store, and the lock ends with the process however that dies.
 * @returns the release. @throws LockedError; StoreError if the disk has no room for a lock, or fails.
 */
export function lockStore(path: string): () => void {
  // All names of a store lead to one lock.
  const lockPath = lockPathOf(realPath(path))
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  let db: DatabaseSync | undefined
  try {
    // Never a second descriptor of it: closing one gives up the lock that this process may have (POSIX, see sqlite/file-watch.ts).
    if (!existsSync(lockPath)) makeLock(lockPath, path)
    db = new DatabaseSync(lockPath, { timeout: 0 })
    db.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    db?.close()
    if (resultCode(error) === 5)
      throw new LockedError(
        `Another triwire server is running on ${path}: stop it first, or name another store with --store`,
      )
    // The cure of a damaged store does not mend a lock.
    const cure = isDamage(error) ? undefined : cureOf(error)
    throw cure ? new StoreError(`${lockPath} ${cure}`, { cause: error }) : error
  }
  const lock = db
  return () => lock.close()
}

/**
 * The lock belongs to the store's owner, as SQLite's own files do. So a command that root runs once locks no server out.
 */
function makeLock(lockPath: string, storePath: string): void {
  const descriptor = openSync(lockPath, 'a', 0o600)
  try {
    if (process.geteuid?.() !== 0) return
    const { uid, gid } = statSync(existsSync(storePath) ? storePath : dirname(storePath))
    fchownSync(descriptor, uid, gid)
  } catch {
    // A root that may not give files away keeps it.
  } finally {
    closeSync(descriptor)
  }
}

/** @returns the release; undefined if there is no store, which opening it will report. @throws StoreError as `lockStore`. */
export function lockIfThere(path: string): (() => void) | undefined {
  return isThere(path) ? lockStore(path) : undefined
}

/** @returns the release; undefined if another server runs on the store. */
export function tryLockStore(path: string): (() => void) | undefined {
  try {
    return lockStore(path)
  } catch (error) {
    if (error instanceof LockedError) return undefined
    throw error
  }
}

/** Whether a server runs on the store. If none does, the caller holds the lock for a moment. */
export function isLocked(path: string): boolean {
  if (!existsSync(lockPathOf(realPath(path)))) return false
  const unlock = tryLockStore(path)
  unlock?.()
  return unlock === undefined
}
