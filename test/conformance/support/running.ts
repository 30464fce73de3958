import { readFileSync } from 'node:fs'

/** Whether a process runs; one that has ended and that nobody has waited for does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
