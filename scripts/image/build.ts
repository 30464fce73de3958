import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { must, root } from '../install/tools.ts'
import { stage } from './stage.ts'

/** The largest compressed size, as the image is pushed and pulled. */
const bytesMax = 60_000_000

/** Flags of every build, so that the same parts make the same image. */
const reproducible = ['--timestamp', '0', '--format', 'docker', '--isolation', 'chroot', '--layers=false']

/** Builds the image with buildah under this name. @returns lines about it. @throws if it is too large */
export function buildImage(name: string): string[] {
  const { folder, components } = stage()
  // Docker's format, since OCI's has no place for a health check.
  must([
    'buildah',
    'bud',
    '--quiet',
    ...reproducible,
    '--file',
    join(root, 'image/Containerfile'),
    '--tag',
    name,
    folder,
  ])
  const pushed = join(folder, 'pushed')
  rmSync(pushed, { recursive: true, force: true })
  mkdirSync(pushed)
  must(['skopeo', 'copy', '--quiet', '--dest-compress', `containers-storage:${name}`, `dir:${pushed}`])
  const bytes = readdirSync(pushed).reduce((sum, file) => sum + statSync(join(pushed, file)).size, 0)
  rmSync(pushed, { recursive: true })
  const megabytes = `${(bytes / 1e6).toFixed(1)} MB compressed`
  if (bytes > bytesMax) throw new Error(`the image has ${megabytes}: at most ${bytesMax / 1e6} MB`)
  return [`${name}: ${megabytes}, ${components} parts in /app/sbom.cdx.json`]
}
