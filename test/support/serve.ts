import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { atEnd } from './at-end.ts'
import { testFolder } from './folder.ts'
import { until } from './waiting.ts'

/* Runs the program as an operator does: in a separate process, with signals and exit codes. */

const program = resolve(import.meta.dirname, '../../bin/triwire.mjs')

export type Served = {
  child: ChildProcess
  stdout(): string
  stderr(): string
  /** Resolves when the process has ended and all its output was read. */
  exited: Promise<number | string>
  /** Waits until the log has the words. @param times the number of occurrences */
  saw(words: string, times?: number): Promise<void>
  /** Waits until the server listens. @returns the URL of its listener */
  url(): Promise<string>
  adminUrl(): Promise<string>
}

export type ServeOptions = {
  env?: Record<string, string>
  /** Shell words before the program, e.g. a limit. */
  under?: string
}

export function serve(args: readonly string[], folder = newFolder(), { env, under }: ServeOptions = {}): Served {
  const command = [process.execPath, program, 'serve', ...args]
  const [file, ...rest] = under === undefined ? command : ['/bin/sh', '-c', `${under}; exec "$@"`, 'sh', ...command]
  const child = spawn(file!, rest, {
    cwd: folder,
    env: { ...process.env, NODE_NO_WARNINGS: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atEnd(() => child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout!.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr!.on('data', (chunk) => {
    stderr += chunk
  })
  const exited = new Promise<number | string>((done) => {
    const over = (code: number | null, signal: string | null) => done(code ?? signal ?? '')
    // Output may still arrive after `exit`, so `close` is awaited, unless the output is not read.
    child.on('exit', (code, signal) => child.stderr!.isPaused() && over(code, signal))
    child.on('close', over)
  })
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  const saw = async (words: string, times = 1) => {
    const isThere = () => stderr.split(words).length > times
    await until(() => isThere() || isOver(), words)
    if (isOver()) await exited
    if (!isThere()) throw new Error(`${words} in: ${stderr}`)
  }
  const address = async (name: string) => {
    await saw('"listening"')
    return `http://${new RegExp(`"listening".*?"${name}":"([^"]+)"`).exec(stderr)![1]}`
  }
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    saw,
    url: () => address('address'),
    adminUrl: () => address('admin'),
  }
}

export function newFolder(): string {
  return testFolder('process')
}

export const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

export type FileOptions = {
  delay?: string
  deadline?: string
  settle?: string
  /** The URLs of upstreams, by name. */
  upstreams?: Record<string, string>
}

/** Writes a configuration with these models and a short drain. */
export function configFile(folder: string, models: string, options: FileOptions = {}): string {
  const { delay = '50ms', deadline = '500ms', settle = '5s', upstreams = { sim: 'http://127.0.0.1:9' } } = options
  const path = join(folder, 'triwire.yaml')
  const lines = Object.entries(upstreams).map(
    ([name, url]) => `  ${name}: { base_url: "${url}", accounts: [{ name: a, key: k }] }`,
  )
  const text = `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
store: ./triwire.db
catalog:
  pinned: 2026-11-01
  models:
${models}
upstreams:
${lines.join('\n')}
timeouts: { drain_delay: ${delay}, drain_deadline: ${deadline}, settle_deadline: ${settle} }
`
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

export const model = (id: string, upstream = 'sim') =>
  `    - { id: ${id}, wire: chat, upstream: ${upstream}, max_output_tokens: 9, prices: { input: "1", output: "1" } }`
