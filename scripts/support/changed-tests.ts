import { dirname, posix } from 'node:path'

/**
 * The tests that a change can affect.
 * @property files the selected test files
 * @property everythingBecause changed files because of which all tests are selected, such as a file that no test names
 * @property untested changed modules that no test reaches
 */
export type ChangedTests = { files: string[]; everythingBecause: string[]; untested: string[] }

/** Matches modules. A module's text names the files that it depends on. All other files are data. */
const modulePattern = /\.(?:[cm]?[jt]s|tsx)$/
/** Matches the product's code. In modules of `src`, only paths of such code count. Tests name the other files. */
const codePattern = /^(?:src|bin|conformance\/src)\/.*\.(?:ts|mjs)$/
const testPattern = /^test\/.*\.test\.ts$/

/** These files affect every test: the runner with what it preloads, and the installed packages. */
const everywhere = [
  'package.json',
  'package-lock.json',
  'scripts/test.ts',
  'scripts/support/test-queue.ts',
  'test/support/watch.ts',
  'scripts/support/quick-start.mjs',
  'bin/node.mjs',
  'bin/launch.mjs',
]

/**
 * Selects tests by the files that modules name. A module depends on each file that it imports. It also depends on each
 * file or folder whose path is one of its string literals, such as a worker or a page. Paths are relative to the module
 * or to the root. Imports of types alone do not count, because they change nothing that runs.
 *
 * @param all every file of the checkout, and every changed file, also if it was deleted; paths from the root
 * @param readText returns the text of a module, or '' if it was deleted
 */
export function findChangedTests(
  all: readonly string[],
  changed: readonly string[],
  readText: (file: string) => string,
): ChangedTests {
  const users = findUsers(all, readText)
  const affected = new Set<string>()
  const everythingBecause: string[] = []
  const untested: string[] = []
  for (const file of changed) {
    const tests = reach(file, users).filter((one) => testPattern.test(one))
    for (const one of tests) affected.add(one)
    if (everywhere.includes(file)) everythingBecause.push(file)
    else if (tests.length > 0) continue
    else if (modulePattern.test(file)) untested.push(file)
    else everythingBecause.push(file)
  }
  const files = all.filter((file) => testPattern.test(file) && (everythingBecause.length > 0 || affected.has(file)))
  return { files, everythingBecause, untested }
}

/**
 * Lists the files that differ from a commit, whether the change is committed or not. Untracked and deleted files count.
 * The default is the commit at which the branch left `main`.
 * @param git runs git with these arguments and returns its output; throws if git fails
 */
export function listChanged(git: (...args: string[]) => string, ref?: string): string[] {
  const base = ref ?? (tryGit(git, 'merge-base', 'main', 'HEAD') || 'HEAD')
  const differing = git('diff', '--name-only', '--no-renames', '-z', base, '--')
  const untracked = git('ls-files', '--others', '--exclude-standard', '-z')
  return [...new Set(`${differing}${untracked}`.split('\0').filter(Boolean))].sort()
}

function tryGit(git: (...args: string[]) => string, ...args: string[]): string {
  try {
    return git(...args).trim()
  } catch {
    return ''
  }
}

/** @returns for each file or folder the modules that name it; a folder ends with a slash */
function findUsers(all: readonly string[], readText: (file: string) => string): Map<string, string[]> {
  const known = new Set(all)
  for (const file of all) for (const folder of foldersOf(file)) known.add(folder)
  const users = new Map<string, string[]>()
  const manifest = known.has('package.json') ? readText('package.json') : '{}'
  const aliases = new Map<string, string>(Object.entries(JSON.parse(manifest || '{}').imports ?? {}))
  for (const file of all) {
    if (!modulePattern.test(file)) continue
    for (const named of namedIn(file, readText(file), known, aliases)) {
      const list = users.get(named)
      if (list) list.push(file)
      else users.set(named, [file])
    }
  }
  return users
}

/** Returns the existing files and folders that a module names. @param aliases `imports` of package.json */
function namedIn(
  file: string,
  text: string,
  known: ReadonlySet<string>,
  aliases: ReadonlyMap<string, string>,
): Set<string> {
  const found = new Set<string>()
  const code = text.replace(/^(?:import|export) type [^']*'[^']*'/gm, '')
  for (const [, , literal = ''] of code.matchAll(/(['"`])([^'"`\n]*)\1/g)) {
    const path = cutPattern(aliases.get(literal) ?? literal)
    // A single word is hardly ever a path.
    if (!/[./]/.test(path) || /^(?:\/|[./]*$)/.test(path)) continue
    for (const from of [dirname(file), '.']) {
      const target = posix.join(from, path).replace(/\/$/, '')
      for (const one of [target, `${target}/`])
        if (one !== file && known.has(one) && (!file.startsWith('src/') || codePattern.test(one))) found.add(one)
    }
  }
  return found
}

/** Returns a path up to the last folder before a wildcard or an inserted value. */
function cutPattern(literal: string): string {
  const at = literal.search(/[*?{[]|\$\{/)
  return at < 0 ? literal : literal.slice(0, literal.lastIndexOf('/', at) + 1)
}

/** Returns the file and all modules that depend on it, directly or through other modules. */
function reach(file: string, users: ReadonlyMap<string, readonly string[]>): string[] {
  const reached = new Set([file])
  for (const one of reached)
    for (const named of [one, ...foldersOf(one)]) for (const user of users.get(named) ?? []) reached.add(user)
  return [...reached]
}

/** Returns the folders around a file: for `src/http/body.ts` these are `src/` and `src/http/`. */
function foldersOf(file: string): string[] {
  const parts = file.split('/')
  return parts
    .slice(1)
    .map((_, n) => `${parts.slice(0, n + 1).join('/')}/`)
    .reverse()
}
