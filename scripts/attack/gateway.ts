import { spawn, spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Setting } from './setting.ts'

const program = join(import.meta.dirname, '../../bin/triwire.mjs')
/** The server's limit of descriptors: more than its connections on both sides need, and few enough to be exhausted. */
const descriptors = 4_096

export type Ran = { seconds: number; waitedSeconds: number }

/** The server under attack: one process from the first attack to the last. */
export type Gateway = {
  url: string
  pid: number
  signal(name: NodeJS.Signals): void
  /** How the process ended; undefined while it runs. */
  ended(): string | undefined
  /** The resident memory in MB, now and as the peak since `resetPeak`. It is 0 without /proc. */
  rss(): number
  rssPeak(): number
  resetPeak(): void
  /** The seconds for which its main thread has run or waited for a processor. They are 0 without /proc. */
  ran(): Ran
  /** Lets it drain. @returns how it ended */
  stop(): Promise<string>
}

export async function startGateway({ folder, logPath }: Setting): Promise<Gateway> {
  const log = openSync(logPath, 'a', 0o600)
  // The server starts in the folder of its configuration, without its name, and must find the file (B4).
  const command = ['-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', process.execPath, program, 'serve']
  const child = spawn('/bin/sh', command, {
    cwd: folder,
    env: { PATH: process.env['PATH'], NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  // If this process ends early, the server ends too.
  process.once('exit', () => child.kill('SIGKILL'))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  let ended: string | undefined
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = signal ?? `code ${code}`
      resolve(ended)
    })
  })
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`the server ended at its start: ${readFileSync(logPath, 'utf8')}`)))
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const match = /listens on (\S+)/.exec(line)
      if (match) resolve(match[1]!)
    })
  })
  const pid = child.pid!
  let peak = 0
  const readRss = () => Number(/VmRSS:\s+(\d+)/.exec(proc(pid, 'status'))?.[1] ?? 0) / 1024
  const timer = setInterval(() => {
    peak = Math.max(peak, readRss())
  }, 100)
  return {
    url,
    pid,
    signal: (name) => void child.kill(name),
    ended: () => ended,
    rss: readRss,
    rssPeak: () => Math.max(peak, readRss()),
    resetPeak() {
      peak = 0
    },
    ran() {
      const [ran = 0, waited = 0] = proc(pid, `task/${pid}/schedstat`)
        .split(' ')
        .map((ns) => Number(ns) / 1e9)
      return { seconds: ran, waitedSeconds: waited }
    },
    async stop() {
      clearInterval(timer)
      child.kill('SIGTERM')
      const killed = setTimeout(() => child.kill('SIGKILL'), 60_000)
      const how = await exited
      clearTimeout(killed)
      return how
    },
  }
}

/** Runs the command line of the same checkout on the trial's store. */
export function runProgram(setting: Setting, args: readonly string[]): { isOk: boolean; text: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: setting.folder,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], NODE_NO_WARNINGS: '1' },
    maxBuffer: 1e9,
  })
  return { isOk: status === 0, text: `${stdout}${stderr}` }
}

function proc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
