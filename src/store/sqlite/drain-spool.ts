import { concludeSpool, type Recovery, readSpool, spoolPath } from '../files/spool.ts'
import type { Store } from './store.ts'

/**
 * Posts what a run before left in the spool, exactly once: what the crashed run had posted all the same is known by its
 * request id. To be called by who holds the store's lock.
 * @param makeDurable what is found posted is taken out of the spool, and must be on the disk before.
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
