import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder in the test run's folder. The runner later searches everything that was written there for secrets. */
export function testFolder(name: string): string {
  return mkdtempSync(join(process.env['TRIWIRE_TEST_DIR'] ?? tmpdir(), `${name}-`))
}
