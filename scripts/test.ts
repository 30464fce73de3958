import { spawnSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { availableMemory } from 'node:process'
import { fileURLToPath, pathToFileURL } from 'node:url'

// npm test [folder or file …] [--again] [--quick] [--weigh] [--option of node …]
//
// With --again a file that fails is run once more, alone, at most twice, and only what fails each time fails the run: on a machine
// that others use too a deadline can pass for no fault of ours. What passed at a later try is told, since it is to be mended.
//
// With --weigh it writes down how long each file took (scripts/support/test-seconds.json), by which they are shared out. On a
// machine that does nothing else: TRIWIRE_TEST_POSTGRES=0 npm test -- --quick --weigh
//
// Runs the tests, then searches every file they left behind. Tests put their stores and logs into TRIWIRE_TEST_DIR and
// their secrets and texts carry the word canary: nothing of requests and answers, and no key, is written anywhere
// (ruling U5).

const root = fileURLToPath(new URL('..', import.meta.url))
/** What the tests leave behind until the end is a tenth of it. */
const roomBytes = 4 * 2 ** 30
const folder = mkdtempSync(join(findRoom(), 'triwire-test-'))
const args = process.argv.slice(2)
const ours = ['--again', '--quick', '--weigh']
const options = args.filter((arg) => arg.startsWith('--') && !ours.includes(arg))
const named = args.filter((arg) => !arg.startsWith('--'))

/** No test comes near it, on the busiest machine; a file has ten minutes, and says what it was doing (test/support/watch.ts). */
const testLimitMs = 120_000

// Many processes start the gateway or the command line as more: they share compiled code, also that of the runs before,
// instead of stripping and compiling the same sources hundreds of times. Node compares the sources, and keeps one of each file.
const compiled = fileURLToPath(new URL('../node_modules/.cache/triwire/compiled', import.meta.url))

/**
 * Files of so many seconds share a process, which loads once what they import. One that cannot says so with these words.
 * What a file takes stands in a table, for those that take a second or more: shares are the same on every machine, and end
 * together.
 */
const sharedSeconds = 20
const lonely = 'Alone in its process: '
const weights = fileURLToPath(new URL('support/test-seconds.json', import.meta.url))
const secondsOf: Record<string, number> = JSON.parse(readFileSync(weights, 'utf8'))
/** Of one that is not in the table. */
const usualSeconds = 0.3

/** With --quick (`npm run check`) files with these words are left out, and told. */
const lengthy = 'Left to npm test: '

/** Where the failed files are written, by a reporter of ours. */
const failures = join(folder, 'failed-files')
/** What each file took, likewise. */
const took = join(folder, 'file-seconds')
const weigh = [
  `--test-reporter=${new URL('support/file-seconds.ts', import.meta.url)}`,
  `--test-reporter-destination=${took}`,
]
/** More files than these are no accident. */
const againMax = 3
const moreTries = 2

// Two more at once than there are cores: files that wait for a deadline leave their cores to others.
const found = (named.length > 0 ? named : ['test']).flatMap(findFiles)
const leftOut = args.includes('--quick') ? found.filter((file) => says(file, lengthy)) : []
let status = run(group(found.filter((file) => !leftOut.includes(file))), availableParallelism() + 2)
if (args.includes('--weigh') && status === 0) writeWeights()
if (leftOut.length > 0) console.log(`\nLeft to npm test:\n${leftOut.map((file) => `  ${file}`).join('\n')}`)
let failed = readFailed()
if (args.includes('--again') && failed.length <= againMax) {
  for (let tries = 0; status !== 0 && failed.length > 0 && tries < moreTries; tries++) {
    const list = failed.map((file) => `  ${relative(root, file)}`).join('\n')
    console.error(`\nONCE MORE, alone, since it failed:\n${list}\n`)
    status = run(failed, 1)
    if (status === 0) console.error(`\nPASSED AT A LATER TRY, and to be mended all the same:\n${list}`)
    failed = readFailed()
  }
}

const left = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name))
const leaks = left.flatMap((file) => findLeaks(file).map((leak) => `${relative(folder, file)}: ${leak}`))
if (leaks.length > 0) {
  console.error(`\nThe tests left texts or keys behind, in ${folder}:\n${leaks.map((leak) => `  ${leak}`).join('\n')}`)
} else rmSync(folder, { recursive: true })
process.exitCode = leaks.length > 0 ? 1 : status

