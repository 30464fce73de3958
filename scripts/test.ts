import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  globSync,
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
import { bundle, programs } from './package/bundle.ts'
import { findChangedTests, listChanged } from './support/changed-tests.ts'
import { lookAtMachine, nameMissingPrograms } from './support/missing-programs.ts'
import { chooseWithin } from './support/test-order.ts'
import { createTestQueue, type TestQueue } from './support/test-queue.ts'

// npm test [folder or file …] [--all] [--changed[=COMMIT]] [--again] [--quick] [--weigh] [--option of node …]
//
// Without a folder, file, --all or --changed, only those test files run that cover most code for their seconds
// (support/test-order.json, which scripts/test-order.ts measures). They take two and a half minutes on two cores. With
// --all every test runs, as in .ci/run. With --quick fewer files run, as in `npm run check`.
//
// With --changed only those tests run that a change can affect, by imports and named files (support/changed-tests.ts).
// The change is the difference from COMMIT, by default from the commit at which the branch left `main`. If no test
// names a changed file, the file is listed, and all tests run.
//
// With --again a file that fails is tried again alone, at most twice. Only a file that fails each time fails the run,
// because on a busy machine a deadline can pass without a bug. Files that pass at a later try are listed, and should be
// corrected.
//
// With --weigh the seconds of each file are written to scripts/support/test-seconds.json. By this table, the longest
// files run first. On an idle machine: TRIWIRE_TEST_POSTGRES=1 npm test -- --all --weigh
//
// After the tests, all files that they have written are searched. Tests have their stores and logs in TRIWIRE_TEST_DIR,
// and their secrets and texts contain the word canary. No content of requests and answers, and no key, may be in a file
// (ruling U5).

const root = fileURLToPath(new URL('..', import.meta.url))
/** The least free memory for the folder of the tests, in bytes. At the end the tests have used a tenth of it. */
const roomBytes = 4 * 2 ** 30
const folder = mkdtempSync(join(findRoom(), 'triwire-test-'))
const args = process.argv.slice(2)
const changedOption = args.find((arg) => /^--changed(=|$)/.test(arg))
const ours = ['--again', '--all', '--quick', '--weigh', changedOption]
const options = args.filter((arg) => arg.startsWith('--') && !ours.includes(arg))
const named = args.filter((arg) => !arg.startsWith('--'))

/**
 * The limit of a test, in ms, which none reaches even on a busy machine. A file has ten minutes
 * (test/support/watch.ts).
 */
const testLimitMs = 120_000

// Many tests start the gateway or the command line in child processes. These share compiled code, also of earlier runs,
// and need not strip and compile the same sources hundreds of times. Node compares the sources.
const compiled = fileURLToPath(new URL('../node_modules/.cache/triwire/compiled', import.meta.url))

const weights = fileURLToPath(new URL('support/test-seconds.json', import.meta.url))
const secondsOf = readJson(weights)
const order = fileURLToPath(new URL('support/test-order.json', import.meta.url))

/** The folder of bundles of the program and its threads, for processes that tests start (support/quick-start.mjs). */
const bundled = fileURLToPath(new URL('../node_modules/.cache/triwire/program', import.meta.url))

const hourMs = 3_600_000

/** The memory for a process of tests and its child processes, in bytes. */
const processBytes = 2 ** 30

/**
 * The number of concurrent processes: three for each core, if there is memory. Files wait for deadlines and other
 * processes in two thirds of their time.
 */
const processesMax = Math.max(2, Math.min(3 * availableParallelism(), Math.floor(availableMemory() / processBytes)))

/**
 * The processor seconds of the files that run without --all, by the table. On two idle cores, 320 of them took 108 s. A
 * run may take 150 s there, and 75 s with --quick.
 */
const limitSeconds = args.includes('--quick') ? 250 : 330

/** The file in which our reporter lists the failed files. */
const failures = join(folder, 'failed-files')
/** The file in which our reporter writes the seconds of each file. */
const took = join(folder, 'file-seconds')
const weigh = [
  `--test-reporter=${new URL('support/file-seconds.ts', import.meta.url)}`,
  `--test-reporter-destination=${took}`,
]
/** With more failed files than this, no file is tried again. */
const againMax = 3
const moreTries = 2

const chosen = (named.length > 0 ? named : ['test']).flatMap(findFiles)
const found = changedOption === undefined ? chosen : findAffected(chosen, changedOption.split('=')[1])
const isChosen = args.includes('--all') || named.length > 0 || changedOption !== undefined
const toRun = isChosen ? found : chooseWithin(found, readJson(order), limitSeconds)
const quickStart = await prepareQuickStart()
const queue = createTestQueue(root, join(folder, 'queue'), toRun, secondsOf, processesMax)
let status = toRun.length === 0 ? 0 : runQueue(queue, processesMax)
if (args.includes('--weigh') && status === 0) writeWeights()
if (toRun.length < found.length)
  console.log(`\n${found.length - toRun.length} of ${found.length} test files are left to npm test -- --all`)
