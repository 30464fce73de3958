import type { StorePlace } from '../config/config.ts'
import { StoreError } from './files/store-error.ts'

/** What a server would not start on, in words; undefined where it would. Of a database nothing is asked. */
export async function startMistake(store: StorePlace, timeZone: string): Promise<string | undefined> {
  if (store.engine !== 'sqlite') return undefined
  const { lookAt } = await import('./sqlite/look-at.ts')
  try {
    lookAt(store.path, timeZone)
    return undefined
  } catch (error) {
    if (error instanceof StoreError) return error.message
    throw error
  }
}
