import { spawnSync } from 'node:child_process'

/** @returns the ids of the processes that are so, `pgrep`'s own arguments saying how; none where there are none. */
export function pgrep(...args: string[]): number[] {
  return spawnSync('pgrep', args, { encoding: 'utf8' }).stdout.split('\n').filter(Boolean).map(Number)
}

/** The processes that a process has started and that live. */
export function childrenOf(pid: number): number[] {
  return pgrep('-P', String(pid))
}
