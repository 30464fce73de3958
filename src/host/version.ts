import { readFileSync } from 'node:fs'

/**
 * The version of triwire, from package.json. That file is read rather than imported, so that a build need not copy it.
 * Compiled files are in a folder of the same depth as this one.
 */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