/**
 * In memory, where there is room for it: a store that a test makes waits for the disk some twenty times, and what the disk holds
 * after the power has gone no test here is about (scripts/power-cut.ts is). With TMPDIR set it is there.
 */
function findRoom(): string {
  const memory = '/dev/shm'
  if (process.env['TMPDIR'] || !existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return Math.min(bavail * bsize, availableMemory()) > roomBytes ? memory : tmpdir()
}

/** @returns the status of the process: 0 where all passed. */
function run(files: readonly string[], atOnce: number): number {
  const { status } = spawnSync(
    process.execPath,
    [
      '--test',
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      `--test-reporter=${new URL('support/failed-files.ts', import.meta.url)}`,
      `--test-reporter-destination=${failures}`,
      ...(args.includes('--weigh') ? weigh : []),
      `--test-concurrency=${atOnce}`,
      `--test-timeout=${testLimitMs}`,
      `--import=${new URL('../test/support/watch.ts', import.meta.url)}`,
      ...options,
      ...files,
    ],
    {
      stdio: 'inherit',
      cwd: root,
      env: { ...process.env, TRIWIRE_TEST_DIR: folder, NODE_COMPILE_CACHE: compiled },
    },
  )
  return status ?? 1
}

/** @returns each file of the last run in which something failed; a group of them where one took its process down. */
function readFailed(): string[] {
  const text = existsSync(failures) ? readFileSync(failures, 'utf8') : ''
  return [...new Set(text.split('\n').filter(Boolean))]
}

/** What was run is measured anew; the rest stays what it was, as long as it is there. */
function writeWeights(): void {
  const told = readFileSync(took, 'utf8').split('\n').filter(Boolean)
  const measured = Object.fromEntries(told.map((line) => [line.split(' ')[0]!, Math.round(Number(line.split(' ')[1]))]))
  const all = Object.entries({ ...secondsOf, ...measured })
  const long = all.filter(([file, seconds]) => seconds >= 1 && existsSync(join(root, file))).sort()
  writeFileSync(weights, `${JSON.stringify(Object.fromEntries(long), undefined, 2)}\n`)
}

function says(file: string, words: string): boolean {
  return readFileSync(join(root, file), 'utf8').includes(words)
}

function findFiles(path: string): string[] {
  const isFolder = statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory()
  return globSync(isFolder ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path, { cwd: root }).sort()
}

/** @returns files, each of which has some of these in it. */
function group(files: readonly string[]): string[] {
  const groups = join(root, 'node_modules/.cache/triwire/groups')
  rmSync(groups, { recursive: true, force: true })
  mkdirSync(groups, { recursive: true })
  const [alone, sharing]: [string[], string[]] = [[], []]
  for (const file of files) (says(file, lonely) ? alone : sharing).push(file)
  const seconds = sharing.map((file) => secondsOf[file] ?? usualSeconds)
  const total = seconds.reduce((sum, one) => sum + one, 0)
  const count = Math.ceil(total / sharedSeconds)
  // In the order of their names: those of a folder, which mostly import the same, stay together.
  let before = 0
  const shares = Map.groupBy(sharing, (_, index) => {
    const middle = before + seconds[index]! / 2
    before += seconds[index]!
    return Math.floor((count * middle) / total)
  })
  return [...alone, ...[...shares].map(([at, ours]) => share(join(groups, `${at + 10}.test.mjs`), ours))]
}

function share(path: string, files: readonly string[]): string {
  if (files.length === 1) return files[0]!
  writeFileSync(path, formatGroup(files))
  return path
}

/** Each file is a suite, so that its hooks are its own. */
function formatGroup(files: readonly string[]): string {
  const suites = files.map((file) => {
    const url = pathToFileURL(join(root, file)).href
    return `suite(${JSON.stringify(file)}, async () => void (await import(${JSON.stringify(url)})))`
  })
  return `import { suite } from 'node:test'\n${suites.join('\n')}\n`
}

/** What must not be there, and where in the file. A key of ours is told by its prefix only: this goes to a log. */
function findLeaks(file: string): string[] {
  const text = readFileSync(file, 'latin1')
  const leaks = text.matchAll(/canary-[a-z0-9-]+|sk-tri-[A-Za-z0-9_-]{46}/g)
  return [...leaks].map(
    ({ 0: leak, index }) => `${leak.startsWith('canary') ? leak : 'a key, sk-tri-…'} at byte ${index}`,
  )
}
