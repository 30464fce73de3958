import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Makes a folder in that of the test run. The runner later searches all files there for secrets. */
export function testFolder(name: string): string {
  return mkdtempSync(join(process.env['TRIWIRE_TEST_DIR'] ?? tmpdir(), `${name}-`))
}
