import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { homeOf } from './home.ts'
import { nodeOf, nodePackage } from './node.ts'
import type { Peer, Source } from './peer.ts'

const limitMs = 10 * 60_000

/** Installs a peer if this version is missing. @returns the error, which is kept for the page; undefined if all went well */
export function install(peer: Peer): string | undefined {
  const why = readProblem(peer)
  if (why === undefined) return undefined
  const home = homeOf(peer)
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  try {
    installFrom(peer.source, home)
    writeFileSync(stampOf(peer), JSON.stringify(peer.source))
    return undefined
  } catch (error) {
    writeFileSync(problemOf(peer), (error as Error).message)
    return (error as Error).message
  }
}

/** The reason why a peer cannot be started: this version was never installed, or its installation failed. */
export function readProblem(peer: Peer): string | undefined {
  if (existsSync(stampOf(peer)) && readFileSync(stampOf(peer), 'utf8') === JSON.stringify(peer.source)) return undefined
  return existsSync(problemOf(peer)) ? readFileSync(problemOf(peer), 'utf8') : 'it is not installed'
}

const stampOf = (peer: Peer) => join(homeOf(peer), 'installed.json')
const problemOf = (peer: Peer) => join(homeOf(peer), 'problem.txt')

function installFrom(source: Source, home: string): void {
  const { package: name, version } = source
  if (source.from === 'npm') {
    const { overrides = {}, node } = source
    writeFileSync(join(home, 'package.json'), JSON.stringify({ private: true, overrides: { [name]: overrides } }))
    // In a run of npm, the settings of our checkout are environment variables, which override files; flags override both.
    const flags = ['--no-audit', '--no-fund', '--save-exact', '--loglevel=error', '--ignore-scripts=false']
    if (node) execute(home, 'npm', ['install', ...flags, `${nodePackage}@${node}`])
    // Native code must be compiled for the Node that will run it.
    const used = node ? nodeOf(home) : process.execPath
    const env = { PATH: `${dirname(used)}:${process.env['PATH']}` }
    execute(home, 'npm', ['install', ...flags, `--nodedir=${join(used, '../..')}`, `${name}@${version}`], env)
  } else if (source.from === 'PyPI') {
    const { extras } = source
    execute(home, 'python3', ['-m', 'venv', '.'])
    const wanted = `${name}${extras ? `[${extras}]` : ''}==${version}`
    execute(home, join(home, 'bin/pip'), ['install', '--quiet', '--disable-pip-version-check', wanted])
  } else {
    const told = execute(home, 'go', ['mod', 'download', '-json', `${name}@${version}`])
    const { Dir } = JSON.parse(told) as { Dir: string }
    // In a copy outside of the module cache, the module's own checksums (go.sum) apply.
    const copy = join(home, 'source')
    cpSync(Dir, copy, { recursive: true })
    execute(home, 'chmod', ['-R', 'u+w', copy])
    execute(copy, 'go', ['build', '-o', join(home, 'program'), source.main])
    rmSync(copy, { recursive: true, force: true })
  }
}

/** @throws Error with the end of the output */
function execute(cwd: string, command: string, args: readonly string[], more: Record<string, string> = {}): string {
  console.log(`${command} ${args.join(' ')}`)
  const env = { ...process.env, ...more }
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8', timeout: limitMs })
  if (status === 0) return stdout
  const said = stderr?.trim().split('\n').slice(-5).join(' ').slice(-400)
  throw new Error(`${command} ${args[0]} failed: ${error?.message || said || `it ended with ${status}`}`)
}
