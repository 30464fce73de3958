import { type ChildProcess, execFile, fork } from 'node:child_process'
import { resolve } from 'node:path'
import { testFolder } from '../support/folder.ts'
import { patienceMs, within } from '../support/waiting.ts'
import type { Asked, Told } from './warm.ts'

const cli = resolve(import.meta.dirname, '../../src/cli/cli.ts')

/** What was printed with `--json`. */
type Json = Record<string, string> & Record<string, string>[]

export type Run = { code: number; stdout: string; stderr: string; json: Json }

type Options = { env?: Record<string, string>; cwd?: string }

// A program that does not end shall fail its test, not stay behind.
const limits = { timeout: 4 * patienceMs, killSignal: 'SIGKILL' } as const

/**
 * Runs the program as a person does, in a process of its own. Every command has a test that does; of those that do the same to
 * the books with other words (`account suspend`, `key list`, …) one stands for all.
 */
export function run(args: readonly string[], options: Options = {}): Promise<Run> {
  const env: NodeJS.ProcessEnv = { ...process.env, NODE_NO_WARNINGS: '1', ...options.env }
  return new Promise((done) => {
    execFile(process.execPath, [cli, ...args], { env, cwd: options.cwd, ...limits }, (error, stdout, stderr) => {
      const code = error ? Number(error.code) : 0
      done(toRun(args, { code, stdout, stderr }))
    })
  })
}

/**
 * Runs the program in the one process of this test file that runs them, each when the one before is over: for what a command
 * says and does, when it is not about the process; that nothing keeps it from its end is looked at too. It costs a tenth of a
 * process of its own.
 */
export const runWarm = createWarm()

/** The same for another program. @param entry the path of its first module; default: the module of triwire */
export function createWarm(entry?: string): typeof run {
  let warm: ChildProcess | undefined
  let before: Promise<unknown> = Promise.resolve()
  return (args, options = {}) => {
    const running = before.then(() => askWarm({ args, env: options.env ?? {}, cwd: options.cwd ?? process.cwd() }))
    before = running.catch(() => {})
    return running.then((told) => toRun(args, told))
  }

  async function askWarm(asked: Asked): Promise<Told> {
    warm ??= startWarm(entry)
    const child = warm
    // Only a command that runs keeps the tests from their end.
    child.ref()
    child.channel!.ref()
    const told = new Promise<Told>((done, fail) => {
      child.once('message', done)
      child.once('exit', (code, signal) => fail(new Error(`it ended the process (${code ?? signal})`)))
    })
    child.send(asked)
    try {
      return await within(told, `${asked.args.join(' ')} ends`)
    } catch (error) {
      child.kill('SIGKILL')
      warm = undefined
      throw error
    } finally {
      child.removeAllListeners()
      child.unref()
      child.channel?.unref()
    }
  }
}

/** It leaves with the process that started it. */
function startWarm(entry?: string): ChildProcess {
  // Nothing of a person's own is within its reach.
  const env = { ...process.env, NODE_NO_WARNINGS: '1', HOME: testFolder('home') }
  const words = entry === undefined ? [] : [entry]
  return fork(resolve(import.meta.dirname, 'warm.ts'), words, { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
}

function toRun(args: readonly string[], { code, stdout, stderr }: Told): Run {
  return { code, stdout, stderr, json: args.includes('--json') && code === 0 ? parse(stdout) : ([] as unknown as Json) }
}

/** One value, or one on each line. */
function parse(text: string): Json {
  const lines = text.trim().split('\n')
  return lines.length === 1 ? JSON.parse(text) : (lines.map((line) => JSON.parse(line)) as Json)
}
