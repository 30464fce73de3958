import { spawn } from 'node:child_process'
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Coverage, type CoverageReport, joinReports, sortByGain } from './support/coverage.ts'
import { chooseWithin } from './support/test-order.ts'

// npm run test:order
//
// Measures which code of `src` each test file runs, and the processor time that it takes. Writes the table by which
// `npm test` chooses files, scripts/support/test-order.json: the files in the order of the code that they add for their
// seconds. Each file runs alone from the sources, without the bundles of scripts/test.ts, because V8 reports the
// characters of the code that runs. A process that is killed reports nothing, so code that only such processes run is
// not counted. The time of a database server is not counted either. The exit code is 1 if a file failed.
//
// Takes a quarter of an hour on two cores. PostgreSQL must be installed.

const root = fileURLToPath(new URL('..', import.meta.url))
const src = new URL('../src/', import.meta.url).href
const table = fileURLToPath(new URL('support/test-order.json', import.meta.url))
const newFolder = (kind: string) => mkdtempSync(join(tmpdir(), `triwire-order-${kind}-`))
const files = globSync('test/**/*.test.ts', { cwd: root }).sort()
const coverages = new Map<string, Coverage>()
const secondsOf: Record<string, number> = {}

const waiting = [...files]
await Promise.all(Array.from({ length: 2 * availableParallelism() }, measureFiles))

const sorted = sortByGain(coverages, secondsOf)
const order = Object.fromEntries(sorted.map(([file]) => [file, secondsOf[file]!]))
writeFileSync(table, `${JSON.stringify(order, undefined, 2)}\n`)
const addedBy = new Map(sorted)
const sumAdded = (list: readonly string[]) => list.reduce((sum, file) => sum + addedBy.get(file)!, 0)
for (const limitSeconds of [50, 100, 200, 300, 400, 500, 600]) {
  const chosen = chooseWithin(files, order, limitSeconds)
  const share = ((100 * sumAdded(chosen)) / sumAdded(files)).toFixed(1)
  console.log(`${limitSeconds} s: ${chosen.length} of ${files.length} files, which run ${share} % of the code`)
}

async function measureFiles(): Promise<void> {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const [reports, written] = [newFolder('reports'), newFolder('files')]
    const { seconds, status } = await run(file, { NODE_V8_COVERAGE: reports, TRIWIRE_TEST_DIR: written })
    coverages.set(file, joinReports(readReports(reports), src))
    secondsOf[file] = seconds
    // A process that a test has left may still write a file there.
    for (const path of [reports, written]) rmSync(path, { recursive: true, maxRetries: 10 })
    if (status !== 0) process.exitCode = 1
    const result = status === 0 ? '' : ', FAILED: only the code that it ran counts'
    console.log(`${coverages.size} of ${files.length}: ${file}, ${seconds} s${result}`)
  }
}

/** Runs a test file. @returns the processor time of the process and of all child processes that have ended */
async function run(file: string, env: NodeJS.ProcessEnv): Promise<{ seconds: number; status: number | null }> {
  // The last line of `times` has the user and system time of child processes, like `0m1.250s 0m0.310s`.
  const child = spawn(
    '/bin/sh',
    ['-c', '"$@" > /dev/null 2>&1; status=$?; times; exit $status', 'sh', process.execPath, file],
    {
      cwd: root,
      env: { ...process.env, TRIWIRE_TEST_POSTGRES: '1', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const pieces: Buffer[] = []
  child.stdout.on('data', (piece) => pieces.push(piece))
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const times = Buffer.concat(pieces).toString().trim().split('\n').at(-1)!
  const seconds = [...times.matchAll(/(\d+)m([\d.]+)s/g)].reduce((sum, [, m, s]) => sum + 60 * Number(m) + Number(s), 0)
  return { seconds: Math.max(0.1, Number(seconds.toFixed(1))), status }
}

function* readReports(path: string): Generator<CoverageReport> {
  for (const name of readdirSync(path)) {
    try {
      yield JSON.parse(readFileSync(join(path, name), 'utf8'))
    } catch {
      // A process was killed while it wrote its report.
    }
  }
}
