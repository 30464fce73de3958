import { existsSync, lstatSync, readlinkSync, realpathSync, renameSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { StoreError } from './open.ts'
import { spoolPath } from './spool.ts'

/**
 * Where the store is in truth, whatever links lead to it: SQLite puts its own files there, and ours stand beside them, so
 * that a store has one lock and one spool by whatever name a server was started (B15).
 */
export function realPath(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  // A link to a file that is still to be made leads somewhere too.
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
    return realPath(resolve(dirname(path), readlinkSync(path)))
  const folder = dirname(path)
  return folder === path ? path : join(realPath(folder), basename(path))
}

/** An earlier release spooled beside the link that it was started with. @throws StoreError where it cannot be moved. */
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
