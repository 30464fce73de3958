import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Visits } from './probe.ts'

export type Place = {
  root: string
  /** The folder for files of the tests and for reports between processes. */
  folder: string
  codePath: string
}

/** The result of a test file. `late`: it did not end in time. `test` is undefined if it failed outside of any test. */
export type Outcome = { is: 'passed' } | { is: 'failed'; test: string | undefined } | { is: 'late' }

export type Trial = {
  file: string
  /** The titles of the tests to run. Undefined: all tests. */
  tests?: readonly string[] | undefined
  mutants: readonly number[]
  limitMs: number
}

/** How long a test waits for a condition while a mutant is on, in ms. Without a mutant it waits for half a minute. */
const patienceMs = 8_000

/** The most characters to show of the output of a file that fails without a mutant. */
const toldMax = 2_000

let runs = 0

/** Functions that end running processes when this process ends. */
const live = new Set<() => void>()
process.once('exit', () => {
  for (const end of live) end()
})

/** Runs one test file with these mutants on. */
export async function tryMutants(place: Place, { file, tests, mutants, limitMs }: Trial): Promise<Outcome> {
  const report = join(place.folder, `report-${runs++}`)
  const names = tests?.map((name) => `--test-name-pattern=/^${name.replaceAll(/[/\\^$.*+?()[\]{}|]/g, '\\$&')}$/`) ?? []
  const code = await runNode(place, [...names, file], limitMs, {
    TRIWIRE_MUTANTS: mutants.join(),
    TRIWIRE_MUTANTS_REPORT: report,
    TRIWIRE_TEST_PATIENCE_MS: `${patienceMs}`,
  })
  const failed = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as string) : undefined
  rmSync(report, { force: true })
  if (code === 'late') return { is: 'late' }
  return code === 0 ? { is: 'passed' } : { is: 'failed', test: failed }
}

/** The mutants that each test of a file runs. If the file fails without a mutant, `why` has the reason. */
export type Visited = { visits: Visits[] } | { why: string }

/** Runs one test file with all mutants off. */
export async function visitMutants(place: Place, file: string, limitMs: number): Promise<Visited> {
  const report = join(place.folder, `report-${runs++}`)
  const told = `${report}.told`
  const output = openSync(told, 'w')
  const code = await runNode(place, [file], limitMs, { TRIWIRE_MUTANTS_REPORT: report }, output)
  closeSync(output)
  const visits = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as Visits[]) : undefined
  const text = readFileSync(told, 'utf8').trim()
  for (const path of [report, told, `${report}.others`]) rmSync(path, { recursive: true, force: true })
  if (code === 0 && visits) return { visits }
  const end = code === 'late' ? `it took longer than ${limitMs} ms` : `it ended with code ${code}`
  return { why: text === '' ? end : text.slice(0, toldMax) }
}

function runNode(
  { root, folder, codePath }: Place,
  args: readonly string[],
  limitMs: number,
  env: Record<string, string>,
  output: number | 'ignore' = 'ignore',
): Promise<number | 'late'> {
  const probe = pathToFileURL(join(import.meta.dirname, 'probe.ts')).href
  const child = spawn(
    process.execPath,
    [`--test-reporter=${pathToFileURL(join(import.meta.dirname, 'first-failure.ts')).href}`, ...args],
    {
      cwd: root,
      stdio: ['ignore', output, output],
      // A process group of its own, so that processes that a test started end with it.
      detached: true,
      env: {
        ...process.env,
        NODE_OPTIONS: `--import=${probe} --no-warnings`,
        TRIWIRE_TEST_DIR: folder,
        TRIWIRE_MUTANTS_CODE: codePath,
        ...env,
      },
    },
  )
  live.add(endGroup)
  return new Promise((resolve) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      endGroup()
    }, limitMs)
    child.on('exit', (code) => {
      clearTimeout(timer)
      endGroup()
      live.delete(endGroup)
      resolve(isLate ? 'late' : (code ?? 1))
    })
  })

  function endGroup(): void {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // The process group has ended.
    }
  }
}
