import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { after, suite } from 'node:test'
import { pathToFileURL } from 'node:url'

/** A file that contains these words has its own process, in which `watch.ts` is not loaded. */
const lonely = 'Alone in its process: '

/** The seconds of a file that the table does not list. */
const usualSeconds = 0.3

/** The least seconds of files for each process, because loading the product takes longer than a few short files. */
const processSeconds = 10

/** A module that each process loads before its tests. With an option of Node, threads of tests would load it too. */
const watch = new URL('../../test/support/watch.ts', import.meta.url).href

/** The text that all processes read: the files in the order in which they run. */
type Queue = { root: string; files: string[] }

/**
 * Test files that several processes take from one queue, the longest first. So no process is idle while files are left,
 * even if the table of seconds is wrong for this machine.
 */
export type TestQueue = {
  /** The files to start: a file for each process, and test files that have a process of their own. */
  starts: string[]
  /** @returns the test files that a started file has taken, in their order; a test file stands for itself */
  filesOf(started: string): string[]
  /** Lists files that no process has finished. */
  listUnfinished(): string[]
}

/**
 * @param folder a new folder for the queue
 * @param files paths from the root
 * @param secondsOf the table, for files that take a second or more
 * @param processesMax how many processes take from the queue at most
 */
export function createTestQueue(
  root: string,
  folder: string,
  files: readonly string[],
  secondsOf: Readonly<Record<string, number>>,
  processesMax: number,
): TestQueue {
  const [alone, sharing]: [string[], string[]] = [[], []]
  for (const file of files) (readFileSync(join(root, file), 'utf8').includes(lonely) ? alone : sharing).push(file)
  const secondsOfFile = (file: string) => secondsOf[file] ?? usualSeconds
  const sorted = sharing.toSorted((a, b) => secondsOfFile(b) - secondsOfFile(a))
  const total = sorted.reduce((sum, file) => sum + secondsOfFile(file), 0)
  const count = Math.min(processesMax, Math.ceil(total / processSeconds))
  mkdirSync(folder)
  writeFileSync(join(folder, 'queue.json'), JSON.stringify({ root, files: sorted } satisfies Queue))
  const processes = Array.from({ length: count }, (_, number) => createStart(folder, number))
  const isTakenBy = (index: number, process: string) =>
    existsSync(takenPath(folder, index)) && readFileSync(takenPath(folder, index), 'utf8') === process
  return {
    starts: [...alone, ...processes],
    filesOf: (started) =>
      processes.includes(started) ? sorted.filter((_, index) => isTakenBy(index, started)) : [relative(root, started)],
    listUnfinished: () => sorted.filter((_, index) => !existsSync(finishedPath(folder, index))),
  }
}

/** Writes the file that a process of the queue starts with. @returns its path */
function createStart(folder: string, number: number): string {
  const path = join(folder, `${number}.test.mjs`)
  const lines = [
    `import ${JSON.stringify(watch)}`,
    `import { runTests } from ${JSON.stringify(import.meta.url)}`,
    `await runTests(${JSON.stringify(folder)}, ${JSON.stringify(path)})`,
  ]
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}

/**
 * Runs files of the queue until none is left. Each is a suite, so that its hooks are its own.
 * @param process the started file of this process, by which it marks what it takes
 */
export async function runTests(folder: string, process: string): Promise<void> {
  const { root, files } = JSON.parse(readFileSync(join(folder, 'queue.json'), 'utf8')) as Queue
  for (const [index, file] of files.entries()) {
    if (!take(takenPath(folder, index), process)) continue
    const { promise, resolve } = Promise.withResolvers<void>()
    suite(file, async () => {
      try {
        await import(pathToFileURL(join(root, file)).href)
      } finally {
        // The last hook of the file. The promise of a suite is resolved before its tests run.
        after(() => resolve())
      }
    })
    await promise
    writeFileSync(finishedPath(folder, index), '')
  }
}

/** @returns false if another process has made the file */
function take(path: string, process: string): boolean {
  try {
    writeFileSync(path, process, { flag: 'wx' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

const takenPath = (folder: string, index: number) => join(folder, `${index}.taken`)
const finishedPath = (folder: string, index: number) => join(folder, `${index}.finished`)
