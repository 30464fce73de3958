import type { ImageLock } from '../release/lock.ts'
import { npmParts, type Part } from '../release/sbom.ts'

/** Lists the parts of an image from its lock: packages of npm, Node with its libraries, and packages of Debian. */
export function imageParts({ npm, node, debian }: ImageLock): Part[] {
  return [
    ...npmParts(npm),
    describeNode(node),
    ...Object.entries(debian).map(([name, { version, sha256 }]): Part => {
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=amd64`
      return { type: 'library', name, version, purl, hash: { alg: 'SHA-256', content: sha256 } }
    }),
  ]
}

/** Describes the Node that runs this script, which is the one in the image. */
function describeNode({ version, sha256 }: ImageLock['node']): Part {
  const { node, v8, ...within } = process.versions as Record<string, string>
  if (node !== version) throw new Error(`this is Node ${node}, the image has ${version}: run it by npm run image`)
  const counted = Object.entries({ v8, ...within }).filter(
    ([name]) => !['modules', 'napi', 'unicode', 'tz', 'cldr'].includes(name),
  )
  return {
    type: 'platform',
    name: 'node',
    version,
    purl: `pkg:generic/node@${version}`,
    hash: { alg: 'SHA-256', content: sha256 },
    parts: counted.map(([name, version]) => ({ type: 'library', name, version: String(version) })),
  }
}
