import type { BookErrorCode } from '../../accounts/book-error.ts'
import type { Act } from '../../accounts/trail.ts'

/* The messages between the serving thread and the thread of the books. */

export type BooksCall = { id: number; method: string; args: readonly unknown[]; act: Act; nowMs: number }

export type Answered =
  | { id: number; result: unknown }
  | { id: number; rule: BookErrorCode; subject: string }
  /** The store could not do it: it is held by others, full, damaged or gone. */
  | { id: number; trouble: string }

/** More rows of sums nobody is handed: who asked would put them into one text, and all others would wait for that. */
export const sumsMax = 10_000

export function toAnswer({ id, method }: Pick<BooksCall, 'id' | 'method'>, result: unknown): Answered {
  const isTooMany = method === 'sumEntries' && (result as readonly unknown[]).length > sumsMax
  return isTooMany ? { id, rule: 'too_many_rows', subject: `${sumsMax}` } : { id, result }
}
