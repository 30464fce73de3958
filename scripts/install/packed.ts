import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { trySetup } from './set-up.ts'
import { expect, must, newFolder, root, run, shell, tryGateway } from './tools.ts'

/** The releases of Node that a package is tried on: the oldest of each line, and its newest when this was written. */
const packageNodes = ['22.22.1', '22.23.3', '24.13.1', '24.21.0', '26.10.0']

const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

let tarball: string | undefined

/** Returns the tarball of the package, which is made once for all trials. */
export function pack(): string {
  tarball ??= packWith(['npm', 'run', '--silent', 'package', '--', '--silent'], 'packed')
  return tarball
}

/** Packs by a command of npm. @returns the tarball, which has a folder of its own */
function packWith(command: readonly string[], name: string): string {
  const folder = newFolder(name)
  const printed = must([...command, '--pack-destination', folder], { cwd: root, env: shell('26.10.0') })
  return join(folder, printed.split('\n').at(-1)!)
}

export async function sameTarball(): Promise<string[]> {
  const sums = [pack(), packWith(['npm', 'pack', '--silent', '--ignore-scripts=false'], 'again')].map((file) =>
    createHash('sha256').update(readFileSync(file)).digest('hex'),
  )
  expect(sums[0] === sums[1], 'both tarballs are the same', sums.join('\n'))
  const files = must(['tar', 'tzf', pack()]).split('\n')
  const odd = files.filter((file) => /(?<!\.d)\.ts$|bin\/node|test\/|tsconfig/.test(file))
  expect(odd.length === 0, 'it holds no source and no Node', odd.join('\n'))
  const changed = must(['git', 'status', '--porcelain', 'package.json', 'lib'], { cwd: root })
  return [
    `npm run package and npm pack made the same ${files.length} files, ${sums[0]!.slice(0, 16)}…${changed && `; ${changed}`}`,
  ]
}

export async function withoutScripts(): Promise<string[]> {
  const file = packWith(['npm', 'pack', '--silent', '--ignore-scripts'], 'without-scripts')
  const prefix = newFolder('without-scripts-global')
  const env = shell('26.10.0')
  must(['npm', 'install', '--global', '--omit=optional', '--prefix', prefix, file], { env })
  const { status, text } = run([join(prefix, 'bin/triwire'), '--version'], { env })
  expect(status === 1 && text.includes('npm run package'), 'it says how to pack', text)
  return [text]
}

export async function globally(): Promise<string[]> {
  const lines: string[] = []
  for (const version of packageNodes) {
    const prefix = newFolder(`global ${version} with blanks, ü & more`)
    const env = shell(version, { npm_config_engine_strict: 'true' })
    const installed = run(['npm', 'install', '--global', '--prefix', prefix, pack()], { env })
    expect(installed.status === 0 && !installed.text.includes('EBADENGINE'), 'it installs', installed.text)
    const program = join(prefix, 'bin/triwire')
    const cwd = newFolder('a working folder')
    expect(/^\d+\.\d+\.\d+/.test(must([program, '--version'], { env, cwd })), 'it says its version', '')
    lines.push(`Node ${version}: ${await tryGateway([program, ...anyPorts], { env, cwd })}`)
    must([program, 'account', 'create', 'one', '--credit', '5'], { env, cwd })
    must([program, 'ledger', 'verify'], { env, cwd })
    await trySetup([program], env)
    tryExample(program, env, cwd)
  }
  return lines
}

/** Runs `check` on an example from the package, as the README says. */
function tryExample(program: string, env: NodeJS.ProcessEnv, cwd: string): void {
  const example = join(program, '../../lib/node_modules/triwire/examples/openai.yaml')
  const { status, text } = run([program, '--config', example, 'check'], { env: { ...env, OPENAI_API_KEY: 'k' }, cwd })
  expect(status === 0, 'check takes it', text)
}

export async function refused(): Promise<string[]> {
  const lines: string[] = []
  for (const version of ['20.20.2', '22.22.0', '24.12.0']) {
    const prefix = newFolder(`old-${version}`)
    const strict = run(['npm', 'install', '--global', '--prefix', prefix, pack()], {
      env: shell(version, { npm_config_engine_strict: 'true' }),
    })
    expect(strict.status !== 0 && strict.text.includes('EBADENGINE'), 'engine-strict refuses it', strict.text)
    must(['npm', 'install', '--global', '--prefix', prefix, pack()], { env: shell(version) })
    const { status, text } = run([join(prefix, 'bin/triwire')], { env: shell(version) })
    expect(status === 1 && text.includes('triwire needs Node'), 'it says which Node it needs', text)
    lines.push(text)
  }
  return lines
}
