/** An error with a message for the operator: what is wrong with the store or the command, and the cure. */
export class StoreError extends Error {}

/** The primary result code of an SQLite error; 0 for other errors. */
export function resultCode(error: unknown): number {
  return (((error as { errcode?: number } | undefined)?.errcode ?? 0) as number) & 0xff
}

/** The new place of a store's content. `to` is empty if the store is an incomplete copy. */
export type Moved = { to: string; movedMs: number }

/** Explains why a moved store, or an unfinished copy, refuses servers and writes. */
export function sayMoved(shown: string, { to }: Pick<Moved, 'to'>): string {
  return to === ''
    ? `${shown} is an unfinished copy: repeat triwire store copy until it says that both are equal`
    : `${shown} was moved to ${to}: name that store instead, or move it back with triwire store copy`
}

/** Thrown if the content of the file is not what was written to it. */
export class DamageError extends StoreError {}

/** Cures by SQLite's result code (https://www.sqlite.org/rescode.html), for errors that an operator can cure. */
const cures = new Map([
  [5, 'is locked by another process: try again when it is done'],
  [8, 'cannot be written: check its owner and its file system'],
  [10, 'cannot be read or written: check the disk, and that it has space'],
  [11, 'is damaged: restore a backup'],
  [13, 'cannot grow: the disk is full'],
  [14, 'cannot be opened: check its folder, its owner, and that its file system can be written'],
  [26, 'is not a triwire store, or is damaged: name another file with --store, or restore a backup'],
])

/** For files that are written without SQLite: maps an error code to the result code of SQLite with the same cure. */
const alike = new Map([
  ['EACCES', 14],
  ['EPERM', 14],
  ['EIO', 10],
  ['ENOSPC', 13],
  ['EROFS', 8],
])

/** Runs `work`. @throws StoreError with the cure if SQLite or the disk fails, DamageError if the file is damaged */
export function explainErrors<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw explainError(path, error)
  }
}

/**
 * Converts a known error to a StoreError with the cure, or to a DamageError. Returns any other error as it is.
 * @param path the file that was used
 */
export function explainError(path: string, error: unknown): unknown {
  const cure = cureOf(error)
  const Refusal = isDamage(error) ? DamageError : StoreError
  return cure ? new Refusal(`${path} ${cure}`, { cause: error }) : error
}

/** Returns the object with each method wrapped, so that `explain` replaces what the method throws. */
export function explainCalls<T extends object>(of: T, explain: (error: unknown) => unknown): T {
  const explained =
    (method: (...args: never[]) => unknown) =>
    async (...args: never[]) => {
      try {
        return await method(...args)
      } catch (error) {
        throw explain(error)
      }
    }
  const parts = Object.entries(of).map(([name, part]) => [name, typeof part === 'function' ? explained(part) : part])
  return Object.fromEntries(parts) as T
}

/**
 * Returns the fault and its cure, in words that follow the path of the file. Undefined if an operator cannot cure the
 * fault.
 */
export function cureOf(error: unknown): string | undefined {
  return cures.get(resultCode(error) || alike.get((error as NodeJS.ErrnoException).code ?? '') || 0)
}

/** Whether SQLite reports a damaged file. */
export function isDamage(error: unknown): boolean {
  return [11, 26].includes(resultCode(error))
}

/** Why a file or folder could not be created or read, by the system's error code. */
const fileCauses: Readonly<Record<string, string>> = {
  EACCES: 'this user may not use that path',
  EPERM: 'this user may not use that path',
  EROFS: 'nothing can be written there',
  ENOTDIR: 'a part of it is a file',
  EEXIST: 'a part of it is a file',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  ENOENT: 'its folder does not exist',
}

/** Returns the cause of a file system's error, with its code. */
export function explainFile(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  const why = fileCauses[code]
  return why === undefined ? message : `${why} (${code})`
}

/** Explains why a file or folder of the store could not be created, and the cure; undefined for other errors. */
export function explainMaking(error: unknown): string | undefined {
  const { code = '', path } = error as NodeJS.ErrnoException
  const why = fileCauses[code]
  return why && path && `${path} cannot be made (${code}): ${why}; choose another place with --store`
}
