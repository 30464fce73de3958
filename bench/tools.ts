import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mark, type PreparedAnswer } from './answers.ts'

/** The two compiled C programs. */
export type Tools = { load: string; upstream: string; folder: string }

/** Compiles the tools. @throws if there is no C compiler: tools in Node would be slower than the servers that they measure */
export function buildTools(folder: string): Tools {
  const [load, upstream] = ['load', 'upstream'].map((name) => {
    const program = join(folder, name)
    const { status, error } = spawnSync('cc', ['-O2', '-o', program, join(import.meta.dirname, `${name}.c`)], {
      stdio: 'inherit',
    })
    if (error ?? status !== 0) throw new Error('the bench needs a C compiler (apt-get install gcc libc6-dev)')
    return program
  })
  return { load: load!, upstream: upstream!, folder }
}

/** Writes the answers in the form that the upstream reads. @returns the path */
export function writeAnswers(folder: string, answers: ReadonlyMap<string, PreparedAnswer>): string {
  const parts: (string | Buffer)[] = []
  for (const [path, { pieces, paceMs }] of answers) {
    parts.push(`${path} ${pieces.length} ${paceMs}\n`)
    for (const piece of pieces) parts.push(`${piece.length}\n`, piece)
  }
  const file = join(folder, 'answers')
  writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part))))
  return file
}

export type Load = {
  port: number
  /** Sent in turn. */
  requests: readonly Buffer[]
  connections: number
  /** How many are sent in all. */
  count: number
  /** Requests per second; without a rate, each request follows the answer before it. */
  rate?: number
  /** How often an answer contains the mark. */
  marks: number
}

/** Times in ms. A broken answer is one whose connection was closed before its end; it also counts as bad. */
export type Told = {
  good: number
  bad: number
  broken: number
  statuses: Record<string, number>
  seconds: number
  cpuSeconds: number
  p50: number
  p99: number
  p999: number
  firstP50: number
  firstP99: number
  firstP999: number
}

/** Puts load on a server and checks every answer. @throws if no answer comes at all */
export function putLoad(tools: Tools, load: Load): Promise<Told> {
  return startLoad(tools, load).told
}

let loads = 0

/** Starts to put load on a server. `stop` ends it early, and `told` then rejects. */
export function startLoad(
  tools: Tools,
  { port, requests, connections, count, rate = 0, marks }: Load,
): { told: Promise<Told>; stop(): void } {
  const file = join(tools.folder, `requests-${loads++ % 2}`)
  writeFileSync(file, Buffer.concat(requests.flatMap((one) => [Buffer.from(`${one.length}\n`), one])))
  const numbers = [connections, count, rate].map(String)
  const child = spawn(tools.load, [`${port}`, file, ...numbers, mark, `${marks}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const told = new Promise<Told>((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Told)
      else reject(new Error(`the load generator ended with ${code}`))
    })
  })
  return { told, stop: () => void child.kill() }
}
