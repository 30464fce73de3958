import { buildImage } from '../image/build.ts'
import { tryImage } from '../image/try.ts'
import { tryBinaries } from './tools.ts'

const name = 'localhost/triwire:trial'

/** Builds the image, runs it, sends requests and stops it. */
export async function inContainer(): Promise<string[]> {
  tryBinaries('skopeo', 'podman', 'runc')
  return [...buildImage(name), ...(await tryImage(name))]
}
