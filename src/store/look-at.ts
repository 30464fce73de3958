import type { Config } from '../config/config.ts'
import { refuseNoRoom } from './files/place.ts'
import { StoreError } from './files/store-error.ts'

/**
 * A reason why a server would not start on the store, in words, with the key; undefined if it would start. The database is
 * not asked, only the server's folder.
 */
export async function startMistake({
  store,
  stateDir,
  reporting,
}: Pick<Config, 'store' | 'stateDir' | 'reporting'>): Promise<{ path: string; message: string } | undefined> {
  try {
    if (store.engine === 'sqlite') {
      const { lookAt } = await import('./sqlite/look-at.ts')
      lookAt(store.path, reporting.timeZone)
    } else refuseNoRoom(stateDir, 'state_dir')
    return undefined
  } catch (error) {
    if (error instanceof StoreError)
      return { path: store.engine === 'sqlite' ? 'store' : 'state_dir', message: error.message }
    throw error
  }
}
