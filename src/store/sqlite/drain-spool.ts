import { concludeSpool, type Recovery, readSpool, spoolPath } from '../files/spool.ts'
import type { Store } from './store.ts'

/**
 * Posts the debits that an earlier run left in the spool, exactly once: one that was posted before is known by its request
 * id. The caller holds the store's lock.
 * @param makeDurable debits that are found posted leave the spool, and must be on the disk before
 */
export function drainSpool(path: string, store: Store, makeDurable: () => void): Recovery | undefined {
  const spooled = readSpool(spoolPath(path))
  const { debits, returns, unreadable } = spooled
  if (!debits.length && !returns.length && !unreadable) return undefined
  makeDurable()
  const postings = store.postDebits(debits)
  const returned = returns.length ? store.giveBack(returns).length : 0
  return concludeSpool(spoolPath(path), spooled, postings, returned)
}
