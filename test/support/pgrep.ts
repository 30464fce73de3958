import { spawnSync } from 'node:child_process'

/** @returns the ids of the processes that `pgrep` finds with these arguments */
export function pgrep(...args: string[]): number[] {
  return spawnSync('pgrep', args, { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).map(Number)
}

/** Returns the ids of a process's running child processes. */
export function childrenOf(pid: number): number[] {
  return pgrep('-P', String(pid))
}

/** Kills a process, which may have ended by itself since it was found. */
export function killFound(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
