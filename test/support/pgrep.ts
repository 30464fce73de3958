import { spawnSync } from 'node:child_process'

/** @returns the ids of the processes that `pgrep` finds with these arguments; empty if there are none */
export function pgrep(...args: string[]): number[] {
  return spawnSync('pgrep', args, { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).map(Number)
}

/** The running child processes of a process. */
export function childrenOf(pid: number): number[] {
  return pgrep('-P', String(pid))
}
