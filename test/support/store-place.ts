import type { StorePlace } from '../../src/config/config.ts'
import { readStorePlace } from '../../src/config/store-place.ts'

/** Returns the place of a store in a file. */
export const fileAt = (path: string): StorePlace => readStorePlace(path, '/')

/** Returns the path of a store that is a file. */
export function pathOf(store: StorePlace): string {
  if (store.engine !== 'sqlite') throw new Error(`${store.shown} is no file`)
  return store.path
}
