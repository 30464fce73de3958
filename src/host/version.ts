import { readFileSync } from 'node:fs'

/**
 * The version of triwire, read from its package. It is not imported, because the compiled files lie one folder below the
 * manifest, as the sources do, and nothing is copied.
 */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
