import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

// npm test [folder or file …] [--option of node …]
//
// Runs the tests, then searches every file they left behind. Tests put their stores and logs into TRIWIRE_TEST_DIR and
// their secrets and texts carry the word canary: nothing of requests and answers, and no key, is written anywhere
// (ruling U5).

const folder = mkdtempSync(join(tmpdir(), 'triwire-test-'))
const args = process.argv.slice(2)
const options = args.filter((arg) => arg.startsWith('--'))
const named = args.filter((arg) => !arg.startsWith('--'))

/** No test comes near it, on the busiest machine; a file has ten minutes, and says what it was doing (test/support/watch.ts). */
const testLimitMs = 120_000

// Every file is a process, and many start the gateway or the command line as more: they share compiled code, also that of
// the runs before, instead of stripping and compiling the same sources hundreds of times. Node compares the sources, and
// keeps one of each file.
const compiled = fileURLToPath(new URL('../node_modules/.cache/triwire/compiled', import.meta.url))

const { status } = spawnSync(
  process.execPath,
  [
    '--test',
    '--test-reporter=spec',
    // Two more than there are cores: files that wait for a deadline leave their cores to others.
    `--test-concurrency=${availableParallelism() + 2}`,
    `--test-timeout=${testLimitMs}`,
    `--import=${new URL('../test/support/watch.ts', import.meta.url)}`,
    ...options,
    ...(named.length > 0 ? named : ['test']).map(toGlob),
  ],
  {
    stdio: 'inherit',
    cwd: new URL('..', import.meta.url),
    env: { ...process.env, TRIWIRE_TEST_DIR: folder, NODE_COMPILE_CACHE: compiled },
  },
)

const left = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
const leaks = left.flatMap((file) => findLeaks(file).map((leak) => `${relative(folder, file)}: ${leak}`))
if (leaks.length > 0) {
  console.error(`\nThe tests left texts or keys behind, in ${folder}:\n${leaks.map((leak) => `  ${leak}`).join('\n')}`)
} else rmSync(folder, { recursive: true })
process.exitCode = leaks.length > 0 ? 1 : (status ?? 1)

function toGlob(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path
}

/** What must not be there, and where in the file. A key of ours is told by its prefix only: this goes to a log. */
function findLeaks(file: string): string[] {
  const text = readFileSync(file, 'latin1')
  const leaks = text.matchAll(/canary-[a-z0-9-]+|sk-tri-[A-Za-z0-9_-]{46}/g)
  return [...leaks].map(
    ({ 0: leak, index }) => `${leak.startsWith('canary') ? leak : 'a key, sk-tri-…'} at byte ${index}`,
  )
}
