import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of its own, under the test run's folder, so that what is written there is looked through afterwards. */
export function testFolder(name: string): string {
  return mkdtempSync(join(process.env['TRIWIRE_TEST_DIR'] ?? tmpdir(), `${name}-`))
}
