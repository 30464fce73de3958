import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads'

/*
 * The probe is loaded first in the process of a test file, in its worker threads, and in the programs that it starts.
 * It replaces the code with code that has a switch for each mutant.
 * - If no mutant is on, it records which mutants each test runs.
 * - Else it ends the process at the first test that fails, and reports that test.
 */

const { TRIWIRE_MUTANTS_CODE: codePath = '', TRIWIRE_MUTANTS: chosen = '', TRIWIRE_MUTANTS_REPORT = '' } = process.env

export type Instrumented = { count: number; code: Record<string, string> }
/** The mutants that a test ran. If `test` is undefined, they ran while the test file was loaded. */
export type Visits = { test: string | undefined; ms: number; mutants: number[] }

type Hooked = { name: string; fullName: string; passed?: boolean }

const { count, code } = JSON.parse(readFileSync(codePath, 'utf8')) as Instrumented
registerHooks({
  load(url, context, next) {
    // A warm process loads a program again, with another query in its URL, to run it for another test.
    const address = url.replace(/\?\d+$/, '')
    if (address !== url) forgetVisits()
    const source = code[address]
    return source === undefined ? next(url, context) : { format: 'module', source, shortCircuit: true }
  },
})

const active = new Set(chosen.split(',').filter(Boolean).map(Number))
const isTestFile = isMainThread && /\.test\.ts$/.test(process.argv[1] ?? '')
const others = `${TRIWIRE_MUTANTS_REPORT}.others`

if (active.size > 0) Object.assign(globalThis, { __mutant: (id: number) => active.has(id) })
else watchVisits()
if (isTestFile) await (active.size > 0 ? stopAtFailure() : noteVisits())

function watchVisits(): void {
  const key = 'triwire-mutants'
  // Threads share their records with the test that started them; other processes write theirs to a file.
  if (isTestFile) setEnvironmentData(key, new SharedArrayBuffer(count) as never)
  const shared = getEnvironmentData(key) as unknown as SharedArrayBuffer | undefined
  const visits = new Uint8Array(shared ?? new ArrayBuffer(count))
  Object.assign(globalThis, {
    __mutantVisits: visits,
    __mutant(id: number) {
      if (visits[id] !== 0) return false
      try {
        if (!shared) appendFileSync(join(others, `${process.pid}`), `${id}\n`)
        visits[id] = 1
      } catch {
        // The test gave this program no files or no space, and examines how the program deals with that.
      }
      return false
    },
  })
}

/** Lets a process record again what it has recorded for an earlier test. */
function forgetVisits(): void {
  if (isMainThread && !isTestFile) (globalThis as { __mutantVisits?: Uint8Array }).__mutantVisits?.fill(0)
}

async function noteVisits(): Promise<void> {
  mkdirSync(others, { recursive: true })
  const notes: Visits[] = []
  let started = performance.now()
  await watchTests({
    begins() {
      take(undefined)
      started = performance.now()
    },
    ends: ({ name }) => take(name),
  })
  process.on('exit', () => {
    take(undefined)
    writeFileSync(TRIWIRE_MUTANTS_REPORT, JSON.stringify(notes))
  })

  function take(test: string | undefined): void {
    const visits = (globalThis as unknown as { __mutantVisits: Uint8Array }).__mutantVisits
    const mutants = new Set<number>()
    for (const [id, isVisited] of visits.entries()) if (isVisited) mutants.add(id)
    visits.fill(0)
    for (const name of readdirSync(others)) {
      for (const id of readFileSync(join(others, name), 'utf8').split('\n').filter(Boolean)) mutants.add(Number(id))
      writeFileSync(join(others, name), '')
    }
    notes.push({ test, ms: performance.now() - started, mutants: [...mutants] })
  }
}

async function stopAtFailure(): Promise<void> {
  await watchTests({
    begins() {},
    ends({ name, passed }) {
      if (passed) return
      writeFileSync(TRIWIRE_MUTANTS_REPORT, JSON.stringify(name))
      process.exit(1)
    },
  })
}

/**
 * Reports the tests that are counted and chosen. A test inside another test is a part of it. A suite is not a test, so
 * the tests inside a suite are reported.
 */
async function watchTests({ begins, ends }: { begins(): void; ends(test: Hooked): void }): Promise<void> {
  const { beforeEach, afterEach } = await import('node:test')
  let whole: string | undefined
  beforeEach((context) => {
    const { fullName } = context as Hooked
    if (whole !== undefined && fullName.startsWith(`${whole} > `)) return
    whole = fullName
    begins()
  })
  afterEach((context) => {
    if ((context as Hooked).fullName === whole) ends(context as Hooked)
  })
}
