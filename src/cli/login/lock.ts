import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { fileFault } from './fault.ts'

/** A lock this old is abandoned, in ms: no holder takes half as long. */
const abandonedMs = 15_000

/**
 * Tries to take a lock file. A lock whose process has ended, or that is too old, is put away, and the next try takes it.
 * Two processes may at worst hold it both, after a crash; then both refresh, and the gateway gives both the same successor.
 * @returns the function that releases it; undefined while another process holds it
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
    // A full disk takes the name of a file, and not its text.
    rmSync(path, { force: true })
    throw fileFault('write', path, error)
  } finally {
    closeSync(file)
  }
  return () => {
    // Another process may have put ours away, if this one was stopped for long.
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
    // Between the two calls another process may have put it away and taken the lock: it gets it back.
    try {
      if (readIfThere(aside) !== seen) linkSync(aside, path)
    } finally {
      rmSync(aside, { force: true })
    }
  } catch {
    // The lock was released or put away in the meantime.
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** @param pid NaN while the holder has not written it yet */
function hasEnded(pid: number): boolean {
  if (Number.isNaN(pid)) return false
  // A number that is ours now was that of a process before us.
  if (pid === process.pid) return true
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
