import { BookError } from '../accounts/book-error.ts'
import { sentenceOf } from '../operations/book-words.ts'

/** A rule's refusal in words; anything else as it is. */
export function explainBookError(error: unknown): unknown {
  return error instanceof BookError ? new Error(sentenceOf(error), { cause: error }) : error
}
