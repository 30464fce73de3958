import type { Config } from '../config/config.ts'
import { refuseNoRoom } from './files/place.ts'
import { StoreError } from './files/store-error.ts'

/**
 * What a server would not start on, in words, and by which key; undefined where it would. Of a database nothing is asked, but of the
 * server's folder.
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
