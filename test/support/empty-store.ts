import { copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/sqlite/store.ts'
import { testFolder } from './folder.ts'

let emptyStore: string | undefined

/**
 * Copies a store without accounts to the path, if no file is there. Making the tables would take twenty times as long,
 * and tests open thousands of new stores. Tests of how a store is made use `src/store` directly.
 */
export function copyEmptyStore(path: string): void {
  if (existsSync(path)) return
  if (emptyStore === undefined) {
    emptyStore = join(testFolder('empty'), 'triwire.db')
    openStore(emptyStore).close()
  }
  copyFileSync(emptyStore, path)
}
