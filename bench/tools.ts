import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mark, type PreparedAnswer } from './answers.ts'

/** The two programs in C, compiled. */
export type Tools = { load: string; upstream: string; folder: string }

/** @throws where there is no C compiler: what one writes in Node is itself the limit of what is measured. */
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

/** Writes the answers as the upstream reads them. @returns the path. */
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
  request: Buffer
  connections: number
  requests: number
  /** Of requests a second; without it the next one follows the answer before it. */
  rate?: number
  /** How often an answer has the mark. */
  marks: number
}

/** Times in ms. A broken answer is one whose connection was closed before its end; it is bad too. */
export type Told = {
  good: number
  bad: number
  broken: number
  statuses: Record<string, number>
  seconds: number
  cpuSeconds: number
  p50: number
  p99: number
  firstP50: number
  firstP99: number
}

/** Puts load on a server and looks at every answer. @throws where no answer comes at all. */
export function putLoad(tools: Tools, { port, request, connections, requests, rate = 0, marks }: Load): Promise<Told> {
  const file = join(tools.folder, 'request')
  writeFileSync(file, request)
  const numbers = [connections, requests, rate].map(String)
  return new Promise((resolve, reject) => {
    const child = spawn(tools.load, [`${port}`, file, ...numbers, mark, `${marks}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.on('close', (code) => {
      if (code === 0) resolve(JSON.parse(output) as Told)
      else reject(new Error(`the load generator ended with ${code}`))
    })
  })
}
