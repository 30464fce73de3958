import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { patienceMs } from '../support/waiting.ts'

const cli = resolve(import.meta.dirname, '../../src/cli/cli.ts')

/** What was printed with `--json`. */
type Json = Record<string, string> & Record<string, string>[]

export type Run = { code: number; stdout: string; stderr: string; json: Json }

/** Runs the program as a person does, in a process of its own. */
export function run(
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string } = {},
): Promise<Run> {
  const env: NodeJS.ProcessEnv = { ...process.env, NODE_NO_WARNINGS: '1', ...options.env }
  return new Promise((done) => {
    // A program that does not end shall fail its test, not stay behind.
    const limits = { timeout: 4 * patienceMs, killSignal: 'SIGKILL' } as const
    execFile(process.execPath, [cli, ...args], { env, cwd: options.cwd, ...limits }, (error, stdout, stderr) => {
      const code = error ? Number(error.code) : 0
      done({ code, stdout, stderr, json: args.includes('--json') && code === 0 ? JSON.parse(stdout) : [] })
    })
  })
}
