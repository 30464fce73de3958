import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { must } from '../install/tools.ts'
import pinned from '../pinned-node.json' with { type: 'json' }

type Component = {
  type: 'application' | 'library' | 'platform'
  name: string
  version: string
  purl?: string
  hashes?: { alg: string; content: string }[]
  licenses?: { license: { id: string } }[]
  components?: Component[]
}

export type Parts = {
  /** The folder that npm installed into. */
  app: string
  /** The SHA-256 of Node before its symbols were removed. */
  node: string
  /** Files of Debian's packages, by their names. */
  debian: ReadonlyMap<string, string>
}

/**
 * Writes the components of an image as CycloneDX 1.6: the packages that npm installed, Node with its built-in
 * libraries, and Debian's packages. The list is made from the installed files, not from what was requested.
 * @returns the number of components
 */
export function writeBom(file: string, { app, node, debian }: Parts): number {
  const { packages } = JSON.parse(readFileSync(join(app, 'node_modules/.package-lock.json'), 'utf8'))
  const installed = Object.entries<Locked>(packages).map(([path, { version, integrity, license }]): Component => {
    const name = path.replace(/^.*node_modules\//, '')
    const sha = integrity && Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
    return {
      type: 'library',
      name,
      version,
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ...(sha && { hashes: [{ alg: 'SHA-512', content: sha }] }),
      ...(license && { licenses: [{ license: { id: license } }] }),
    }
  })
  const components = [
    ...installed,
    describeNode(node),
    ...[...debian].map(([name, path]) => describeDebian(name, path)),
  ]
  const self = installed.find(({ name }) => name === 'triwire')
  const bom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { ...self, type: 'application' } },
    components: components.filter(({ name }) => name !== 'triwire'),
  }
  writeFileSync(file, `${JSON.stringify(bom, null, 1)}\n`)
  return bom.components.length
}

type Locked = { version: string; integrity?: string; license?: string }

/** Describes the Node that runs this script, which is the one in the image. */
function describeNode(sha256: string): Component {
  const { node, v8, ...within } = process.versions as Record<string, string>
  if (node !== pinned.version)
    throw new Error(`this is Node ${node}, the image has ${pinned.version}: run it by npm run image`)
  const counted = Object.entries({ v8, ...within }).filter(
    ([name]) => !['modules', 'napi', 'unicode', 'tz', 'cldr'].includes(name),
  )
  return {
    type: 'platform',
    name: 'node',
    version: pinned.version,
    purl: `pkg:generic/node@${pinned.version}`,
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    components: counted.map(([name, version]) => ({ type: 'library', name, version: String(version) })),
  }
}

function describeDebian(name: string, file: string): Component {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg fills it in
  const format = '${Version} ${Architecture}'
  const [version = '', arch = ''] = must(['dpkg-deb', '--show', '--showformat', format, file]).split(' ')
  const [sha256 = ''] = must(['sha256sum', file]).split(' ')
  return {
    type: 'library',
    name,
    version,
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${arch}`,
    hashes: [{ alg: 'SHA-256', content: sha256 }],
  }
}
