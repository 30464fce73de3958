import { readFileSync } from 'node:fs'

/**
 * Of this triwire, as its package says. No import: what is compiled for the package lies one folder below its manifest as the
 * sources do, and copies nothing.
 */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
