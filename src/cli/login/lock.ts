import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { fileFault } from './fault.ts'

/** The age at which a lock counts as abandoned, in ms. No process holds a lock for even half of this time. */
const abandonedMs = 15_000

/**
 * Tries to take a lock file. If the holder has ended or the file is too old, the file is removed, and the next try
 * succeeds. After a crash two processes may hold the lock. Both then refresh, and the gateway gives both the same new
 * tokens.
 * @returns the function that releases the lock; undefined while another process holds it
 * @throws SignInFault if the folder cannot be written
 */
export function tryLock(path: string): (() => void) | undefined {
  const own = `${process.pid} ${Date.now()}\n`
  let file: number
  try {
    file = openSync(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileFault('write', path, error)
    putAwayAbandoned(path)
    return undefined
  }
  try {
    writeSync(file, own)
  } catch (error) {
    // On a full disk, a file can be created but not written.
    rmSync(path, { force: true })
    throw fileFault('write', path, error)
  } finally {
    closeSync(file)
  }
  return () => {
    // If this process was paused for long, another one may have removed this lock and taken its own lock.
    if (readIfThere(path) === own) rmSync(path, { force: true })
  }
}

function putAwayAbandoned(path: string): void {
  try {
    const seen = readFileSync(path, 'utf8')
    const ageMs = Math.abs(Date.now() - statSync(path).mtimeMs)
    if (ageMs < abandonedMs && !hasEnded(Number.parseInt(seen, 10))) return
    const aside = `${path}.${process.pid}`
    renameSync(path, aside)
    // The renamed file may be a new lock, which another process took after the read. Such a lock is put back.
    try {
      if (readIfThere(aside) !== seen) linkSync(aside, path)
    } finally {
      rmSync(aside, { force: true })
    }
  } catch {
    // Another process released or removed the lock in the meantime.
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Whether the process that holds the lock has ended. @param pid its process id; NaN if the id is not written yet */
function hasEnded(pid: number): boolean {
  if (Number.isNaN(pid)) return false
  // This process does not hold the lock. If the lock has this process's id, it is from an earlier process with the same
  // id.
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
