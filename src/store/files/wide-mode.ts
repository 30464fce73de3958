import { statSync } from 'node:fs'
import { StoreError } from './store-error.ts'

/** Of files that are not there nothing is said. @throws StoreError naming one that other users may read. */
export function refuseWideMode(paths: readonly string[]): void {
  if (process.platform === 'win32') return
  for (const file of paths) {
    const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
    if (mode & 0o077) {
      const octal = (mode & 0o777).toString(8).padStart(4, '0')
      throw new StoreError(`${file} can be read by other users (mode ${octal}): run chmod 600 ${file}`)
    }
  }
}
