import type { Posting } from '../../accounts/poster.ts'
import { readSpool, retireSpool, spoolPath } from '../files/spool.ts'
import type { Store } from './store.ts'
import type { Recovery } from './thread-messages.ts'

/**
 * Posts what a run before left in the spool, exactly once: what the crashed run had posted all the same is known by its
 * request id. To be called by who holds the store's lock.
 * @param makeDurable what is found posted is taken out of the spool, and must be on the disk before.
 */
export function drainSpool(path: string, store: Store, makeDurable: () => void): Recovery | undefined {
  const { debits, returns, unreadable } = readSpool(spoolPath(path))
  if (!debits.length && !returns.length && !unreadable) return undefined
  makeDurable()
  const postings = store.postDebits(debits)
  const returned = returns.length ? store.giveBack(returns).length : 0
  const count = (...kinds: Posting[]) => postings.filter((posting) => kinds.includes(posting)).length
  const rejected = count('rejected', 'conflict')
  const aside = retireSpool(spoolPath(path), rejected + unreadable === 0)
  return { posted: count('posted'), known: count('exists'), returned, rejected, unreadable, aside }
}
