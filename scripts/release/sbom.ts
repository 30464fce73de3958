import { sha256Hex } from '../../src/ids.ts'
import type { LockedPackage } from './lock.ts'

/*
 * Makes lists of parts (SBOM) from locks, as CycloneDX 1.6 (ECMA-424) and SPDX 2.3 (ISO/IEC 5962). The same parts give
 * the same bytes.
 */

/** @property hash the digest of the file with the part @property parts other parts that are compiled into this one */
export type Part = {
  type: 'application' | 'library' | 'platform'
  name: string
  version: string
  purl: string
  hash?: { alg: 'SHA-256' | 'SHA-512'; content: string }
  license?: string
  parts?: readonly Omit<Part, 'purl'>[]
}

/** Returns the part that stands for triwire itself. The lists of a release describe this part. */
export function triwirePart(version: string): Part {
  return { type: 'application', name: 'triwire', version, purl: `pkg:npm/triwire@${version}`, license: 'MIT' }
}

/** @param self what the list is of @param parts without `self` */
export function toCycloneDx(self: Part, parts: readonly Part[]): string {
  const component = ({
    type,
    name,
    version,
    purl,
    hash,
    license,
    parts,
  }: Omit<Part, 'purl'> & { purl?: string }): object => ({
    type,
    ...(purl !== undefined && { 'bom-ref': purl }),
    name,
    version,
    ...(hash && { hashes: [hash] }),
    ...(license && { licenses: [isExpression(license) ? { expression: license } : { license: { id: license } }] }),
    ...(purl !== undefined && { purl }),
    ...(parts && { components: parts.map(component) }),
  })
  return text({
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(self, parts)}`,
    version: 1,
    metadata: { component: component(self) },
    components: parts.map(component),
    dependencies: [{ ref: self.purl, dependsOn: parts.map(({ purl }) => purl) }],
  })
}

/** @param self what the list is of @param parts without `self` */
export function toSpdx(self: Part, parts: readonly Part[]): string {
  const idOf = (at: number) => `SPDXRef-Package-${at}`
  const all = [self, ...parts]
  return text({
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `${self.name}-${self.version}`,
    documentNamespace: `urn:uuid:${uuidOf(self, parts)}`,
    // SPDX requires a time. The real time would make each list different.
    creationInfo: { created: '1970-01-01T00:00:00Z', creators: ['Tool: triwire-release'] },
    packages: all.map(({ name, version, purl, hash, license }, at) => ({
      SPDXID: idOf(at),
      name,
      versionInfo: version,
      downloadLocation: 'NOASSERTION',
      filesAnalyzed: false,
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: license ?? 'NOASSERTION',
      copyrightText: 'NOASSERTION',
      ...(hash && { checksums: [{ algorithm: hash.alg.replace('-', ''), checksumValue: hash.content }] }),
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
    })),
    relationships: [
      { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: idOf(0) },
      ...parts.map((_, at) => ({
        spdxElementId: idOf(0),
        relationshipType: 'DEPENDS_ON',
        relatedSpdxElement: idOf(at + 1),
      })),
    ],
  })
}

/** Parts of npm's registry, from a lock. */
export function npmParts(packages: Readonly<Record<string, LockedPackage>>): Part[] {
  return Object.entries(packages).map(([path, { version, integrity, license }]) => {
    const name = path.replace(/^.*node_modules\//, '')
    const content = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
    return { type: 'library', name, version, purl, hash: { alg: 'SHA-512', content }, ...(license && { license }) }
  })
}

/** Licences of npm may be expressions of SPDX such as `(MIT OR CC0-1.0)`. */
function isExpression(license: string): boolean {
  return /[ ()]/.test(license)
}

function uuidOf(self: Part, parts: readonly Part[]): string {
  const hex = sha256Hex(JSON.stringify([self, parts]))
  return [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}

function text(value: object): string {
  return `${JSON.stringify(value, null, 1)}\n`
}
