import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Visits } from './probe.ts'

export type Place = {
  root: string
  /** For what the tests write and what is told from process to process. */
  folder: string
  codePath: string
}

/** What came of a test file: it passed, this test failed (none: outside of any), or it did not end in time. */
export type Outcome = { is: 'passed' } | { is: 'failed'; test: string | undefined } | { is: 'late' }

export type Trial = {
  file: string
  /** Only these tests; all when left out. */
  tests?: readonly string[] | undefined
  mutants: readonly number[]
  limitMs: number
}

/** For a failure a test of ours waits so long, instead of half a minute. */
const patienceMs = 8_000

let runs = 0

/** Runs one test file with these mutants on. */
export async function tryMutants(place: Place, { file, tests, mutants, limitMs }: Trial): Promise<Outcome> {
  const report = join(place.folder, `report-${runs++}`)
  const names = tests?.map((name) => `--test-name-pattern=/^${name.replaceAll(/[/\\^$.*+?()[\]{}|]/g, '\\$&')}$/`) ?? []
  const code = await runNode(place, report, [...names, file], limitMs, mutants)
  const failed = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as string) : undefined
  rmSync(report, { force: true })
  if (code === 'late') return { is: 'late' }
  return code === 0 ? { is: 'passed' } : { is: 'failed', test: failed }
}

/** Runs one test file with all mutants off. @returns undefined when it fails: nothing can be learned from it */
export async function visitMutants(place: Place, file: string, limitMs: number): Promise<Visits[] | undefined> {
  const report = join(place.folder, `report-${runs++}`)
  const code = await runNode(place, report, [file], limitMs, [])
  const visits = existsSync(report) ? (JSON.parse(readFileSync(report, 'utf8')) as Visits[]) : undefined
  for (const path of [report, `${report}.others`]) rmSync(path, { recursive: true, force: true })
  return code === 0 ? visits : undefined
}

function runNode(
  { root, folder, codePath }: Place,
  report: string,
  args: readonly string[],
  limitMs: number,
  mutants: readonly number[],
): Promise<number | 'late'> {
  const probe = pathToFileURL(join(import.meta.dirname, 'probe.ts')).href
  const child = spawn(
    process.execPath,
    [`--test-reporter=${pathToFileURL(join(import.meta.dirname, 'silent.ts')).href}`, ...args],
    {
      cwd: root,
      stdio: 'ignore',
      // A group of its own, so that what a test started ends with it.
      detached: true,
      env: {
        ...process.env,
        NODE_OPTIONS: `--import=${probe} --no-warnings`,
        TRIWIRE_TEST_DIR: folder,
        TRIWIRE_TEST_PATIENCE_MS: `${patienceMs}`,
        TRIWIRE_MUTANTS: mutants.join(),
        TRIWIRE_MUTANTS_CODE: codePath,
        TRIWIRE_MUTANTS_REPORT: report,
      },
    },
  )
  return new Promise((resolve) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      endGroup()
    }, limitMs)
    child.on('exit', (code) => {
      clearTimeout(timer)
      endGroup()
      resolve(isLate ? 'late' : (code ?? 1))
    })
  })

  function endGroup(): void {
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
}
