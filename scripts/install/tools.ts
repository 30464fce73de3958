import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'

/* Shared by the trials of an installation: releases of Node, folders, commands, and requests to a gateway. */

export const root = join(import.meta.dirname, '../..')

/** The folder for downloads that are kept: releases of Node, npm's cache. */
export const cache = process.env['TRIWIRE_INSTALL_DIR'] ?? join(root, '.install')

/** Thrown for a program that this machine does not have. The trial is then reported as not made. */
export class Unobtainable extends Error {}

/** The folder for all files of the trials; it is deleted at the end. */
export const workplace = mkdtempSync(join(tmpdir(), 'triwire-install-'))
process.once('exit', () => rmSync(workplace, { recursive: true, force: true }))

export function newFolder(name: string): string {
  const folder = join(workplace, name)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  return folder
}

export type RunOptions = { cwd?: string; env?: NodeJS.ProcessEnv; seconds?: number; uid?: number }
export type Done = { status: number | null; stdout: string; text: string }

/** Runs a program to its end. */
export function run(command: readonly string[], { cwd = workplace, env, seconds = 240, uid }: RunOptions = {}): Done {
  const [file = '', ...args] = command
  const ids = uid === undefined ? {} : { uid, gid: uid }
  const options = { cwd, env: env ?? process.env, encoding: 'utf8', timeout: seconds * 1_000, ...ids } as const
  const { status, stdout, stderr, error } = spawnSync(file, args, options)
  if (error && 'code' in error && error.code === 'ENOENT') throw new Unobtainable(`there is no ${file}`)
  return { status, stdout: stdout ?? '', text: `${stdout ?? ''}${stderr ?? ''}`.trim() }
}

/** Runs a program to its end without blocking, so that it can send requests to this process. */
export async function runBeside(command: readonly string[], { cwd = workplace, env, seconds = 240 }: RunOptions = {}) {
  const [file = '', ...args] = command
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: seconds * 1_000 })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (stdout += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const [status] = (await once(child, 'close')) as [number | null]
  return { status, stdout, text: `${stdout}${stderr}`.trim() } satisfies Done
}

/** Runs a program to its end. @throws its output if it fails */
export function must(command: readonly string[], options: RunOptions = {}): string {
  const { status, stdout, text } = run(command, options)
  if (status !== 0)
    throw new Error(`${command.join(' ')} ended with ${status}:\n${text.split('\n').slice(-15).join('\n')}`)
  return stdout.trim()
}

/** Checks an expectation about printed text. @throws with the text if it is not met */
export function expect(isSo: boolean, what: string, text: string): void {
  if (!isSo) throw new Error(`${what}, but:\n${text.split('\n').slice(0, 15).join('\n')}`)
}

/** The folder of a Node release for this machine's platform, from npm's registry. */
export function nodeOf(version: string): string {
  const folder = join(cache, 'nodes', version)
  const name = `node-${process.platform}-${process.arch}`
  const bin = join(folder, 'node_modules', name, 'bin')
  if (!existsSync(bin)) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{}')
    must(['npm', 'install', '--ignore-scripts', '--no-save', `${name}@${version}`], { cwd: folder })
  }
  return bin
}

/** Makes the environment of a fresh shell, with this release of Node, and without variables of npm or triwire. */
export function shell(version: string, more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|TRIWIRE_|NODE_(?!EXTRA))/i.test(name))
  const paths = (process.env['PATH'] ?? '').split(delimiter).filter((path) => !path.includes('node_modules'))
  return {
    ...Object.fromEntries(kept),
    PATH: [nodeOf(version), ...paths].join(delimiter),
    npm_config_cache: join(cache, 'npm'),
    npm_config_update_notifier: 'false',
    ...more,
  }
}

const questions = {
  messages: { path: '/v1/messages', body: { model: 'sim-chat', max_tokens: 100 } },
  chat: { path: '/v1/chat/completions', body: { model: 'sim-responses' } },
  responses: { path: '/v1/responses', body: { model: 'sim-messages' } },
}

/**
 * Starts a gateway as a person would, without a configuration. Sends a request on each wire with the key that it
 * printed, and stops it. @returns the time until it was ready, and the statuses
 */
export async function tryGateway(command: readonly string[], options: RunOptions): Promise<string> {
  const [file = '', ...args] = command
  const { cwd = workplace, env, seconds = 120, uid } = options
  const ids = uid === undefined ? {} : { uid, gid: uid }
  const started = performance.now()
  // Started in a process group of its own: signals also reach what npm starts, as in a terminal.
  const child = spawn(file, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...ids })
  const kill = () => endGroup(child, 'SIGKILL')
  process.once('exit', kill)
  try {
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk))
    const deadline = performance.now() + seconds * 1_000
    let key: string | undefined
    while (key === undefined) {
      if (child.exitCode !== null || performance.now() > deadline)
        throw new Error(`it did not start:\n${said.split('\n').slice(-15).join('\n')}`)
      await pause(20)
      key = /^\s+(sk-tri-\w+)$/m.exec(said)?.[1]
    }
    const readyMs = Math.round(performance.now() - started)
    const url = /triwire listens on (\S+)/.exec(said)![1]!
    const answers = await askAll(url, key)
    const ended = once(child, 'close')
    endGroup(child, 'SIGINT')
    // npm dies of the signal while its child still drains and keeps the output open.
    await Promise.race([ended, pause(15_000)])
    const isOver = child.exitCode === 0 || child.signalCode === 'SIGINT'
    expect(isOver && said.includes('"stopped"'), 'it drains and ends', `${child.exitCode} ${child.signalCode}\n${said}`)
    expect(!/warning/i.test(said.replaceAll('config_warning', '')), 'nothing warns', said)
    return `ready after ${readyMs} ms, ${answers}, drained`
  } finally {
    process.off('exit', kill)
    kill()
  }
}

/** @throws if a wire does not answer */
export async function askAll(url: string, key: string): Promise<string> {
  const statuses: string[] = []
  for (const [wire, { path, body }] of Object.entries(questions)) {
    const turn = wire === 'responses' ? { input: 'Hello!' } : { messages: [{ role: 'user', content: 'Hello!' }] }
    const response = await fetch(`${url}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, ...turn }),
    })
    const text = await response.text()
    expect(response.status === 200 && text.includes('simulated model'), `${wire} is answered`, text)
    statuses.push(`${wire} ${response.status}`)
  }
  return statuses.join(', ')
}

function endGroup({ pid, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, signal)
  } catch {
    // The process group has ended.
  }
}

/** @throws Unobtainable if one of the programs is missing */
export function tryBinaries(...names: string[]): void {
  for (const name of names) run([name, '--version'])
}
