import { buildImage } from '../image/build.ts'
import { tryImage } from '../image/try.ts'
import { tryBinaries } from './tools.ts'

const name = 'localhost/triwire:trial'

/** The image is built, run, asked and stopped. */
export async function inContainer(): Promise<string[]> {
  tryBinaries('buildah', 'skopeo', 'podman', 'runc')
  return [...buildImage(name), ...(await tryImage(name))]
}
