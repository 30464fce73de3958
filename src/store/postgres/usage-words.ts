import { createWords as createSharedWords, type Words } from '../sql/words.ts'
import type { Transaction } from './database.ts'
import { dialect } from './run.ts'

export type WordNumbers = Words & { lane: Transaction }

/**
 * A step inside a transaction reads words on its connection: with another one of the same pool all could wait for one that
 * none of them gives back.
 * @param lane commits new words, and has a connection free whatever transactions are under way
 */
export function createWords(lane: Transaction): WordNumbers {
  return { ...createSharedWords(dialect), lane }
}
