import { readFileSync } from 'node:fs'

/**
 * The version of triwire, read from its package. The manifest is read rather than imported, so the build need not copy
 * it. The compiled files are in a folder of the same depth as the sources.
 */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
