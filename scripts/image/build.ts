import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { must, root } from '../install/tools.ts'
import { makeImage, type OciImage, writeLayout } from '../release/oci.ts'
import { imageUser, stage } from './stage.ts'

/** The largest compressed size of the image, in bytes. Pushes and pulls transfer this size. */
const bytesMax = 60_000_000

/** Makes the image of the locked parts. @returns the image, and lines about it @throws if it is too large */
export function makeOwnImage(tarball?: string): { image: OciImage; lines: string[]; folder: string } {
  const { folder, components } = stage(tarball)
  const data = [{ path: 'data', owner: imageUser, mode: 0o700 }]
  const image = makeImage(join(folder, 'root'), data, readFileSync(join(root, 'image/Containerfile'), 'utf8'))
  const bytes = [...image.blobs.values()].reduce((sum, { length }) => sum + length, 0)
  const megabytes = `${(bytes / 1e6).toFixed(1)} MB compressed`
  if (bytes > bytesMax) throw new Error(`the image has ${megabytes}: at most ${bytesMax / 1e6} MB`)
  return { image, folder, lines: [`${image.digest}: ${megabytes}, ${components} parts in /app/sbom.cdx.json`] }
}

/** Makes the image and gives it to the storage of podman and buildah under this name. @returns lines about it */
export function buildImage(name: string): string[] {
  const { image, folder, lines } = makeOwnImage()
  const layout = join(folder, 'oci')
  rmSync(layout, { recursive: true, force: true })
  writeLayout(layout, image, 'latest')
  // Programs read a health check only from an image in Docker's form.
  must(['skopeo', 'copy', '--quiet', '--format', 'v2s2', `oci:${layout}:latest`, `containers-storage:${name}`])
  return lines
}
