import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A file with these words has a process of its own. */
const lonely = 'Alone in its process: '

/** Files of this many seconds share a process, which loads once what they import. */
const sharedSeconds = 40

/** The seconds of a file that the table does not list. */
const usualSeconds = 0.3

/**
 * Shares test files out among processes. The table of seconds is the same on every machine, so the shares are too. Tests of
 * PostgreSQL count with their seconds even if they are skipped: then their processes end at once.
 * @param files paths from the root
 * @param secondsOf the table, for files that take a second or more
 * @returns the files to start: test files, and files that import several of them
 */
export function groupTests(
  root: string,
  files: readonly string[],
  secondsOf: Readonly<Record<string, number>>,
): string[] {
  const groups = join(root, 'node_modules/.cache/triwire/groups')
  rmSync(groups, { recursive: true, force: true })
  mkdirSync(groups, { recursive: true })
  const [alone, sharing]: [string[], string[]] = [[], []]
  for (const file of files) (readFileSync(join(root, file), 'utf8').includes(lonely) ? alone : sharing).push(file)
  const seconds = sharing.map((file) => secondsOf[file] ?? usualSeconds)
  const total = seconds.reduce((sum, one) => sum + one, 0)
  const count = Math.ceil(total / sharedSeconds)
  // In the order of their names: the files of a folder stay together, because they mostly import the same.
  let before = 0
  const shares = Map.groupBy(sharing.keys(), (index) => {
    const middle = before + seconds[index]! / 2
    before += seconds[index]!
    return Math.floor((count * middle) / total)
  })
  // Node starts files in the order of their paths. The longest ones go first, so that none of them runs alone at the end.
  const longest = [...shares.values()]
    .map((members) => ({ members, took: members.reduce((sum, index) => sum + seconds[index]!, 0) }))
    .sort((a, b) => b.took - a.took)
  const shared = longest.map(({ members }, rank) => {
    const path = join(groups, `${String(rank).padStart(3, '0')}.test.mjs`)
    writeFileSync(
      path,
      formatGroup(
        root,
        members.map((index) => sharing[index]!),
      ),
    )
    return path
  })
  return [...alone, ...shared]
}

/** Each file is a suite, so that its hooks are its own. */
function formatGroup(root: string, files: readonly string[]): string {
  const suites = files.map((file) => {
    const url = pathToFileURL(join(root, file)).href
    return `suite(${JSON.stringify(file)}, async () => void (await import(${JSON.stringify(url)})))`
  })
  return `import { suite } from 'node:test'\n${suites.join('\n')}\n`
}
