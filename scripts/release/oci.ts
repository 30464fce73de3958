import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256Hex } from '../../src/ids.ts'
import { compress, type TarEntry, writeTar } from './tar.ts'

/*
 * Makes an image by the OCI Image Format Specification 1.1, without a builder. The same files give the same bytes on
 * any machine with the pinned Node.
 */

const mediaTypes = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  index: 'application/vnd.oci.image.index.v1+json',
}

type Blob = { mediaType: string; digest: string; size: number }

/** @property manifest its digest is the image's `digest` @property blobs contents by digest, without the manifest */
export type OciImage = { digest: string; manifest: Buffer; mediaType: string; blobs: ReadonlyMap<string, Buffer> }

/** An owner of files below one folder of an image, and the mode of that folder. */
export type OwnedFolder = { path: string; owner: number; mode: number }

/**
 * @param folder the files of the image
 * @param owned folders that do not belong to root
 * @param containerfile settings, in the form of image/Containerfile
 */
export function makeImage(folder: string, owned: readonly OwnedFolder[], containerfile: string): OciImage {
  const blobs = new Map<string, Buffer>()
  const add = (mediaType: string, data: Buffer): Blob => {
    const digest = `sha256:${sha256Hex(data)}`
    blobs.set(digest, data)
    return { mediaType, digest, size: data.length }
  }
  const tar = writeTar([...entriesOf(folder), ...owned.map(({ path, owner, mode }) => ({ path, owner, mode }))])
  const layer = add(mediaTypes.layer, compress(tar))
  const settings = {
    created: '1970-01-01T00:00:00Z',
    architecture: 'amd64',
    os: 'linux',
    config: readContainerfile(containerfile),
    rootfs: { type: 'layers', diff_ids: [`sha256:${sha256Hex(tar)}`] },
    history: [{ created: '1970-01-01T00:00:00Z', created_by: 'scripts/release' }],
  }
  const config = add(mediaTypes.config, Buffer.from(JSON.stringify(settings)))
  const whole = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [layer] }
  const manifest = Buffer.from(JSON.stringify(whole))
  return { digest: `sha256:${sha256Hex(manifest)}`, manifest, mediaType: mediaTypes.manifest, blobs }
}

/** Writes an OCI layout, with the image under a tag. */
export function writeLayout(folder: string, { digest, manifest, mediaType, blobs }: OciImage, tag: string): void {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  for (const [name, data] of [...blobs, [digest, manifest] as const])
    writeFileSync(join(folder, 'blobs', name.replace(':', '/')), data)
  writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const annotations = { 'org.opencontainers.image.ref.name': tag }
  const manifests = [{ mediaType, digest, size: manifest.length, annotations }]
  writeFileSync(
    join(folder, 'index.json'),
    JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.index, manifests }),
  )
}

/** Lists the files of a folder. The umask of the person who made the files has no effect on the modes. */
function entriesOf(root: string, below = ''): TarEntry[] {
  return readdirSync(join(root, below)).flatMap((name): TarEntry[] => {
    const path = below === '' ? name : `${below}/${name}`
    const stat = lstatSync(join(root, path))
    if (stat.isSymbolicLink()) return [{ path, mode: 0o777, link: readlinkSync(join(root, path)) }]
    if (stat.isDirectory()) return [{ path, mode: stat.mode & 0o1000 ? 0o1777 : 0o755 }, ...entriesOf(root, path)]
    return [{ path, mode: stat.mode & 0o100 ? 0o755 : 0o644, data: readFileSync(join(root, path)) }]
  })
}

/** Reads the settings of a Containerfile that otherwise only copies. @throws Error for an unknown instruction */
export function readContainerfile(text: string): Record<string, unknown> {
  const config: Record<string, unknown> = {}
  for (const line of text.replace(/\\\n\s*/g, '').split('\n')) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (word === '' || ['FROM', 'COPY'].includes(word)) continue
    if (word === 'USER') config['User'] = rest
    else if (word === 'WORKDIR') config['WorkingDir'] = rest
    else if (word === 'ENV') config['Env'] = rest.split(' ')
    else if (word === 'EXPOSE') config['ExposedPorts'] = { [`${rest}/tcp`]: {} }
    else if (word === 'VOLUME') config['Volumes'] = { [rest]: {} }
    else if (word === 'STOPSIGNAL') config['StopSignal'] = rest
    else if (word === 'ENTRYPOINT') config['Entrypoint'] = JSON.parse(rest)
    else if (word === 'CMD') config['Cmd'] = JSON.parse(rest)
    else if (word === 'HEALTHCHECK') config['Healthcheck'] = readHealthcheck(rest)
    else throw new Error(`image/Containerfile: ${word} is not known here`)
  }
  return config
}

/** Reads a health check, with durations in nanoseconds. It is not in OCI's format; Docker and Podman read it. */
function readHealthcheck(text: string): Record<string, unknown> {
  const seconds = (name: string) => Number(new RegExp(`--${name}=(\\d+)s`).exec(text)?.[1] ?? 0) * 1e9
  const [, command = '[]'] = /CMD (\[.*\])$/.exec(text) ?? []
  return {
    Test: ['CMD', ...JSON.parse(command)],
    Interval: seconds('interval'),
    Timeout: seconds('timeout'),
    StartPeriod: seconds('start-period'),
  }
}
