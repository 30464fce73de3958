import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { lockStore } from './lock.ts'
import { realPath } from './place.ts'

/**
 * The path of the file that names the process with the store's lock. Without such a process, the file has no meaning.
 */
export function holderPathOf(storePath: string): string {
  return `${storePath}.pid`
}

/**
 * Takes the lock of a store, and records that this process has it.
 * @returns a function that releases the lock
 * @throws what `lock` throws
 */
export function lockAsHolder(path: string, lock: (path: string) => () => void = lockStore): () => void {
  const unlock = lock(path)
  const forget = noteHolder(path)
  return () => {
    forget()
    unlock()
  }
}

/**
 * Records that this process holds the store's lock. If the record cannot be written, for example on a full disk, only
 * `triwire reload` fails, because it cannot find the process.
 * @returns a function that removes the record, for the release of the lock
 */
export function noteHolder(path: string): () => void {
  const file = holderPathOf(path)
  const text = `${JSON.stringify({ pid: process.pid, begun: begunOf(process.pid) })}\n`
  try {
    writeFileSync(file, text, { mode: 0o600 })
  } catch {
    return () => {}
  }
  return () => {
    try {
      if (readFileSync(file, 'utf8') === text) rmSync(file)
    } catch {
      // Another process has removed it already.
    }
  }
}

/**
 * Finds the process that holds the store's lock, to send it a signal.
 * @returns undefined if the recorded process has ended, or runs on another machine or in another container. A new
 * process with the same number does not count
 */
export function findHolder(storePath: string): number | undefined {
  try {
    const { pid, begun } = JSON.parse(readFileSync(holderPathOf(realPath(storePath)), 'utf8'))
    if (!Number.isSafeInteger(pid) || pid <= 1) return undefined
    process.kill(pid, 0)
    return begun === null || begunOf(pid) === begun ? pid : undefined
  } catch {
    return undefined
  }
}

/** Returns when a process started, in clock ticks since boot (man 5 proc); null if the system does not say. */
function begunOf(pid: number): string | null {
  if (process.platform !== 'linux') return null
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field of the line is the program's name in parentheses. The name may contain blanks and parentheses.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
