import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import type { TestContext } from 'node:test'

const bin = resolve(import.meta.dirname, '../../bin/triwire.mjs')

export { testFolder } from './folder.ts'

export type Running = {
  process: ChildProcess
  stdout(): string
  stderr(): string
  /** Resolves when stdout matches. @throws Error if the process ends first */
  said(pattern: RegExp): Promise<RegExpMatchArray>
  /** Sends the signal and waits for the end of the process. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

/** Runs the real program in a child process, at most until the end of the test. */
export function runTriwire(t: TestContext, args: string[], cwd: string, env: Record<string, string> = {}): Running {
  const child = spawn(process.execPath, [bin, ...args], { cwd, env: { ...process.env, ...env } })
  // A failed assertion must not leave a server running.
  t.after(() => child.kill('SIGKILL'))
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk
  })
  // At `close`, all output of the process has been read.
  const ended = once(child, 'close')
  return {
    process: child,
    stdout: () => out,
    stderr: () => err,
    async said(pattern) {
      for (;;) {
        const match = out.match(pattern)
        if (match) return match
        if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${err}`)
        await Promise.race([once(child.stdout, 'data'), ended])
      }
    },
    async stop(signal = 'SIGINT') {
      if (child.exitCode === null) child.kill(signal)
      await ended
      return child.exitCode
    },
  }
}
