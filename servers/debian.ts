import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Thrown if this machine cannot get a server, for example because it has no Debian. It is no fault of triwire. */
export class Unobtainable extends Error {}

/** Programs of a Debian release, unpacked outside of the system and run by their own loader. */
export type Unpacked = {
  /** Package versions by name, as the archive has them. */
  versions: ReadonlyMap<string, string>
  /** The packages' files, by name. */
  archives: ReadonlyMap<string, string>
  /** Returns the command of a program. Its libraries are also in these folders below the release's library folder. */
  command(program: string, ...libraryFolders: string[]): string[]
  path(below: string): string
}

const triple = 'x86_64-linux-gnu'
const limitMs = 180_000

/**
 * Downloads and unpacks packages of a Debian release, by default from the mirror of this machine's apt. Nothing is
 * installed: apt gets its own lists and cache, and checks signatures as always.
 * @param folder keeps the unpacked files, which a second call uses again
 * @param release unstable by default
 * @throws Unobtainable
 */
export function unpackDebian(
  folder: string,
  packages: readonly string[],
  mirror = findMirror(),
  release = 'sid',
): Unpacked {
  const root = join(folder, 'root')
  const archives = join(folder, 'archives')
  if (!existsSync(root)) {
    if (process.platform !== 'linux' || process.arch !== 'x64')
      throw new Unobtainable('the packages are for Linux on x64')
    rmSync(archives, { recursive: true, force: true })
    for (const path of ['lists/partial', 'cache/archives/partial', 'archives']) {
      mkdirSync(join(folder, path), { recursive: true })
    }
    writeFileSync(join(folder, 'sources.list'), `deb ${mirror} ${release} main\n`)
    const own = {
      'Dir::Etc::sourcelist': join(folder, 'sources.list'),
      'Dir::Etc::sourceparts': '/dev/null',
      'Dir::State::lists': join(folder, 'lists'),
      'Dir::Cache': join(folder, 'cache'),
      'Acquire::Languages': 'none',
      'Acquire::Retries': '2',
      // Without this, apt only warns if a mirror does not answer.
      'APT::Update::Error-Mode': 'any',
      ...(process.getuid?.() === 0 && { 'APT::Sandbox::User': 'root' }),
    }
    const options = Object.entries(own).flatMap(([name, value]) => ['-o', `${name}=${value}`])
    apt(['-qq', ...options, 'update'], folder)
    apt(['-qq', ...options, 'download', ...packages], archives)
    const unpacked = join(folder, 'unpacking')
    rmSync(unpacked, { recursive: true, force: true })
    for (const name of readdirSync(archives)) execFileSync('dpkg', ['-x', join(archives, name), unpacked])
    renameSync(unpacked, root)
  }
  const libraries = join(root, 'usr/lib', triple)
  return {
    versions: versionsOf(archives),
    archives: new Map(readdirSync(archives).map((name) => [name.split('_')[0]!, join(archives, name)])),
    path: (below) => join(root, below),
    command: (program, ...folders) => [
      join(libraries, 'ld-linux-x86-64.so.2'),
      '--library-path',
      [libraries, ...folders.map((folder) => join(libraries, folder))].join(':'),
      join(root, program),
    ],
  }
}

/** Returns the Debian mirror of this machine's apt. @throws Unobtainable if it has none */
function findMirror(): string {
  const asked = spawnSync('apt-get', ['indextargets', '--no-release-info', '--format', '$(REPO_URI)'], {
    encoding: 'utf8',
  })
  const found = (asked.stdout ?? '').split('\n').find((uri) => /\/debian\/?$/.test(uri))
  if (found === undefined)
    throw new Unobtainable('this machine has no apt that takes its packages from Debian; name a --mirror')
  return found
}

function apt(args: readonly string[], cwd: string): void {
  const { status, stderr, error } = spawnSync('apt-get', args, { cwd, encoding: 'utf8', timeout: limitMs })
  if (status !== 0) throw new Unobtainable(`apt-get failed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`)
}

function versionsOf(archives: string): Map<string, string> {
  const parts = readdirSync(archives).map((name) => name.split('_'))
  return new Map(parts.map(([name, version]) => [name!, decodeURIComponent(version!)]))
}
