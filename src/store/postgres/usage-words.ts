import { createWords as createSharedWords, type Words } from '../sql/words.ts'
import type { Transaction } from './database.ts'
import { dialect } from './run.ts'

export type WordNumbers = Words & { lane: Transaction }

/**
 * A step inside a transaction reads words on its own connection. If it took another one of the same pool, all could wait for a
 * connection that none of them gives back.
 * @param lane commits new words, and has a connection free whatever transactions are under way
 */
export function createWords(lane: Transaction): WordNumbers {
  return { ...createSharedWords(dialect), lane }
}
