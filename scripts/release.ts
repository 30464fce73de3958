import { createPublicKey, type KeyObject } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fingerprintOf, verifyInstalled } from '../src/host/installed.ts'
import { sha256Hex } from '../src/ids.ts'
import { makeOwnImage } from './image/build.ts'
import { pack } from './install/packed.ts'
import { must, newFolder, root } from './install/tools.ts'
import { lockedPackages } from './release/lock.ts'
import {
  findObstacles,
  type ReleaseOptions,
  readOptions,
  readSigningKey,
  releaseOf,
  sectionOf,
} from './release/obstacles.ts'
import { writeLayout } from './release/oci.ts'
import { pushImage } from './release/push.ts'
import { startRegistry } from './release/registry.ts'
import { npmParts, toCycloneDx, toSpdx, triwirePart } from './release/sbom.ts'
import { signFolder, signPackage } from './release/sign.ts'

// npm run release -- --key FILE [--dry-run] [--registry URL] [--out FOLDER]
//
// Packs the package, makes the image, lists their parts, signs all of it, writes notes from CHANGELOG.md, and pushes
// the image. It refuses to begin with changes in the work tree, or without a section in the changelog. SECURITY.md must
// have a contact and the public key. `--dry-run` accepts a version that is not released yet, and pushes to a registry
// in memory if none is named. TRIWIRE_REGISTRY_AUTHORIZATION is the `authorization` header for the registry.

const options = readOptions(process.argv.slice(2))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const { version } = JSON.parse(read('package.json')) as { version: string }

if (typeof options === 'string') refuse([options])
else {
  const key = options.key === undefined ? undefined : readSigningKey(options.key)
  const out = resolve(options.out ?? join(root, '.release'))
  if (typeof key === 'string') refuse([key])
  else {
    const obstacles = findObstacles({
      ...{ isDry: options['dry-run'] === true, version, out, registry: options.registry },
      ...{ changelog: read('CHANGELOG.md'), security: read('SECURITY.md') },
      status: must(['git', 'status', '--porcelain'], { cwd: root }),
      key: key && createPublicKey(key),
    })
    if (obstacles.length > 0) refuse(obstacles)
    else await release(key!, out, options)
  }
}

function refuse(sentences: readonly string[]): void {
  for (const sentence of sentences) console.error(sentence)
  process.exitCode = 1
}

async function release(key: KeyObject, out: string, { registry, 'dry-run': isDry }: ReleaseOptions): Promise<void> {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })

  const self = triwirePart(version)
  const parts = npmParts(lockedPackages(root))
  const lists = { 'sbom.cdx.json': toCycloneDx(self, parts), 'sbom.spdx.json': toSpdx(self, parts) }
  const tarball = join(out, `triwire-${version}.tgz`)
  const unpacked = join(newFolder('signed'), 'package')
  signPackage(pack(), key, lists, tarball, unpacked)
  const { changed, missing, added, files } = verifyInstalled(unpacked)
  if (changed.length + missing.length + added.length > 0) throw new Error('the package does not verify')
  console.log(`package ${sha256Hex(readFileSync(tarball))}: ${files} files, ${parts.length} packages beside it`)

  const { image, folder, lines } = makeOwnImage(tarball)
  for (const line of lines) console.log(`image ${line}`)
  for (const name of ['sbom.cdx.json', 'sbom.spdx.json'])
    writeFileSync(join(out, `image.${name}`), readFileSync(join(folder, 'root/app', name)))
  for (const [name, text] of Object.entries(lists)) writeFileSync(join(out, `package.${name}`), text)
  writeLayout(join(out, 'oci'), image, version)
  writeFileSync(join(out, 'image.digest'), `${image.digest}\n`)

  const { text } = sectionOf(read('CHANGELOG.md'), releaseOf(version))!
  const sums = `Package SHA-256 ${sha256Hex(readFileSync(tarball))}\nImage ${image.digest}\nCommit ${must(['git', 'rev-parse', 'HEAD'], { cwd: root })}\nKey SHA-256 ${fingerprintOf(createPublicKey(key))}`
  writeFileSync(
    join(out, 'notes.md'),
    `# triwire ${version}\n\n${text}\n\n## Digests\n\n${sums.replace(/^/gm, '    ')}\n`,
  )
  signFolder(out, key)

  const standIn = registry === undefined ? await startRegistry() : undefined
  try {
    const repository = registry ?? `${standIn!.url}/triwire`
    const sent = await pushImage(repository, image, version, process.env['TRIWIRE_REGISTRY_AUTHORIZATION'])
    console.log(
      `pushed: ${sent} blobs, and the registry has ${image.digest} under ${version}${standIn ? ' (a registry in memory)' : ''}`,
    )
  } finally {
    await standIn?.close()
  }
  console.log(isDry ? `dry run: all is in ${out}` : `all is in ${out}; now: npm publish ${tarball}`)
}
