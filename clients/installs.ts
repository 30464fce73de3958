import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/*
 * Installs the clients from npm (package.json beside this file), PyPI (python/<set>.txt) and Go's modules (go/go.mod).
 * Each Python set has its own environment, because sets need different versions of the same packages. All versions are
 * pinned, including those of dependencies. The packages of npm are in node_modules. All else (downloads, Python and Go
 * programs) is in one folder that git ignores.
 */

const folder = import.meta.dirname

/** The folder of everything that later runs use again: caches, environments, builds. */
export const cacheFolder = process.env['TRIWIRE_CLIENTS_DIR'] ?? join(dirname(folder), '.clients')

/** A client's program, and the package that contains it. */
export type Source = { package: string; bin: string } & (
  | {
      from: 'npm'
      /**
       * The program's path in a package that is only for one platform, with `{}` for the platform. It is run from
       * there, because the one in `.bin` is often a stub until an install script has run, and npm may be set to run
       * none.
       */
      native?: string
    }
  | { from: 'python'; set: string }
  | { from: 'go' }
)

/** Installs the sources that are not installed yet. @throws Error if that fails */
export function install(sources: readonly Source[]): void {
  if (sources.some(({ from }) => from === 'npm')) installNpm()
  for (const set of new Set(sources.flatMap((source) => (source.from === 'python' ? [source.set] : [])))) {
    installPython(set)
  }
  if (sources.some(({ from }) => from === 'go')) buildGo()
}

/**
 * Runs `npm install`. `npm ci` would need the binaries of every platform in the lockfile, but a contributor who changes
 * a version may have a registry without some of them. A flag allows install scripts: within `npm run`, the root's
 * settings, which forbid scripts, are environment variables, and these override `.npmrc` (finding A7).
 */
function installNpm(): void {
  const stamp = statSync(join(folder, 'node_modules/.package-lock.json'), { throwIfNoEntry: false })
  const lock = statSync(join(folder, 'package-lock.json'))
  if (stamp && stamp.mtimeMs >= lock.mtimeMs) return
  execute('npm', ['install', '--no-save', '--ignore-scripts=false'], {
    npm_config_cache: join(cacheFolder, 'npm-cache'),
  })
}

function installPython(set: string): void {
  installPinned(join(folder, 'python', `${set}.txt`), environmentOf(set), join(cacheFolder, 'pip-cache'))
}

/** Makes a Python environment, unless it exists. @param pins the file with all packages @throws Error if that fails */
export function installPinned(pins: string, environment: string, pipCache: string): void {
  const stamp = join(environment, 'installed.txt')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === readFileSync(pins, 'utf8')) return
  mkdirSync(dirname(environment), { recursive: true })
  execute('python3', ['-m', 'venv', '--clear', environment])
  const args = ['install', '--quiet', '--no-deps', '--disable-pip-version-check', '-r', pins]
  execute(join(environment, 'bin/pip'), args, { PIP_CACHE_DIR: pipCache })
  writeFileSync(stamp, readFileSync(pins))
}

function buildGo(): void {
  const go = join(cacheFolder, 'go')
  const env = { GOMODCACHE: join(go, 'modules'), GOCACHE: join(go, 'cache'), GOFLAGS: '-mod=readonly -modcacherw' }
  execute('go', ['build', '-C', join(folder, 'go'), '-o', `${join(go, 'bin')}/`, './...'], env)
}

/** Runs a command, whose output goes to the terminal. @throws Error if it fails */
function execute(command: string, args: readonly string[], more: Record<string, string> = {}): void {
  console.log(`${command} ${args.join(' ')}`)
  const { status, error } = spawnSync(command, args, {
    cwd: folder,
    stdio: 'inherit',
    env: { ...process.env, ...more },
  })
  if (status !== 0) throw new Error(`${command} ${args[0]} failed: ${error?.message ?? `it ended with ${status}`}`)
}

function environmentOf(set: string): string {
  return join(cacheFolder, 'python', set)
}

const found = new Map<Source, string>()

/**
 * Returns the path of a client's program: of several builds for this platform, the first that starts here.
 * @throws Error if none starts
 */
export function programOf(source: Source): string {
  const known = found.get(source)
  if (known !== undefined) return known
  const path = candidatesOf(source).find((path) => existsSync(path) && (source.from === 'go' || starts(path)))
  if (path === undefined)
    throw new Error(`${source.package} cannot be started: tried ${candidatesOf(source).join(', ')}`)
  found.set(source, path)
  return path
}

function candidatesOf(source: Source): string[] {
  if (source.from === 'python') return [join(environmentOf(source.set), 'bin', source.bin)]
  if (source.bin === 'node') return [process.execPath]
  if (source.from === 'go') return [join(cacheFolder, 'go/bin', source.bin)]
  const modules = join(folder, 'node_modules')
  const { native = '' } = source
  // First the plain build, then -musl, -baseline and both. Only a try shows which of them starts here.
  const builds = globSync(native.replace('{}', `${process.platform}-${process.arch}*`), { cwd: modules })
    .sort((a, b) => a.length - b.length)
    .map((path) => join(modules, path))
  return [...(native ? builds : []), join(modules, '.bin', source.bin)]
}

/**
 * Whether a program starts. One has no `--version`. Some write into the home folder even then, so they get another one.
 */
function starts(path: string): boolean {
  const home = join(cacheFolder, 'home')
  mkdirSync(home, { recursive: true })
  const xdg = { XDG_CONFIG_HOME: '.config', XDG_DATA_HOME: '.local/share', XDG_STATE_HOME: '.local/state' }
  const folders = Object.entries({ HOME: '', ...xdg, XDG_CACHE_HOME: '.cache' }).map(([name, at]) => [
    name,
    join(home, at),
  ])
  const env = { ...process.env, ...Object.fromEntries(folders), CI: '1' }
  const options = { stdio: 'ignore', timeout: 180_000, env } as const
  return ['--version', '--help'].some((argument) => spawnSync(path, [argument], options).status === 0)
}

const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>
}

/** Returns the pinned version of a package. @throws Error if it is not pinned */
export function versionOf({ package: name, ...source }: Source): string {
  const version = pinnedVersion(name, source as Source)
  if (version === undefined) throw new Error(`${name} is not pinned`)
  return version
}

function pinnedVersion(name: string, source: Source): string | undefined {
  if (source.from === 'npm') return dependencies[name]
  const [file, pattern] =
    source.from === 'python'
      ? [`python/${source.set}.txt`, new RegExp(`^${name}==(\\S+)`, 'im')]
      : ['go/go.mod', new RegExp(`^\\s*(?:require )?${name.replaceAll('/', '\\/')} v(\\S+)`, 'm')]
  return pattern.exec(readFileSync(join(folder, file), 'utf8'))?.[1]
}