let failed = readFailed()
if (args.includes('--again') && failed.length <= againMax) {
  let tried = queue
  for (let tries = 0; status !== 0 && failed.length > 0 && tries < moreTries; tries++) {
    // If a process ended too early, all files that it took count as failed.
    const files = [...new Set(failed.flatMap(tried.filesOf))]
    const list = files.map((file) => `  ${file}`).join('\n')
    console.error(`\nONCE MORE, alone, since it failed:\n${list}\n`)
    tried = createTestQueue(root, join(folder, `again-${tries}`), files, secondsOf, 1)
    status = runQueue(tried, 1)
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
const missing = nameMissingPrograms(lookAtMachine(), isUsed)
if (missing.length > 0) console.error(`\n${missing.join('\n')}`)
process.exitCode = leaks.length > 0 ? 1 : status

/** Bundles the program. @returns the environment with which processes of the tests start quickly */
async function prepareQuickStart(): Promise<NodeJS.ProcessEnv> {
  // Packages that are not ES modules need `require`.
  const banner = { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url)" }
  const files = await bundle(join(root, 'src'), bundled, { extension: '.mjs', banner })
  // Another run may still read bundles that it made from other sources.
  for (const file of readdirSync(bundled).map((name) => join(bundled, name)))
    if (!files.includes(file) && Date.now() - statSync(file).mtimeMs > hourMs) rmSync(file, { force: true })
  const bundles = Object.entries(programs).map(([name, path]) => [
    `${path}.ts`,
    pathToFileURL(join(bundled, `${name}.mjs`)).href,
  ])
  const hooks = new URL('support/quick-start.mjs', import.meta.url)
  return {
    NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import=${hooks}`.trim(),
    TRIWIRE_TEST_BUNDLES: JSON.stringify(Object.fromEntries(bundles)),
  }
}

/**
 * Returns the folder for the tests. It is in memory if enough is free, because a test's store waits for the disk about
 * twenty times. No test needs durability (scripts/power-cut.ts tests that). TMPDIR sets another folder.
 */
function findRoom(): string {
  const memory = '/dev/shm'
  if (process.env['TMPDIR'] || !existsSync(memory)) return tmpdir()
  const { bavail, bsize } = statfsSync(memory)
  return Math.min(bavail * bsize, availableMemory()) > roomBytes ? memory : tmpdir()
}

/** Returns the test files that a change can affect, and prints the change. */
function findAffected(files: readonly string[], ref: string | undefined): string[] {
  const changed = listChanged(git, ref)
  const all = [...new Set([...git('ls-files', '-z').split('\0').filter(Boolean), ...changed])].sort()
  const { files: affected, everythingBecause, untested } = findChangedTests(all, changed, readText)
  const list = files.filter((file) => affected.includes(file))
  console.log(`${changed.length} changed files affect ${list.length} of ${files.length} test files.`)
  if (untested.length > 0) console.log(`No test reaches: ${untested.join(', ')}`)
  if (everythingBecause.length > 0)
    console.log(`All tests run, because every test may depend on: ${everythingBecause.join(', ')}`)
  return list
}

/** Runs a command of git. @throws Error without git, or if this is not a git checkout */
function git(...command: string[]): string {
  return execFileSync('git', command, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  })
}

/** Reads a file. @returns '' if it does not exist */
function readText(file: string): string {
  return existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : ''
}

function readJson(path: string): Record<string, number> {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** Whether a test that runs is this file below `test`, or imports it. */
function isUsed(file: string): boolean {
  const code = globSync('{bin,scripts,src,test}/**/*.{ts,mjs}', { cwd: root })
  return findChangedTests(code, [join('test', file)], readText).files.some((one) => toRun.includes(one))
}

/** @returns 0 if all files ran and passed */
function runQueue(queue: TestQueue, atOnce: number): number {
  const status = run(queue.starts, atOnce)
  const unfinished = queue.listUnfinished()
  if (status !== 0 || unfinished.length === 0) return status
  console.error(`\nNo process has finished:\n${unfinished.map((file) => `  ${file}`).join('\n')}`)
  return 1
}

/** @returns the exit status of the process, which is 0 if all passed */
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
      ...options,
      ...files,
    ],
    {
      stdio: 'inherit',
      cwd: root,
      env: { ...process.env, TRIWIRE_TEST_DIR: folder, NODE_COMPILE_CACHE: compiled, ...quickStart },
    },
  )
  return status ?? 1
}

/** @returns the files of the last run in which a test failed, or the started file if its process ended too early */
function readFailed(): string[] {
  const text = existsSync(failures) ? readFileSync(failures, 'utf8') : ''
  return [...new Set(text.split('\n').filter(Boolean))]
}

/** Writes the seconds of files that ran. The others keep theirs if they still exist. */
function writeWeights(): void {
  const lines = readFileSync(took, 'utf8').split('\n').filter(Boolean)
  const measured = Object.fromEntries(
    lines.map((line) => [line.split(' ')[0]!, Math.round(Number(line.split(' ')[1]))]),
  )
  const all = Object.entries({ ...secondsOf, ...measured })
  const long = all.filter(([file, seconds]) => seconds >= 1 && existsSync(join(root, file))).sort()
  writeFileSync(weights, `${JSON.stringify(Object.fromEntries(long), undefined, 2)}\n`)
}

function findFiles(path: string): string[] {
  const isFolder = statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory()
  return globSync(isFolder ? `${path.replace(/\/$/, '')}/**/*.test.ts` : path, { cwd: root }).sort()
}

/** Lists forbidden texts in a file with their places. Of a key only the prefix is shown, because the list is logged. */
function findLeaks(file: string): string[] {
  const text = readFileSync(file, 'latin1')
  const leaks = text.matchAll(/canary-[a-z0-9-]+|sk-tri-[A-Za-z0-9_-]{46}/g)
  return [...leaks].map(
    ({ 0: leak, index }) => `${leak.startsWith('canary') ? leak : 'a key, sk-tri-…'} at byte ${index}`,
  )
}
