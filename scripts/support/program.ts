import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const program = join(import.meta.dirname, '../../bin/triwire.mjs')

export type Program = { child: ChildProcess; url: string }

export type ProgramOptions = {
  /** Environment variables in addition to those of this process. */
  env?: Record<string, string> | undefined
  /** The launcher of another checkout. */
  launcher?: string | undefined
  /** Arguments in addition to the required ones. */
  args?: readonly string[] | undefined
}

/** Starts the real program. @param log a descriptor for its log; default: no log @throws if it ends during the start */
export async function startProgram(
  configPath: string,
  log: number | 'ignore' | 'inherit' = 'ignore',
  { env, launcher = program, args = [] }: ProgramOptions = {},
): Promise<Program> {
  const child = spawn(process.execPath, [launcher, 'serve', '--config', configPath, ...args], {
    stdio: ['ignore', 'pipe', log],
    env: { ...process.env, ...env },
  })
  // If this process ends early, the server ends too.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended at its start with ${code}`)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const match = /listens on (\S+)/.exec(line)
      if (match) resolve(match[1]!)
    })
  })
  child.removeAllListeners('exit')
  child.once('exit', () => process.off('exit', kill))
  return { child, url }
}

/** Resident memory of a process on Linux, in MB. */
export function readRss({ pid }: ChildProcess): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}
