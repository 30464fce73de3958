import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/sqlite/store.ts'
import { testFolder } from './folder.ts'

let emptyStore: string | undefined

/**
 * Puts a store without accounts at the path, if no file is there. To make the tables takes twenty times as long as to copy a
 * file that has them, and tests open thousands of new stores. Tests of making a store open it by `src/store` itself.
 */
export function copyEmptyStore(path: string): void {
  if (existsSync(path)) return
  if (emptyStore === undefined) {
    emptyStore = join(testFolder('empty'), 'triwire.db')
    openStore(emptyStore).close()
  }
  copyFileSync(emptyStore, path)
}
