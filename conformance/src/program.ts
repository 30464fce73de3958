import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { AdapterSetting } from './adapter.ts'

/*
 * What adapters share: where a gateway is installed, how its process starts and ends.
 */

/** Names the folder of an installed gateway. README.md of `adapters` has the commands that install them. */
export function homeOf(name: string): string {
  return join(process.env['BOTHSIDES_GATEWAYS'] ?? join(homedir(), '.cache/bothsides'), name)
}

type Found = { version: string } | { missing: string }

/**
 * Finds a package that npm installed into the folder of a gateway.
 * @param beside versions of other packages there, without which the gateway works differently
 */
export function findNpm(name: string, packageName: string, beside: Readonly<Record<string, string>> = {}): Found {
  const versionOf = (wanted: string): string | undefined => {
    const file = join(homeOf(name), 'node_modules', wanted, 'package.json')
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined
  }
  const version = versionOf(packageName)
  if (version === undefined) return { missing: `${packageName} is not installed below ${homeOf(name)}` }
  for (const [other, wanted] of Object.entries(beside)) {
    const found = versionOf(other)
    if (found !== wanted) return { missing: `${other} below ${homeOf(name)} is ${found ?? 'missing'}, not ${wanted}` }
  }
  return { version }
}

/** The npm package with Node for this machine. It is installed beside a gateway that needs an older version of Node. */
export const nodePackage = `node-${process.platform}-${process.arch}`

/** Names the Node that is installed beside a gateway. */
export function nodeOf(name: string): string {
  return join(homeOf(name), 'node_modules', nodePackage, 'bin/node')
}

/** Finds a package that pip installed into the folder of a gateway, which is a virtual environment. */
export function findPython(name: string, packageName: string): Found {
  const python = join(homeOf(name), 'bin/python')
  const code = `import importlib.metadata as m; print(m.version(${JSON.stringify(packageName)}))`
  const { status, stdout } = spawnSync(python, ['-c', code], { encoding: 'utf8' })
  return status === 0 ? { version: stdout.trim() } : { missing: `${packageName} is not installed in ${homeOf(name)}` }
}

/** Finds a program that was built: the files `program` and `version`. */
export function findBuilt(name: string): Found {
  const [program, version] = [join(homeOf(name), 'program'), join(homeOf(name), 'version')]
  if (!existsSync(program)) return { missing: `${program} is not there` }
  return { version: existsSync(version) ? readFileSync(version, 'utf8').trim() : 'unknown' }
}

/** A process that listens on a port of loopback. */
export type Program = { port: number; origin: string; stop(): Promise<void> }

/** @property write writes a file into the folder and returns its path */
type Place = { port: number; folder: string; write(file: string, text: string): string }

const limitMs = 120_000

/** @property isReady whether the program can be asked; without it, whether it answers at all */
type Start = { command: readonly string[]; env?: Readonly<Record<string, string>>; isReady?(): Promise<boolean> }

/**
 * Starts a program in an empty folder, with the path of this environment and no other variable of it, and waits until it answers.
 * @param build makes the command and its variables for a free port
 * @throws Error with the end of its output if it ends or does not answer, or if the signal comes before it does
 */
export async function startProgram(
  { folder, signal }: Pick<AdapterSetting, 'folder' | 'signal'>,
  build: (place: Place) => Start,
): Promise<Program> {
  const port = await freePort()
  const write = (file: string, text: string) => {
    writeFileSync(join(folder, file), text, { mode: 0o600 })
    return join(folder, file)
  }
  const { command, env = {}, isReady = () => answers(port) } = build({ port, folder, write })
  const log = join(folder, 'log')
  const output = openSync(log, 'a')
  const [program, ...words] = command
  const child = spawn(program!, words, {
    cwd: folder,
    // A group of its own: what the program starts ends with it.
    detached: true,
    stdio: ['ignore', output, output],
    env: { PATH: process.env['PATH'], HOME: folder, LANG: 'C.UTF-8', NODE_ENV: 'production', ...env },
  })
  let hasEnded = false
  const ended = once(child, 'exit')
    .catch(({ message }: Error) => writeFileSync(output, message))
    .finally(() => (hasEnded = true))
  const send = (name: NodeJS.Signals) => {
    try {
      process.kill(-child.pid!, name)
    } catch {
      // All of the group have ended.
    }
  }
  const stop = async () => {
    send('SIGTERM')
    await Promise.race([ended, pause(5_000, undefined, { ref: false })])
    send('SIGKILL')
  }
  for (const end = Date.now() + limitMs; !(await isReady()); await pause(100)) {
    if (!hasEnded && !signal.aborted && Date.now() < end) continue
    await stop()
    throw new Error(readFileSync(log, 'utf8').slice(-2_000))
  }
  return { port, origin: `http://127.0.0.1:${port}`, stop }
}

/** Some gateways open their port for a moment to see whether it is free, so only an answer shows that one is ready. */
async function answers(port: number): Promise<boolean> {
  try {
    const { body } = await fetch(`http://127.0.0.1:${port}/`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(5_000),
    })
    await body?.cancel()
    return true
  } catch {
    return false
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
