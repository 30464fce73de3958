import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { lockStore } from './lock.ts'
import { realPath } from './place.ts'

/** Beside the lock: which process holds it. It means nothing where nobody holds the lock. */
export function holderPathOf(storePath: string): string {
  return `${storePath}.pid`
}

/**
 * Takes the lock of a store, and writes down that this process has it.
 * @returns the release. @throws what `lock` throws
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
 * Writes down that this process holds the store's lock. Where it cannot, as on a full disk, only `triwire reload` misses it.
 * @returns takes it away again, when the lock goes
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
      // Somebody has taken it away already.
    }
  }
}

/**
 * The process that holds the store's lock, to be signalled.
 * @returns undefined if the recorded process has ended, runs on another machine or in another container, or if its number
 *   belongs to another process now
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

/** When a process began, in ticks of the system's clock since its boot; null where the system does not tell (man 5 proc). */
function begunOf(pid: number): string | null {
  if (process.platform !== 'linux') return null
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is a name in parentheses, which may have blanks in it.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
