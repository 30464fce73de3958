import { pathToFileURL } from 'node:url'
import { until } from '../support/waiting.ts'

/*
 * The program of `runWarm`: runs one command after the other, each from the program's own first line. What a command loads
 * is loaded once for all of them. A command is over when nothing is left that would keep a process of its own from its end.
 */

export type Asked = { args: readonly string[]; env: Record<string, string>; cwd: string }
export type Told = { code: number; stdout: string; stderr: string }

const home = { ...process.env }
const program = process.argv[1]!
const entry = process.argv[2] ? pathToFileURL(process.argv[2]) : new URL('../../src/cli/cli.ts', import.meta.url)
let count = 0

process.on('message', async (asked: Asked) => {
  process.send!(await runCommand(asked))
})

async function runCommand({ args, env, cwd }: Asked): Promise<Told> {
  process.chdir(cwd)
  setEnv({ ...home, ...env })
  process.argv = [process.execPath, program, ...args]
  process.exitCode = undefined
  const [stdout, stderr] = [take(process.stdout), take(process.stderr)]
  const ours = process.getActiveResourcesInfo()
  try {
    // Another address is another module: its first line runs again, and what it imports is there.
    count++
    await import(`${entry.href}?${count}`)
    await until(() => isLeftWith(ours), 'nothing keeps the process alive')
    return { code: Number(process.exitCode ?? 0), stdout: stdout.text(), stderr: stderr.text() }
  } finally {
    stdout.giveBack()
    stderr.giveBack()
  }
}

/** Whether nothing but these keeps the process alive. */
function isLeftWith(resources: readonly string[]): boolean {
  const left = process.getActiveResourcesInfo()
  for (const one of resources) {
    const at = left.indexOf(one)
    if (at >= 0) left.splice(at, 1)
  }
  return left.length === 0
}

/** In the environment itself: not everything that reads it asks `process.env`, `homedir` for one. */
function setEnv(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name]
  Object.assign(process.env, env)
}

/** What is written goes to us; who listens to the stream while it does is forgotten afterwards. */
function take(stream: NodeJS.WriteStream): { text(): string; giveBack(): void } {
  const { write } = stream
  const chunks: Uint8Array[] = []
  stream.write = (chunk: string | Uint8Array, ...rest: unknown[]) => {
    chunks.push(Buffer.from(chunk as string))
    const written = rest.findLast((one) => typeof one === 'function')
    if (written) process.nextTick(written)
    return true
  }
  return {
    text: () => Buffer.concat(chunks).toString(),
    giveBack() {
      stream.write = write
      stream.removeAllListeners('error')
    },
  }
}
